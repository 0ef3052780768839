"""What a policy's comparisons add up to, and the ones that were skipped."""

import pytest
from tests.reports.byhand import decision, header, kv

from admitperf.reports.runs.gates import MOST_BOUNDS


def dual(seq, pressure, waiting):
    """A decision of `kv >= 0.9 and queue > 32`, which asks the queue only when full."""
    gates = [["kv_pressure", pressure, ">=", 0.9, pressure >= 0.9]]
    full = False
    if pressure >= 0.9:
        full = waiting > 32
        gates.append(["queue_depth", waiting, ">", 32, full])
    signals = {"kv_pressure": pressure, "queue_depth": waiting}
    answer = ("reject", "queue_depth") if full else ("admit", None)
    return decision(seq, *answer, signals=signals, gates=gates)


@pytest.fixture
def gates(reported):
    """The gates of a run, by the signal they compare."""

    def _gates(*lines):
        run = reported(header(requires=[]), *lines)
        return {gate.signal: gate for gate in run.gates}, run

    return _gates


def test_what_and_skipped_is_completed_from_the_line(gates):
    """The queue was asked twice, and its gate would have held on one of the others."""
    found, run = gates(
        dual(1, 0.95, 10), dual(2, 0.92, 20), dual(3, 0.1, 60), dual(4, 0.2, 5)
    )
    kv_gate, queue = found["kv_pressure"], found["queue_depth"]
    assert (kv_gate.asked, kv_gate.held, kv_gate.completed) == (4, 2, 0)
    assert (queue.asked, queue.held) == (2, 0)
    assert (queue.completed, queue.completed_held) == (2, 1)
    assert (run.together.n, run.together.of) == (0, 4)


def test_the_conjunction_is_counted(gates):
    """All gates at once on one of two decisions."""
    _, run = gates(dual(1, 0.95, 40), dual(2, 0.95, 3))
    assert (run.together.n, run.together.of) == (1, 2)
    assert run.finding.word == "LIVE"


@pytest.mark.parametrize(
    ("op", "values", "nearest", "distance"),
    [
        (">=", (0.1, 0.44), 0.44, 0.46),
        (">", (0.1, 0.44), 0.44, 0.46),
        ("<=", (0.95, 1.3), 0.95, 0.05),
        ("<", (0.1, 0.44), 0.44, 0.46),
    ],
)
def test_the_distance_is_to_where_the_answer_changes(
    gates, op, values, nearest, distance
):
    """The value nearest to the bound counts, whichever side the run stayed on."""
    holds = {">=": False, ">": False, "<=": False, "<": True}[op]
    found, _ = gates(
        *(
            decision(
                seq,
                signals={"kv_pressure": v},
                gates=[["kv_pressure", v, op, 0.9, holds]],
            )
            for seq, v in enumerate(values, 1)
        )
    )
    gate = found["kv_pressure"]
    assert not gate.crossed
    assert gate.nearest == nearest
    assert gate.distance == pytest.approx(distance)
    assert gate.held == (2 if holds else 0)


def test_a_bound_that_moves_is_one_gate_with_a_range(gates):
    """A controller's bound is reported by its range, and is not completed."""
    found, _ = gates(
        *(kv(seq, 0.5, bound=0.6 + seq / 100) for seq in range(1, MOST_BOUNDS + 10))
    )
    gate = found["kv_pressure"]
    assert (gate.bound_low, gate.bound_high) == (0.61, pytest.approx(0.77))
    assert gate.asked == MOST_BOUNDS + 9
    assert gate.completed is None
    assert gate.distance == pytest.approx(0.11)


def test_a_few_fixed_bounds_are_gates_of_their_own(reported):
    """Two thresholds on one signal are two rows."""
    run = reported(header(), kv(1, 0.5, bound=0.7), kv(2, 0.5, bound=0.9))
    assert sorted(gate.bound_low for gate in run.gates) == [0.7, 0.9]


def test_the_last_number_of_bounds_that_stay_apart(reported):
    """So many are gates of their own; one more, and they are one that moves."""
    bounds = [0.5 + place / 100 for place in range(MOST_BOUNDS + 1)]
    lines = [kv(seq, 0.1, bound=bound) for seq, bound in enumerate(bounds, 1)]
    apart = reported(header(), *lines[:-1]).gates
    assert [gate.completed for gate in apart] == [MOST_BOUNDS - 1] * MOST_BOUNDS
    (united,) = reported(header(), *lines).gates
    assert (united.asked, united.completed) == (MOST_BOUNDS + 1, None)


def test_a_blind_decision_is_not_the_nearest_of_all(reported):
    """What it saw had gone stale: nothing was compared."""
    stale = {"blind": "signal_stale", "reason": "signal_stale"}
    run = reported(header(), dual(1, 0.95, 16), {**dual(2, 0.95, 60), **stale})
    assert (run.together.n, run.together.of) == (0, 1)
    assert run.joint.values == {"kv_pressure": 0.95, "queue_depth": 16}
    assert run.joint.distance == 0.5


def test_a_derived_number_is_judged_where_it_was_asked(gates):
    """It stands in no line's signals, so nothing is completed."""
    found, _ = gates(
        decision(1, gates=[["projected_kv", 0.3, ">=", 0.9, False]]), decision(2)
    )
    gate = found["projected_kv"]
    assert (gate.asked, gate.completed) == (1, None)
    assert gate.distance == pytest.approx(0.6)


def test_an_infinite_bound_is_never_reached(gates):
    """It has no distance, and no range."""
    found, run = gates(decision(1, gates=[["queue_depth", 5, ">", None, False]]))
    gate = found["queue_depth"]
    assert (gate.asked, gate.held, gate.distance, gate.bound_low) == (1, 0, None, None)
    assert any("has no finite bound" in sentence for sentence in run.finding.says)


def test_blind_decisions_are_not_in_a_gate(gates):
    """A posture's answer says nothing about the rule; only the gap is counted."""
    found, _ = gates(
        *(kv(seq, 0.5) for seq in range(1, 200)),
        kv(200, 0.95, blind="signal_stale", reason="signal_stale"),
        decision(
            201,
            gates=[["kv_pressure", None, ">=", 0.9, False]],
            blind="signal_absent",
            reason="signal_absent",
        ),
    )
    gate = found["kv_pressure"]
    assert (gate.asked, gate.held, gate.unknown, gate.completed) == (199, 0, 1, 0)


def test_each_value_stays_with_its_decision(gates):
    """A signal that some lines lack, next to blind ones, is completed line by line."""
    blind = {"blind": "signal_absent", "reason": "signal_absent"}
    found, run = gates(
        *(dual(seq, 0.95, 3) for seq in range(1, 200)),
        kv(200, 0.2),
        {**decision(201, signals={"queue_depth": 60}), **blind},
        kv(202, 0.95, signals={"queue_depth": 7}),
        dual(203, 0.95, 40),
    )
    queue = found["queue_depth"]
    assert (queue.asked, queue.held) == (200, 1)
    assert (queue.completed, queue.completed_held) == (1, 0)
    assert (run.together.n, run.together.of) == (1, 201)
