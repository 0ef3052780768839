"""One judged request from its head to the end of its answer."""

import asyncio
import json
import threading
import tracemalloc
from contextlib import suppress

import pytest
from tests.gateway.asgi import DONE, Caller, answers, event, scope, streams

from admitperf import Policy
from admitperf.core.clock import SYSTEM
from admitperf.gateway.broke import UpstreamBroke
from admitperf.gateway.setup import EdgeSetup, Holding, Limits, PoolSetup, Tenant
from admitperf.testing import FakeClock

CHAT = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'


class Says(Policy):
    """Answers what the test wants said."""

    name = "says"

    def decide(self, metrics):
        """Say it."""
        verdict = getattr(self, self.verdict)
        if self.verdict == "admit":
            return verdict()
        return verdict(self.because, estimate_ms=getattr(self, "told_ms", None))


def go(door, *parts, path="/v1/chat/completions", headers=(), caller=None):
    """One request through a door; the caller, with what it got."""
    caller = caller or Caller(*(parts or (CHAT,)))
    asyncio.run(door.app(scope(path, headers), caller.receive, caller.send))
    return caller


def test_an_admitted_answer_passes_byte_for_byte_one_write_a_read(door):
    """Only ids are added to the head."""
    parts = [
        ROLE,
        event("a"),
        event("b")[:20],
        event("b")[20:],
        event("c", "stop"),
        DONE,
    ]
    caller = go(door(streams(*parts)))
    assert caller.writes == parts
    assert caller.status == 200
    assert caller.headers["x-request-id"] == caller.headers["request-id"] != ""
    assert caller.ended


def test_the_outcome_is_reported_by_itself(door):
    """First token, end and finish reason, without the app saying anything."""
    made = door(streams(ROLE, event("a"), event("b", "stop"), DONE))
    go(made)
    (outcome,) = made.lines("outcome")
    assert outcome["ok"] is True
    assert outcome["finish_reason"] == "stop"
    assert outcome["ttft_ms"] <= outcome["e2e_ms"]
    assert made.open == 0


def test_what_is_not_judged_passes_untouched(door):
    """Models, health, GETs: no decision, no header."""
    made = door(answers(b"{}"))
    caller = go(made, path="/v1/models")
    assert caller.status == 200
    assert "x-request-id" not in caller.headers
    assert made.lines("decision") == []


@pytest.mark.parametrize(
    "path",
    [
        "//v1//chat/completions",
        "/v1/chat/completions/",
        "/v1/./chat/completions",
        "/v1/x/../chat/completions",
        "/../v1/messages",
    ],
)
def test_slashes_do_not_get_around_the_door(door, path):
    """The same path, written otherwise."""
    made = door(answers(b"{}"), Says, verdict="reject", because="queue_depth")
    assert go(made, path=path).status == 503


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_refusal_is_a_real_status_with_every_header_once(door, path):
    """In both dialects, before any event."""
    made = door(streams(), Says, verdict="defer", because="queue_depth")
    caller = go(made, path=path, headers=[("x-request-id", "r-1")])
    headers = caller.headers
    assert caller.status == 503
    assert int(headers["retry-after"]) >= 1
    assert headers["x-admitperf-reason"] == "queue_depth"
    assert headers["x-request-id"] == headers["request-id"] == "r-1"
    assert headers["x-admitperf-decision-id"].endswith("-1")
    assert int(headers["content-length"]) == len(caller.body)
    assert json.loads(caller.body)["error"]["message"]
    assert made.pool.explain("r-1")["reason"] == "queue_depth"


def test_an_early_refusal_inside_the_stream_becomes_its_status(door):
    """The engine said 200 and meant 503."""
    refused = b'data: {"error":{"message":"busy","code":503}}\n\n'
    made = door(streams(refused, DONE))
    caller = go(made)
    assert caller.status == 503
    assert caller.headers["x-admitperf-decision-id"]
    assert "event-stream" not in caller.headers["content-type"]
    assert json.loads(caller.body)["error"]["message"] == "busy"
    (outcome,) = made.lines("outcome")
    assert (outcome["ok"], outcome["error"]) == (False, "upstream_refused")


def test_a_late_refusal_stays_in_the_stream(door):
    """After text it cannot be a status any more."""
    refused = b'data: {"error":{"message":"busy","code":503}}\n\n'
    parts = [event("a"), refused, DONE]
    made = door(streams(*parts))
    caller = go(made)
    assert (caller.status, caller.body) == (200, b"".join(parts))
    assert made.lines("outcome")[0]["ok"] is False


