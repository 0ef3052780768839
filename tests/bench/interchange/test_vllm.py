"""What `vllm bench serve` wrote before a real vLLM, and what it writes of a refusal."""

import json

import pytest

from admitperf.bench.interchange.page import text


@pytest.fixture
def real(data):
    """The result of a real run."""
    return data / "fixtures" / "real-vllm-bench-serve-0.32.0.json"


@pytest.fixture
def changed(real, tmp_path):
    """That result with some fields replaced or, where None, taken away."""

    def _changed(**fields):
        whole = json.loads(real.read_text("utf-8")) | fields
        path = tmp_path / "changed.json"
        kept = {name: value for name, value in whole.items() if value is not None}
        path.write_text(json.dumps(kept), encoding="utf-8")
        return path

    return _changed


def first_refused(whole):
    """The lists of a result whose first request got a 503."""
    return {
        "errors": ["Service Unavailable", *whole["errors"][1:]],
        "ttfts": [0.0, *whole["ttfts"][1:]],
        "itls": [[], *whole["itls"][1:]],
        "latencies": [0.0, *whole["latencies"][1:]],
        "output_lens": [0, *whole["output_lens"][1:]],
    }


def test_the_real_result_is_counted_as_its_lists_say(real, judged):
    """Good are those in time whose longest gap was short, of all 60."""
    (run,) = judged(real, ttft_ms=300, stall_ms=200)
    whole = json.loads(real.read_text("utf-8"))
    in_time = [
        1000 * (ttft + queued) <= 300 and max(gaps) <= 0.2
        for ttft, queued, gaps in zip(
            whole["ttfts"], whole["queue_times"], whole["itls"], strict=True
        )
    ]
    assert 0 < sum(in_time) < 60
    assert (run.summary.good, run.summary.offered) == (sum(in_time), 60)
    assert run.summary.answered == whole["completed"]
    assert run.cannot is None
    assert run.at_most == ()


def test_the_clock_starts_where_the_request_waited_for_its_turn(real, judged):
    """Waiting inside the generator is the user's too, and is told apart."""
    (run,) = judged(real)
    whole = json.loads(real.read_text("utf-8"))
    first = run.run.records[0]
    assert first.ttft_ms == pytest.approx(
        1000 * (whole["ttfts"][0] + whole["queue_times"][0])
    )
    assert first.last_ttft_ms == pytest.approx(1000 * whole["ttfts"][0])
    assert run.summary.late_ms["max"] == pytest.approx(1000 * max(whole["queue_times"]))


def test_a_refusal_is_offered_and_has_no_latency(real, changed, judged):
    """Its phrase says which status it was; its zeros are no times."""
    whole = json.loads(real.read_text("utf-8"))
    (run,) = judged(changed(**first_refused(whole)))
    (before,) = judged(real)
    refused = run.run.records[0]
    assert (refused.ended, refused.status, refused.ttft_ms) == ("refused", 503, None)
    assert run.summary.offered == 60
    assert run.summary.good == before.summary.good - 1
    assert run.summary.ttft_served_ms["n"] == 59


def test_without_single_requests_there_is_no_goodput(changed, judged):
    """Only totals are shown, with what option would have kept the rest."""
    names = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times")
    path = changed(**dict.fromkeys(names), failed=6, completed=54)
    (run,) = judged(path, ttft_ms=300)
    page = text(run, "x.json")
    assert run.summary is None
    assert run.document()["goodput"] is None
    assert "failed        6 of 60 (10.0 %)" in page
    assert "cannot be answered: the file holds no single request" in page
    assert "--save-detailed" in page


def test_its_own_goodput_stands_beside_with_what_it_lacks(real, judged):
    """A rate without a denominator is no goodput over offered."""
    (run,) = judged(real)
    assert run.run.own.startswith("request_goodput 2.559/s")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ttfts": [0.1]}, "ttfts: there are 1 for 60 requests"),
        ({"ttfts": ["soon"] * 60}, "request 0: ttfts: 'soon' is no number"),
        ({"latencies": [-1.0] * 60}, "request 0: latencies: -1.0 is no number"),
        ({"itls": [7] * 60}, "request 0: itls: 7 is no list"),
        ({"output_lens": [1.5] * 60}, "output_lens: 1.5 is no whole number"),
        ({"start_times": [1e300] * 60}, "start_times[0]: 1e+300 is no number"),
    ],
)
def test_what_no_value_could_be_is_one_line(changed, judged, fields, said):
    """It names the file, the request and the field."""
    from admitperf.core.errors import LogError

    with pytest.raises(LogError) as refused:
        judged(changed(**fields))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
