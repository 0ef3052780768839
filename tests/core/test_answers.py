"""What a refusal says to its caller, in headers and body."""

import json

import pytest
from tests.core.rules import admits, defers, rejects, rule

ALL_REASONS = [
    ("kv_pressure", "overloaded_error"), ("queue_depth", "overloaded_error"),
    ("session_in_flight", "overloaded_error"), ("pool_saturated", "overloaded_error"),
    ("deadline_unmeetable", "overloaded_error"), ("tenant_share", "rate_limit_error"),
    ("rate_limit", "rate_limit_error"), ("too_large", "invalid_request_error"),
]  # fmt: skip


def test_a_request_that_starts_has_no_headers_and_no_body():
    """There is nothing to say but go on."""
    d = rule(admits)({})
    assert (d.headers(), d.body()) == ({}, {})


@pytest.mark.parametrize("reason", [reason for reason, _ in ALL_REASONS])
def test_headers_are_ascii_text_and_each_name_stands_once(reason):
    """A server library can send them as they are."""
    headers = rule(rejects(reason))({}).headers()
    for name, value in headers.items():
        assert name.isascii()
        assert type(value) is str
        assert value.isascii()
        assert "\n" not in value
    assert len({name.lower() for name in headers}) == len(headers)


@pytest.mark.parametrize("reason", [reason for reason, _ in ALL_REASONS[:-1]])
def test_seconds_and_milliseconds_say_the_same_wait(reason):
    """`Retry-After` is `retry-after-ms` in whole seconds, rounded up, at least 1."""
    policy = rule(rejects(reason))
    for n in range(50):
        headers = policy({}, request_id=f"r{n}").headers()
        exact_ms = int(headers["retry-after-ms"])
        assert int(headers["Retry-After"]) == max(1, -(-exact_ms // 1000))


@pytest.mark.parametrize(("reason", "kind"), ALL_REASONS)
def test_the_body_is_an_openai_shaped_error_whose_code_is_the_reason(reason, kind):
    """Clients that know OpenAI's errors find message, type, param and code."""
    body = rule(rejects(reason))({}).body()
    error = body["error"]
    assert list(body) == ["error"]
    assert (error["code"], error["type"], error["param"]) == (reason, kind, None)
    assert reason in error["message"]
    json.dumps(body, allow_nan=False)


def test_the_body_says_how_long_and_that_it_was_capped():
    """The true estimate stands in it when the wait sent is shorter."""
    error = rule(defers("slots", estimate_ms=300_000))({}).body()["error"]
    assert (error["estimate_ms"], error["capped"]) == (300_000, True)
    assert error["retry_after_ms"] <= 60_000
    assert "300 s" in error["message"]
    error = rule(defers("slots", estimate_ms=3_000))({}).body()["error"]
    assert (error["estimate_ms"], error["capped"]) == (3_000, False)


@pytest.mark.parametrize("reason", ["too_large", "deadline_unmeetable"])
def test_the_message_does_not_invite_a_retry_that_cannot_help(reason):
    """Words and header agree."""
    d = rule(rejects(reason))({})
    assert "Trying again will not help" in d.body()["error"]["message"]
    assert d.headers()["x-should-retry"] == "false"


def test_a_decision_shows_what_it_is():
    """In a debugger and in a host's own log."""
    shown = repr(rule(defers("slots"))({}, request_id="r-9"))
    for word in ("r-9", "defer", "slots", "503"):
        assert word in shown


def test_headers_and_body_of_a_shadow_refusal_are_empty():
    """What is not enforced is not told to the caller."""
    d = rule(rejects("kv_pressure"), enforce=0.0)({})
    assert (d.headers(), d.body()) == ({}, {})
