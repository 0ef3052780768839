"""The status is a function of the reason alone."""

import pytest
from tests.core.rules import admits, rejects, rule

from admitperf import ConfigError, Reason
from admitperf.core.reasons import DEFAULT

CAPACITY = {
    "kv_pressure", "kv_headroom", "queue_depth", "queue_age", "prefill_backlog",
    "slots", "in_flight_cap", "session_in_flight",
}  # fmt: skip
CALLER = {"tenant_share", "rate_limit", "caller_in_flight", "session_quota"}
INSTRUMENT = {"signal_absent", "signal_stale", "policy_error"}
STATUS = {
    **dict.fromkeys(CAPACITY, 503),
    **dict.fromkeys(CALLER, 429),
    "pool_saturated": 529,
    "deadline_unmeetable": 503,
    "too_large": 413,
    **dict.fromkeys(INSTRUMENT, 503),
}
NO_RETRY = {"deadline_unmeetable", "too_large"}


def said(verdict, reason, **given):
    """One refusal."""
    return rule(lambda p, m: getattr(p, verdict)(reason), **given)({})


def test_the_table_has_exactly_these_rows():
    """A reason that is added or lost is a change of the contract."""
    assert set(DEFAULT) == set(STATUS)


@pytest.mark.parametrize("reason", STATUS)
def test_each_reason_has_its_status_under_either_verdict(reason):
    """Deferring instead of rejecting never changes the code, and codes are ints."""
    deferred, rejected = said("defer", reason), said("reject", reason)
    assert deferred.status == rejected.status == STATUS[reason]
    assert type(deferred.status) is int
    assert (deferred.admitted, rejected.admitted) == (False, False)
    assert deferred.reason == rejected.reason == reason


@pytest.mark.parametrize("reason", STATUS)
def test_each_reason_says_whether_trying_again_can_help(reason):
    """Only what can never fit, or would be late anyway, is not to be retried."""
    d = said("reject", reason)
    assert d.should_retry is (reason not in NO_RETRY)
    assert d.headers()["x-should-retry"] == str(reason not in NO_RETRY).lower()


@pytest.mark.parametrize("reason", STATUS)
def test_each_refusal_but_a_misfit_says_when_to_come_back(reason):
    """`Retry-After` is there always; only `too_large` has none."""
    headers = said("reject", reason).headers()
    assert ("Retry-After" in headers) is (reason != "too_large")


PRESETS = {
    "default": STATUS,
    "openai": {**STATUS, "pool_saturated": 503},
    "anthropic": {**STATUS, **dict.fromkeys(CAPACITY, 529)},
    "mesh-safe": {reason: 429 if s >= 500 else s for reason, s in STATUS.items()},
}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_changes_codes_and_never_a_reason(preset, log):
    """529 as 503, or capacity 503 as 529, or every 5xx as 429."""
    for reason, status in PRESETS[preset].items():
        d = said("reject", reason, preset=preset, log=log)
        assert (d.status, d.reason) == (status, reason), reason
        assert d.headers()["x-admitperf-reason"] == reason
        assert d.body()["error"]["code"] == reason
        line = log.decisions[-1]
        assert (line["status"], line["reason"]) == (status, reason)


def test_a_policy_registers_its_own_reason():
    """A row of one's own is a row: status, fault and retry follow from it."""
    own = {"acme_budget": Reason(429, fault="caller", retry=True)}
    d = rule(rejects("acme_budget"), reasons=own)({})
    assert (d.status, d.reason, d.should_retry) == (429, "acme_budget", True)
    assert "acme_budget" in d.body()["error"]["message"]


@pytest.mark.parametrize(
    ("preset", "status"),
    [("default", 529), ("openai", 503), ("mesh-safe", 429), ("anthropic", 529)],
)
def test_a_preset_holds_for_own_reasons_too(preset, status):
    """A mesh that ejects on 5xx does so whoever named the reason."""
    own = {"acme_full": Reason(529)}
    d = rule(rejects("acme_full"), reasons=own, preset=preset)({})
    assert d.status == status


def test_an_own_reason_may_replace_a_row():
    """A policy can answer 400 where we say 413."""
    own = {"too_large": Reason(400, fault="size", retry=False)}
    assert rule(rejects("too_large"), reasons=own)({}).status == 400
    assert rule(rejects("too_large"))({}).status == 413


@pytest.mark.parametrize(
    "wrong", [200, 302, 399, 600, 0, -1, "429", None, 429.0, True, (429,)]
)
def test_an_own_reason_needs_a_status_of_a_refusal(wrong):
    """400 to 599, as an int: anything else fails at construction."""
    reason = Reason(wrong) if not isinstance(wrong, tuple) else wrong
    with pytest.raises(ConfigError, match="acme"):
        rule(admits, reasons={"acme": reason})


@pytest.mark.parametrize("reason", ["tenants_share", "", None, 7, [], "kv_pressure "])
@pytest.mark.parametrize("verdict", ["defer", "reject"])
def test_a_reason_that_is_in_no_table_is_the_policys_error(verdict, reason, log):
    """It is caught, recorded as such, and the posture answers."""
    d = said(verdict, reason, log=log)
    assert (d.admitted, d.reason) == (True, "policy_error")
    assert len(log.decisions) == 1


def test_a_yes_needs_no_reason_and_costs_200():
    """A plain admit carries none."""
    d = rule(admits)({})
    assert (d.status, d.reason, d.retry_after_ms) == (200, None, None)
    assert (d.headers(), d.body()) == ({}, {})
