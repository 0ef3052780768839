"""What is measured before a policy is tried."""

import pytest

from admitperf.bench.callers.slo import Slo
from admitperf.bench.harness.alone import (
    Alone,
    CalibrationError,
    Classes,
    Unloaded,
    nominal_s,
    unloaded,
)
from admitperf.bench.harness.calibrate import (
    Calibration,
    check_signals,
    fitted,
    objective,
)
from admitperf.bench.harness.capacity import Capacity, capacity
from admitperf.bench.harness.executors import Here
from admitperf.bench.harness.target import Arm
from admitperf.bench.harness.virtual import virtual
from admitperf.bench.workloads import workload
from admitperf.core.reading import Reading
from admitperf.simulator.profile import profile
from admitperf.simulator.traffic.sessions import Call, Session


def one(*sizes, gap_s=1.0, name="s"):
    """A session whose calls follow each other and share nothing."""
    calls = [
        Call(
            after=place - 1 if place else None,
            gap_s=gap_s,
            input_tokens=size,
            output_tokens=11,
            prefix=((f"{name}-{place}", 0),),
        )
        for place, size in enumerate(sizes)
    ]
    return Session(name, tuple(calls), 20)


@pytest.fixture(scope="module")
def engine():
    """One with four places."""
    return virtual(profile("a100-40-qwen2.5-7b"), {"max_num_seqs": 4})


@pytest.fixture(scope="module")
def chat(engine):
    """Single requests."""
    return workload("chat").fitting(engine.longest_tokens())


# ------------------------------------------------------------------------ signals


class Blind:
    """An engine whose page tells of its queue only."""

    def reading(self):
        """A look at it."""
        return Reading({"vllm:num_requests_waiting": 0.0})


def test_a_policy_that_would_be_blind_is_told_before_anything_runs():
    """With the arm, and the signal that is missing."""
    arms = [Arm(name="q", policy="queue_depth"), Arm(name="kv", policy="kv_threshold")]
    check_signals(Blind(), arms[:1])
    with pytest.raises(CalibrationError, match="arm kv: kv_pressure is not supplied"):
        check_signals(Blind(), arms)


def test_every_policy_sees_a_simulated_engine(engine):
    """Each that comes along."""
    names = ("kv_threshold", "queue_depth", "dual_gate", "in_flight_cap", "rate_limit")
    check_signals(engine, [Arm(name=name, policy=name) for name in names])


# ------------------------------------------------------------------------ classes


def test_calls_fall_into_classes_by_their_new_tokens():
    """An edge belongs to the class below it."""
    classes = Classes.of([one(100, 512, 513, 2_048, 2_049)])
    assert classes.names == ("new<=512", "new<=2048", "new>2048")
    assert classes(512) == "new<=512"
    assert classes(513) == "new<=2048"


def test_a_class_that_is_nearly_empty_joins_its_neighbour():
    """The upper one; the last one the lower."""
    few_low = [one(*[100] * 1, *[1_000] * 99)]
    assert Classes.of(few_low).edges == ()
    few_high = [one(*[100] * 99, *[1_000] * 1)]
    assert Classes.of(few_high).edges == ()
    both = [one(*[100] * 50, *[1_000] * 50)]
    assert Classes.of(both).names == ("new<=512", "new>512")


def test_one_class_has_no_name():
    """It is everyone's."""
    assert Classes().names == ("",)
    assert Classes()(5) == ""


# ------------------------------------------------------------------------ latency


def test_alone_no_call_waits_for_another(engine, chat):
    """So p95 stays near p50, and far below what load makes of it."""
    classes = Classes.of(chat.pool())
    found = unloaded(engine, chat.pool(), classes, 1)
    assert set(found) == set(classes.names)
    for each in found.values():
        assert each.n >= 40
        assert 0 < each.p50_ms <= each.p95_ms < 2 * each.p50_ms
        assert each.token_ms > 0


def test_sessions_come_one_after_the_other():
    """The next begins when the last call of the one before has ended."""
    from admitperf.simulator.traffic.traffic import Answer

    traffic = Alone([one(5, 6, name="a"), one(7, name="b")])
    (first,) = traffic.first()
    ok = Answer(ok=True, ttft_ms=1.0, e2e_ms=2.0, output_tokens=11)
    (second,) = traffic.after(first, 1.0, ok)
    (third,) = traffic.after(second, 2.0, ok)
    assert [first.id, second.id, third.id] == ["a/0", "a/1", "b/0"]
    assert traffic.after(third, 3.0, ok) == []
    assert [(session.name, place) for session, place, _ in traffic.seen] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
    ]


