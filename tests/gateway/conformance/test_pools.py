"""Several pools behind one gateway: the model of a request decides."""

import json

import pytest
from tests.gateway.conformance.door import (
    configured,
    gateway,
    lines_of,
    scripted_engine,
)
from tests.gateway.conformance.wire import CHAT, MESSAGES, get, post, wish

KNOWN = {"one": "ok", "two": "late"}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two engines, and a gateway that knows one model of each."""
    folder = tmp_path_factory.mktemp("two")
    with scripted_engine() as one, scripted_engine() as other:
        engines = {"one": one, "two": other}
        pools = [
            {
                "name": name,
                "models": [KNOWN[name]],
                "upstreams": [url],
                "policy": "says",
                "log": str(folder / f"{name}.jsonl"),
            }
            for name, url in engines.items()
        ]
        words = configured(folder, pools=pools)
        with gateway(folder / "door", *words, log=False) as door:
            yield door, engines, folder


def served(engine):
    """How many requests an engine was given."""
    return len(json.loads(get(engine, "/seen")[1]))


@pytest.mark.parametrize("name", KNOWN)
def test_a_request_goes_to_the_pool_of_its_model(two, name):
    """And is in the log of that pool, and of no other."""
    door, engines, folder = two
    before = {one: served(url) for one, url in engines.items()}
    reply, _ = post(door.url, CHAT, wish(CHAT, KNOWN[name]))
    assert reply.status == 200
    after = {one: served(url) for one, url in engines.items()}
    assert after == {**before, name: before[name] + 1}
    post(door.url, CHAT, wish(CHAT, KNOWN[name], text="again"))
    models = {
        line["facts"]["model"]
        for line in lines_of(folder / f"{name}.jsonl")
        if line["k"] == "decision"
    }
    assert models <= {KNOWN[name]}


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_model_that_no_pool_has_is_404(two, path):
    """In the caller's dialect, with an id, and no invitation to try again."""
    reply, body = post(two[0].url, path, wish(path, "nowhere"))
    assert reply.status == 404
    assert reply.one("x-should-retry") == "false"
    assert reply.one("x-request-id")
    assert reply.one("x-request-id") == reply.one("request-id")
    told = json.loads(body)
    kind = "not_found_error" if path == MESSAGES else "invalid_request_error"
    assert told["error"]["type"] == kind


@pytest.mark.parametrize("body", [b"{oops", b'{"messages":[]}'])
def test_a_request_without_a_model_is_an_engines_to_refuse(two, body):
    """The first pool takes it: nobody says that a model is missing that has none."""
    door, engines, _ = two
    before = served(engines["one"])
    post(door.url, CHAT, body)
    assert served(engines["one"]) == before + 1
