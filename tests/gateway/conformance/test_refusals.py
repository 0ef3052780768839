"""A refusal looks the same in every home: status, headers, body of the dialect."""

import json

import pytest
from tests.gateway.conformance.door import pause
from tests.gateway.conformance.engine import LIMIT
from tests.gateway.conformance.wire import (
    CHAT,
    JUDGED,
    MESSAGES,
    get,
    post,
    wish,
)

TABLE = [
    ("defer:kv_pressure", 503, True),
    ("defer:session_in_flight", 503, True),
    ("reject:rate_limit", 429, True),
    ("reject:pool_saturated", 529, True),
    ("reject:deadline_unmeetable", 503, False),
    ("reject:too_large", 413, False),
]
ANTHROPIC = {
    "kv_pressure": "api_error",
    "session_in_flight": "api_error",
    "rate_limit": "rate_limit_error",
    "pool_saturated": "overloaded_error",
    "deadline_unmeetable": "api_error",
    "too_large": "invalid_request_error",
}
ONCE = (
    "content-type", "content-length", "x-should-retry", "x-admitperf-reason",
    "x-admitperf-decision-id", "x-request-id", "request-id",
)  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "row"),
    [
        *((path, row) for path in (CHAT, MESSAGES) for row in TABLE),
        *((path, TABLE[0]) for path in JUDGED if path not in (CHAT, MESSAGES)),
    ],
    ids=str,
)
def test_a_refusal_is_a_real_status_with_every_header_once(
    home, rid, path, stream, row
):
    """Streamed or not, on every judged path; and the log has the same decision."""
    model, status, retry = row
    body = wish(path, model, stream=stream, text=rid)
    reply, said = post(home.url, path, body, {"x-request-id": rid})
    assert reply.status == status
    assert {name: len(reply.all(name)) for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert reply.one("content-type").split(";")[0] == "application/json"
    assert int(reply.one("content-length")) == len(said)
    assert reply.one("x-should-retry") == ("true" if retry else "false")
    assert reply.one("x-request-id") == reply.one("request-id") == rid
    waits = [len(reply.all(name)) for name in ("retry-after", "retry-after-ms")]
    assert waits == ([0, 0] if status == 413 else [1, 1])
    reason = model.split(":")[1]
    assert reply.one("x-admitperf-reason") == reason
    _dialect_holds(path, json.loads(said), reason, rid)
    line = home.line("decision", rid)
    assert (line["reason"], line["status"], line["admitted"]) == (reason, status, False)
    number = reply.one("x-admitperf-decision-id")
    assert number == f"{line['run']}-{line['seq']}"


def _dialect_holds(path, told, reason, rid):
    """The body has the shape that clients of this path parse."""
    if path == MESSAGES:
        assert set(told) == {"type", "error", "request_id"}
        assert (told["type"], told["request_id"]) == ("error", rid)
        assert told["error"]["type"] == ANTHROPIC[reason]
    else:
        assert set(told) == {"error"}
        assert {"message", "type", "param", "code"} <= set(told["error"])
        assert told["error"]["code"] == reason
    assert reason in told["error"]["message"]


def test_a_refused_request_never_reaches_the_engine(scripted, rid):
    """The decision is made before the first byte goes further."""
    post(scripted.url, CHAT, wish(CHAT, "defer:slots"), {"x-request-id": rid})
    assert scripted.seen(rid) == []


def test_whoever_gives_no_id_is_given_one(home, rid):
    """Two requests get two ids, which the log knows."""
    given = set()
    for number in range(2):
        reply, _ = post(
            home.url, CHAT, wish(CHAT, "defer:slots", text=f"{rid}{number}")
        )
        given.add(reply.one("x-request-id"))
    assert len(given) == 2
    assert all(home.line("decision", one) for one in given)


def test_who_is_back_too_early_is_told_what_is_left(home, rid):
    """The same request again, before its time, is refused without asking the policy."""
    body = wish(CHAT, "defer:slots:hint=5000", text=rid)
    first, _ = post(home.url, CHAT, body)
    pause(0.1)
    again, _ = post(home.url, CHAT, body, {"x-request-id": rid})
    assert again.status == first.status == 503
    waits = [int(one.one("retry-after-ms")) for one in (first, again)]
    assert waits[0] == 5000
    assert 3000 < waits[1] <= 4900
    assert again.one("x-admitperf-reason") == "slots"
    line = home.line("decision", rid)
    assert (line["by"], line["why"]) == ("host", "early")


@pytest.mark.parametrize("path", JUDGED)
def test_a_body_over_the_limit_is_413_and_names_it(scripted, path):
    """In the dialect of the path, with no invitation to try again."""
    reply, said = post(scripted.url, path, wish(path, text="x" * LIMIT))
    assert reply.status == 413
    assert str(LIMIT) in json.loads(said)["error"]["message"]
    assert reply.all("retry-after") == []
    assert reply.one("x-should-retry") == "false"


@pytest.mark.parametrize("path", ["/v1/models", "/health", "/metrics"])
def test_what_costs_the_engine_nothing_is_not_judged(home, rid, path):
    """It passes, and is not in the log."""
    around = [f"{rid}-{name}" for name in ("before", "after")]
    post(
        home.url, CHAT, wish(CHAT, "defer:slots", text=rid), {"x-request-id": around[0]}
    )
    assert get(home.url, path)[0].status == 200
    post(home.url, CHAT, wish(CHAT, "reject:slots"), {"x-request-id": around[1]})
    home.line("decision", around[1])
    assert [line["id"] for line in home.lines("decision")][-2:] == around


def test_counting_tokens_is_not_judged(scripted):
    """A refusing policy does not stand in its way."""
    body = wish(MESSAGES, "reject:too_large")
    reply, said = post(scripted.url, f"{MESSAGES}/count_tokens", body)
    assert (reply.status, json.loads(said)) == (200, {"input_tokens": 5})


@pytest.mark.parametrize(
    "path", ["//v1/chat/completions", "/v1/chat/completions/", "/v1//chat/completions"]
)
def test_another_spelling_of_a_path_is_no_way_around(scripted, path):
    """Either it is judged like the plain one, or nobody answers it."""
    reply, _ = post(scripted.url, path, wish(CHAT, "reject:too_large"))
    assert reply.status in (404, 413)
