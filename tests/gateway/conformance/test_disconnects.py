"""Whoever leaves frees what was held for it, whenever that is."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.gateway.conformance.door import pause
from tests.gateway.conformance.wire import CHAT, MESSAGES, Caller, wish
from tests.real.process import until

SEED = 6
ABORTS = 200


def ended(home, rid, seconds=2):
    """Whether the engine saw that a request's caller had left."""
    return until(lambda: [n["end"] for n in home.seen(rid)] == ["left"], seconds)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_leaving_in_the_middle_of_a_stream_ends_the_work(scripted, rid, path):
    """The engine is told, and the log says who left."""
    with Caller(scripted.url) as caller:
        body = wish(path, "slow", stream=True)
        reply = caller.ask(path, body, {"x-request-id": rid})
        assert all(reply.piece() for _ in range(5))
    assert ended(scripted, rid)
    outcome = scripted.line("outcome", rid)
    assert (outcome["ok"], outcome["error"]) == (False, "client_closed")
    assert outcome["ttft_ms"] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_before_the_first_token_ends_the_work(scripted, rid, stream):
    """A prefill that nobody waits for is not finished."""
    with Caller(scripted.url) as caller:
        caller.send(CHAT, wish(CHAT, "silent", stream=stream), {"x-request-id": rid})
        assert until(lambda: scripted.seen(rid), 5)
    assert ended(scripted, rid)
    outcome = scripted.line("outcome", rid)
    assert (outcome["ok"], outcome["error"]) == (False, "client_closed")
    assert "ttft_ms" not in outcome


def test_leaving_a_real_engine_is_seen(home, rid):
    """On any engine the lease ends when the caller has gone."""
    wanted = wish("/v1/completions", "ok", stream=True, text="once upon a time")
    long = wanted[:-1] + b', "max_tokens": 900, "ignore_eos": true}'
    with Caller(home.url) as caller:
        model = long if home.name == "vllm" else long.replace(b'"ok"', b'"slow"')
        reply = caller.ask("/v1/completions", model, {"x-request-id": rid})
        assert reply.piece()
    outcome = home.line("outcome", rid)
    assert (outcome["ok"], outcome["error"]) == (False, "client_closed")


def abort(home, rid, chance):
    """Begin something and leave at some moment; where, in words."""
    model = chance.choice(["slow", "silent", "ok", "cut", "defer:slots"])
    body = wish(CHAT, model, stream=chance.random() < 0.7, text=rid)
    with Caller(home.url) as caller:
        if chance.random() < 0.2:
            caller.send(CHAT, body[: len(body) // 2], {
                "x-request-id": rid, "content-length": str(len(body)),
            })  # fmt: skip
            return
        caller.send(CHAT, body, {"x-request-id": rid})
        pause(chance.random() * 0.2)


def test_after_any_number_of_aborts_nothing_is_left(scripted, rid):
    """Each admitted request has exactly one outcome, whenever its caller left."""
    chances = [random.Random(f"{SEED}-{n}") for n in range(ABORTS)]
    with ThreadPoolExecutor(16) as callers:
        list(
            callers.map(
                lambda n: abort(scripted, f"{rid}-{n}", chances[n]), range(ABORTS)
            )
        )

    def settled():
        admitted, outcomes = counted(scripted, rid)
        return sorted(admitted) == sorted(outcomes)

    assert until(settled, 10), counted(scripted, rid)
    assert counted(scripted, rid)[0]


def counted(home, rid):
    """Ids that were admitted, and ids whose end was reported."""
    admitted = [d["id"] for d in home.lines("decision") if d["admitted"]]
    outcomes = [o["id"] for o in home.lines("outcome")]
    return [[i for i in ids if i.startswith(rid)] for ids in (admitted, outcomes)]