def test_a_silent_stream_gets_its_head_after_the_peek(door):
    """A first token that takes long holds no head back."""

    async def run():
        go_on = asyncio.Event()
        made = door(
            streams(b": ping\n\n", event("a", "stop"), DONE, pause=go_on.wait),
            setup=EdgeSetup(limits=Limits(peek_ms=20)),
        )
        caller = Caller(CHAT)
        task = asyncio.ensure_future(made.app(scope(), caller.receive, caller.send))
        await asyncio.wait({task}, timeout=0.5)
        early = caller.status, caller.ended
        go_on.set()
        await task
        return early, caller.body

    early, body = asyncio.run(run())
    assert early == (200, False)
    assert body == b": ping\n\n" + event("a", "stop") + DONE


@pytest.mark.parametrize("cut", [event("b"), event("b")[:20]])
def test_a_stream_without_its_end_gets_one_closing_error(door, cut):
    """What came stays as it was; the client raises."""
    made = door(streams(event("a"), cut))
    caller = go(made)
    sent = event("a") + cut
    assert caller.body.startswith(sent)
    closing = caller.body[len(sent) :]
    assert b'"error"' in closing
    assert closing.endswith(DONE)
    (outcome,) = made.lines("outcome")
    assert (outcome["ok"], outcome["error"]) == (False, "upstream_ended_early")


def test_an_answer_that_breaks_off_is_closed_in_its_stream(door):
    """The app says that the rest will not come."""

    async def broke():
        raise UpstreamBroke("timeout_gap")

    made = door(streams(event("a"), event("b"), pause=broke))
    caller = go(made)
    assert caller.body.startswith(event("a"))
    assert b'"error"' in caller.body
    assert caller.ended
    assert made.lines("outcome")[0]["error"] == "timeout_gap"


def test_an_answer_that_never_began_is_a_gateway_timeout(door):
    """Nothing was sent, so a status can still tell."""

    async def app(_scope, _receive, _send):
        raise UpstreamBroke("timeout_first_token")

    caller = go(door(app))
    assert caller.status == 504


def test_a_handler_that_crashes_gives_its_lease_back(door):
    """And the crash is the host's to answer."""

    async def app(_scope, _receive, _send):
        raise ValueError("no")

    made = door(app)
    with pytest.raises(ValueError, match="no"):
        go(made)
    assert made.open == 0
    assert made.lines("outcome")[0]["error"] == "handler_error"


def test_a_caller_that_leaves_is_no_fault_of_the_server(door):
    """client_closed, and the lease is free."""

    async def run():
        async def app(_scope, receive, send):
            await receive()
            head = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send(
                {"type": "http.response.body", "body": event("a"), "more_body": True}
            )
            caller.left.set()
            assert (await receive())["type"] == "http.disconnect"

        made, caller = door(app), Caller(CHAT)
        await made.app(scope(), caller.receive, caller.send)
        return made

    made = asyncio.run(run())
    assert made.lines("outcome")[0]["error"] == "client_closed"
    assert made.open == 0


def test_the_engines_own_refusal_passes_unchanged(door):
    """Status, body and Retry-After as they came; ours is not added."""
    own = [(b"retry-after", b"7")]
    made = door(answers(b'{"error":"busy"}', 429, own))
    caller = go(made)
    assert (caller.status, caller.headers["retry-after"]) == (429, "7")
    assert caller.body == b'{"error":"busy"}'
    assert made.lines("decision")[0]["admitted"] is True
    assert made.lines("outcome")[0]["error"] == "upstream_refused"


def test_a_caller_back_before_its_time_is_told_the_rest_of_it(door):
    """Without asking the policy again."""
    made = door(streams(), Says, verdict="defer", because="queue_depth")
    first, again = go(made), go(made)
    assert again.status == 503
    one, two = (int(c.headers["retry-after-ms"]) for c in (first, again))
    assert 0 < two <= one
    lines = made.lines("decision")
    assert (lines[1]["by"], lines[1]["why"]) == ("host", "early")
    assert [line["facts"]["attempt"] for line in lines] == [0, 1]
    assert len({line["facts"]["logical_id"] for line in lines}) == 1


