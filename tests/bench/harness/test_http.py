"""Traffic in wall time against a simulated server."""

import json
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from tests.simulator.server.conftest import QUICK, running

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.callers.client import client
from admitperf.bench.harness import http as http_module
from admitperf.bench.harness.http import HttpTarget
from admitperf.bench.harness.http_looks import restarted
from admitperf.bench.harness.http_run import Asking, heads
from admitperf.bench.harness.http_serve import SimServe
from admitperf.bench.harness.target import Arm
from admitperf.core.errors import AdmitPerfError
from admitperf.core.policy import Policy
from admitperf.simulator import Arrival
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.server.faults import faults as faults_of
from admitperf.simulator.server.setup import Setup
from admitperf.simulator.traffic.sessions import Call, Session

OPEN = Arm(name="open", policy="no_admission")


@contextmanager
def served(faults=(), **engine):
    """A quick server."""
    setup = Setup(engine=EngineModel(**{**QUICK, **engine}), model="tiny", seed=1)
    with running(setup, faults_of(list(faults), "test"), "cut") as server:
        yield server


@pytest.fixture(scope="module")
def server():
    """A quick server for tests that leave it as it was."""
    with served() as made:
        yield made


class Asked:
    """Requests at times of their own; keeps what came of them.

    Args:
        count: how many.
        every_s: seconds from one to the next.
        more: of each.
    """

    def __init__(self, count=20, every_s=0.01, **more):
        self.got = {}
        self.late_ms = {}
        self.more = {
            "input_tokens": 100,
            "max_output_tokens": 900,
            "output_tokens": 8,
            **more,
        }
        self.count, self.every_s = count, every_s

    def first(self):
        """All of them."""
        for n in range(self.count):
            yield Arrival(id=f"a{n}", at_s=n * self.every_s, **self.more)

    def after(self, arrival, at_s, answer):
        """Nothing; each is answered once."""
        assert arrival.id not in self.got
        assert at_s >= arrival.at_s
        self.got[arrival.id] = answer
        return ()

    def sent(self, arrival, late_ms):
        """Keep how late it was."""
        self.late_ms[arrival.id] = late_ms

    @property
    def answers(self):
        """In the order in which they were asked."""
        return [self.got[f"a{n}"] for n in range(self.count)]


def drive(server, traffic, arm=OPEN, log=None, until_s=20.0, **target):
    """One run, and what it was."""
    target = HttpTarget(server.url, scrape_interval_s=0.05, quiet_s=10.0, **target)
    return target.drive(
        arm,
        log,
        traffic,
        seed=1,
        notes={"made_by": "a test"},
        slo={"ttft_ms": 500},
        run="r1",
        experiment="e",
        until_s=until_s,
    )


def lines(log, kind):
    """The lines of one kind."""
    told = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [line for line in told if line["k"] == kind]


def generated(server):
    """Tokens the engine has made so far."""
    page = HttpTarget(server.url).reading().raw
    name = "vllm:generation_tokens_total"
    return sum(value for key, value in page.items() if key.startswith(name))


def test_every_call_is_answered_and_reported(server, tmp_path):
    """Once to who asked, once to the policy; the clock of the first begins earlier."""
    traffic, log = Asked(), tmp_path / "log.jsonl"
    made = drive(server, traffic, log=log)
    assert all(one.ok and one.output_tokens == 8 for one in traffic.answers)
    assert all(one.ttft_ms <= one.e2e_ms for one in traffic.answers)
    assert all(one.max_gap_ms is not None for one in traffic.answers)
    told = {line["id"]: line for line in lines(log, "outcome")}
    assert len(told) == len(lines(log, "decision")) == len(made.decide_ns) == 20
    for name, one in traffic.got.items():
        assert told[name]["ok"]
        assert told[name]["ttft_ms"] <= one.ttft_ms + 0.001
    assert made.facts["quiet_before"] is made.facts["quiet_after"] is True
    assert made.facts["scrapes"] > 0


