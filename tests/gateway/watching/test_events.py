"""Events are found however a stream is cut."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from admitperf.gateway.watching.events import LONGEST_BYTES, Event, Events

LINES = st.sampled_from(
    [
        b"data: {}",
        b"data:x",
        b"data:  two",
        b"data",
        b"event: ping",
        b"event:a",
        b": said",
        b"id: 1",
        b"retry: 9",
        b"odd: 1",
        b"",
        b"",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@st.composite
def streams(draw):
    """A stream with any line ends, and where it is cut."""
    lines = draw(st.lists(st.tuples(LINES, ENDS), max_size=24))
    whole = b"".join(line + end for line, end in lines)
    cuts = draw(st.lists(st.integers(0, len(whole)), max_size=8))
    return whole, sorted(cuts)


def pieces(whole, cuts):
    """A stream cut into pieces."""
    bounds = [0, *cuts, len(whole)]
    return [whole[a:b] for a, b in itertools.pairwise(bounds)]


def found(parts):
    """The events of these pieces."""
    events = Events()
    return [event for part in parts for event in events.feed(part)]


def by_openai(whole):
    """The events as openai-python finds them, in our words; empty ones left out."""
    told = SSEDecoder().iter_bytes(iter([whole]))
    events = [Event((e.event or "").encode(), e.data.encode()) for e in told]
    return [event for event in events if event.name or event.data]


@given(streams())
@example((b"data: a\r\n\r\ndata: b\r\n\r\n", [8, 9, 10, 11]))
@example((b"data: a\n\n\ndata: b\n\n", [9]))
@example((b"data: a\n\ndata: b\rdata: c\n\n", [9]))
def test_events_are_those_that_the_official_client_finds(stream):
    """Any line end, comment and field, cut anywhere."""
    whole, cuts = stream
    kept = [event for event in found(pieces(whole, cuts)) if event.name or event.data]
    assert kept == by_openai(whole)


@given(streams())
def test_cutting_a_stream_changes_nothing(stream):
    """One piece, many pieces, byte by byte: the same events."""
    whole, cuts = stream
    assert found([whole]) == found(pieces(whole, cuts))
    assert found([whole]) == found([bytes([byte]) for byte in whole])


def test_a_byte_order_mark_is_no_part_of_the_first_event():
    """It may stand before a stream, once."""
    assert found([b"\xef\xbb\xbfdata: a\n\n"]) == [Event(b"", b"a")]


@pytest.mark.parametrize(
    ("sent", "inside"),
    [
        (b"", False),
        (b"data: a\n\n", False),
        (b"data: a\n\n\n", False),
        (b"data: a\r\n\r\n", False),
        (b"data: a\n", True),
        (b"data: a", True),
        (b"data: a\n\nda", True),
        (b"data: a\r\n", True),
    ],
)
def test_it_is_known_whether_a_stream_stands_inside_an_event(sent, inside):
    """Whoever adds an event must end a torn one first."""
    events = Events()
    events.feed(sent)
    assert events.mid_event is inside


def test_an_event_without_measure_is_left_out_and_takes_no_memory():
    """What comes after it is found again."""
    events = Events()
    assert events.feed(b"data: a\n\n") == [Event(b"", b"a")]
    for _ in range(40):
        events.feed(b"x" * (LONGEST_BYTES // 10))
        assert len(events._rest) <= LONGEST_BYTES
    assert events.broken
    assert events.mid_event
    assert events.feed(b"\ndata: its last line\n") == []
    assert events.feed(b"\ndata: b\n\ndata: c\n\n") == [
        Event(b"", b"b"),
        Event(b"", b"c"),
    ]
    assert not events.mid_event


def test_the_last_line_of_an_overlong_event_is_no_event():
    """Also when it comes together with the next one."""
    events = Events()
    events.feed(b"data: " + b"x" * LONGEST_BYTES)
    assert events.feed(b"\ndata: tail\n\ndata: b\n\n") == [Event(b"", b"b")]
