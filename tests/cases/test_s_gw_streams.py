"""Field cases about what engines send, and about who leaves: through a real gateway."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from openai import APIError, OpenAI
from tests.gateway.conformance.door import before, pause
from tests.gateway.conformance.wire import CHAT, Caller, post, wish
from tests.real.process import until

from admitperf.core.clock import SYSTEM

STREAM = wish(CHAT, stream=True)


@pytest.mark.parametrize("stream", [True, False])
def test_s_gw_02_a_refusal_disguised_as_200_is_one(engine, door, told, stream):
    """An answer that is aborted without a token is refused upstream, and no goodput."""
    stub = engine(chat="abort_200", tokens=0, ttft=0.01)
    door = door(*before(stub.url, "no_admission"), "--slo", "ttft_ms=5000")
    post(door.url, CHAT, wish(CHAT, stream=stream))
    (outcome,) = door.waits_for("outcome")
    assert (outcome["ok"], outcome["error"]) == (False, "upstream_refused")
    report, _ = told("report", door.log)
    (run,) = report["runs"]
    goodput = run["cost"]["requests"]["goodput"]
    assert (goodput["n"], goodput["of"]) == (0, 1)
    assert run["cost"]["requests"]["ttft_user_ms"]["n"] == 0


@pytest.mark.parametrize("mode", ["cut_clean", "cut_hard"])
def test_s_gw_03_a_stream_that_ends_early_ends_with_an_error(engine, door, mode):
    """What was sent stays as it was; one error event and [DONE] are added."""
    stub = engine(chat=mode)
    door = door(*before(stub.url, "no_admission"))
    _, through = post(door.url, CHAT, STREAM)
    if mode == "cut_clean":
        _, direct = post(stub.url, CHAT, STREAM)
        assert through.startswith(direct)
        through = through.removeprefix(direct)
    *_, error, done, nothing = through.split(b"\n\n")
    assert json.loads(error.removeprefix(b"data: "))["error"]["message"]
    assert (done, nothing) == (b"data: [DONE]", b"")
    assert through.count(b"error") >= 1
    with OpenAI(base_url=f"{door.url}/v1", api_key="k", max_retries=0) as client:
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        seen = []
        with pytest.raises(APIError):
            seen.extend(c.choices[0].delta.content for c in stream)
    outcomes = door.waits_for("outcome", 2)
    ends = {(one["ok"], one["error"]) for one in outcomes}
    assert ends == {(False, "upstream_ended_early")}


def test_s_gw_04_a_client_that_leaves_ends_the_work(engine, door):
    """The engine sees it within a second, the lease ends, and it is no server error."""
    stub = engine(tokens=500, itl=0.02)
    door = door(*before(stub.url, "no_admission"))
    with Caller(door.url) as caller:
        reply = caller.ask(CHAT, STREAM)
        assert all(reply.piece() for _ in range(3))
        assert door.open_requests() == 1
        left_ns = SYSTEM.monotonic_ns()
    assert stub.waits_for("cancelled")
    assert stub.events("cancelled")[0]["t"] - left_ns / 1e9 < 1
    assert door.empties()
    (outcome,) = door.waits_for("outcome")
    assert (outcome["ok"], outcome["error"]) == (False, "client_closed")


def arrivals(url, headers):
    """When each piece of a stream came, in seconds from its start, and the answer."""
    began_ns, times, pieces = SYSTEM.monotonic_ns(), [], []
    with Caller(url) as caller:
        reply = caller.ask(CHAT, STREAM, headers)
        times.append((SYSTEM.monotonic_ns() - began_ns) / 1e9)
        while piece := reply.piece():
            times.append((SYSTEM.monotonic_ns() - began_ns) / 1e9)
            pieces.append(piece)
    return times, pieces, reply


def test_s_gw_06_events_are_not_held_back(engine, door):
    """Each arrives before the engine has written the next one, one read a piece."""
    gap_s = 0.25
    stub = engine(ttft=0.5, itl=gap_s, tokens=6)
    door = door(*before(stub.url, "no_admission"))
    packed = {"accept-encoding": "gzip"}
    asked = [(stub.url, {}), (door.url, {}), (door.url, packed)]
    with ThreadPoolExecutor(len(asked)) as callers:
        direct, *both = callers.map(lambda one: arrivals(*one), asked)
    for through in both:
        _came_in_time(direct, through, gap_s)


def _came_in_time(direct, through, gap_s):
    """The same bytes, each piece before the engine has written the next."""
    assert b"".join(through[1]) == b"".join(direct[1])
    # The first token is written with the role, the last with what ends the stream.
    late_s = [t - d for t, d in zip(through[0][:2], direct[0][:2], strict=True)]
    assert max(late_s) < gap_s
    assert through[0][-1] - direct[0][-1] < gap_s
    spread = [t for t in through[0] if t > 0.6]
    assert len(spread) >= 6
    assert through[2].one("x-accel-buffering") == "no"
    assert through[2].one("cache-control") == "no-cache"
    assert through[2].all("content-encoding") == []


HOP_BY_HOP = {"keep-alive", "proxy-authenticate", "te", "trailer", "upgrade"}


@pytest.mark.parametrize("headers", [{}, {"accept-encoding": "gzip"}])
def test_s_gw_07_compressed_bodies_arrive_whole(engine, door, headers):
    """The body is the engine's, its two headers fit it, its tokens are counted."""
    stub = engine(chat="gzip_json", tokens=10)
    door = door(*before(stub.url, "no_admission"))
    reply, body = post(door.url, CHAT, wish(CHAT), headers)
    _, direct = post(stub.url, CHAT, wish(CHAT), headers)
    assert int(reply.one("content-length")) == len(body)
    assert reply.one("content-encoding") == "gzip"
    assert json.loads(gzip.decompress(body)) == json.loads(gzip.decompress(direct))
    assert not HOP_BY_HOP & {name for name, _ in reply.pairs}
    (outcome,) = door.waits_for("outcome")
    assert (outcome["ok"], outcome["output_tokens"]) == (True, 10)
    assert "ttft_ms" not in outcome