def test_a_caller_back_before_its_time_is_not_asked_back_when_it_is_no_use(door):
    """A final no stays one, whoever tries again all the same."""
    made = door(streams(), Says, verdict="reject", because="session_quota", told_ms=2e5)
    first, again = go(made), go(made)
    assert made.lines("decision")[1]["why"] == "early"
    assert first.headers["x-should-retry"] == "false"
    assert again.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("headers", "by"),
    [
        ([("x-stainless-retry-count", "0")], "policy"),
        ([("x-stainless-retry-count", "1")], "host"),
        ([("x-stainless-retry-count", "0"), ("idempotency-key", "k")], "host"),
        ([("x-request-id", "another")], "policy"),
        ([], "host"),
    ],
)
def test_what_makes_an_equal_request_a_call_of_its_own(door, headers, by):
    """Its client says that it is its first try, or tells it from the others."""
    made = door(streams(), Says, verdict="defer", because="queue_depth")
    first = [one for one in headers if one[0] != "x-request-id"]
    go(made, headers=first or [("x-request-id", "one")])
    go(made, headers=headers)
    line = made.lines("decision")[1]
    assert line.get("by", "policy") == by


def test_a_quota_is_kept_whatever_the_policy_says(door):
    """Two a minute, then 429."""
    setup = EdgeSetup(
        secret=b"s" * 16, tenants={}, pools=(PoolSetup(policy="no_admission"),)
    )
    made = door(answers(b"{}"), "no_admission", setup=setup)
    digest = made.edge.tenants.digest("sk-1")
    made = door(
        answers(b"{}"),
        "no_admission",
        setup=EdgeSetup(
            secret=b"s" * 16, tenants={digest: Tenant(name="acme", per_minute=2)}
        ),
    )
    key = [("authorization", "Bearer sk-1")]
    bodies = [b'{"model":"m","prompt":"%d"}' % n for n in range(4)]
    got = [go(made, body, headers=key).status for body in bodies]
    assert got == [200, 200, 429, 429]
    assert made.lines("decision")[2]["why"] == "quota"
    assert "sk-1" not in json.dumps(made.log.lines)


def test_a_body_over_the_limit_is_refused_on_the_record(door):
    """413 names the limit, and invites nobody back."""
    made = door(answers(b"{}"), setup=EdgeSetup(limits=Limits(body_bytes=100)))
    caller = go(made, b"x" * 101)
    assert caller.status == 413
    assert b"100 bytes" in caller.body
    assert "retry-after" not in caller.headers
    assert made.lines("decision")[0]["reason"] == "too_large"
    assert made.pool.counters.unreadable == 0, "it was not read"
    assert made.open == 0


def test_shadow_serves_what_it_would_have_refused(door):
    """Nothing is held, nothing is refused, everything is written down."""
    made = door(
        answers(b"{}"), Says, verdict="defer", because="queue_depth", enforce=0.0
    )
    assert go(made).status == 200
    assert made.lines("decision")[0]["verdict"] == "defer"


class Room(Policy):
    """Defers until it is told that there is room."""

    name = "room"
    room = False

    def decide(self, metrics):
        """As told."""
        return self.admit() if Room.room else self.defer("queue_depth")


def held(door, holding, act, **told):
    """One request that is held while `act` happens; the door and the caller."""
    Room.room = False

    async def run():
        made = door(answers(b"{}"), Room, setup=holding(**told))
        caller = Caller(CHAT)
        task = asyncio.ensure_future(made.app(scope(), caller.receive, caller.send))
        await asyncio.wait({task}, timeout=0.05)
        assert len(made.pool.queue) == 1
        assert made.lines("decision") == []
        act(made, caller)
        await asyncio.wait_for(task, timeout=5)
        return made, caller

    return asyncio.run(run())


def test_a_held_request_is_started_when_there_is_room(door, holding):
    """One decision line, with how long it was held."""

    def room(made, _):
        Room.room = True
        made.pool.queue.pump()

    made, caller = held(door, holding, room)
    assert caller.status == 200
    (line,) = made.lines("decision")
    assert line["admitted"] is True
    assert line["held_ms"] >= 40


def test_a_caller_that_leaves_while_held_never_reaches_the_engine(door, holding):
    """Its place is free, its decision says why, and no outcome is made up."""
    made, caller = held(door, holding, lambda _, caller: caller.left.set())
    assert caller.status is None
    assert len(made.pool.queue) == made.open == 0
    (line,) = made.lines("decision")
    assert (line["admitted"], line["why"]) == (False, "client_closed")
    assert line["held_ms"] >= 40
    assert made.lines("outcome") == []


def test_shutdown_answers_the_held(door, holding):
    """With the wait they would have been told."""
    made, caller = held(door, holding, lambda made, _: made.edge.drain())
    assert caller.status == 503
    assert int(caller.headers["retry-after"]) >= 1
    assert len(made.lines("decision")) == 1


def test_nobody_is_held_longer_than_allowed(door, holding):
    """Then it gets the answer it would have got."""
    made, caller = held(door, holding, lambda *_: None, longest_s=0.2)
    assert caller.status == 503
    assert made.lines("decision")[0]["held_ms"] >= 200


