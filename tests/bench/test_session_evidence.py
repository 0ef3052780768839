"""The evidence about sessions: its runs repeat, and its controls are what they say."""

import json
from pathlib import Path

import pytest
from benchmarks.sessions import again, cells, controls, frozen, runs, stages
from benchmarks.sessions.arms import GRIDS, METRICS, PER_METRIC, Choice
from benchmarks.sessions.cells import LOAD, Cell, caller
from benchmarks.sessions.mix import mix
from benchmarks.sessions.runs import Group, Job, run_group, run_one
from benchmarks.sessions.stages import FINAL, Store

from admitperf.bench.callers.callers import planned
from admitperf.core.notice import hushed
from admitperf.core.verdict import Verdict
from admitperf.simulator import Answer
from admitperf.testing.fake_clock import FakeClock

CELL = Cell("train", "kv", "patient", 2.0)
LASTS_S = 300.0

TIMED = ("cpu_s", "decide_us")
"""Members of a record that are no two times alike."""

RECORD = {
    "stage", "mix", "engine", "client", "load", "block", "seed", "arm", "policy",
    "parameters", "plan", "offered", "good", "count", "work", "offered_work",
    "completed", "refused_at_start", "killed", "let_in", "wasted_share", "short",
    "long", "ttft_p95_ms", "refusals", "attempts", "jain", "gates", "refused",
    "decisions", "decide_us", "seconds", "cpu_s", "capacity_per_s", "finding",
}  # fmt: skip
"""What the page reads."""


@pytest.fixture(scope="module", autouse=True)
def quick(tmp_path_factory):
    """A capacity that takes no seconds to measure, and nothing written in the tree."""
    folder = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "CAPACITIES", folder / "capacity.json")
        patch.setattr(cells, "capacity_per_s", lambda _one, _pool: 0.03)
        patch.setattr(runs, "CPU", folder / "cpu.jsonl")
        patch.setattr(runs, "RECORDS", folder)
        cells.calibrated.cache_clear()
        yield
        cells.calibrated.cache_clear()


def _job(arm, policy, parameters=None, **more):
    return Job(
        "screen", CELL, 1, arm, policy, parameters or {}, lasts_s=LASTS_S, **more
    )


GATE = _job("gate", "kv_threshold", {"threshold": 0.5})


@pytest.fixture(scope="module")
def gate():
    """The record of a small run."""
    return run_one(GATE)


def test_a_run_repeats(gate):
    """Everything but what it took is the same the second time."""
    again = run_one(GATE)
    for name in TIMED:
        again.pop(name)
    assert again == {name: gate[name] for name in gate if name not in TIMED}


def test_another_block_offers_other_tasks(gate):
    """A block is a draw of its own."""
    assert run_one(GATE._replace(block=2))["plan"] != gate["plan"]


def test_a_record_has_what_the_page_reads(gate):
    """No more and no less, and its numbers fit together."""
    assert set(gate) == RECORD
    assert gate["offered"] == gate["short"][1] + gate["long"][1]
    assert gate["good"] == gate["short"][0] + gate["long"][0]
    assert gate["count"] == gate["good"] / gate["offered"]
    fates = gate["completed"] + gate["refused_at_start"] + gate["killed"]
    assert fates == gate["offered"]
    asked, held = gate["gates"]["kv_pressure"]
    assert asked == gate["decisions"]
    assert held == sum(gate["refused"].values()) > 0
    assert gate["finding"] == "LIVE"


def test_what_fails_inside_a_policy_is_said(monkeypatch):
    """A hook that raises costs a host nothing, but it must not pass for a result."""
    broken = controls.CapElephant._counted

    def raises(self, metrics, d):
        broken(self, metrics, d)
        raise KeyError("lost")

    monkeypatch.setattr(controls.CapElephant, "_counted", raises)
    with pytest.raises(RuntimeError, match="decided_failed"):
        run_one(_job("cap_elephant", "cap_elephant"))


def test_no_task_is_in_two_pools():
    """Neither by name nor by what it asks."""
    pools = [mix(name, tasks=60).pool() for name in ("train", "final", "short")]
    tasks = [(one.calls, one.name) for pool in pools for one in pool]
    assert len({calls for calls, _ in tasks}) == len({n for _, n in tasks}) == 180