def test_s_gw_08_a_pooled_connection_that_died_is_replaced_in_silence(engine, door):
    """Two seconds of keep-alive at the engine, three between requests: two 200s."""
    stub = engine(keepalive=2)
    door = door(*before(stub.url, "no_admission"))
    assert post(door.url, CHAT, wish(CHAT))[0].status == 200
    pause(3)
    assert post(door.url, CHAT, wish(CHAT))[0].status == 200
    assert len(stub.events("start")) == 2


@pytest.mark.parametrize(("status", "after"), [(429, "7"), (503, "2")])
def test_s_gw_12_the_engines_own_refusal_passes_unchanged(
    engine, door, told, status, after
):
    """Status, body and one bare Retry-After; in the log it is no refusal of ours."""
    stub = engine(chat=f"status:{status};Retry-After={after}")
    door = door(*before(stub.url, "no_admission"))
    reply, body = post(door.url, CHAT, wish(CHAT))
    assert reply.status == status
    assert reply.one("retry-after") == after
    assert reply.all("retry-after-ms") == []
    assert reply.all("x-admitperf-reason") == []
    assert body == post(stub.url, CHAT, wish(CHAT))[1]
    (decision,), (outcome,) = door.waits_for("decision"), door.waits_for("outcome")
    assert decision["admitted"] is True
    assert (outcome["ok"], outcome["error"]) == (False, "upstream_refused")
    report, _ = told("report", door.log)
    (run,) = report["runs"]
    assert run["cost"]["requests"]["refused_attempts"]["n"] == 0


def test_s_gw_13_an_agent_that_sends_again_finds_room(engine, door):
    """Each abandoned copy is cancelled before the next starts, and the fifth is served.

    Scaled down: 1 s to the first token, given up after 0.3 s.
    """
    stub = engine(slots=1, ttft=1.0, tokens=2, itl=0.01)
    door = door(*before(stub.url, "in_flight_cap", max_in_flight=2))
    for copy in range(4):
        with Caller(door.url) as caller:
            caller.send(CHAT, STREAM)
            assert stub.waits_for("start", copy + 1)
            pause(0.3)
        assert stub.waits_for("cancelled", copy + 1, seconds=1)
    began_ns = SYSTEM.monotonic_ns()
    reply, body = post(door.url, CHAT, STREAM)
    took_s = (SYSTEM.monotonic_ns() - began_ns) / 1e9
    assert reply.status == 200
    assert b"[DONE]" in body
    assert 1 <= took_s < 2
    assert stub.waits_for("end")
    kinds = [e["event"] for e in stub.events() if e["event"] != "first_byte"]
    assert kinds == ["start", "cancelled"] * 4 + ["start", "end"]
    assert until(lambda: door.open_requests() == 0, 5)
