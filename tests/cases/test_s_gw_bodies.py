"""Field case s-gw-10: bodies of any size up to a limit that is named."""

import hashlib
import json
from contextlib import suppress

import pytest
from tests.gateway.conformance.door import configured, gateway, pool, scripted_engine
from tests.gateway.conformance.wire import CHAT, JSON, Caller, get, post, wish

MIB = 1 << 20
LIMIT = 13 * MIB
AGENT = 1_309_298


def of_size(size):
    """A chat request of so many bytes."""
    short = wish(CHAT, "ok", text="")
    return wish(CHAT, "ok", text="x" * (size - len(short)))


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A scripted engine, and a gateway that takes 13 MiB."""
    folder = tmp_path_factory.mktemp("limited")
    with scripted_engine() as engine:
        words = configured(
            folder, pools=[pool(engine, "no_admission")], limits={"body_bytes": LIMIT}
        )
        with gateway(folder / "door", *words) as door:
            yield engine, door


@pytest.mark.parametrize("size", [AGENT, 12 * MIB])
def test_s_gw_10_a_long_history_arrives_byte_for_byte(limited, size):
    """The engine gets what the client sent, and memory stays near its size."""
    engine, door = limited
    post(door.url, CHAT, of_size(1000))
    before = door.resident_bytes()
    body = of_size(size)
    reply, _ = post(door.url, CHAT, body)
    assert reply.status == 200
    seen = json.loads(get(engine, "/seen")[1])[-1]
    digest = hashlib.sha256(body).hexdigest()
    assert (seen["bytes"], seen["sha256"]) == (size, digest)
    assert seen["headers"]["content-length"] == str(size)
    assert door.resident_bytes() - before < 4 * size + 8 * MIB


@pytest.mark.parametrize("chunked", [False, True])
def test_s_gw_10_one_byte_over_is_413_and_says_the_limit(limited, chunked):
    """However it is sent; nothing reaches the engine, and no retry is invited."""
    engine, door = limited
    seen = len(json.loads(get(engine, "/seen")[1]))
    body = of_size(LIMIT + 1)
    parts = (body[i : i + MIB] for i in range(0, len(body), MIB)) if chunked else body
    with Caller(door.url) as caller:
        connection = caller._connection
        with suppress(OSError):  # it may answer before it has taken all of it
            connection.request("POST", CHAT, parts, JSON, encode_chunked=chunked)
        reply = connection.getresponse()
        error = json.loads(reply.read())["error"]
    assert reply.status == 413
    assert str(LIMIT) in error["message"] or "13 MiB" in error["message"]
    assert reply.getheader("retry-after") is None
    assert reply.getheader("x-should-retry") == "false"
    assert len(json.loads(get(engine, "/seen")[1])) == seen


def test_s_gw_10_the_limit_itself_passes(limited):
    """What is exactly as large as the limit is not over it."""
    _, door = limited
    assert post(door.url, CHAT, of_size(LIMIT))[0].status == 200