def test_times_count_from_when_a_call_was_due(server, monkeypatch, tmp_path):
    """An instrument that is held up makes the answer slow, not the load light."""
    held = threading.Event()

    class Slow(Policy):
        name = "slow"

        def decide(self, metrics):
            if not held.is_set():  # holds up all that are due meanwhile
                held.wait(0.2)
                held.set()
            return self.admit()

    monkeypatch.setattr(http_module, "load", lambda _: Slow)
    traffic, log = Asked(), tmp_path / "log.jsonl"
    made = drive(server, traffic, log=log)
    assert traffic.late_ms["a5"] > 100
    assert traffic.got["a5"].ttft_ms > traffic.late_ms["a5"]
    decided = {line["id"]: line for line in lines(log, "decision")}
    assert decided["a5"]["facts"]["late_ms"] > 100
    told = {line["id"]: line for line in lines(log, "outcome")}
    late_ms = traffic.got["a5"].ttft_ms - told["a5"]["ttft_ms"]
    assert late_ms > 100, "the policy's clock begins when it was asked"
    assert made.facts["late_ms"]["max"] > 100


def test_nobody_waits_for_an_answer_to_ask(server):
    """Requests that take longer than their distance overlap."""
    traffic = Asked(count=12, every_s=0.002, output_tokens=60)
    made = drive(server, traffic)
    assert made.facts["moved"]["running"][1] > 3


def test_a_refusal_is_the_policys_answer(server, tmp_path):
    """With its reason and its wait; the engine never hears of it."""
    arm = Arm(name="cap", policy="in_flight_cap", parameters={"max_in_flight": 1})
    traffic, log = Asked(every_s=0.001), tmp_path / "log.jsonl"
    drive(server, traffic, arm, log)
    refused = [one for one in traffic.answers if one.refused]
    assert refused
    assert all(one.status in {503, 429} for one in refused)
    assert all(one.reason and one.retry_after_ms for one in refused)
    assert len(lines(log, "outcome")) == 20 - len(refused)


class Broken(Policy):
    """A policy that breaks its word never to raise."""

    name = "broken"

    def __call__(self, *_args, **_facts):
        """Raise."""
        raise RuntimeError("no")

    first_token = outcome = __call__


def test_a_policy_that_raises_ends_no_run(server, monkeypatch):
    """It is counted, and its requests are let in."""
    monkeypatch.setattr(http_module, "load", lambda _: Broken)
    traffic = Asked()
    made = drive(server, traffic)
    assert all(one.ok for one in traffic.answers)
    assert made.facts["policy_faults"] == 3 * 20
    assert made.facts["first_policy_fault"] == "RuntimeError: no"


def test_a_policy_works_beside_the_looks(server, monkeypatch):
    """In a thread of its own, neither the callers' nor the one that looks."""
    threads, go = set(), threading.Event()

    class Works(Policy):
        name = "works"

        def decide(self, metrics):
            return self.admit()

        def task(self, metrics):
            threads.add(threading.current_thread().name)
            return lambda: go.wait(20.0)

    monkeypatch.setattr(http_module, "load", lambda _name: Works)
    traffic = Asked()
    made = drive(server, traffic)
    go.set()
    assert threads == {"admitperf-background"}
    assert made.facts["scrapes"] > 1
    assert all(one.ok for one in traffic.answers)


def test_a_planned_hang_up_really_closes(server):
    """The engine is free at once, though the answer had gone on for long."""
    traffic = Asked(count=6, hangs_up=True, output_tokens=5, input_tokens=20)
    before = generated(server)
    made = drive(server, traffic)
    assert all(one.ok and one.hung_up for one in traffic.answers)
    assert all(5 <= one.output_tokens < 450 for one in traffic.answers)
    assert made.facts["quiet_after"] is True
    assert 6 * 5 <= generated(server) - before < 6 * 900 / 2


def test_who_is_out_of_patience_hangs_up(tmp_path):
    """Before the first token, and the policy is told that its caller left."""
    with served([{"kind": "frozen", "what": "engine"}]) as server:
        traffic, log = Asked(count=3, patience_s=0.2), tmp_path / "log.jsonl"
        drive(server, traffic, log=log)
        server.until(server.empty)
    assert all(not one.ok and one.hung_up for one in traffic.answers)
    assert {one.error for one in traffic.answers} == {"client_closed"}
    assert {line["error"] for line in lines(log, "outcome")} == {"client_closed"}


