"""What one answer was like, in every dialect."""

import gzip
import itertools
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf.gateway.watching.watch import BODY_BYTES, Watch

SSE = [(b"Content-Type", b"text/event-stream; charset=utf-8")]
JSON = [(b"content-type", b"application/json")]
MS = 1_000_000
BEGAN = 5 * MS
DONE = b"data: [DONE]\n\n"
BUSY = {"error": {"message": "busy", "type": "Service Unavailable", "code": 503}}


def event(told, name=None):
    """One event, named as Anthropic and the Responses API name theirs."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(told)}\n\n".encode()


def typed(kind, **told):
    """An event whose name is its type."""
    return event({"type": kind, **told}, kind)


def chunk(delta, finish=None, index=0, **more):
    """A chat chunk."""
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return event({"id": "c", "choices": [choice], **more})


def watched(dialect, parts, headers=SSE, status=200):
    """A watch that saw one part a millisecond, the first one after 10 ms."""
    watch = Watch(dialect, BEGAN)
    watch.started(status, headers)
    for n, part in enumerate(parts):
        watch.took(part, BEGAN + (10 + n) * MS)
    return watch


def outcome(dialect, parts, headers=SSE, status=200, why=None):
    """How that ended, at 100 ms."""
    return watched(dialect, parts, headers, status).outcome(BEGAN + 100 * MS, why)


ROLE = chunk({"role": "assistant", "content": ""})
USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 3,
    "prompt_tokens_details": {"cached_tokens": 16},
}
CHAT = [
    ROLE,
    chunk({"reasoning_content": "hm"}),
    chunk({"content": "a"}),
    b": keep-alive\n\n",
    chunk({"content": "b"}),
    chunk({}, "stop"),
    event({"choices": [], "usage": USAGE}),
    DONE,
]
MESSAGES = [
    typed(
        "message_start",
        message={
            "content": [],
            "usage": {
                "input_tokens": 4,
                "cache_read_input_tokens": 16,
                "output_tokens": 1,
            },
        },
    ),
    typed("ping"),
    typed("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    typed("content_block_delta", delta={"type": "thinking_delta", "thinking": "hm"}),
    typed("content_block_delta", delta={"type": "text_delta", "text": "a"}),
    typed("content_block_stop", index=0),
    typed(
        "message_delta",
        delta={"stop_reason": "max_tokens"},
        usage={"output_tokens": 3},
    ),
    typed("message_stop"),
]
RESPONSES = [
    typed("response.created", response={"status": "in_progress"}),
    typed("response.output_item.added", item={"type": "message", "content": []}),
    typed("response.reasoning_text.delta", delta="hm"),
    typed("response.output_text.delta", delta="a"),
    typed("response.output_text.done", text="a"),
    typed(
        "response.completed",
        response={
            "status": "completed",
            "usage": {
                "input_tokens": 20,
                "output_tokens": 3,
                "input_tokens_details": {"cached_tokens": 16},
            },
            "output": [{"type": "message", "content": [{"type": "output_text"}]}],
        },
    ),
]
STREAMS = {"openai": CHAT, "anthropic": MESSAGES, "responses": RESPONSES}


@pytest.mark.parametrize(
    ("dialect", "ttft_ms", "first_text_ms", "gap_ms", "finish"),
    [
        ("openai", 11, 12, 2, "stop"),
        ("anthropic", 13, 14, 1, "max_tokens"),
        ("responses", 12, 13, 1, "completed"),
    ],
)
def test_a_whole_stream(dialect, ttft_ms, first_text_ms, gap_ms, finish):
    """First output of any kind, first text, gaps, tokens and the reason it ended."""
    assert outcome(dialect, STREAMS[dialect]) == {
        "ok": True,
        "ttft_ms": ttft_ms,
        "first_text_ms": first_text_ms,
        "max_gap_ms": gap_ms,
        "e2e_ms": 100,
        "output_tokens": 3,
        "cached_tokens": 16,
        "input_tokens": 20,
        "finish_reason": finish,
        "error": None,
    }


@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_cutting_a_stream_anywhere_changes_nothing_but_times(dialect, data):
    """What is counted does not hang on how the network cut it."""
    whole = b"".join(STREAMS[dialect])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    bounds = [0, *cuts, len(whole)]
    parts = [whole[a:b] for a, b in itertools.pairwise(bounds)]
    times = dict.fromkeys(("ttft_ms", "first_text_ms", "max_gap_ms"))
    assert outcome(dialect, parts) | times == outcome(dialect, [whole]) | times


OUTPUT = [
    ("openai", chunk({"content": "a"})),
    ("openai", chunk({"content": [{"type": "text", "text": "a"}]})),
    ("openai", chunk({"reasoning_content": "a"})),
    ("openai", chunk({"reasoning": "a"})),
    ("openai", chunk({"refusal": "a"})),
    ("openai", chunk({"audio": {"data": "aa"}})),
    ("openai", chunk({"tool_calls": [{"index": 0, "function": {"name": "f"}}]})),
    ("openai", chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]})),
    ("openai", chunk({"function_call": {"arguments": "{"}})),
    ("openai", event({"choices": [{"index": 0, "text": "a"}]})),
    ("openai", event({"choices": [{"index": 0, "text": "", "token_ids": [7]}]})),
    ("responses", typed("response.function_call_arguments.delta", delta="{")),
    ("responses", typed("response.refusal.delta", delta="a")),
    ("responses", typed("response.reasoning_summary_text.delta", delta="a")),
    ("responses", typed("response.audio.delta", delta="aa")),
    ("responses", typed("response.output_item.added", item={"type": "function_call"})),
    ("anthropic", typed("content_block_delta", delta={"partial_json": "{"})),
    ("anthropic", typed("content_block_delta", delta={"thinking": "a"})),
    (
        "anthropic",
        typed("content_block_start", content_block={"type": "tool_use", "name": "f"}),
    ),
]
NO_OUTPUT = [
    ("openai", ROLE),
    ("openai", chunk({})),
    ("openai", chunk({}, "")),
    ("openai", chunk({"content": None})),
    ("openai", chunk({"tool_calls": []})),
    ("openai", chunk({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]})),
    ("openai", chunk({"audio": {"id": "x"}})),
    ("openai", event({"choices": [{"index": 0, "text": ""}]})),
    ("openai", event({"choices": [], "usage": USAGE})),
    ("openai", chunk({}, usage=None, error=None)),
    ("openai", b": ping\n\n"),
    ("openai", b"data: nonsense\n\n"),
    ("openai", b"data: [1]\n\n"),
    ("responses", RESPONSES[0]),
    ("responses", RESPONSES[1]),
    ("responses", typed("response.output_text.delta", delta="")),
    ("responses", typed("response.output_text.done", text="a")),
    ("responses", b"data: nonsense\n\n"),
    ("anthropic", MESSAGES[0]),
    ("anthropic", typed("ping")),
    ("anthropic", MESSAGES[2]),
    ("anthropic", typed("content_block_delta", delta={"text": ""})),
    ("anthropic", typed("content_block_delta", delta={"signature": "a"})),
    ("anthropic", typed("message_delta", delta={}, usage={"output_tokens": 3})),
    ("anthropic", b"data: nonsense\n\n"),
]


@pytest.mark.parametrize(("dialect", "sent"), OUTPUT)
def test_any_kind_of_generated_output_is_the_first_token(dialect, sent):
    """Text, reasoning, a tool's name or arguments, a refusal, audio."""
    assert watched(dialect, [sent]).first_output_ns == BEGAN + 10 * MS


