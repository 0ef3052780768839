"""What is seen of a streamed answer, byte by byte."""

import json

import pytest

from admitperf.bench.harness.http_stream import Stream

MS = 1_000_000


def event(**told):
    """One event."""
    return f"data: {json.dumps(told)}\n\n".encode()


def token(text="one", finish=None, **more):
    """An event with a token."""
    return event(choices=[{"text": text, "finish_reason": finish, **more}])


def seen(*parts, status=200, headers=None):
    """A stream that took these parts, one each ms."""
    stream = Stream()
    stream.head(status, headers or {})
    for at, part in enumerate(parts, 1):
        stream.take(part, at * MS)
    stream.end()
    return stream


def test_times_are_of_events_with_tokens():
    """First and last token, and the longest time between two of them."""
    stream = seen(token(), b": a comment\n\n", b"", token(), token(finish="length"))
    assert stream.ok
    assert (stream.first_ns, stream.last_ns) == (1 * MS, 5 * MS)
    assert stream.gap_ns == 3 * MS
    assert stream.tokens == 3


def test_an_event_may_come_in_pieces():
    """It counts when it is whole."""
    whole = token(finish="length")
    stream = seen(whole[:9], whole[9:-2], whole[-2:])
    assert stream.ok
    assert stream.first_ns == 3 * MS


def test_a_token_may_have_no_text_and_a_last_event_no_token():
    """Half a character is a token; what only says why it ended is none."""
    stream = seen(token(""), token(""), token("", finish="stop"))
    assert stream.tokens == 2


def test_an_event_may_hold_several_tokens():
    """Their ids are counted, and kept."""
    stream = seen(token(token_ids=[7, 8]), token(finish="length", token_ids=[9]))
    assert stream.tokens == 3
    assert stream.ids == [7, 8, 9]


def test_the_engines_own_count_is_better_than_that_of_events():
    """So are the tokens it found in its cache."""
    used = {"completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}}
    stream = seen(token(finish="length"), event(choices=[], usage=used))
    assert (stream.tokens, stream.cached) == (5, 64)


def test_llamacpp_says_what_was_cached_among_its_timings():
    """Where the usage has no word of it."""
    stream = seen(event(choices=[{"finish_reason": "length"}], timings={"cache_n": 9}))
    assert stream.cached == 9


def test_a_stream_may_say_that_the_engine_is_full():
    """Though it began with 200: the caller got a 503."""
    stream = seen(event(error={"message": "busy", "code": 503}), b"data: [DONE]\n\n")
    assert not stream.ok
    assert (stream.status, stream.error) == (503, "503, the engine's own limit")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"message": "out of\nmemory", "code": 500}, "500, out of memory"),
        ({"message": "odd", "code": "x"}, "500, odd"),
        ("plain", "500, plain"),
        ({}, "500, no reason given"),
    ],
)
def test_an_error_in_a_stream_fails_it(error, said):
    """In the engine's words, also after tokens."""
    stream = seen(token(), event(error=error))
    assert not stream.ok
    assert stream.error == said
    assert stream.tokens == 1


def test_a_stream_that_breaks_off_is_no_answer():
    """And says so."""
    stream = seen(token(), token())
    assert not stream.ok
    assert stream.error == "the stream ended too early"


@pytest.mark.parametrize("junk", [b"data: {\n\n", b"data: 3\n\n", b"data: \xff\n\n"])
def test_an_event_that_is_no_object_fails_it(junk):
    """What cannot be read is not an answer."""
    assert seen(junk, token(finish="stop")).error == "an event that is no JSON object"


def test_an_engines_503_is_not_the_policys():
    """Its body says nothing that we need."""
    stream = Stream()
    stream.head(503, {"Retry-After": "2"})
    stream.fault(b"")
    assert (stream.error, stream.refused) == ("503, the engine's own limit", False)
    assert stream.retry_after_ms == 2000


def test_a_gateways_refusal_is_its_policys():
    """By the header that only a policy sends."""
    stream = Stream()
    told = {"x-admitperf-reason": "queue_depth", "retry-after-ms": "1500"}
    stream.head(503, told | {"Retry-After": "2", "x-should-retry": "false"})
    stream.fault(b'{"error": {"message": "full", "code": "queue_depth"}}')
    assert (stream.refused, stream.reason) == (True, "queue_depth")
    assert (stream.retry_after_ms, stream.should_retry) == (1500, False)
    assert stream.error == "503, full"


@pytest.mark.parametrize("wait", ["-1", "soon", "inf", "nan", ""])
def test_a_wait_that_is_no_time_is_not_known(wait):
    """A date, say."""
    stream = Stream()
    stream.head(503, {"Retry-After": wait})
    assert stream.retry_after_ms is None


@pytest.mark.parametrize(
    "odd",
    [
        b'{"choices": ["x"]}',
        b'{"choices": 5}',
        b'{"usage": [1]}',
        b'{"usage": {"completion_tokens": -1}}',
        b'{"usage": {"completion_tokens": 1e3, "prompt_tokens_details": 7}}',
        b'{"choices": [{"token_ids": 5, "text": "", "finish_reason": "stop"}]}',
        b'{"timings": "x"}',
        b"[" * 100_000,
    ],
)
def test_an_odd_event_is_never_an_exception(odd):
    """What an engine sends wrongly ends no run, and is no token."""
    stream = Stream()
    stream.take(b"data: " + odd + b"\n\n", 1)
    assert (stream.tokens, stream.cached) == (0, None)


def test_an_event_without_end_is_not_kept():
    """It would fill the memory."""
    stream = Stream()
    stream.take(b"x" * 1_000_000, 1)
    with pytest.raises(ValueError, match="without end"):
        stream.take(b"x" * 100_000, 1)