def test_what_is_inside_at_the_end_is_given_up(tmp_path):
    """And told as unfinished to both."""
    with served([{"kind": "hang"}]) as server:
        traffic, log = Asked(count=4), tmp_path / "log.jsonl"
        made = drive(server, traffic, log=log, until_s=0.5)
    assert {one.error for one in traffic.answers} == {"unfinished"}
    assert {line["error"] for line in lines(log, "outcome")} == {"unfinished"}
    assert 0.5 <= made.seconds < 5


def test_the_engines_own_limit_is_its_own(tmp_path):
    """Whether it says so by its status or inside a stream."""
    with served(max_num_queued_reqs=2) as server:
        traffic = Asked(count=10, every_s=0.0)
        made = drive(server, traffic)
    refused = [one for one in traffic.answers if not one.ok]
    assert refused
    assert all((one.status, one.refused) == (503, False) for one in refused)
    assert {one.error for one in refused} == {"503, the engine's own limit"}
    assert made.facts["engine_refused"] == len(refused)
    with served([{"kind": "reject_in_stream"}]) as server:
        traffic = Asked(count=2)
        drive(server, traffic)
    assert {(one.status, one.ok) for one in traffic.answers} == {(503, False)}


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"kind": "failing"}, 500),
        ({"kind": "cut", "after": 3}, 200),
        ({"kind": "cut", "after": 3, "how": "reset"}, 200),
    ],
)
def test_what_goes_wrong_is_an_answer(fault, status):
    """A run goes on whatever the engine does."""
    with served([fault]) as server:
        traffic = Asked(count=3)
        made = drive(server, traffic)
    assert all(not one.ok and one.error for one in traffic.answers)
    assert {one.status for one in traffic.answers} == {status}
    assert made.facts["failed"] == 3


def test_a_restart_and_looks_that_fail_are_counted():
    """The run goes on, and who meets no server gets no answer."""
    with served([{"kind": "restart", "at": 0.6, "down": 0.5}]) as server:
        traffic = Asked(count=40, every_s=0.05)
        made = drive(server, traffic)
    assert any(one.status == 0 and one.error for one in traffic.answers)
    assert traffic.answers[-1].ok
    assert made.restarts == 1
    assert sum(made.facts["scrapes_failed"].values()) > 0


def test_a_request_names_its_session_and_says_which_call_is_its_last():
    """As agents do that know it: a gateway gives a task's room back at once."""
    own = {"authorization": "Bearer k"}
    asking = Asking(url="http://h/v1", model="m", headers=own, prompts=None)
    facts = {"at_s": 0.0, "input_tokens": 1, "output_tokens": 1, "max_output_tokens": 1}
    alone = heads(asking, Arrival(id="a", **facts))
    assert alone == {"authorization": "Bearer k", "x-request-id": "a"}
    one = heads(asking, Arrival(id="b", session="s", **facts))
    assert (one["x-session-id"], "x-dynamo-session-final" in one) == ("s", False)
    last = heads(asking, Arrival(id="c", session="s", session_final=True, **facts))
    assert last["x-dynamo-session-final"] == "true"