def test_a_class_may_say_never(door, holding):
    """It is answered at once."""
    Room.room = False
    made = door(answers(b"{}"), Room, setup=holding(never=frozenset({"batch"})))
    caller = Caller(CHAT)
    asyncio.run(
        made.app(
            scope(headers=[("x-llm-d-inference-objective", "batch")]),
            caller.receive,
            caller.send,
        )
    )
    assert made.pool.counters.held_s.total == 0


def test_a_stray_event_kills_nothing(door):
    """Any bytes are passed on."""
    junk = b"data: {not json}\n\n\xff\xfe" + b"x" * 5000
    caller = go(door(streams(junk)))
    assert caller.body.startswith(junk)


def test_a_stream_that_breaks_off_after_its_end_is_whole(door):
    """Nothing that matters is missing, so nothing is added."""

    async def broke():
        if len(sent) == 2:
            raise UpstreamBroke("upstream_ended_early")

    sent = []
    parts = [event("a", "stop") + DONE, b": bye\n\n"]

    async def pause():
        sent.append(1)
        await broke()

    made = door(streams(*parts, pause=pause))
    caller = go(made)
    assert (caller.body, caller.ended) == (b"".join(parts), True)
    assert made.lines("outcome")[0]["ok"] is True


def test_an_answer_that_is_no_stream_is_cut_with_its_connection(door):
    """Half a JSON body cannot be mended, and must not look whole."""

    async def app(_scope, receive, send):
        await receive()
        head = [(b"content-type", b"application/json"), (b"content-length", b"100")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b'{"a"', "more_body": True})
        raise UpstreamBroke("upstream_ended_early")

    made = door(app)
    with pytest.raises(ConnectionError):
        go(made)
    assert made.lines("outcome")[0]["error"] == "upstream_ended_early"
    assert made.open == 0


def test_a_long_answer_keeps_no_body(door):
    """A stream of an hour costs no more for a prompt of megabytes."""
    size, count = 4 << 20, 8

    async def app(asked, receive, send):
        asked["admitperf"].body = b""
        await receive()
        head = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await go_on.wait()
        await send({"type": "http.response.body", "body": event("a", "stop") + DONE})

    async def run():
        made = door(app)
        tasks = []
        for _ in range(count):
            caller = Caller(b'{"prompt":"' + b"x" * size + b'"}')
            task = made.app(scope(), caller.receive, caller.send)
            tasks.append(asyncio.ensure_future(task))
        await asyncio.wait(tasks, timeout=1)
        held, _ = tracemalloc.get_traced_memory()
        go_on.set()
        await asyncio.gather(*tasks)
        return held

    go_on = asyncio.Event()
    tracemalloc.start()
    held = asyncio.run(run())
    tracemalloc.stop()
    assert held < 2 * size


def test_a_quota_holds_for_the_held_too(door):
    """Room for everybody is no room for one tenant over its share."""
    Room.room = False
    secret = b"s" * 16
    digest = door(answers(b"{}"), setup=EdgeSetup(secret=secret)).edge.tenants.digest(
        "sk-1"
    )
    tenants = {digest: Tenant(name="acme", in_flight=1, per_minute=2)}
    pool = PoolSetup(holding=Holding(defer="hold", longest_s=0.5))
    setup = EdgeSetup(secret=secret, tenants=tenants, pools=(pool,))
    go_on = asyncio.Event()

    async def app(_scope, receive, send):
        await receive()
        open_at_once.append(made.open)
        await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def run():
        key = [("authorization", "Bearer sk-1")]
        callers = [Caller(b'{"prompt":"%d"}' % n) for n in range(4)]
        asked = (made.app(scope(headers=key), c.receive, c.send) for c in callers)
        tasks = [asyncio.ensure_future(one) for one in asked]
        await asyncio.wait(tasks, timeout=0.05)
        Room.room = True
        made.pool.queue.pump()
        await asyncio.wait(tasks, timeout=1)
        go_on.set()
        await asyncio.gather(*tasks)

    open_at_once = []
    made = door(app, Room, setup=setup)
    asyncio.run(run())
    assert max(open_at_once) == 1


def test_bodies_of_any_bytes_like_kind_pass(door):
    """Frameworks send memoryviews and bytearrays."""
    parts = [memoryview(event("a")), bytearray(event("b", "stop")), DONE]
    caller = go(door(streams(*parts)))
    assert caller.body == b"".join(bytes(part) for part in parts)


