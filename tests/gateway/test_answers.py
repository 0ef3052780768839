"""What callers read, through the eyes of the official clients."""

import json

import anthropic
import httpx2
import openai
import pytest
from tests.core.rules import defers, rejects, rule

from admitperf.gateway.answers import (
    JUDGED,
    closing,
    dialect_of,
    fault,
    from_event,
    refusal,
)

IDS = {"request_id": "req-1", "decision_id": "run-7"}
TALK = [{"role": "user", "content": "hi"}]
DIALECTS = ["openai", "responses", "anthropic"]
HEAD = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
BEGUN = {
    "openai": HEAD,
    "responses": (
        "event: response.output_text.delta\n"
        'data: {"type":"response.output_text.delta","delta":"a"}\n\n'
    ),
    "anthropic": (
        "event: content_block_delta\n"
        'data: {"type":"content_block_delta","index":0,'
        '"delta":{"type":"text_delta","text":"a"}}\n\n'
    ),
}


def served(status, headers, body):
    """A transport that answers so, and counts."""
    asked = []

    def answer(request):
        asked.append(request)
        return httpx2.Response(status, headers=headers, content=body)

    return httpx2.MockTransport(answer), asked


def call(dialect, reply, *, stream=False, retries=0):
    """Asks with the official client of a dialect; gives what it made of the reply."""
    transport, asked = served(*reply)
    if dialect == "anthropic":
        http = anthropic.DefaultHttpxClient(transport=transport)
        client = anthropic.Anthropic(
            api_key="k", http_client=http, max_retries=retries, base_url="http://t"
        )
        wish = {"model": "m", "messages": TALK, "max_tokens": 9, "stream": stream}
        return asked, lambda: client.messages.create(**wish)
    http = openai.DefaultHttpxClient(transport=transport)
    client = openai.OpenAI(
        api_key="k", http_client=http, max_retries=retries, base_url="http://t/v1"
    )
    if dialect == "responses":
        wish = {"model": "m", "input": "hi", "stream": stream}
        return asked, lambda: client.responses.create(**wish)
    wish = {"model": "m", "messages": TALK, "stream": stream}
    return asked, lambda: client.chat.completions.create(**wish)


def raised(dialect, reply, **how):
    """The exception the official client raises."""
    base = anthropic.APIStatusError if dialect == "anthropic" else openai.APIStatusError
    _, ask = call(dialect, reply, **how)
    with pytest.raises(base) as caught:
        ask()
    return caught.value


REASONS = [
    (defers("queue_depth"), 503, "InternalServerError", "api_error"),
    (rejects("rate_limit"), 429, "RateLimitError", "rate_limit_error"),
    (rejects("pool_saturated"), 529, "OverloadedError", "overloaded_error"),
    (rejects("deadline_unmeetable"), 503, "InternalServerError", "api_error"),
    (rejects("too_large"), 413, "APIStatusError", "invalid_request_error"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("decide", "status", "name", "kind"), REASONS)
def test_a_refusal_is_the_exception_that_clients_know(
    dialect, stream, decide, status, name, kind
):
    """Status, reason, message and id of the request arrive in it (s-gw-11, s-gw-14)."""
    d = rule(decide)({})
    caught = raised(dialect, refusal(d, dialect, **IDS), stream=stream)
    assert caught.status_code == d.status == status
    assert caught.request_id == "req-1"
    assert d.body()["error"]["message"] in str(caught)
    assert caught.response.headers["x-admitperf-reason"] == d.reason
    if dialect == "anthropic":
        assert (caught.type, caught.error_code) == (kind, d.reason)
        assert caught.body["request_id"] == "req-1"
        assert name in {kind.__name__ for kind in type(caught).__mro__}
    else:
        assert (caught.code, caught.param) == (d.reason, None)
        assert caught.type == d.body()["error"]["type"]
        known = {429: "RateLimitError", 413: "APIStatusError"}
        assert type(caught).__name__ == known.get(status, "InternalServerError")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("decide", [one[0] for one in REASONS])
def test_every_header_of_a_refusal_stands_once(dialect, decide):
    """Lower case, and the body as long as it says."""
    reply = refusal(rule(decide)({}), dialect, **IDS)
    names = [name for name, _ in reply.headers]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() for name in names)
    headers = dict(reply.headers)
    assert headers[b"content-type"] == b"application/json"
    assert int(headers[b"content-length"]) == len(reply.body)
    assert headers[b"x-admitperf-decision-id"] == b"run-7"
    assert headers[b"x-request-id"] == headers[b"request-id"] == b"req-1"
    assert headers[b"x-should-retry"] in {b"true", b"false"}


