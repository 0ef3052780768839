"""Field cases about overload, at the level of decisions."""

import json

import pytest

from admitperf import Policy, Reason
from admitperf.core.reasons import PRESETS
from admitperf.testing import FakeClock


class Says(Policy):
    """Answers what the test wants said."""

    name = "says"

    def decide(self, metrics):
        """Say it."""
        return getattr(self, self.verdict)(self.because)


SIX = [
    ("tenant over quota", "reject", "session_quota", 429),
    ("tenant over its share", "reject", "tenant_share", 429),
    ("session over its in-flight cap", "defer", "session_in_flight", 503),
    ("queue age over target", "defer", "queue_age", 503),
    ("all pools full", "reject", "pool_saturated", 529),
    ("deadline cannot be met", "reject", "deadline_unmeetable", 503),
    ("larger than the model's limit", "reject", "too_large", 413),
]


def refused(verdict, because, **given):
    """One decision with this verdict and reason."""
    return Says(verdict=verdict, because=because, clock=FakeClock(), **given)({})


@pytest.mark.parametrize(("situation", "verdict", "because", "status"), SIX)
def test_s_gw_11_each_kind_of_refusal_has_its_code(situation, verdict, because, status):
    """An operator tells share, moment, full house and misfit apart by the code."""
    d = refused(verdict, because)
    assert (d.admitted, d.status, str(d.verdict)) == (False, status, verdict)
    assert type(d.status) is int


@pytest.mark.parametrize(("situation", "verdict", "because", "status"), SIX)
def test_s_gw_11_header_and_body_name_the_reason(situation, verdict, because, status):
    """Clients branch on a word, not on a sentence."""
    d = refused(verdict, because)
    assert d.headers()["x-admitperf-reason"] == because
    error = d.body()["error"]
    assert error["code"] == because
    assert set(error) >= {"message", "type", "code"}
    json.dumps(d.body(), allow_nan=False)


def test_s_gw_11_a_retry_is_invited_where_it_can_succeed():
    """503 and 529 always carry Retry-After; what can never fit carries none."""
    told = {because: refused(verdict, because) for _, verdict, because, _ in SIX}
    assert "Retry-After" not in told.pop("too_large").headers()
    assert all(int(d.headers()["Retry-After"]) >= 1 for d in told.values())
    assert 15 <= int(told["pool_saturated"].headers()["Retry-After"]) <= 60
    retried = {name for name, d in told.items() if d.should_retry}
    assert retried == set(told) - {"deadline_unmeetable"}
    assert refused("reject", "too_large").headers()["x-should-retry"] == "false"


@pytest.mark.parametrize("preset", PRESETS)
def test_s_gw_11_the_map_can_be_changed_and_never_says_500(preset):
    """Presets change the code for whoever needs another, and keep the reason."""
    for _, verdict, because, _ in SIX:
        d = refused(verdict, because, preset=preset)
        assert d.status in (413, 429, 503, 529)
        assert d.headers()["x-admitperf-reason"] == because
    busy = refused("defer", "queue_age", preset=preset)
    full = refused("reject", "pool_saturated", preset=preset)
    assert (busy.status, full.status) == {
        "default": (503, 529),
        "openai": (503, 503),
        "anthropic": (529, 529),
        "mesh-safe": (429, 429),
    }[preset]


def test_s_gw_11_a_policy_can_replace_a_row():
    """A reason of ours with another code is one line in a subclass."""

    class Polite(Says):
        name = "polite"
        reasons = {"too_large": Reason(400, fault="size", retry=False)}  # noqa: RUF012

    d = Polite(verdict="reject", because="too_large", clock=FakeClock())({})
    assert (d.status, d.reason) == (400, "too_large")
    assert "Retry-After" not in d.headers()
