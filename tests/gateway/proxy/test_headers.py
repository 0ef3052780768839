"""What of a head passes, and what ends at the proxy."""

import pytest

from admitperf.gateway.proxy.headers import (
    Outgoing,
    answer_headers,
    packed,
    upgrades,
)


def _scope(*headers, method="POST", path=b"/v1/x", query=b""):
    return {
        "method": method,
        "raw_path": path,
        "query_string": query,
        "headers": list(headers),
    }


def _lines(*headers, body=b"", request_id=None, **scope):
    head = Outgoing(_scope(*headers, **scope), body, request_id).head(b"far:1", b"")
    assert head.endswith(b"\r\n\r\n")
    return head[:-4].split(b"\r\n")


def test_the_length_is_that_of_the_body_whatever_was_announced():
    """Both framings at once, or a false length, never reach an engine."""
    lines = _lines(
        (b"content-length", b"5"),
        (b"content-length", b"7"),
        (b"transfer-encoding", b"chunked"),
        (b"host", b"gate"),
        body=b"abc",
    )
    assert lines == [b"POST /v1/x HTTP/1.1", b"host: far:1", b"content-length: 3"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_an_empty_body_has_its_length_where_one_is_expected(method):
    """A POST without a body says so."""
    assert _lines(method=method)[-1] == b"content-length: 0"


def test_a_get_without_a_body_names_no_length():
    """Nothing is added to a plain GET."""
    assert _lines(method="GET") == [b"GET /v1/x HTTP/1.1", b"host: far:1"]


def test_what_belongs_to_one_connection_ends_there():
    """The list of RFC 9110, and whatever `connection` names beside it."""
    hops = [
        (b"connection", b"close, X-Mine ,te"),
        (b"x-mine", b"1"),
        (b"keep-alive", b"timeout=5"),
        (b"te", b"trailers"),
        (b"trailer", b"x"),
        (b"upgrade", b"h2c"),
        (b"http2-settings", b"AA"),
        (b"proxy-authorization", b"Basic x"),
        (b"expect", b"100-continue"),
    ]
    assert _lines(*hops, (b"x-kept", b"2"), method="GET")[2:] == [b"x-kept: 2"]


def test_every_connection_header_counts():
    """A harmless second one does not hide what the first one names."""
    lines = _lines(
        (b"connection", b"x-mine"),
        (b"connection", b"keep-alive"),
        (b"x-mine", b"1"),
        method="GET",
    )
    assert len(lines) == 2


def test_connection_takes_away_no_header_that_only_looks_like_a_hop():
    """`connection: keep-alive` leaves all others."""
    lines = _lines(
        (b"connection", b"keep-alive"), (b"authorization", b"Bearer k"), method="GET"
    )
    assert lines[2:] == [b"authorization: Bearer k"]


def test_a_request_id_is_added_only_where_none_was_given():
    """The caller's own stays."""
    assert b"x-request-id: made" in _lines(request_id="made")
    given = _lines((b"x-request-id", b"mine"), request_id="made")
    assert b"x-request-id: mine" in given
    assert b"x-request-id: made" not in given


def test_an_answer_keeps_order_repeats_and_values():
    """Only the case of names changes."""
    raw = ((b"X-B", b"2"), (b"X-A", b"\xe9"), (b"X-B", b"1"), (b"Content-Length", b"3"))
    assert answer_headers(raw) == [
        (b"x-b", b"2"),
        (b"x-a", b"\xe9"),
        (b"x-b", b"1"),
        (b"content-length", b"3"),
    ]


def test_a_chunked_answer_has_no_length():
    """Two framings at once become the one that counts, in whatever order they stand."""
    for raw in (
        ((b"Content-Length", b"3"), (b"Transfer-Encoding", b"chunked")),
        ((b"Transfer-Encoding", b"chunked"), (b"Content-Length", b"3")),
    ):
        assert answer_headers(raw) == []


def test_an_engines_own_number_of_a_decision_stays_behind():
    """Only ours can be explained here."""
    raw = ((b"X-AdmitPerf-Decision-Id", b"theirs-1"), (b"x-admitperf-reason", b"slots"))
    assert answer_headers(raw) == [(b"x-admitperf-reason", b"slots")]


@pytest.mark.parametrize(
    ("codings", "are"),
    [
        ([b"chunked"], False),
        ([b" Chunked "], False),
        ([b"gzip, chunked"], True),
        ([b"gzip", b"chunked"], True),
        ([b"chunked, chunked"], False),
        ([b"deflate"], True),
    ],
)
def test_a_coding_beside_the_framing_is_seen(codings, are):
    """In one header or in several, of a request as of an answer."""
    headers = [(b"Transfer-Encoding", one) for one in codings]
    assert packed(headers) is are
    lower = [(name.lower(), value) for name, value in headers]
    assert Outgoing(_scope(*lower), b"x", None).packed is are


def test_an_answers_connection_names_what_goes_even_before_it():
    """A header named by `connection` goes, wherever it stands."""
    raw = (
        (b"X-Hop", b"1"),
        (b"Connection", b"x-hop"),
        (b"X-Hop", b"2"),
        (b"X-A", b"1"),
    )
    assert answer_headers(raw) == [(b"x-a", b"1")]


@pytest.mark.parametrize(
    "value", [b"text/event-stream", b"Text/Event-Stream; charset=utf-8"]
)
def test_event_streams_are_marked_as_not_to_be_buffered(value):
    """Both headers are added, each only where it is absent."""
    headers = answer_headers(((b"Content-Type", value),))
    assert headers[1:] == [
        (b"x-accel-buffering", b"no"),
        (b"cache-control", b"no-cache"),
    ]
    own = ((b"Content-Type", value), (b"Cache-Control", b"private"))
    assert (b"cache-control", b"no-cache") not in answer_headers(own)


def test_only_a_websocket_is_an_upgrade_that_is_refused():
    """curl's offer of HTTP/2 is ignored, as any server may."""
    assert upgrades([(b"upgrade", b" WebSocket ")])
    assert not upgrades([(b"upgrade", b"h2c"), (b"x-upgrade", b"websocket")])
