"""Field cases about metrics, as far as pages and signals decide them."""

import gc
import statistics
import sys
import timeit

import pytest

from admitperf.core.series import Series
from admitperf.core.signals import (
    ENGINE,
    GPU_UTIL,
    KV_PRESSURE,
    PREFIX_HIT_RATE,
    QUEUE_DEPTH,
    RUNNING,
)
from admitperf.core.source import Source
from admitperf.core.window import Window
from admitperf.engines.catalogue import install
from admitperf.engines.exposition import parse
from admitperf.engines.readings import read

MOST_PARSE_S = 0.010
"""A case's own bound on the median; the printed table of the benchmarks is stricter."""


@pytest.fixture(autouse=True, scope="module")
def installed():
    """Every signal has its engines' sources."""
    install()


@pytest.fixture
def page(data, request):
    """Reads a file of the case whose id is in the test's name."""
    _, _, _, number, *_ = request.node.name.split("_")
    folder = data / "cases" / f"s-met-{number}"
    return lambda name: parse((folder / name).read_bytes())


def value(signal, page, window=Window.EMPTY):
    """A signal's value on a page."""
    _, found, _ = signal.find(Series(page), window)
    return None if found is None else found.value


def window(before, after, seconds=10.0):
    """The window between two pages."""
    return Window.between(Series(before), Series(after), seconds)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("old_only.txt", "vllm_gpu_cache_usage_perc"),
        ("new_only.txt", "vllm_kv_cache_usage_perc"),
        ("both_disagree.txt", "vllm_kv_cache_usage_perc"),
    ],
)
def test_s_met_01_renamed_gauge(page, name, source):
    """KV pressure is 0.42 under either name, the current one wins and is named."""
    used, found, _ = KV_PRESSURE.find(Series(page(name)))
    assert found.value == 0.42
    assert used.name == source


@pytest.mark.parametrize("suffix", ["", "_unsuffixed"])
def test_s_met_02_total_suffix(page, suffix):
    """570 of 800 lookups in both spellings; one page alone knows nothing yet."""
    before, after = page(f"t0{suffix}.txt"), page(f"t10{suffix}.txt")
    assert value(PREFIX_HIT_RATE, after, window(before, after)) == 0.7125
    assert value(PREFIX_HIT_RATE, after) is None


def test_s_met_02_neither_spelling(page):
    """A page without the counters gives None over any window."""
    empty = parse("python_info 1\n")
    assert value(PREFIX_HIT_RATE, empty, window(empty, empty)) is None


def test_s_met_03_one_page_for_four_engines(page):
    """Counts are summed, the fullest engine is the pressure, in any order of lines."""
    whole = page("dp4.txt")
    for lines in (whole, dict(reversed(whole.items()))):
        assert value(QUEUE_DEPTH, lines) == 225.0
        assert value(RUNNING, lines) == 88.0
        assert value(KV_PRESSURE, lines) == 1.0
        _, found, _ = KV_PRESSURE.find(Series(lines))
        assert found.parts == {
            "engine=0": 1.0, "engine=1": 0.986, "engine=2": 0.1, "engine=3": 0.05,
        }  # fmt: skip


def test_s_met_04_one_series_per_process(page):
    """Eight lines that differ in `pid` describe one engine."""
    assert value(KV_PRESSURE, page("pids.txt")) == 0.653
    assert value(QUEUE_DEPTH, page("pids.txt")) == 12.0


def test_s_met_05_not_a_number(page):
    """KV pressure is not supplied, the queue is; the skipped series is noted."""
    whole = page("nan.txt")
    source, found, notes = KV_PRESSURE.find(Series(whole))
    assert (source, found) == (None, None)
    assert len(notes) == 1
    assert "nan" in notes[0]
    assert value(QUEUE_DEPTH, whole) == 3.0


def test_s_met_06_negative_usage(page):
    """Below the range is None and one note, not zero and not headroom."""
    source, found, notes = KV_PRESSURE.find(Series(page("negative.txt")))
    assert (source, found) == (None, None)
    assert len(notes) == 1
    assert "-0.38754" in notes[0]


def test_s_met_11_percent_and_rubbish(page):
    """97 is 0.97, 1 is 0.01, and 4294967295 is nothing, with a note."""
    _, found, _ = GPU_UTIL.find(Series(page("dcgm.txt")))
    assert found.parts == {"gpu=0": 0.97, "gpu=1": 0.01}
    assert found.value == pytest.approx(0.49)
    assert read(page("dcgm.txt"))["gpu_util_max"] == 0.97
    source, found, notes = GPU_UTIL.find(Series(page("dcgm_garbage.txt")))
    assert (source, found) == (None, None)
    assert any("4.29497e+09" in note for note in notes)


def test_s_met_11_a_percent_mapped_by_mistake(page):
    """A fraction signal over a percent source skips 97 and cannot tell 1."""
    mapped = Source("DCGM_FI_DEV_GPU_UTIL")
    found = mapped.read(Series(page("dcgm.txt")), Window.EMPTY, "max", 0.0, 1.0)
    assert found.value == 1.0
    assert "97" in found.skipped[0]


def test_s_met_12_a_gauge_that_holds_the_time(page):
    """The newest adapters are known, and no signal reads 1.7e9."""
    whole = page("lora.txt")
    assert [value(signal, whole) for signal in ENGINE] == [None] * len(ENGINE)
    known = read(whole)
    assert known.pop("lora_running") == ["a", "b"]
    assert known.pop("lora_waiting") == ["c"]
    assert set(known.values()) == {None}


def test_s_met_13_a_reset_that_looks_plausible(page):
    """Since the restart 30 of 100 lookups hit; 0.906 would be two falls' ratio."""
    before, after = page("before.txt"), page("after_restart.txt")
    assert value(PREFIX_HIT_RATE, after, window(before, after)) == 0.3


def test_s_met_14_a_full_page_says_the_same_filtered(page, data):
    """Waiting is 5 and KV 0.61, also when only those lines are parsed."""
    body = (data / "cases/s-met-14/scrape_42k.txt").read_text("utf-8")
    assert len(body) == 42_609
    wanted = ("num_requests_waiting", "kv_cache_usage_perc")
    lines = [line for line in body.splitlines() if any(it in line for it in wanted)]
    for whole in (parse(body), parse("\n".join([*lines, ""]))):
        assert value(QUEUE_DEPTH, whole) == 5.0
        assert value(KV_PRESSURE, whole) == 0.61


def test_s_met_14_a_full_page_is_cheap(data):
    """The median of 200 parses stays far below a scrape interval."""
    body = (data / "cases/s-met-14/scrape_42k.txt").read_bytes()
    times = timeit.repeat(lambda: parse(body), number=1, repeat=200)
    assert statistics.median(times) < MOST_PARSE_S


def test_s_met_14_ten_thousand_pages_leave_nothing_behind(data):
    """Memory is flat: nothing is kept of a page that is gone."""
    body = (data / "cases/s-met-14/scrape_42k.txt").read_bytes()

    def blocks_after(pages):
        for _ in range(pages):
            Series(parse(body))
        gc.collect()
        return sys.getallocatedblocks()

    settled = blocks_after(100)
    assert blocks_after(10_000) - settled < 1_000