def test_a_shift_changes_first_prompts_only():
    """Calls, answers, pauses and what comes in between stay as they are."""
    plain, twice = mix("final", tasks=40).pool(), mix("final", 2.0, tasks=40).pool()
    for one, other in zip(plain, twice, strict=True):
        longer = {
            b.input_tokens - a.input_tokens
            for a, b in zip(one.calls, other.calls, strict=True)
        }
        assert len(longer) == 1
        assert abs(longer.pop() - one.calls[0].input_tokens) <= 1
        assert [(c.gap_s, c.output_tokens) for c in one.calls] == [
            (c.gap_s, c.output_tokens) for c in other.calls
        ]


# ------------------------------------------------------------------------- controls


def test_thinning_lets_in_as_many_as_its_arm():
    """Those and no others: who is let in has all its calls answered."""
    cap = _job("cap", "cap_elephant", {"max_live": 3, "quantum": 120})
    thin = _job("thin", "thinned", like="cap")
    like, made = run_group([cap, thin])
    assert 0 < like["let_in"] < like["offered"]
    assert made["let_in"] == made["completed"] == like["let_in"]
    assert made["killed"] == 0
    assert made["plan"] == like["plan"]


def test_a_share_lets_in_just_so_many():
    """Whatever the lots are."""
    names = [f"task-{n}" for n in range(30)]
    for count in (0, 1, 17, 30):
        share = controls.share_for(5, names, count)
        assert sum(controls.lot(5, name) < share for name in names) == count


@pytest.fixture
def clock():
    """Time that stands still."""
    return FakeClock()


def _asked(policy, raw, session, **facts):
    with hushed():
        return policy(raw, request_id=session, session=session, **facts)


ROOM = {"vllm:kv_cache_usage_perc": 0.1}
FULL = {"vllm:kv_cache_usage_perc": 0.95}


@pytest.fixture
def elephants(clock):
    """A gate with the elephant rule, before an engine."""
    return controls.GateElephant(
        policies="kv_threshold:threshold=0.9",
        quantum=2,
        clock=clock,
        reports_outcomes=True,
    )


def _calls(policy, clock, session, tokens, calls):
    for _ in range(calls):
        d = _asked(policy, ROOM, session, input_tokens=tokens)
        assert d.admitted
        clock.advance(1)
        policy.outcome(d.request_id, output_tokens=10)


def test_the_largest_old_task_leaves_when_a_new_one_is_turned_away(elephants, clock):
    """For good, at its next call, and nobody else does."""
    _calls(elephants, clock, "large", 9_000, 2)
    _calls(elephants, clock, "small", 1_000, 2)
    assert _asked(elephants, FULL, "new").reason == "kv_pressure"
    assert _asked(elephants, ROOM, "small", input_tokens=1_000).admitted
    d = _asked(elephants, ROOM, "large", input_tokens=9_000)
    assert (d.verdict, d.reason) == (Verdict.REJECT, "session_quota")
    assert not d.should_retry
    assert _asked(elephants, ROOM, "new").admitted
    assert _asked(elephants, FULL, "newer").reason == "kv_pressure"
    assert _asked(elephants, ROOM, "small").reason == "session_quota"


def test_nobody_leaves_while_only_old_ones_are_turned_away(elephants, clock):
    """A refused call of a live task asks for no room of another."""
    _calls(elephants, clock, "large", 9_000, 2)
    assert _asked(elephants, FULL, "large").reason == "kv_pressure"
    assert _asked(elephants, ROOM, "large", input_tokens=9_000).admitted


def test_a_twin_without_memory_forgets_a_task_between_its_calls(clock):
    """Each call is the first one to it, under a name of its own."""
    twin = controls.Memoryless(clock=clock, reports_outcomes=True)
    raw = {
        "vllm:kv_cache_usage_perc": 0.1,
        "vllm:num_requests_running": 1,
        "vllm:num_requests_waiting": 0,
        'vllm:cache_config_info{block_size="16",num_gpu_blocks="1000"}': 1,
    }
    for place in range(3):
        name = f"task/{place}"
        with hushed():
            d = twin(
                raw,
                request_id=f"{name}~1",
                logical_id=name,
                session="task",
                input_tokens=100,
            )
        assert d.admitted
        assert twin._books.active == 1
        twin.outcome(d.request_id, output_tokens=10)
        assert twin._books.active == 0


