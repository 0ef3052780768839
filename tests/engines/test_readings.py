"""Readings: what a page says beyond its signals."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.engines.pages import FIXTURES, cases, same

from admitperf.core.series import Series
from admitperf.core.signals import ALL
from admitperf.core.window import Window
from admitperf.engines.exposition import parse
from admitperf.engines.readings import read

PLAIN_CASES = [
    case
    for case in cases()
    if not {"window", "max_age_s"} & set(case.facts)
    and case.expected["fixture"].endswith(".prom")
    and not case.expected.get("reader", {}).get("truncated")
]
plain_cases = pytest.mark.parametrize(
    "case", PLAIN_CASES, ids=[case.name for case in PLAIN_CASES]
)


def test_an_empty_page_knows_nothing():
    """Every signal and reading is None; none is zero."""
    known = read({})
    assert {signal.name for signal in ALL} < set(known)
    assert {name: value for name, value in known.items() if value is not None} == {}


def test_the_newest_line_tells_the_adapters():
    """Old label sets stay on the page; the value is when a line was written."""
    labels = 'running_lora_adapters="{}",waiting_lora_adapters="{}"'
    line = f"vllm:lora_requests_info{{{{{labels}}}}} {{}}\n"
    page = line.format("a,b", "c", "1.7e9") + line.format("", "", "1.6e9")
    known = read(parse(page + line.format("z", "z", "NaN")))
    assert known["lora_running"] == ["a", "b"]
    assert known["lora_waiting"] == ["c"]


def test_first_token_times_are_those_of_streamed_answers():
    """Where a label tells them apart, whole answers are left out."""
    line = 'sglang:time_to_first_token_seconds_{}{{{}is_streaming="{}"}} {}\n'

    def page(streamed, whole):
        return (
            line.format("bucket", 'le="1.0",', "True", streamed)
            + line.format("bucket", 'le="+Inf",', "True", streamed)
            + line.format("count", "", "True", streamed)
            + line.format("bucket", 'le="1.0",', "False", 0)
            + line.format("bucket", 'le="+Inf",', "False", whole)
            + line.format("count", "", "False", whole)
        )

    before, after = Series(parse(page(0, 0))), Series(parse(page(10, 90)))
    known = read(after.raw, Window.between(before, after, 10.0))
    assert known["ttft_p50_s"] == 0.5
    assert known["ttft_p95_s"] == pytest.approx(0.95)


def test_a_weighted_pressure_needs_every_ranks_size():
    """A rank without a size makes the pool's figure unknown."""
    line = 'vllm:kv_cache_usage_perc{{engine="{}"}} {}\n'
    size = 'vllm:cache_config_info{{engine="{}",kv_cache_size_tokens="{}"}} 1\n'
    page = line.format(0, 0.5) + line.format(1, 0.8) + size.format(0, 300)
    assert read(parse(page))["kv_pressure_capacity_weighted"] is None
    whole = read(parse(page + size.format(1, 100)))
    assert whole["kv_pressure_capacity_weighted"] == pytest.approx(0.575)


def test_a_number_no_float_can_hold_is_not_known():
    """A sum that overflows is None, neither an exception nor infinity."""
    line = 'vllm:num_preemptions_total{{engine="{}"}} 1e308\n'
    page = line.format(0) + line.format(1)
    assert read(parse(page))["preemptions_total"] is None


def test_gpu_memory_counts_what_prints_both_of_its_parts():
    """A slice that prints no free memory has no share."""
    line = 'DCGM_FI_DEV_FB_{}{{gpu="{}"}} {}\n'
    page = line.format("USED", 0, 60) + line.format("FREE", 0, 40)
    page += line.format("USED", 1, 99)
    assert read(parse(page))["gpu_mem_frac"] == 0.6
    blank = line.format("USED", 1, 99) + line.format("FREE", 1, 9223372036854775794)
    assert read(parse(blank))["gpu_mem_frac"] is None


@plain_cases
def test_a_mapping_made_by_prometheus_client_says_the_same(case):
    """A host may hand over what that parser made, `_total` added where it adds it."""
    text = (FIXTURES / case.expected["fixture"]).read_text("utf-8").split("# EOF")[0]
    mapping = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{n}="{escaped(v)}"' for n, v in sample.labels.items())
            mapping[f"{sample.name}{{{labels}}}"] = sample.value
    known = read(mapping)
    right = {name: it["value"] for name, it in case.facts["signals"].items()}
    wrong = {name: known[name] for name in right if not same(known[name], right[name])}
    assert wrong == {}


def escaped(text):
    """A label value as it stands in a key."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@plain_cases
def test_the_order_of_lines_changes_no_reading(case):
    """A page printed backwards says the same."""
    page = case.page()
    backwards = dict(reversed(page.items()))
    forwards = read(page)
    assert {k: v for k, v in read(backwards).items() if not same(v, forwards[k])} == {}
