"""The recording in the package is the measurement it says it is."""

import gzip
import importlib.util
from itertools import pairwise

import pytest

from admitperf.bench.demo.recording import DEMO, Recording


@pytest.fixture
def script(root):
    """The script that makes the recording."""
    spec = importlib.util.spec_from_file_location(
        "make_demo_run", root / "tools" / "make_demo_run.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_what_the_script_makes_of_the_measured_run(script, shared):
    """Nothing in it was written or changed by hand."""
    run = (shared / "runs" / "vllmA2-rate7.jsonl").read_text(encoding="utf-8")
    made = gzip.decompress(script.OUT.read_bytes()).decode()
    assert made == script.recording(run)
    assert script.OUT.name == DEMO


def test_it_is_small(script):
    """The package stays light."""
    assert script.OUT.stat().st_size < 80_000


def test_it_holds_an_overload_of_a_full_engine():
    """Twice the capacity, a full cache, a queue that grows, every request ended."""
    made = Recording.demo()
    assert made.load == 2
    assert len(made.scrapes) == 312
    assert len(made.calls) == 219
    assert max(s.raw["vllm:kv_cache_usage_perc"] for s in made.scrapes) == 1
    assert max(s.raw["vllm:num_requests_waiting"] for s in made.scrapes) == 96
    assert all(call.ok for call in made.calls)


def test_its_times_are_consistent():
    """In order, and within a request first token before end."""
    made = Recording.demo()
    for line in (made.scrapes, made.calls):
        assert all(a.t_s <= b.t_s for a, b in pairwise(line))
    assert all(0 < call.ttft_ms <= call.e2e_ms for call in made.calls)
    assert all(0 <= call.max_gap_ms <= call.e2e_ms for call in made.calls)


def test_another_schema_is_refused():
    """A recording of the future is not half understood."""
    with pytest.raises(ValueError, match="schema 2"):
        Recording.of('{"k":"recording","schema":2}\n')
