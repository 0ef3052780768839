"""Every number of a report, against plain loops over the same lines."""

from dataclasses import astuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reports.byhand import START_US, decision, header, jsonl, outcome
from tests.reports.oracle import Oracle

from admitperf.reports.report import report

MANY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
SLOS = (
    None,
    {"ttft_ms": 500},
    {"ttft_ms": 500, "stall_ms": 50, "e2e_ms": 900},
    {"chat": {"ttft_ms": 300}, "batch": {"e2e_ms": 600}},
)
RUNS = ("k3f9x2ab", "other")
CLOSE = st.sampled_from([0, 0.1, 0.5, 0.9, 0.95, 1.0])
MS = st.none() | st.sampled_from([0, 12.5, 299.9, 300, 300.1, 500, 501, 900, 1000])
VERDICTS = st.sampled_from(["admit", "admit", "defer", "reject"])
ERRORS = ["reset", "timeout", "client_closed", "upstream_refused"]
WHYS = ["early", "quota", "client_closed"]
COUNT = st.none() | st.integers(1, 900)


@st.composite
def gate(draw):
    """One comparison; few bounds, or many for one that moves."""
    name = draw(st.sampled_from(["kv_pressure", "queue_depth", "own signal"]))
    op = draw(st.sampled_from([">=", ">", "<=", "<"]))
    few, many = [0.5, 0.9], [place / 16 for place in range(9)]
    bound = draw(st.sampled_from(few) | st.sampled_from(many))
    return [name, draw(st.none() | CLOSE), op, bound, None]


@st.composite
def decided(draw, seq):
    """A decision with whatever a policy may have seen."""
    verdict, governed = draw(VERDICTS), draw(st.booleans())
    facts = {
        "logical_id": draw(st.none() | st.sampled_from(["a", "b", "c"])),
        "slo_class": draw(st.none() | st.sampled_from(["chat", "batch", "odd"])),
        "stream": draw(st.none() | st.booleans()),
        "late_ms": draw(MS),
        "max_output_tokens": draw(COUNT),
    }
    signals = {
        "kv_pressure": draw(st.none() | CLOSE),
        "queue_depth": draw(st.none() | CLOSE),
        "own signal": draw(st.none() | CLOSE),
    }
    changes = {"blind": "signal_stale"} if draw(st.integers(0, 5)) == 0 else {}
    gates = draw(st.lists(gate(), max_size=3))
    probe = verdict != "admit" and draw(st.integers(0, 3)) == 0
    if verdict != "admit" and not changes and draw(st.integers(0, 3)) == 0:
        changes = {"by": "host", "why": draw(st.sampled_from(WHYS))}
        gates, probe = [], False
    changes |= {"probe": True} if probe else {}
    changes |= draw(
        st.sampled_from([{}, {}, {"held_ms": 0}, {"held_ms": 250.5}, {"held_ms": 2000}])
    )
    return decision(
        seq,
        verdict,
        None if verdict == "admit" else draw(st.sampled_from(["x", "y"])),
        run=draw(st.sampled_from(RUNS)),
        t_us=START_US + draw(st.integers(1, 2_000_000)),
        enforced=governed,
        admitted=verdict == "admit" or not governed or probe,
        signals={k: v for k, v in signals.items() if draw(st.booleans())},
        gates=gates,
        facts={k: v for k, v in facts.items() if v is not None},
        **changes,
    )


@st.composite
def ended(draw, of):
    """An outcome, maybe of no decision."""
    ok = draw(st.booleans())
    changes = {} if ok else {"error": draw(st.sampled_from(ERRORS))}
    return outcome(
        of,
        run=draw(st.sampled_from(RUNS)),
        ok=ok,
        ttft_ms=draw(MS),
        max_gap_ms=draw(MS),
        e2e_ms=draw(MS),
        output_tokens=draw(COUNT),
        finish_reason=draw(st.sampled_from(["stop", "length", "max_tokens", None])),
        **changes,
    )


@st.composite
def logs(draw):
    """Lines of two processes of one run, some records twice, in any order."""
    size = draw(st.integers(0, 30))
    made = [draw(decided(seq)) for seq in range(1, size + 1)]
    numbers = st.integers(1, size + 3)
    made += [draw(ended(of)) for of in draw(st.lists(numbers, max_size=30))]
    made += draw(st.lists(st.sampled_from(made), max_size=3)) if made else []
    return draw(st.permutations(made))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Where the log stands."""
    return tmp_path_factory.mktemp("oracle") / "run.jsonl"


def as_tuple(spread):
    """A spread as the oracle has it."""
    return astuple(spread)[:6]


@MANY
@given(lines=logs(), slo=st.sampled_from(SLOS))
def test_every_number_is_what_plain_loops_count(path, lines, slo):
    """Answers, cost, calls, gates, signals and load, on anything."""
    heads = [header(run=run, slo=slo, requires=[]) for run in RUNS]
    path.write_text(jsonl(*heads, *lines), encoding="utf-8")
    (run,) = report([str(path)]).runs
    truth = Oracle(lines, slo)
    same_answers(run.answers, truth.answers())
    same_cost(run.cost, truth.cost())
    same_requests(run.cost.requests, truth.requests())
    same_gates(run, truth)
    spreads = {one.name: as_tuple(one.spread) for one in run.signals if one.spread.n}
    assert spreads == truth.signals()
    same_load(run.load, truth.load())


def same_answers(answers, truth):
    """Each count, and each row."""
    rows = {(row.verdict, row.reason, row.blind): row.n for row in answers.rows}
    assert rows == truth.pop("rows")
    waited = answers.held
    found = (waited.n, waited.let_in, waited.refused, waited.left)
    assert (*found, as_tuple(waited.held_ms)) == truth.pop("held")
    assert {name: getattr(answers, name) for name in truth} == truth


def same_cost(paid, truth):
    """Each share's counts and each spread."""
    output = paid.output and (paid.output.asked_tokens, paid.output.got_tokens)
    assert output == truth.pop("output")
    for name in ("ttft_ms", "ttft_due_ms"):
        assert as_tuple(getattr(paid, name)) == pytest.approx(truth.pop(name))
    assert {name: count(getattr(paid, name)) for name in truth} == truth


def same_requests(calls, truth):
    """By call, on both clocks."""
    if truth is None:
        assert calls is None
        return
    for name in ("ttft_user_ms", "ttft_last_ms"):
        assert as_tuple(getattr(calls, name)) == pytest.approx(truth.pop(name))
    assert {name: count(getattr(calls, name)) for name in truth} == truth


def same_gates(run, truth):
    """Every gate, and all of them together."""
    made = [
        (
            gate.signal,
            gate.op,
            gate.asked,
            gate.held,
            gate.unknown,
            gate.completed,
            gate.completed_held,
            gate.value_low,
            gate.value_high,
            gate.distance,
        )
        for gate in run.gates
    ]
    assert sorted(made, key=str) == truth.gates()
    joint = truth.joint()
    if joint is None:
        assert (run.together, run.joint) == (None, None)
        return
    held, of, distance = joint
    assert (run.together.n, run.together.of) == (held, of)
    assert (run.joint and run.joint.distance) == pytest.approx(distance)


def same_load(load, truth):
    """What was offered."""
    assert as_tuple(load.late_ms) == truth.pop("late_ms")
    assert (load.late.n if load.late else 0) == truth.pop("late")
    found = {name: getattr(load, name) for name in truth}
    assert found == pytest.approx(truth)


def count(value):
    """A share's count; anything else as it is."""
    return getattr(value, "n", value)