@pytest.mark.parametrize(("dialect", "sent"), NO_OUTPUT)
def test_what_is_not_generated_is_no_token(dialect, sent):
    """Roles, empty deltas, pings, usage and nonsense start no clock and end nothing."""
    watch = watched(dialect, [sent])
    assert watch.first_output_ns is None
    assert not watch.done


@pytest.mark.parametrize("dialect", sorted(STREAMS))
def test_a_stream_that_ends_without_its_end_is_not_ok(dialect):
    """A clean close after some tokens is no success (s-gw-03)."""
    for count in range(len(STREAMS[dialect])):
        parts = STREAMS[dialect][:count]
        if watched(dialect, parts).done:
            assert count >= len(STREAMS[dialect]) - 2
            continue
        assert outcome(dialect, parts)["error"] == "upstream_ended_early"
        assert outcome(dialect, parts, why="client_closed")["error"] == "client_closed"
        assert outcome(dialect, parts, why="timeout_gap")["ok"] is False


@pytest.mark.parametrize("dialect", sorted(STREAMS))
def test_after_its_end_nothing_from_outside_counts(dialect):
    """A caller that leaves after the last event has had its answer."""
    assert outcome(dialect, STREAMS[dialect], why="client_closed")["ok"] is True


def test_all_reasons_to_end_are_an_end_without_the_last_line():
    """Some engines send no [DONE]; but every choice that began has to end."""
    two = [chunk({"content": "a"}), chunk({"content": "b"}, index=1)]
    assert not watched("openai", [*two, chunk({}, "stop")]).done
    ends = [chunk({}, "stop"), chunk({}, "length", 1)]
    assert outcome("openai", [*two, *ends])["ok"] is True