def test_a_run_finds_nothing_of_the_one_before_and_sessions_find_themselves(server):
    """By what the engine says that its cache held."""
    calls = [
        Call(
            after=None, gap_s=0.0, input_tokens=200, output_tokens=9, prefix=((0, 200),)
        )
    ]
    for place in range(3):
        tokens = 200 + 60 * (place + 1)
        calls.append(
            Call(
                after=place,
                gap_s=0.02,
                input_tokens=tokens,
                output_tokens=9,
                prefix=((0, tokens),),
            )
        )
    plan = planned(
        [(0.0, Session("s", tuple(calls), 50))], 1.0, (0.0, 1.0), client("none")
    )
    for _ in range(2):
        callers = Callers(plan, client("none"), 1)
        drive(server, callers)
        records = callers.records()
        assert [one.ended for one in records] == ["answered"] * 4
        cached = [one.input_tokens + 9 - one.computed_tokens for one in records]
        block = EngineModel(**QUICK).block_size
        assert cached == [n // block * block for n in (0, 208, 268, 328)]


def test_what_the_target_is(server):
    """It says that it is simulated, and how long a prompt may be."""
    target = HttpTarget(f"{server.url}/v1/")
    told = target.notes()
    assert target.simulated
    assert told["simulated"] is True
    assert (told["model"], told["engine"]) == ("tiny", "vLLM")
    assert told["engine_version"]
    assert target.longest_tokens() == QUICK["max_model_len"]
    assert target.probe() > 0
    target.reading()


def test_an_arm_may_have_an_engine_of_its_own(server):
    """Its requests and its looks go there."""
    with served(max_num_seqs=3) as other:
        arm = Arm(name="own", policy="no_admission", url=other.url)
        traffic = Asked(count=12, every_s=0.0, output_tokens=60)
        made = drive(server, traffic, arm)
    assert all(one.ok for one in traffic.answers)
    assert made.facts["url"] == other.url
    assert made.facts["moved"]["running"][1] == 3


def test_an_engine_that_is_not_there_is_one_line():
    """At the start, before anything is asked."""
    with pytest.raises(AdmitPerfError, match="nothing listens there"):
        HttpTarget("http://127.0.0.1:9")


class Elsewhere(BaseHTTPRequestHandler):
    """A server that sends everybody who asks something to another one."""

    seen: ClassVar[list[str | None]] = []

    def do_GET(self):
        """An idle engine's page."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"vllm:num_requests_running 0\n")

    def do_POST(self):
        """Go and ask there."""
        self.seen.append(self.headers["authorization"])
        self.send_response(307)
        self.send_header("location", "/v1/other")
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


def test_a_token_goes_to_the_engine_and_no_further():
    """A redirect is not followed: it is no answer."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as other:
        threading.Thread(target=other.serve_forever).start()
        target = HttpTarget(f"http://127.0.0.1:{other.server_port}", token="secret")
        traffic = Asked(count=2)
        target.drive(
            OPEN,
            None,
            traffic,
            seed=1,
            notes={},
            slo=None,
            run="r",
            experiment="e",
            until_s=20.0,
        )
        other.shutdown()
    assert Elsewhere.seen == ["Bearer secret"] * 2
    assert [one.status for one in traffic.answers] == [307, 307]


def test_a_run_goes_first_only_while_it_lasts(server):
    """Where the system lets it, and the facts say whether it did."""
    before, seen = os.sched_getscheduler(0), []

    class Looking(Asked):
        def after(self, *of):
            seen.append(os.sched_getscheduler(0))
            return super().after(*of)

    made = drive(server, Looking(count=2))
    assert os.sched_getscheduler(0) == before
    assert set(seen) == {os.SCHED_RR if made.facts["realtime"] else before}


def test_traffic_that_fails_ends_the_run(server):
    """A fault of ours is not hidden."""

    class Odd(Asked):
        def after(self, *_):
            raise RuntimeError("ours")

    with pytest.raises(RuntimeError, match="ours"):
        drive(server, Odd(count=2))


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        ({}, {"a_total": 1.0}, False),
        ({"a_total": 2.0}, {"a_total": 3.0}, False),
        ({"a_total": 2.0}, {"a_total": 1.0}, True),
        ({'a_count{x="y"}': 2.0}, {'a_count{x="y"}': 0.0}, True),
        ({"running": 2.0}, {"running": 1.0}, False),
        (
            {"process_start_time_seconds": 2.0},
            {"process_start_time_seconds": 9.0},
            True,
        ),
    ],
)
def test_an_engine_began_anew_when_its_start_moved_or_a_count_fell(before, after, anew):
    """A gauge may fall."""
    assert restarted(before, after) is anew


def test_a_server_of_ones_own_is_there_and_gone():
    """A process with the real command."""
    with SimServe("vllm-cpu", ["--model", "mine"]) as serve:
        assert HttpTarget(serve.url).notes()["model"] == "mine"
    with pytest.raises(AdmitPerfError):
        HttpTarget(serve.url)


def test_a_server_that_does_not_start_says_why():
    """In the command's own words."""
    with (
        pytest.raises(AdmitPerfError, match=r"sim serve did not start: .*no-such"),
        SimServe("no-such"),
    ):
        pass
