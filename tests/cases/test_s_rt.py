"""Field cases about retries: what a refusal tells its caller."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf import Policy
from admitperf.core.wait import spread_ms, unit_interval
from admitperf.testing import FakeClock

IDS = [f"request-{n}" for n in range(30)]


class Says(Policy):
    """Refuses with the hint or the estimate the test wants."""

    name = "says"

    def decide(self, metrics):
        """Say it."""
        refuse = getattr(self, self.verdict)
        return refuse(self.because, self.hint_ms, self.estimate_ms)


def says(
    because="kv_pressure", verdict="defer", hint_ms=None, estimate_ms=None, **given
):
    """A policy with one answer."""
    return Says(
        because=because, verdict=verdict, hint_ms=hint_ms, estimate_ms=estimate_ms,
        clock=FakeClock(), **given,
    )  # fmt: skip


def seconds(policy):
    """`Retry-After` as thirty callers read it."""
    return [int(policy({}, request_id=rid).headers()["Retry-After"]) for rid in IDS]


@pytest.mark.parametrize(
    ("hint_ms", "whole_s", "exact_ms"),
    [
        (200, "1", "200"),
        (999, "1", "999"),
        (1000, "1", "1000"),
        (1001, "2", "1001"),
        (0, "1", None),
    ],
)
def test_s_rt_02_a_hint_is_sent_as_given_in_both_headers(hint_ms, whole_s, exact_ms):
    """Whole seconds rounded up and at least 1, milliseconds beside them, once each."""
    headers = says(hint_ms=hint_ms)({}).headers()
    assert headers["Retry-After"] == whole_s
    assert headers.get("retry-after-ms") == exact_ms
    names = [name.lower() for name in headers]
    assert len(names) == len(set(names))
    assert headers["Retry-After"].isascii()
    assert headers["Retry-After"].isdecimal()


def test_s_rt_02_without_a_hint_a_503_still_carries_one():
    """A computed wait takes the place of a hint; only a misfit carries none."""
    headers = says()({}).headers()
    assert headers["Retry-After"] in ("1", "2")
    assert 1000 <= int(headers["retry-after-ms"]) <= 1250
    misfit = says("too_large", "reject")({}).headers()
    assert "Retry-After" not in misfit
    assert "retry-after-ms" not in misfit


@pytest.mark.parametrize("hint_ms", [-1, float("nan"), float("inf"), "5", True])
def test_s_rt_02_a_hint_that_is_no_wait_is_not_sent(hint_ms):
    """A policy's mistake does not become a header no client can read."""
    headers = says(hint_ms=hint_ms)({}).headers()
    assert 1 <= int(headers["Retry-After"]) <= 2


@pytest.mark.parametrize(
    ("estimate_s", "low_s", "high_s"),
    [(57_600, 48, 60), (61, 48, 60), (60, 48, 60), (5, 5, 7)],
)
def test_s_rt_03_thirty_callers_are_spread_and_never_past_the_cap(
    estimate_s, low_s, high_s
):
    """Over 30 ids the header stays in its range and does not send all back at once."""
    policy = says(estimate_ms=estimate_s * 1000)
    told = seconds(policy)
    assert low_s <= min(told)
    assert max(told) <= high_s
    exact = {
        policy({}, request_id=f"again-{rid}").headers()["retry-after-ms"] for rid in IDS
    }
    assert len(exact) > 25


@pytest.mark.parametrize("estimate_s", [57_600, 61])
def test_s_rt_03_past_the_cap_it_is_a_reject_with_the_truth_in_the_body(estimate_s):
    """A wait nobody sits out is called a no, and says how long it really is."""
    d = says(estimate_ms=estimate_s * 1000)({})
    assert (str(d.verdict), d.status) == ("reject", 503)
    error = d.body()["error"]
    assert (error["estimate_ms"], error["capped"]) == (estimate_s * 1000, True)
    assert str(estimate_s) in error["message"]


@pytest.mark.parametrize("estimate_s", [60, 5])
def test_s_rt_03_up_to_the_cap_it_stays_a_defer(estimate_s):
    """A minute is a wait; the body says that it was not capped."""
    d = says(estimate_ms=estimate_s * 1000)({})
    assert str(d.verdict) == "defer"
    error = d.body()["error"]
    assert (error["estimate_ms"], error["capped"]) == (estimate_s * 1000, False)


def test_s_rt_03_the_cap_can_be_changed():
    """A host whose callers wait longer says so once."""
    policy = says(estimate_ms=61_000, max_defer_s=120.0)
    assert str(policy({}).verdict) == "defer"
    told = seconds(policy)
    assert min(told) >= 61
    assert 70 < max(told) <= 77
    short = seconds(says(estimate_ms=57_600_000, max_defer_s=20.0))
    assert 16 <= min(short) <= max(short) <= 20


def test_s_rt_03_one_id_is_told_the_same_everywhere():
    """The spread is a hash of the id: two hosts tell one caller one wait."""
    first, second = (says(estimate_ms=5000) for _ in range(2))
    assert seconds(first) == seconds(second)


@given(st.floats(0, 1e9), st.floats(1, 600), st.floats(0, 1, exclude_max=True))
def test_a_spread_wait_is_no_shorter_than_the_estimate_and_no_longer_than_the_cap(
    estimate_ms, cap_s, u
):
    """Jitter only upwards, up to a quarter, and the cap holds for every input."""
    wait = spread_ms(estimate_ms, cap_s, u)
    assert 0 <= wait <= cap_s * 1000 + 1
    if estimate_ms * 1.25 <= cap_s * 1000:
        assert estimate_ms <= wait <= estimate_ms * 1.25 + 1
    else:
        assert wait >= int(min(cap_s * 800, cap_s * 1000 * 55 / 60))


@given(st.text())
def test_the_spread_of_any_id_lies_in_the_unit_interval(request_id):
    """No id, whatever its characters, breaks the spread."""
    assert 0 <= unit_interval(request_id) < 1
