"""What a page or a log says about an engine's size and its requests."""

import gzip
import json

import pytest
from tests.engines.pages import load as page
from tests.scrape.server import http

from admitperf.lab.fault import LabError
from admitperf.lab.sizes import from_log, from_page, is_log
from admitperf.lab.watch import Plan, Watch
from admitperf.policies import load
from admitperf.scrape.address import Address
from admitperf.scrape.target import Endpoint

CONFIG = 'vllm:cache_config_info{{engine="{}",block_size="16",num_gpu_blocks="{}"}}'


def told(sizes):
    """The values alone."""
    return {name: one.value for name, one in sizes.items()}


@pytest.fixture
def log(tmp_path):
    """A log of so many requests of 100 tokens in and up to 50 out; 20 came."""

    def _log(count, *, ended=True, **facts):
        path = tmp_path / "log.jsonl"
        raw = {"vllm:num_requests_running": 6.0, "vllm:kv_cache_usage_perc": 0.25}
        with load("kv_threshold")(log=path) as policy:
            for _ in range(count):
                given = {"input_tokens": 100, "max_output_tokens": 50, **facts}
                d = policy(raw, **given)
                if ended:
                    policy.outcome(d.request_id, output_tokens=20)
        return path

    return _log


def test_a_real_vllm_page_says_its_memory_block_and_mean_request():
    """48 blocks of 32 tokens; 119 requests finished, 18,619 tokens in, 10,222 out."""
    found = from_page(page("real-vllm-0.32.0-load.prom"))
    assert told(found) == {
        "kv_tokens": 1536,
        "block_tokens": 32,
        "tokens_per_request": pytest.approx((18619 + 10222) / 119),
    }
    assert "119 requests" in found["tokens_per_request"].origin


def test_the_product_counts_where_no_size_is_printed():
    """Blocks times block size, as releases before 0.24 say it."""
    assert told(from_page({CONFIG.format(0, 24000): 1.0}))["kv_tokens"] == 384_000


def test_of_several_engines_the_smallest_counts():
    """A request lands in one of them."""
    found = from_page({CONFIG.format(0, 100): 1.0, CONFIG.format(1, 90): 1.0})
    assert found["kv_tokens"].value == 90 * 16
    assert found["kv_tokens"].origin == "the smallest of 2 engines"


def test_sglang_says_its_requests_by_counters():
    """Tokens in and out over requests, since the start."""
    found = from_page(page("constructed_sglang_0.4.6.post5.prom"))
    assert found["tokens_per_request"].value == pytest.approx(
        (8.128902e06 + 7.557572e06) / 7283
    )


def test_an_idle_engine_has_no_usual_request():
    """No request finished: not known, and nothing is divided by."""
    assert "tokens_per_request" not in from_page(page("real-vllm-0.32.0-idle.prom"))


@pytest.mark.parametrize("page", [{}, {"vllm:cache_config_info": float("nan")}])
def test_a_page_that_says_nothing_says_nothing(page):
    """Nothing is guessed."""
    assert from_page(page) == {}


def test_a_log_says_sizes_and_the_most_that_ran(log):
    """In and out of each request, by outcome where there is one."""
    found = from_log(str(log(25)))
    assert told(found) == {
        "running": 6, "kv_pressure": 0.25, "tokens_per_request": 120, "tokens_p95": 120
    }  # fmt: skip
    assert found["tokens_per_request"].origin == "mean of 25 requests in the log"


def test_without_outcomes_the_most_that_may_come_counts(log):
    """The worst case, since what came is not known."""
    assert from_log(str(log(3, ended=False)))["tokens_per_request"].value == 150


def test_a_p95_of_few_requests_is_withheld(log):
    """Of under twenty it would be the largest."""
    assert "tokens_p95" not in from_log(str(log(19)))
    assert "tokens_p95" in from_log(str(log(20)))


def test_requests_of_unknown_size_are_left_out(log):
    """Neither input alone nor output alone is a size."""
    assert "tokens_per_request" not in from_log(str(log(3, input_tokens=None)))
    alone = log(3, ended=False, max_output_tokens=None)
    assert "tokens_per_request" not in from_log(str(alone))


def test_a_trace_says_what_its_engines_page_says(serve, tmp_path, data):
    """Memory, block and mean request of the newest page, and the most that ran."""
    body = (data / "fixtures" / "real-vllm-0.32.0-load.prom").read_bytes()
    path = tmp_path / "t"
    endpoint = Endpoint(Address.of(serve(http(body)).url))
    with Watch(Plan([endpoint], 0.05, 2, str(path), replace=False, classes=[])) as one:
        one.first()
        list(one.run())
        one.judge()
    found = told(from_log(str(path)))
    assert (found["kv_tokens"], found["block_tokens"]) == (1536, 32)
    assert found["tokens_per_request"] == pytest.approx(28841 / 119)
    assert found["running"] == 6


def test_a_log_is_told_from_a_page(log, data, tmp_path):
    """Plain or packed, and behind the NULs of a truncated file."""
    path = log(1)
    assert is_log(str(path))
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert is_log(str(packed))
    assert from_log(str(packed))["running"].value == 6
    torn = tmp_path / "torn"
    torn.write_bytes(b"\0" * 100 + path.read_bytes())
    assert is_log(str(torn))
    assert not is_log(str(data / "fixtures" / "real-vllm-0.32.0-load.prom"))
    assert not is_log(str(data / "fixtures" / "edge_empty_body.txt"))


def test_lines_that_cannot_be_used_are_passed_over(log):
    """Any JSON, and none; a log goes on behind it."""
    path = log(2)
    odd = [
        '{"k":"decision","signals":[],"facts":7}', "[1]", "null", "{", "[" * 9999,
        json.dumps({"k": "decision", "signals": {"running": "6"}, "facts": None}),
        json.dumps({"k": "decision", "signals": {"running": 1e300}}),
        json.dumps({"k": "reading", "raw": {"x": "y"}, "gone": 3, "run": []}),
        json.dumps({"k": "outcome", "of": [], "run": {}, "output_tokens": 1}),
    ]  # fmt: skip
    path.write_text("\n".join(odd) + "\n" + path.read_text())
    assert told(from_log(str(path)))["running"] == 6


def test_what_is_no_log_is_one_fault(tmp_path):
    """Empty, without a decision, broken off: one line each."""
    path = tmp_path / "t"
    for body in (b"", b'{"k":"run"}\n', gzip.compress(b'{"k"' * 999)[:20]):
        path.write_bytes(body)
        with pytest.raises(LabError) as caught:
            from_log(str(path))
        assert "\n" not in str(caught.value)