def test_deadlines_follow_from_the_latency_without_load():
    """Five times the first token, ten times a token and half a second at least."""
    alone = {
        "a": Unloaded(n=9, p50_ms=10, p95_ms=20.2, token_ms=7),
        "b": Unloaded(n=9, p50_ms=10, p95_ms=100, token_ms=80),
    }
    assert objective(alone, None).classes == {
        "a": {"ttft_ms": 101.0, "stall_ms": 500.0},
        "b": {"ttft_ms": 500.0, "stall_ms": 800.0},
    }
    assert objective(alone, {"": {"ttft_ms": 3.0}}).classes == {"": {"ttft_ms": 3.0}}


def test_a_session_takes_what_its_longest_path_takes():
    """Gaps, first tokens, and ten more tokens each."""
    alone = {"": Unloaded(n=9, p50_ms=100, p95_ms=200, token_ms=10)}
    assert nominal_s(one(5, 6), Classes(), alone) == pytest.approx(2 * (1 + 0.2))
    beside = Session(
        "s",
        (
            Call(after=None, gap_s=0.0, input_tokens=5, output_tokens=1),
            Call(after=0, gap_s=3.0, input_tokens=5, output_tokens=1),
            Call(after=0, gap_s=1.0, input_tokens=5, output_tokens=1),
        ),
        20,
    )
    assert nominal_s(beside, Classes(), alone) == pytest.approx(0.1 + 3.0 + 0.1)


# ----------------------------------------------------------------------- capacity


def test_capacity_is_measured_again_with_other_draws(engine, chat):
    """It lies within its interval, and is not the same number."""
    before = capacity(engine, chat, Here(), None)
    after = capacity(engine, chat, Here(), before)
    assert before.unit == "request"
    assert before.n == 5
    assert before.low < before.per_s < before.high
    assert after.per_s != before.per_s
    assert after.per_s == pytest.approx(before.per_s, rel=0.05)


def test_capacity_of_sessions_is_in_sessions(engine):
    """And knows how many calls one has."""
    offered = workload("agents", sessions=20).fitting(engine.longest_tokens())
    found = capacity(engine, offered, Here(), None)
    calls = sum(len(session.calls) for session in offered.pool()) / 20
    assert (found.unit, found.calls) == ("session", calls)
    assert found.calls_per_s == pytest.approx(found.per_s * calls)


# --------------------------------------------------------------------- parameters


def calibration(**changed):
    """A plain one: 10 calls a second, a deadline of 500 ms."""
    told = {
        "classes": Classes(),
        "alone": {"": Unloaded(n=9, p50_ms=50, p95_ms=100, token_ms=10)},
        "slo": Slo(classes={"": {"ttft_ms": 500.0, "stall_ms": 500.0}}),
        "slo_from": "unloaded",
        "capacity": Capacity(
            unit="session",
            per_s=2.0,
            low=1.9,
            high=2.1,
            calls=5.0,
            clients=8,
            n=5,
            answers=99,
        ),
        "lasts_s": 60.0,
        "warmup_s": 5.0,
        "scored_s": (5.0, 50.0),
        "until_s": 90.0,
    }
    return Calibration(**{**told, **changed})


def test_a_bound_on_the_queue_is_what_the_deadline_leaves():
    """500 ms less 100 and less 150 leave 250, in which 2.5 calls go."""
    assert fitted(calibration(), 4, 0.15) == {
        "max_waiting": 2,
        "rate_per_s": 10.0,
        "max_in_flight": 6,
        "burst": 6,
    }


def test_a_deadline_that_leaves_nothing_allows_no_queue():
    """And an engine of unknown size has no bound on what is in flight."""
    assert fitted(calibration(), None, 0.6) == {"max_waiting": 0, "rate_per_s": 10.0}


def test_a_calibration_is_read_back_as_it_was():
    """An experiment that goes on uses what it measured."""
    made = calibration()
    assert Calibration.read(made.document()) == made
    with pytest.raises(CalibrationError, match="on disk is none"):
        Calibration.read({"edges": []})
