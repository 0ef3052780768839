"""A benchmark's traffic against a real llama.cpp server."""

import pytest

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.callers.client import client
from admitperf.bench.harness.http import HttpTarget
from admitperf.bench.harness.target import Arm
from admitperf.simulator.traffic.sessions import Call, Session

pytestmark = pytest.mark.real_engine

OPEN = Arm(name="open", policy="no_admission")


def call(after=None, gap_s=0.0, input_tokens=60, output_tokens=12, **more):
    """A call."""
    given = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    return Call(after=after, gap_s=gap_s, **given, **more)


def alone(count, every_s=0.05, **more):
    """Requests that nobody waits for to ask another one."""
    return [(n * every_s, Session(f"r{n}", (call(**more),), 200)) for n in range(count)]


def drive(engine, begun, arm=OPEN, log=None, target=None):
    """One run: its records, and what it was."""
    plan = planned(begun, 10.0, (0.0, 10.0), client("none"))
    callers = Callers(plan, client("none"), 1)
    target = target or HttpTarget(f"http://{engine}", scrape_interval_s=0.1)
    made = target.drive(
        arm,
        log,
        callers,
        seed=1,
        notes={},
        slo=None,
        run="r1",
        experiment="e",
        until_s=120.0,
    )
    return callers.records(), made


def test_every_call_is_served_as_planned(engine):
    """Its tokens, and a first token before its end."""
    records, made = drive(engine, alone(20))
    assert {one.ended for one in records} == {"answered"}
    assert {one.got_tokens for one in records} == {12}
    assert all(one.last_ttft_ms < one.e2e_ms for one in records)
    assert made.facts["failed"] == made.restarts == 0
    assert made.facts["moved"]["running"][1] > 1
    assert made.facts["quiet_after"] is True


def test_a_bound_on_the_queue_refuses(engine, tmp_path):
    """Once the queue has been seen to be long."""
    arm = Arm(name="q", policy="queue_depth", parameters={"max_waiting": 1})
    log = tmp_path / "log.jsonl"
    records, made = drive(engine, alone(30, output_tokens=60), arm, log)
    ended = {one.ended for one in records}
    assert ended == {"answered", "refused"}
    assert made.facts["moved"]["queue_depth"][1] > 1
    assert log.exists()


def test_who_hangs_up_frees_the_slot(engine):
    """Long before the answer would have ended."""
    begun = [
        (0.0, Session(f"r{n}", (call(output_tokens=900, hangs_up_after=5),), 900))
        for n in range(4)
    ]
    records, made = drive(engine, begun)
    assert {one.ended for one in records} == {"cancelled"}
    assert all(5 <= one.got_tokens < 450 for one in records)
    assert made.facts["quiet_after"] is True


def test_a_session_finds_its_own_text_and_no_other_runs(engine):
    """The slot that keeps it has it; a second run is another text."""
    first = call(input_tokens=100, prefix=((0, 100),))
    then = call(after=0, gap_s=0.05, input_tokens=200, prefix=((0, 200),))
    target = HttpTarget(f"http://{engine}")
    for _ in range(2):
        records, _ = drive(
            engine, [(0.0, Session("s", (first, then), 50))], target=target
        )
        assert [one.ended for one in records] == ["answered", "answered"]
        cached = [
            one.input_tokens + one.got_tokens - one.computed_tokens for one in records
        ]
        assert cached[0] < 16
        assert cached[1] >= 100 - 16


def test_what_it_is(engine):
    """It says its version, and what one slot holds."""
    target = HttpTarget(f"http://{engine}")
    assert target.notes()["engine"] == "llama.cpp"
    assert target.notes()["engine_version"]
    assert target.longest_tokens() == 1024
    assert target.simulated is False
    assert target.probe() > 0