def test_of_several_choices_the_one_that_failed_counts():
    """An abort is not hidden by a neighbour that ended."""
    parts = [chunk({"content": "a"}, "abort"), chunk({"content": "a"}, "stop", 1), DONE]
    assert outcome("openai", parts)["finish_reason"] == "abort"


REFUSED = [
    ("openai", [event(BUSY), DONE]),
    ("openai", [event({"type": "error", "error": {"type": "overloaded_error"}})]),
    ("openai", [ROLE, event(BUSY), DONE]),
    ("anthropic", [typed("error", error={"type": "overloaded_error", "message": ""})]),
    (
        "anthropic",
        [typed("error", error={"type": "internal_error", "message": "busy"})],
    ),
    ("responses", [typed("error", code="server_is_overloaded", message="x")]),
    ("openai", [ROLE, chunk({}, "abort"), DONE]),
]


@pytest.mark.parametrize(("dialect", "parts"), REFUSED)
def test_a_refusal_dressed_as_200_is_a_refusal(dialect, parts):
    """Not a served request with a superb time to first token (s-gw-02)."""
    ended = outcome(dialect, parts, why="client_closed")
    assert (ended["ok"], ended["error"]) == (False, "upstream_refused")
    assert ended["ttft_ms"] is None


def test_an_error_that_comes_first_can_still_become_a_status():
    """The first event of a stream, and only that one, is offered for it."""
    first = watched("openai", [event(BUSY), DONE])
    assert json.loads(first.refused_in_band) == BUSY
    assert first.error == "busy"
    assert watched("openai", [ROLE, event(BUSY)]).refused_in_band is None
    assert watched("openai", [b": hi\n\n" + event(BUSY)]).refused_in_band is not None


FAILED = [
    (
        "openai",
        [
            chunk({"content": "a"}),
            event({"error": {"message": "x", "code": 500}}),
            DONE,
        ],
        "upstream_500",
    ),
    ("openai", [chunk({"content": "a"}), event(BUSY), DONE], "upstream_503"),
    ("openai", [chunk({"content": "a"}), event({"error": "x"})], "upstream_error"),
    ("openai", [chunk({"content": "a"}, "error"), DONE], "upstream_error"),
    (
        "openai",
        [event({"object": "error", "message": "x", "code": 400})],
        "upstream_400",
    ),
    ("openai", [b"event: error\ndata:\n\n"], "upstream_error"),
    ("openai", [ROLE, chunk({}, "stop"), DONE], "upstream_no_output"),
    (
        "responses",
        [
            typed("response.output_text.delta", delta="a"),
            typed(
                "response.failed",
                response={"status": "failed", "error": {"code": "server_error"}},
            ),
        ],
        "upstream_500",
    ),
    ("anthropic", [*MESSAGES[:5], typed("error", error={})], "upstream_error"),
    ("anthropic", [MESSAGES[0], typed("message_stop")], "upstream_no_output"),
]


@pytest.mark.parametrize(("dialect", "parts", "word"), FAILED)
def test_200_is_not_success(dialect, parts, word):
    """Errors in the stream, an abort, no output at all: each has its word."""
    ended = outcome(dialect, parts)
    assert (ended["ok"], ended["error"]) == (False, word)
    assert watched(dialect, parts).done


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (429, "upstream_refused"),
        (503, "upstream_refused"),
        (529, "upstream_refused"),
        (400, "upstream_400"),
        (502, "upstream_502"),
    ],
)
def test_a_status_that_is_no_success(status, word):
    """The engine's own refusals are kept apart from its failures (s-gw-12)."""
    ended = outcome("openai", [b'{"error":"x"}'], JSON, status)
    assert (ended["ok"], ended["error"], ended["e2e_ms"]) == (False, word, 100)
    assert watched("openai", [], JSON, status).done