def test_an_app_without_a_lifespan_is_judged_all_the_same(door):
    """Its server goes on without one, and so do the readings."""

    async def app(asked, receive, send):
        assert asked["type"] == "http"
        await answers(b"{}")(asked, receive, send)

    async def run():
        made = door(app)

        async def start():
            return {"type": "lifespan.startup"}

        with pytest.raises(AssertionError):
            await made.app({"type": "lifespan"}, start, None)
        return made, made.edge

    closed = []
    made, edge = asyncio.run(run())
    edge.close = lambda: closed.append(1)
    assert go(made).status == 200
    assert closed == []


def test_shutdown_closes_readings_and_logs(door):
    """When the server says so, and not before."""

    async def app(_scope, receive, _send):
        assert (await receive())["type"] == "lifespan.startup"
        order.append("started")
        assert (await receive())["type"] == "lifespan.shutdown"
        order.append("ended")

    async def run():
        made = door(app)
        made.edge.close = lambda: order.append("closed")
        told = iter(("lifespan.startup", "lifespan.shutdown"))

        async def receive():
            return {"type": next(told)}

        await made.app({"type": "lifespan"}, receive, None)

    order = []
    asyncio.run(run())
    assert order == ["started", "closed", "ended"]


def test_a_long_stream_keeps_its_lease(door, monkeypatch):
    """It shows life once a minute, and its first token at once."""
    clock = FakeClock(start_s=1000.0)
    alive = []

    async def minute():
        clock.advance(30.0)

    made = door(streams(*[event("a")] * 7, event("b", "stop"), DONE, pause=minute))
    made.edge.clock = clock
    monkeypatch.setattr(made.policy, "first_token", alive.append)
    go(made)
    assert len(alive) == 5


def test_large_bodies_are_read_off_the_loop(door, monkeypatch):
    """Small ones are not: a thread costs more than they do."""
    threads = []
    made = door(answers(b"{}"), setup=EdgeSetup(limits=Limits(off_loop_bytes=1000)))
    known = made.edge.known

    def noted(*told):
        threads.append(threading.current_thread() is threading.main_thread())
        return known(*told)

    monkeypatch.setattr(made.edge, "known", noted)
    go(made, b'{"prompt":"x"}')
    go(made, b'{"prompt":"' + b"x" * 1000 + b'"}')
    assert threads == [True, False]


def test_the_size_of_a_token_is_learnt_from_usage(door):
    """The same text is estimated as what the engine counted the first time."""
    usage = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],'
    usage += b'"usage":{"prompt_tokens":1000,"completion_tokens":1}}'
    made = door(answers(usage))
    body = (
        b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * 1000 + b'"}]}'
    )
    for _ in range(3):
        go(made, body)
    first, *_, last = (d["facts"]["input_tokens"] for d in made.lines("decision"))
    assert first < 300
    assert last > 700


@pytest.mark.parametrize(
    ("status", "tenant"),
    [(200, "key-"), (401, "unver"), (404, "unver"), (500, "unver")],
)
def test_only_an_answer_that_serves_makes_a_key_known(door, status, tenant):
    """A key on which the engine said nothing good shares a bucket."""
    made = door(answers(b"{}", status))
    key = [("authorization", "Bearer sk-1")]
    go(made, b'{"prompt":"a"}', headers=key)
    go(made, b'{"prompt":"b"}', headers=key)
    last = made.lines("decision")[-1]["facts"]["tenant"]
    assert last.startswith(tenant)


def test_what_is_counted(door, holding):
    """Held, blind and unfinished ones stand on the metrics page."""
    made, _ = held(door, holding, lambda *_: None, longest_s=0.1)
    assert sum(made.pool.counters.held_s.counts) == 1
    blind = door(answers(b"{}"), "queue_depth")
    go(blind)
    assert blind.pool.counters.blind == 1
    with suppress(AssertionError):
        go(blind, b'{"a"', None)
    assert blind.pool.counters.unfinished == 1


def test_the_head_is_held_back_no_longer_than_told(door):
    """Forty milliseconds are not two hundred."""

    async def run():
        made = door(streams(b": ping\n\n", pause=asyncio.Event().wait))
        caller = Caller(CHAT)
        before_ns = SYSTEM.monotonic_ns()
        task = asyncio.ensure_future(made.app(scope(), caller.receive, caller.send))
        while caller.status is None:
            await asyncio.wait({task}, timeout=0.001)
        took_ms = (SYSTEM.monotonic_ns() - before_ns) / 1e6
        task.cancel()
        await asyncio.wait({task})
        return made.edge.setup.limits.peek_ms, took_ms

    peek_ms, took_ms = asyncio.run(run())
    assert peek_ms == 40
    assert peek_ms - 1 <= took_ms < 4 * peek_ms
