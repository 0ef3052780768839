"""Field cases about a full house, through a real gateway process."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from openai import InternalServerError, OpenAI, RateLimitError
from tests.gateway.conformance.door import before, configured, pause, pool
from tests.gateway.conformance.wire import CHAT, COMPLETIONS, Caller, get, post, wish
from tests.real.process import until

from admitperf.core.clock import SYSTEM

TALK = [{"role": "user", "content": "hello"}]
BUSY = {"slots": 8, "ttft": 0.6, "tokens": 30, "itl": 0.03}


def burst(url, count, over_s):
    """Requests spread over some time: (status, seconds it took, headers) of each."""

    def one(number):
        pause(over_s * number / count)
        began_ns = SYSTEM.monotonic_ns()
        reply, body = post(url, CHAT, wish(CHAT, text=f"request {number}"))
        return (SYSTEM.monotonic_ns() - began_ns) / 1e9, reply, json.loads(body)

    with ThreadPoolExecutor(count) as callers:
        return list(callers.map(one, range(count)))


@pytest.fixture(params=["held", "in the engine"])
def bounded(request, engine, door, tmp_path):
    """An engine of eight slots, and a gateway that lets eight more wait."""
    stub = engine(**BUSY)
    if request.param == "in the engine":
        return stub, door(*before(stub.url, "in_flight_cap", max_in_flight=16))
    capped = pool(
        stub.url, "in_flight_cap", {"max_in_flight": 8},
        holding={"defer": "hold", "most": 8},
    )  # fmt: skip
    return stub, door(*configured(tmp_path, pools=[capped]))


def test_s_gw_01_what_the_queue_cannot_take_is_refused_at_once(bounded):
    """Of 40 in 1 s sixteen are served and 24 told when to come back, all within 1 s.

    Scaled down: an answer takes 1.5 s instead of 3.5 s.
    """
    stub, door = bounded
    ends = burst(door.url, 40, over_s=1.0)
    served = [reply for _, reply, _ in ends if reply.status == 200]
    refused = [end for end in ends if end[1].status != 200]
    assert (len(served), len(refused)) == (16, 24)
    for took_s, reply, body in refused:
        assert reply.status == 503
        assert int(reply.one("retry-after")) >= 1
        assert reply.one("x-admitperf-reason") == "in_flight_cap"
        assert body["error"]["code"] == "in_flight_cap"
        assert took_s < 1
    assert sorted(took_s for took_s, _, _ in refused)[12] < 0.1
    assert len(stub.events("start")) == 16
    assert len(stub.events("end")) == 16
    assert door.empties()


def test_s_gw_01_a_bound_on_the_queue_counts_what_was_let_in_since_it_was_seen(
    engine, door
):
    """Between two looks at the engine a burst does not slip past the bound.

    The gateway is told how many run at once, or a look at eight that run while nobody
    waits is taken for room; answers outlast a burst that a slow machine stretches.
    """
    stub = engine(**{**BUSY, "itl": 0.1})
    words = before(stub.url, "queue_depth", max_waiting=7)
    door = door(*words, "--slots", str(BUSY["slots"]))
    ends = burst(door.url, 40, over_s=1.0)
    served = sum(reply.status == 200 for _, reply, _ in ends)
    assert 8 <= served <= 16
    assert len(stub.events("start")) == served
    reasons = {r.one("x-admitperf-reason") for _, r, _ in ends if r.status != 200}
    assert reasons == {"queue_depth"}


def test_s_gw_01_a_held_client_is_answered_before_its_own_timeout(
    engine, door, tmp_path
):
    """It hears when to come back, and not that it has waited in vain."""
    stub = engine(slots=1, ttft=10)
    capped = pool(
        stub.url, "in_flight_cap", {"max_in_flight": 1}, holding={"defer": "hold"}
    )
    door = door(*configured(tmp_path, pools=[capped]))
    with Caller(door.url) as first:
        first.send(CHAT, wish(CHAT, text="the one that runs"))
        assert stub.waits_for("start")
        with (
            OpenAI(
                base_url=f"{door.url}/v1", api_key="k", max_retries=0, timeout=2.0
            ) as client,
            pytest.raises(InternalServerError) as caught,
        ):
            client.chat.completions.create(model="m", messages=TALK)
    assert int(caught.value.response.headers["retry-after"]) >= 1
    line = door.waits_for("decision", 2)[1]
    assert 1000 < line["held_ms"] < 2000


def test_s_gw_05_a_client_that_leaves_while_held_is_nobodys_fault(
    engine, door, tmp_path, told
):
    """It never reaches the engine, its place is free at once, no error is counted."""
    stub = engine(slots=1, ttft=1.2, tokens=2, itl=0.01)
    capped = pool(
        stub.url, "in_flight_cap", {"max_in_flight": 1},
        holding={"defer": "hold", "most": 1},
    )  # fmt: skip
    door = door(*configured(tmp_path, pools=[capped]))
    with Caller(door.url) as first, Caller(door.url) as second:
        first.send(CHAT, wish(CHAT, text="A"))
        assert stub.waits_for("start")
        second.send(CHAT, wish(CHAT, text="B"))
        pause(0.3)
        second.leave()
        pause(0.2)
        # Its place among the held, of which there is one, is free for the next.
        reply, _ = post(door.url, CHAT, wish(CHAT, text="C"))
        assert reply.status == 200
    assert len(stub.events("start")) == 2
    assert door.empties()
    decisions = door.waits_for("decision", 3)
    assert len(decisions) == 3
    (left,) = [line for line in decisions if not line["admitted"]]
    assert (left["by"], left["why"]) == ("host", "client_closed")
    assert 100 < left["held_ms"] < 1000
    report, _ = told("report", door.log)
    (run,) = report["runs"]
    assert run["cost"]["offered"] == 3
    assert (run["cost"]["failed"]["n"], run["cost"]["errors"]) == (0, {})


def test_s_gw_09_health_and_metrics_stay_up_when_full(engine, door, tmp_path, opened):
    """With 200 requests at a limit of 8, every probe answers within a second."""
    stub = engine(chat="hang", slots=200)
    capped = pool(
        stub.url, "in_flight_cap", {"max_in_flight": 8},
        holding={"defer": "hold", "most": 200},
    )  # fmt: skip
    door = door(*configured(tmp_path, pools=[capped]))
    callers = [opened.enter_context(Caller(door.url)) for _ in range(200)]
    for number, caller in enumerate(callers):
        caller.send(CHAT, wish(CHAT, text=f"request {number}"))
    assert until(lambda: door.open_requests() == 8, 10)
    for path in ("/health", "/metrics", "/ready"):
        for _ in range(20):
            reply, _ = get(door.url, path, timeout_s=1)
            assert reply.status == 200
    assert len(stub.events("start")) == 8
    for caller in callers:
        caller.leave()
    assert door.empties(10)


SIX = [
    ("reject:session_quota", 429, True),
    ("defer:session_in_flight", 503, True),
    ("defer:queue_age", 503, True),
    ("reject:pool_saturated", 529, True),
    ("reject:deadline_unmeetable", 503, False),
    ("reject:too_large", 413, False),
]


@pytest.fixture(scope="module")
def saying(tmp_path_factory):
    """A gateway whose policy does what the model is called, before an idle engine."""
    from tests.gateway.conformance.door import gateway, stub_engine

    folder = tmp_path_factory.mktemp("saying")
    with (
        stub_engine(folder) as stub,
        gateway(folder / "door", *before(stub.url, "says")) as door,
    ):
        yield door


@pytest.mark.parametrize(("model", "status", "retry"), SIX)
def test_s_gw_11_one_code_per_kind_of_refusal(saying, model, status, retry):
    """On the wire as in the table, with the reason in header and body; none is 500."""
    reply, body = post(saying.url, CHAT, wish(CHAT, model))
    reason = model.split(":")[1]
    assert reply.status == status
    assert reply.one("x-admitperf-reason") == reason
    assert json.loads(body)["error"]["code"] == reason
    assert reply.one("x-should-retry") == ("true" if retry else "false")
    told = reply.all("retry-after")
    assert len(told) == (0 if status == 413 else 1)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "status", "raised"),
    [
        ("reject:rate_limit", 429, RateLimitError),
        ("defer:kv_pressure", 503, InternalServerError),
        ("reject:pool_saturated", 529, InternalServerError),
    ],
)
def test_s_gw_14_a_refusal_is_a_status_and_an_error_the_client_knows(
    saying, path, stream, model, status, raised
):
    """Before any event, as JSON, and the official client raises it with its message."""
    reply, body = post(saying.url, path, wish(path, model, stream=stream))
    error = json.loads(body)["error"]
    assert reply.status == status
    assert reply.one("content-type").startswith("application/json")
    assert {"message", "type", "code"} <= set(error)
    with OpenAI(base_url=f"{saying.url}/v1", api_key="k", max_retries=0) as client:
        ask = client.chat.completions if path == CHAT else client.completions
        said = (
            {"messages": [{"role": "user", "content": "hi"}]}
            if path == CHAT
            else {"prompt": "hi"}
        )
        with pytest.raises(raised) as caught:
            ask.create(model=model, stream=stream, **said)
    assert caught.value.status_code == status
    assert model.split(":")[1] in str(caught.value)
    assert caught.value.code == model.split(":")[1]
