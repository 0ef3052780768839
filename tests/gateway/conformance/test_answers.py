"""An admitted request gets what the engine sent, to the byte; its end is known."""

import json

import pytest
from tests.gateway.conformance.engine import LATE_S, TOKENS
from tests.gateway.conformance.wire import (
    CHAT,
    COMPLETIONS,
    JUDGED,
    MESSAGES,
    RESPONSES,
    STREAMED,
    Caller,
    post,
    wish,
)

from admitperf.core.clock import SYSTEM


@pytest.mark.parametrize("path", JUDGED)
def test_an_answer_is_the_engines(scripted, rid, path):
    """Body, status and headers; ours come on top."""
    reply, body = post(scripted.url, path, wish(path, "ok"), {"x-request-id": rid})
    direct, same = post(scripted.direct, path, wish(path, "ok"))
    assert (reply.status, body) == (direct.status, same)
    theirs = {
        name: value for name, value in direct.pairs if name not in ("date", "server")
    }
    assert theirs.items() <= dict(reply.pairs).items()
    assert int(reply.one("content-length")) == len(body)
    assert reply.one("x-request-id") == reply.one("request-id") == rid
    outcome = scripted.line("outcome", rid)
    assert outcome["ok"] is True
    assert outcome["e2e_ms"] > 0
    assert "ttft_ms" not in outcome
    if path != "/v1/embeddings":
        assert outcome["output_tokens"] == TOKENS


@pytest.mark.parametrize("path", STREAMED)
def test_a_stream_is_the_engines(scripted, rid, path):
    """Not an event more, less or other, and the first token was seen."""
    body = wish(path, "ok", stream=True)
    reply, through = post(scripted.url, path, body, {"x-request-id": rid})
    _, direct = post(scripted.direct, path, body)
    assert reply.status == 200
    assert through == direct
    assert reply.one("content-type").startswith("text/event-stream")
    outcome = scripted.line("outcome", rid)
    assert outcome["ok"] is True
    assert 0 < outcome["ttft_ms"] <= outcome["e2e_ms"]
    assert outcome["output_tokens"] == TOKENS
    assert outcome["finish_reason"] in ("stop", "end_turn", "completed")


def test_a_head_does_not_wait_for_the_first_token(scripted, rid):
    """Engines send it at once; it is held back for an instant, not for a prefill."""
    began_ns = SYSTEM.monotonic_ns()
    with Caller(scripted.url) as caller:
        body = wish(CHAT, "late", stream=True)
        reply = caller.ask(CHAT, body, {"x-request-id": rid})
        head_s = (SYSTEM.monotonic_ns() - began_ns) / 1e9
        assert reply.rest().endswith(b"[DONE]\n\n")
    assert head_s < LATE_S / 2
    outcome = scripted.line("outcome", rid)
    assert outcome["ttft_ms"] >= LATE_S * 1000 - 50


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("stream", [False, True])
def test_a_real_answer_ends_well(home, rid, path, stream):
    """On any engine: 200, its end is seen, and the lease with it."""
    headers = {"x-request-id": rid}
    wanted = json.loads(wish(path, "ok", stream=stream)) | {"max_tokens": 8}
    reply, body = post(home.url, path, json.dumps(wanted).encode(), headers)
    if reply.status == 400 and b"chat template" in body:
        pytest.skip("this model is no chat model")
    assert reply.status == 200, body
    assert (b"[DONE]" in body) is stream
    assert home.line("decision", rid)["admitted"] is True
    assert home.line("outcome", rid)["ok"] is True


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_the_engines_own_error_passes_unchanged(scripted, rid, path, status):
    """Status, body, one Retry-After; the log says who refused."""
    body = wish(path, f"status-{status}", stream=True)
    reply, said = post(scripted.url, path, body, {"x-request-id": rid})
    direct, same = post(scripted.direct, path, body)
    assert (reply.status, said) == (direct.status, same)
    assert reply.one("retry-after") == "7"
    assert reply.all("x-admitperf-reason") == []
    assert scripted.line("decision", rid)["admitted"] is True
    outcome = scripted.line("outcome", rid)
    theirs = "upstream_refused" if status in (429, 503) else f"upstream_{status}"
    assert (outcome["ok"], outcome["error"]) == (False, theirs)


@pytest.mark.parametrize("path", STREAMED)
def test_a_refusal_at_the_start_of_a_stream_becomes_its_status(scripted, rid, path):
    """A 200 whose first event is an error is answered as what it is."""
    body = wish(path, "busy", stream=True)
    reply, said = post(scripted.url, path, body, {"x-request-id": rid})
    assert reply.status == (529 if path == MESSAGES else 503)
    assert reply.one("content-type").startswith("application/json")
    words = "Overloaded" if path == MESSAGES else "Server is busy"
    assert words in json.loads(said)["error"]["message"]
    if reply.status == 503:
        assert int(reply.one("retry-after")) >= 1
    outcome = scripted.line("outcome", rid)
    assert (outcome["ok"], outcome["error"]) == (False, "upstream_refused")


@pytest.mark.parametrize("path", STREAMED)
def test_an_error_later_in_a_stream_stays_there(scripted, rid, path):
    """What has begun as 200 cannot be taken back; the bytes are the engine's."""
    body = wish(path, "dies", stream=True)
    reply, through = post(scripted.url, path, body, {"x-request-id": rid})
    _, direct = post(scripted.direct, path, body)
    assert reply.status == 200
    assert through.startswith(direct)
    if path in (CHAT, COMPLETIONS):
        assert through == direct
    outcome = scripted.line("outcome", rid)
    assert outcome["ok"] is False
    assert outcome["error"]


CLOSING = {
    CHAT: b"data: {",
    COMPLETIONS: b"data: {",
    RESPONSES: b"event: error\ndata: {",
    MESSAGES: b"event: error\ndata: {",
}


@pytest.mark.parametrize("path", STREAMED)
@pytest.mark.parametrize("model", ["cut", "torn"])
def test_a_stream_without_its_end_is_given_an_error(scripted, rid, path, model):
    """What was sent stays; what is added is one event that every parser sees alone."""
    body = wish(path, model, stream=True)
    _, through = post(scripted.url, path, body, {"x-request-id": rid})
    _, direct = post(scripted.direct, path, body)
    assert through.startswith(direct)
    added = through.removeprefix(direct)
    if model == "torn":  # for Anthropic's client, half an event becomes a ping
        cut = b"\nevent: ping\n\n" if path == MESSAGES else b"\n\n"
        assert added.startswith(cut)
        added = added.removeprefix(cut)
    assert added.startswith(CLOSING[path])
    assert b"error" in added
    assert added.endswith(b"\n\n")
    assert (b"data: [DONE]" in added) is (path in (CHAT, COMPLETIONS))
    outcome = scripted.line("outcome", rid)
    assert (outcome["ok"], outcome["error"]) == (False, "upstream_ended_early")


@pytest.mark.parametrize("body", [b"{oops", b"", b"[]", b"null", b'{"model":7}'])
def test_what_cannot_be_read_is_the_engines_to_refuse(scripted, rid, body):
    """Nothing is guessed from it and nothing breaks; it passes as it came."""
    reply, said = post(scripted.url, CHAT, body, {"x-request-id": rid})
    direct, same = post(scripted.direct, CHAT, body)
    assert (reply.status, said) == (direct.status, same)
    (seen,) = scripted.seen(rid)
    assert seen["bytes"] == len(body)
    assert "model" not in scripted.line("decision", rid)["facts"]