# -------------------------------------------------------------------------- clients


def _asks_s(name, answer):
    """How long a client asks for one call in all that is always answered so."""
    client, task = caller(name), mix("train", tasks=1).pool()[0]
    plan = planned([(0.0, task)], 10.0, (0.0, 10.0), client)
    callers = runs._callers(CELL._replace(client=name))(plan, client, 1)
    asked, at_s = list(callers.first()), 0.0
    while asked:
        (arrival,) = asked
        at_s = arrival.at_s
        asked = list(callers.after(arrival, at_s, answer))
    return at_s


def test_who_polls_asks_as_long_as_who_is_patient():
    """But for its last wait, and whatever it is told in between."""
    patient_s = _asks_s("patient", Answer(ok=False, refused=True, status=503))
    for told_ms in (None, 10_000.0):
        no = Answer(ok=False, refused=True, status=503, retry_after_ms=told_ms)
        assert _asks_s("polls", no) == pytest.approx(patient_s, rel=0.15)
    assert _asks_s("patient", no) > patient_s


def test_who_is_refused_for_good_asks_no_more():
    """Polling is no way around a final answer."""
    no = Answer(ok=False, refused=True, status=429, should_retry=False)
    assert _asks_s("polls", no) == 0.0


def test_nobody_says_which_call_is_the_last():
    """Where that is what a mix is about; elsewhere the last one says so."""
    for name, marked in (("final", True), ("no_final", False)):
        one = Cell(name, "kv", "patient", 1.5)
        task = mix("short", tasks=1).pool()[0]
        plan = planned([(0.0, task)], 10.0, (0.0, 10.0), caller("patient"))
        callers = runs._callers(one)(plan, caller("patient"), 1)
        asked = list(callers.first())
        for _ in task.calls[1:]:
            asked = list(callers.after(asked[0], asked[0].at_s, Answer(ok=True)))
        assert asked[0].session_final is marked


# --------------------------------------------------------------------------- stages


@pytest.fixture
def chosen(monkeypatch, tmp_path):
    """The first set of each grid, frozen elsewhere."""
    first = {arm: sets[0] for arm, sets in GRIDS.items()}
    arms = {arm: one for arm, one in first.items() if arm not in PER_METRIC}
    arms |= {f"{arm}:{m}": first[arm] for arm in PER_METRIC for m in METRICS}
    where = {f"gate_cell:{metric}": first["gate_one"] for metric in METRICS}
    monkeypatch.setattr(frozen, "FILE", tmp_path / "frozen.json")
    frozen.write(arms, {"kv/patient/1.5": where})
    yield arms
    frozen._read.cache_clear()


def test_a_place_has_all_arms_and_runs_equal_ones_once(chosen):
    """The second name of a run costs nothing and says the same."""
    cell = Cell("final", "kv", "polls", 1.5)  # tuned as patient
    jobs = list(stages.arm_jobs("extra", cell, 1))
    names = [job.arm for job in jobs]
    assert len(names) == len(set(names)) == 17
    two = [job._replace(lasts_s=LASTS_S) for job in jobs if "gate_one" in job.arm]
    one, other = run_group(two)
    assert (one["arm"], other["arm"]) == ("gate_one:count", "gate_one:work")
    assert other == {**one, "arm": "gate_one:work", "cpu_s": 0.0}


def _screened(arm, value, metric, cell):
    return {
        "arm": arm, "policy": "p", "parameters": {"x": value}, "block": 1,
        "count": metric, "work": metric, **cell._asdict(),
    }  # fmt: skip


def test_the_set_is_chosen_by_its_worst_cell():
    """Not by its mean; the cell's own best is by the cell."""
    first, last = stages.SCREEN[0], stages.SCREEN[-1]
    told = {first: {1: 0.9, 2: 0.6}, last: {1: 0.2, 2: 0.45}}
    records = [
        _screened("gate_one", value, metric, cell)
        for cell, values in told.items()
        for value, metric in values.items()
    ]
    records += [_screened("shed", 1, 0.7, cell) for cell in told]
    arms, places = stages.choose(records)
    assert arms["gate_one:count"] == Choice("p", {"x": 2})
    place = places[f"{first.engine}/{first.client}/{first.load:g}"]
    assert place["gate_cell:count"] == Choice("p", {"x": 1})
    assert "shed" in arms