WAITS = [
    (200, b"1", b"200"),
    (999, b"1", b"999"),
    (1000, b"1", b"1000"),
    (1001, b"2", b"1001"),
    (0, b"1", None),
]


@pytest.mark.parametrize(("hint_ms", "seconds", "exact"), WAITS)
def test_waits_are_whole_digits(hint_ms, seconds, exact):
    """Seconds rounded up, at least 1, and the exact wait beside them (s-rt-02)."""
    d = rule(defers("queue_depth", retry_after_ms=hint_ms))({})
    headers = dict(refusal(d, "openai", **IDS).headers)
    assert headers[b"retry-after"] == seconds
    assert headers.get(b"retry-after-ms") == exact


def test_without_a_wait_only_a_503_names_one():
    """A 503 always carries Retry-After; what is too large never does (s-rt-02)."""
    large = dict(refusal(rule(rejects("too_large"))({}), "openai", **IDS).headers)
    assert b"retry-after" not in large
    assert large[b"x-should-retry"] == b"false"
    d = rule(rejects("deadline_unmeetable"))({})
    d.retry_after_ms = None
    assert dict(refusal(d, "openai", **IDS).headers)[b"retry-after"] == b"1"


def test_a_capped_wait_says_so_in_the_body():
    """The true estimate is there for whoever wants it (s-rt-03)."""
    d = rule(defers("slots", estimate_ms=300_000))({})
    for dialect in DIALECTS:
        error = json.loads(refusal(d, dialect, **IDS).body)["error"]
        assert (error["estimate_ms"], error["capped"]) == (300_000, True)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_clients_come_back_when_told_and_stay_away_when_told(dialect):
    """`x-should-retry` decides in both SDKs."""
    soon = refusal(rule(defers("queue_depth", retry_after_ms=1))({}), dialect, **IDS)
    asked, ask = call(dialect, soon, retries=1)
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)):
        ask()
    assert len(asked) == 2
    never = refusal(rule(rejects("deadline_unmeetable"))({}), dialect, **IDS)
    asked, ask = call(dialect, never, retries=1)
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)):
        ask()
    assert len(asked) == 1


@pytest.mark.parametrize("odd", ["a\r\nset-cookie: x", "x\x00y", "\u2028", "e" * 9999])
def test_no_id_can_break_out_of_its_header(odd):
    """Whatever a caller sent as its id stays one bounded value."""
    reply = refusal(
        rule(rejects("slots"))({}), "anthropic", request_id=odd, decision_id=odd
    )
    for name, value in reply.headers:
        assert not set(value) & set(b"\r\n\x00"), name
        assert len(value) <= 256
    json.loads(reply.body)


FAULTS = [
    (400, "bad_request", "BadRequestError", "BadRequestError"),
    (404, "no_such_path", "NotFoundError", "NotFoundError"),
    (413, "too_large", "APIStatusError", None),
    (501, "no_websockets", "InternalServerError", None),
    (502, "upstream_unreachable", "InternalServerError", "InternalServerError"),
    (503, "shutdown", "InternalServerError", None),
    (504, "timeout_first_token", "InternalServerError", None),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("status", "code", "of_openai", "of_anthropic"), FAULTS)
def test_a_fault_of_the_gateway_is_told_in_the_callers_dialect(
    dialect, status, code, of_openai, of_anthropic
):
    """Status, code, message and id; it is no refusal of a policy, so has no reason."""
    reply = fault(status, code, "The limit is 64 MiB", dialect, request_id="req-1")
    caught = raised(dialect, reply)
    assert caught.status_code == status
    assert caught.request_id == "req-1"
    assert "The limit is 64 MiB" in str(caught)
    assert "x-admitperf-reason" not in caught.response.headers
    assert caught.response.headers["x-should-retry"] == "false"
    assert caught.response.headers.get("retry-after") == (
        "1" if status == 503 else None
    )
    if dialect == "anthropic":
        assert caught.error_code == code
        assert type(caught).__name__ == (of_anthropic or type(caught).__name__)
    else:
        assert caught.code == code
        assert type(caught).__name__ == of_openai


def test_a_fault_that_passes_may_be_tried_again():
    """The SDKs obey the header."""
    reply = fault(502, "x", "y", "openai", request_id="r", retry=True)
    assert dict(reply.headers)[b"x-should-retry"] == b"true"


