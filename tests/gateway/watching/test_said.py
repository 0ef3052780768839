"""Errors of engines are understood by their code, their type or their words."""

import pytest

from admitperf.gateway.watching.said import Said

BUSY = (
    b'{"error":{"message":"The engine is currently busy and cannot accept new requests.'
    b' Please try again later or on a different instance.",'
    b'"type":"Service Unavailable","param":null,"code":503}}'
)
STATUSES = [
    (BUSY, 503),
    (b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}', 529),
    (b'{"type":"error","error":{"type":"rate_limit_error","message":"x"}}', 429),
    (b'{"error":{"type":"internal_error","message":"engine is busy"}}', 503),
    (b'{"error":{"message":"Server is busy"}}', 503),
    (b'{"error":"The request queue is full."}', 503),
    (b"Overloaded", 503),
    (b'{"error":{"code":"server_is_overloaded","message":"x"}}', 503),
    (b'{"error":{"code":"429","message":"x"}}', 429),
    (b'{"error":{"code":500,"message":"busy"}}', 500),
    (b'{"error":{"type":"InternalServerError","message":"boom"}}', 500),
    (b'{"object":"error","message":"long","type":"BadRequestError","code":400}', 400),
    (b'{"type":"error","code":"rate_limit_exceeded","message":"x"}', 429),
    (
        (
            b'{"type":"response.failed","response":{"status":"failed","error":'
            b'{"code":"server_error","message":"x"}}}'
        ),
        500,
    ),
    (b'{"error":{"message":"odd","code":7}}', None),
    (b'{"error":{"message":"odd","code":true,"type":3}}', None),
    (b'{"error":{"message":"odd","code":600}}', None),
    (b"", None),
    (b"[1]", None),
    (b"\xff\xfe", None),
    (b"[" * 100_000, None),
]


@pytest.mark.parametrize(("data", "status"), STATUSES)
def test_the_status_an_error_would_have_had(data, status):
    """Its code if that is one, else its type, else its words; None when none says."""
    assert Said.of(data).status == status


def test_the_words_of_the_engine_are_kept():
    """Message, type and code come back as they were said."""
    said = Said.of(BUSY)
    assert said.message.startswith("The engine is currently busy")
    assert (said.kind, said.code, said.param) == ("Service Unavailable", 503, None)


def test_what_is_no_json_is_all_message():
    """A bare text is what it says."""
    assert Said.of(b"boom").message == "boom"