def test_an_answer_that_never_came():
    """Without a head there is only what the host knows."""
    watch = Watch("openai", BEGAN)
    assert (
        watch.outcome(BEGAN, "upstream_unreachable")["error"] == "upstream_unreachable"
    )
    assert watch.outcome(BEGAN)["error"] == "handler_error"


CHAT_BODY = {
    "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "length"}],
    "usage": USAGE,
}
BODIES = [
    ("openai", CHAT_BODY, "length", 3),
    (
        "openai",
        {
            "choices": [
                {
                    "message": {
                        "content": None,
                        "tool_calls": [{"function": {"name": "f"}}],
                    },
                    "finish_reason": "tool_calls",
                }
            ]
        },
        "tool_calls",
        None,
    ),
    (
        "openai",
        {"choices": [{"text": "a", "finish_reason": "stop"}], "usage": USAGE},
        "stop",
        3,
    ),
    ("openai", {"data": [{"embedding": [0.1, 0.2]}], "usage": {}}, None, None),
    (
        "responses",
        {
            "status": "incomplete",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [{"type": "message", "content": [{"type": "output_text"}]}],
            "usage": {"output_tokens": 3},
        },
        "length",
        3,
    ),
    (
        "responses",
        {"status": "completed", "output": [{"type": "function_call"}]},
        "completed",
        None,
    ),
    ("responses", {"status": "queued", "output": []}, "queued", None),
    (
        "anthropic",
        {
            "type": "message",
            "content": [{"type": "text", "text": "a"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 2, "output_tokens": 3},
        },
        "end_turn",
        3,
    ),
]


@pytest.mark.parametrize(("dialect", "told", "finish", "tokens"), BODIES)
def test_a_body_that_is_no_stream(dialect, told, finish, tokens):
    """It has no first token; its usage and its reason to end are read."""
    body = json.dumps(told).encode()
    ended = outcome(dialect, [body[:9], body[9:]], JSON)
    assert (ended["ok"], ended["error"]) == (True, None)
    assert (ended["ttft_ms"], ended["max_gap_ms"], ended["e2e_ms"]) == (None, None, 100)
    assert (ended["finish_reason"], ended["output_tokens"]) == (finish, tokens)


BAD_BODIES = [
    ("openai", {"choices": [{"message": {"content": ""}, "finish_reason": "abort"}]},
     "upstream_refused"),
    ("openai", {"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]},
     "upstream_no_output"),
    ("openai", {"data": []}, "upstream_no_output"),
    ("openai", BUSY, "upstream_refused"),
    ("responses", {"status": "failed", "error": {"code": "server_error"}},
     "upstream_500"),
    ("anthropic", {"type": "error", "error": {"type": "overloaded_error"}},
     "upstream_refused"),
    ("anthropic", {"type": "message", "content": []}, "upstream_no_output"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "told", "word"), BAD_BODIES)
def test_a_body_that_is_no_answer(dialect, told, word):
    """A status of 200 over nothing, over an abort or over an error is not success."""
    ended = outcome(dialect, [json.dumps(told).encode()], JSON)
    assert (ended["ok"], ended["error"]) == (False, word)


def test_a_body_cut_short_is_not_done():
    """What does not read as JSON is not whole."""
    body = json.dumps(CHAT_BODY).encode()
    cut = watched("openai", [body[:-1]], JSON)
    assert not cut.done
    assert cut.outcome(BEGAN)["error"] == "upstream_unreadable"
    assert cut.outcome(BEGAN, "client_closed")["error"] == "client_closed"
    cut.took(body[-1:])
    assert cut.done
    assert cut.outcome(BEGAN)["ok"] is True


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_packed_answers_are_read_from_a_copy(pack):
    """Bodies and streams, in pieces (s-gw-07)."""
    packed = [(b"content-encoding", b"gzip" if pack is gzip.compress else b"deflate")]
    body = pack(json.dumps(CHAT_BODY).encode())
    assert (
        outcome("openai", [body[:20], body[20:]], JSON + packed)["output_tokens"] == 3
    )
    stream = pack(b"".join(CHAT))
    ended = outcome("openai", [stream[:20], stream[20:]], SSE + packed)
    assert (ended["ok"], ended["output_tokens"]) == (True, 3)


UNREADABLE = [
    (JSON, [b'"' + b"x" * BODY_BYTES + b'"']),
    (SSE, [b"data: " + b"x" * (1 << 21), b"x"]),
    ([*SSE, (b"content-encoding", b"br")], [b"abc"]),
    ([*JSON, (b"content-encoding", b"gzip")], [b"no gzip at all"]),
    ([*JSON, (b"content-encoding", b"gzip")], [gzip.compress(b"0" * (1 << 24))]),
]


@pytest.mark.parametrize(("headers", "parts"), UNREADABLE)
def test_what_cannot_be_read_is_judged_by_its_connection_alone(headers, parts):
    """Nothing is added to it, nothing is claimed about it, and memory stays bounded."""
    watch = watched("openai", parts, headers)
    assert watch.done
    assert len(watch._body) <= BODY_BYTES
    assert watch.outcome(BEGAN)["ok"] is True
    assert watch.outcome(BEGAN)["output_tokens"] is None
    assert watch.outcome(BEGAN, "client_closed")["error"] == "client_closed"


def test_nothing_can_be_added_to_a_packed_stream():
    """Plain bytes behind packed ones would be garbage."""
    packed = [*SSE, (b"content-encoding", b"gzip")]
    watch = watched("openai", [gzip.compress(ROLE)], packed)
    assert watch.done
    assert watch.outcome(BEGAN)["error"] == "upstream_ended_early"


@given(
    st.sampled_from(sorted(STREAMS)),
    st.lists(st.binary(max_size=40), max_size=6),
    st.sampled_from([SSE, JSON, [*JSON, (b"content-encoding", b"gzip")]]),
    st.sampled_from([200, 204, 404, 503]),
)
def test_no_bytes_make_it_raise(dialect, parts, headers, status):
    """Whatever an engine sends, a watch goes on."""
    watch = watched(dialect, parts, headers, status)
    assert isinstance(watch.outcome(BEGAN)["ok"], bool)
    assert watch.error is None or isinstance(watch.error, str)


def test_tokens_that_cannot_be_are_not_known():
    """A negative count, or one past 2^53, is none."""
    usage = {"prompt_tokens": -1, "completion_tokens": 1 << 60}
    ended = outcome("openai", [chunk({"content": "a"}, "stop", usage=usage)])
    assert (ended["input_tokens"], ended["output_tokens"]) == (None, None)


def test_text_beside_reasoning_is_text():
    """Of several choices in one event, the one that shows text counts."""
    both = [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {}}]
    both[1]["delta"] = {"reasoning": "b"}
    assert outcome("openai", [event({"choices": both})])["first_text_ms"] == 10


def test_llama_cpp_says_its_cached_tokens_elsewhere():
    """`timings.cache_n` counts as well as OpenAI's name for it."""
    last = chunk({}, "stop", timings={"cache_n": 7})
    assert outcome("openai", [chunk({"content": "a"}), last])["cached_tokens"] == 7


REAL = Path(__file__).parent / "real"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("dialect", "path", "finish", "tokens_in"),
    [
        ("openai", "completions", "length", 2),
        ("openai", "chat", "length", 6),
        ("responses", "responses", "length", 6),
        ("anthropic", "messages", "max_tokens", 6),
    ],
)
def test_answers_of_a_real_vllm(dialect, path, finish, tokens_in, stream):
    """Recorded from vLLM 0.32: eight tokens each, cut short by their limit."""
    name = f"vllm-0.32-{path}.{'sse' if stream else 'json'}"
    whole = (REAL / name).read_bytes()
    parts = [part + b"\n\n" for part in whole.split(b"\n\n") if part]
    ended = outcome(dialect, parts, SSE if stream else JSON)
    assert (ended["ok"], ended["error"], ended["finish_reason"]) == (True, None, finish)
    assert (ended["input_tokens"], ended["output_tokens"]) == (tokens_in, 8)
    assert ended["cached_tokens"] == 0
    text = next(n for n, part in enumerate(parts) if b"yst" in part or b'"si"' in part)
    assert ended["ttft_ms"] == (10 + text if stream else None)
    assert ended["first_text_ms"] == ended["ttft_ms"]
    for count in range(text + 1, len(parts) - 3 if stream else 0):
        assert outcome(dialect, parts[:count])["error"] == "upstream_ended_early"