def texts(dialect, sent):
    """The pieces of text that the official client read before it raised."""
    reply = (200, {"content-type": "text/event-stream"}, sent)
    _, ask = call(dialect, reply, stream=True)
    read = []
    for event in ask():
        if dialect == "openai":
            read.append(event.choices[0].delta.content)
        else:
            read.append(event.delta.text if dialect == "anthropic" else event.delta)
        yield read[-1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_broke_off_raises_in_the_client(dialect):
    """What was sent before it stays as it was (s-gw-03)."""
    sent = BEGUN[dialect].encode() + closing(dialect, "ended early", mid_event=False)
    stream = texts(dialect, sent)
    assert next(stream) == "a"
    with pytest.raises((openai.APIError, anthropic.APIStatusError)) as caught:
        next(stream)
    assert "ended early" in str(caught.value)
    assert "upstream_ended_early" in str(caught.value.body)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_without_it_the_client_takes_the_stream_for_whole(dialect):
    """That is why it is sent: the official clients notice nothing by themselves."""
    assert list(texts(dialect, BEGUN[dialect].encode())) == ["a"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_torn_inside_an_event_raises_too(dialect):
    """Torn at any byte, it is never taken for an answer that ended."""
    whole = BEGUN[dialect].encode()
    end = closing(dialect, "ended early", mid_event=True)
    for cut in range(1, len(whole)):
        stream = texts(dialect, whole + whole[:cut] + end)
        assert next(stream) == "a"
        # A torn event of OpenAI's is no JSON, which its client says in its own way.
        with pytest.raises(
            (openai.APIError, anthropic.APIStatusError, json.JSONDecodeError)
        ) as caught:
            list(stream)
        if dialect == "anthropic":
            assert "ended early" in str(caught.value)


def test_the_last_event_of_a_broken_chat_stream_is_followed_by_done():
    """Clients that wait for [DONE] do not wait for ever."""
    assert closing("openai", "x", mid_event=False).endswith(b"}\n\ndata: [DONE]\n\n")
    assert closing("openai", "x", mid_event=True).startswith(b"\n\ndata: ")


def test_the_code_of_a_closing_event_can_say_more():
    """A timeout is named as one."""
    sent = closing("responses", "x", mid_event=False, code="timeout_gap")
    told = json.loads(sent.split(b"data: ")[1])
    assert (told["type"], told["code"]) == ("error", "timeout_gap")
    assert told["error"]["code"] == "timeout_gap"


BUSY = json.dumps(
    {
        "error": {
            "message": "The engine is currently busy",
            "type": "Service Unavailable",
            "param": None,
            "code": 503,
        }
    }
).encode()
OVERLOADED = b'{"type":"error","error":{"type":"overloaded_error","message":"Full"}}'


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_that_began_a_stream_becomes_its_status(dialect):
    """The engine's words stay, and a 503 has a wait."""
    caught = raised(dialect, from_event(BUSY, dialect, request_id="req-1"))
    assert caught.status_code == 503
    assert "The engine is currently busy" in str(caught)
    assert caught.response.headers["retry-after"] == "1"
    assert caught.request_id == "req-1"
    assert "x-admitperf-reason" not in caught.response.headers
    if dialect != "anthropic":
        assert (caught.type, caught.code) == ("Service Unavailable", "503")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_wait_is_made_up_for_an_engine(dialect):
    """Only a 503 must have one."""
    reply = from_event(OVERLOADED, dialect, request_id="r")
    caught = raised(dialect, reply)
    assert caught.status_code == 529
    assert "Full" in str(caught)
    headers = caught.response.headers
    assert not {"retry-after", "retry-after-ms", "x-should-retry"} & set(headers)


@pytest.mark.parametrize("data", [b"", b"x", b'{"error":{"message":"odd"}}', b"[1"])
def test_an_error_that_says_no_status_stays_where_it_is(data):
    """Nothing is guessed."""
    assert from_event(data, "openai", request_id="r") is None


def test_dialects_go_by_path():
    """Every judged path has one; token counting speaks as its neighbour does."""
    assert {path: dialect_of(path) for path in JUDGED} == {
        "/v1/completions": "openai",
        "/v1/chat/completions": "openai",
        "/v1/embeddings": "openai",
        "/v1/responses": "responses",
        "/v1/messages": "anthropic",
    }
    assert dialect_of("/v1/messages/count_tokens") == "anthropic"
    assert dialect_of("/nowhere") == "openai"