def test_records_are_kept_and_not_run_again(tmp_path, monkeypatch, gate):
    """What is there is believed; other parameters under one name are not."""
    monkeypatch.setattr(
        stages, "run_all", lambda left, _known: iter(()) if not left else 1 / 0
    )
    store = stages.Store(tmp_path / "final.jsonl.gz")
    store.add([gate])
    again = stages.Store(tmp_path / "final.jsonl.gz")
    assert again.records == [gate]
    assert stages.made([GATE], again, by_set=False)
    other = GATE._replace(parameters={"threshold": 0.6})
    with pytest.raises(SystemExit, match="stands there"):
        stages.made([other], again, by_set=False)


def test_a_file_that_was_cut_off_keeps_its_whole_lines(tmp_path, capsys, gate):
    """And says in one line that the rest was dropped; what is kept can be settled."""
    path = tmp_path / "final.jsonl.gz"
    stages.Store(path).add([gate])
    first = path.read_bytes()
    stages.Store(path).add([{**gate, "block": 2}])
    path.write_bytes(path.read_bytes()[: len(first) + 40])
    store = stages.Store(path)
    assert store.records == [gate]
    assert capsys.readouterr().err.count("\n") == 1
    more = {**gate, "block": 3}
    store.add([more])
    assert stages.Store(path).records == [gate, more]
    assert not capsys.readouterr().err


def test_a_fresh_start_keeps_the_old_records_elsewhere(tmp_path, gate):
    """They are moved, not lost, and none is believed."""
    path = tmp_path / "final.jsonl.gz"
    stages.move_away(path)
    stages.Store(path).add([gate])
    data = path.read_bytes()
    stages.move_away(path)
    assert not stages.Store(path).records
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [data]


def test_records_outlive_a_write_that_fails(tmp_path, monkeypatch, gate):
    """The old file is replaced whole or not at all."""
    path = tmp_path / "final.jsonl.gz"
    store = stages.Store(path)
    store.add([gate])

    def full(_number):
        raise OSError("no space")

    monkeypatch.setattr(stages.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        store.forget(["gate"])
    assert stages.Store(path).records == [gate]


def test_what_is_frozen_is_what_the_screen_chose():
    """From the committed records, and by the rule of the protocol."""
    folder = Path(stages.__file__).parent
    path = folder / "records" / "screen.jsonl.gz"
    if not path.exists():
        pytest.skip("no records of the screen: records/screen.jsonl.gz")
    arms, places = stages.choose(stages.Store(path).records)
    plain = {
        "arms": {name: one._asdict() for name, one in arms.items()},
        "cells": {
            cell: {name: one._asdict() for name, one in some.items()}
            for cell, some in places.items()
        },
    }
    assert plain == json.loads((folder / "frozen.json").read_text(encoding="utf-8"))


def test_again_tells_what_has_become_of_kept_runs(monkeypatch):
    """As recorded and now, each run beside its own record."""
    cell = Cell("final", "kv", "patient", LOAD)
    job = Job("final", cell, 1, "protect", "session_ledger", {})
    kept = next(
        one
        for one in Store(again.RECORDS / "final.jsonl.gz").records
        if (one["engine"], one["client"], one["load"]) == ("kv", "patient", LOAD)
        and (one["block"], one["arm"]) == (1, "protect")
    )
    now = {**kept, "count": kept["count"] - 0.25}
    monkeypatch.setattr(again, "run_all", lambda _jobs: [Group([job], [now], None)])
    _, line = again.told(["protect"], [1])
    moved = f"count {kept['count']:.3f} -> {kept['count'] - 0.25:.3f}"
    assert line.startswith("final    protect")
    assert moved in line
    assert "0 of 1 runs alike, count of one moved by 0.250" in line


def test_again_runs_our_arms_in_every_main_cell():
    """And where one task has many calls open."""
    made = again.jobs(["shed"], [1, 2])
    assert {job.cell for job in made} >= set(FINAL)
    assert any(job.cell.mix == "fan-out" for job in made)
    assert {(job.arm, job.policy) for job in made} == {("shed", "session_ledger")}
