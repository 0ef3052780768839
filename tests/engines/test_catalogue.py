"""The table of engines is complete and is handed over once."""

import pytest

from admitperf.core.signals import ALL, KV_PRESSURE, OLDEST_WAIT_S
from admitperf.core.signals import ENGINE as ENGINE_SIGNALS
from admitperf.engines.catalogue import ENGINES, engine_of, install

every_engine = pytest.mark.parametrize(
    "engine", ENGINES, ids=[engine.name for engine in ENGINES]
)


@pytest.fixture
def untouched():
    """The signals' sources, put back afterwards."""
    kept = {signal: signal.sources for signal in ALL}
    yield
    for signal, sources in kept.items():
        signal.sources = sources


def test_installing_twice_changes_nothing(untouched):
    """Whoever imports the package first, each source stands once."""
    before = {signal: signal.sources for signal in ALL}
    install()
    assert {signal: signal.sources for signal in ALL} == before


def test_a_users_source_stays_first(untouched):
    """The catalogue comes after what a user put in front."""
    mine = KV_PRESSURE.add_source("acme.cache.used_frac")
    install()
    assert KV_PRESSURE.sources[0] is mine


def test_every_source_is_reached_in_the_order_of_the_table(untouched):
    """Precedence inside an engine is its own list, over engines the table's."""
    for signal in ENGINE_SIGNALS:
        listed = [s for engine in ENGINES for s in engine.sources.get(signal, ())]
        installed = [source for source in signal.sources if source.engine]
        assert installed == listed


@every_engine
def test_an_engine_supplies_a_signal_or_says_why_not(engine):
    """No signal is left open: each has sources or a reason."""
    supplied, lacking = set(engine.sources), set(engine.lacks)
    assert supplied | lacking == {*ENGINE_SIGNALS, OLDEST_WAIT_S}
    assert not supplied & lacking
    assert all(engine.sources.values())
    assert all(engine.lacks.values())


@every_engine
def test_a_source_says_whose_it_is_and_has_its_own_name(engine):
    """A decision record can name the source, and no two share a name."""
    for sources in engine.sources.values():
        assert {source.engine for source in sources} == {engine.name}
        described = [source.describe("its own") for source in sources]
        assert len(set(described)) == len(described)


def test_slow_gauges_say_how_slow():
    """The age limit must not undercut an engine's own rhythm."""
    slowest = {
        engine.name: max(s.refresh_s for it in engine.sources.values() for s in it)
        for engine in ENGINES
    }
    assert slowest == {
        "vllm": 0.0, "sglang": 2.0, "trtllm": 0.0, "dcgm": 30.0, "amd": 0.0,
        "triton": 0.0, "lmdeploy": 10.0, "dynamo": 0.0, "llamacpp": 0.0, "tgi": 0.0,
        "epp": 2.0,
    }  # fmt: skip


def test_memory_of_running_requests_only_is_marked():
    """The gauges of vLLM and SGLang contradict themselves when nothing runs."""
    marked = {source.engine for source in KV_PRESSURE.sources if source.running_only}
    assert marked == {"vllm", "sglang"}


@pytest.mark.parametrize(
    ("names", "engine"),
    [
        (["vllm:num_requests_running"], "vllm"),
        (["ray_vllm_num_requests_running"], "vllm"),
        (["python_info", "sglang:token_usage"], "sglang"),
        (["vllm:x", "dynamo_component_inflight_requests"], "dynamo"),
        (["llm_d_epp_ready_endpoints"], "epp"),
        (["numActiveRequests"], "trtllm"),
        (["python_info", "process_start_time_seconds"], None),
        ([], None),
    ],
)
def test_a_page_without_a_known_name_is_a_failed_scrape(names, engine):
    """Process metrics alone say nothing about an engine."""
    assert engine_of(dict.fromkeys(names, 1.0)) == engine
