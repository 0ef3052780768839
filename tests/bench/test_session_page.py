"""The page of the evidence about sessions follows from its records, and hides nothing.

What is judged is synthetic here, but for the last test.
"""

import gzip
import json
import re
import sys

import pytest
from benchmarks.sessions import __main__ as command
from benchmarks.sessions import page
from benchmarks.sessions.cells import Cell
from benchmarks.sessions.checks import checks
from benchmarks.sessions.evidence import Evidence, EvidenceError, held, read
from benchmarks.sessions.judged import (
    MARGIN,
    Gain,
    aims,
    falsifiers,
    gains,
    in_family,
    ranked,
    regrets,
)
from tests.bench.session_records import ABOUT, record, records

from admitperf.bench.design.claims import Pooled
from admitperf.reports.comparison.verdict import Paired


@pytest.fixture(scope="module")
def good():
    """Runs by which every aim is met."""
    return records()


@pytest.fixture(scope="module")
def written(good):
    """The page on them."""
    return page.text(Evidence.of(good), ABOUT)


def changed(rows, wanted, **values):
    """The same runs, some of them with other values; a callable takes the old one."""
    return [
        {**row, **{k: v(row[k]) if callable(v) else v for k, v in values.items()}}
        if wanted(row)
        else row
        for row in rows
    ]


def section(text, title):
    """What stands under a heading."""
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_aim_is_met_by_runs_that_meet_it(good, written):
    """And nothing refutes it, but a gain where none is expected."""
    evidence = Evidence.of(good)
    assert [one.yes for one in aims(evidence)] == [True] * 5
    assert [one.yes for one in falsifiers(evidence)] == [False] * 8
    assert "MISSED" not in written
    assert section(written, "What would have refuted it").count("YES") == 6


def _in(row, **where):
    return all(row[name] == value for name, value in where.items())


SPOILT = {
    "1 robustness": (
        lambda row: _in(row, mix="x4", arm="gate_one:work"),
        {"work": lambda old: old + 0.45},
    ),
    "2 work": (
        lambda row: _in(row, arm="protect", engine="slots", load=1.2),
        {"wasted_share": 0.0101},
    ),
    "3 no harm": (
        lambda row: _in(row, arm="protect", mix="final", load=0.8),
        {"work": lambda old: old - 0.03},
    ),
    "4 against the nearest": (
        lambda row: _in(row, arm="thunder:count", mix="final") and row["load"] > 1,
        {"count": lambda old: old + 0.185},
    ),
    "5 against the controls": (
        lambda row: _in(row, arm="memoryless_shed"),
        {"count": lambda old: old + 0.2},
    ),
}


@pytest.mark.parametrize("aim", SPOILT)
def test_an_aim_that_is_missed_reads_missed(good, aim):
    """Each is spoilt by itself, by the runs it is about; the others stay met."""
    wanted, values = SPOILT[aim]
    evidence = Evidence.of(changed(good, wanted, **values))
    assert [one.name for one in aims(evidence) if not one.yes] == [aim]


def test_the_page_says_missed(good):
    """In the plain answers and in the table, with the number that missed it."""
    wanted, values = SPOILT["2 work"]
    text = page.text(Evidence.of(changed(good, wanted, **values)), ABOUT)
    missed = "\n- MISSED (1 of 2 parts hold): `protect` wastes"
    assert missed in section(text, "In short")
    row = "| 2 work | MISSED | MISSED | `protect` wastes at most 0.010 of the tokens"
    assert row in section(text, "Aims")


def test_one_percent_wasted_is_allowed(good):
    """The bound itself holds."""
    rows = changed(good, lambda row: row["arm"] == "protect", wasted_share=0.01)
    assert aims(Evidence.of(rows))[1].yes


@pytest.mark.parametrize(
    ("gone", "missed"),
    [
        (lambda row: row["mix"] == "weka", ["1 robustness"]),
        (lambda row: row["arm"] == "memoryless_shed", ["5 against the controls"]),
        (
            lambda row: _in(row, mix="final", engine="kv", client="patient", load=0.8),
            ["1 robustness", "2 work", "3 no harm"],
        ),
    ],
)
def test_what_was_not_run_is_missed(good, gone, missed):
    """An aim is not met by leaving out a part of it."""
    evidence = Evidence.of(row for row in good if not gone(row))
    assert [one.name for one in aims(evidence) if not one.yes] == missed


# -------------------------------------------------------------------- regret, by hand

HERE, THERE = Cell("final", "kv", "patient", 1.5), Cell("final", "kv", "patient", 2.0)
COUNTS = {  # arm: two blocks here, two blocks there
    "none": ((0.1, 0.3), (0.0, 0.1)),
    "gate_cell:count": ((0.8, 0.9), (0.5, 0.5)),
    "gate_one:count": ((0.7, 0.7), (0.2, 0.4)),
    "shed": ((0.6, 0.7), (0.6, 0.6)),
    "memoryless_shed": ((1.0, 1.0), (1.0, 1.0)),
}


@pytest.fixture
def small():
    """Two cells, two blocks."""
    return Evidence.of(
        {**record(arm, block + 1, *cell), "count": value}
        for arm, both in COUNTS.items()
        for cell, own in zip((HERE, THERE), both, strict=True)
        for block, value in enumerate(own)
    )


def test_regret_is_what_the_best_arm_of_the_table_has_more(small):
    """Means over blocks; a control is no arm; the arm tuned per cell sets the mark."""
    found = {one.arm: one for one in regrets(small, "count", [HERE, THERE])}
    assert {arm: one.cells[HERE] for arm, one in found.items()} == pytest.approx(
        {"none": 0.65, "gate_cell:count": 0.0, "gate_one:count": 0.15, "shed": 0.2}
    )
    assert {arm: one.cells[THERE] for arm, one in found.items()} == pytest.approx(
        {"none": 0.55, "gate_cell:count": 0.1, "gate_one:count": 0.3, "shed": 0.0}
    )
    assert found["shed"].worst == pytest.approx(0.2)
    assert found["shed"].where == HERE
    assert found["gate_one:count"].mean == pytest.approx(0.225)


def test_only_arms_with_one_parameter_set_are_ranked(small):
    """By their worst cell, the smallest first."""
    found = ranked(small, "count", [HERE, THERE])
    assert [one.arm for one in found] == ["shed", "gate_one:count", "none"]


# ----------------------------------------------------------------------------- claims


def claim(differences):
    """A gain over six cells with these differences of blocks."""
    zeros = [0.0] * len(differences)
    own = Paired.of(differences, zeros, MARGIN)
    return Gain("shed", "none", "count", (1.5,), 6, Pooled((1.5,), (), (), own))


SURE = [0.03, 0.031, 0.029, 0.03, 0.032, 0.03, 0.028, 0.03]
WEAK = [0.01, 0.07, 0.02, 0.05, 0.01, 0.08, 0.04, 0.06]
NOISE = [0.01, -0.01, 0.02, -0.02, 0.03, -0.03, 0.01, -0.01]


def test_the_p_of_a_gain_is_raised_by_all_gains_that_are_claimed():
    """Holm: the smallest times all, the next times one less; here by hand."""
    assert claim(WEAK).holds
    assert claim(WEAK).paired.t_p < 0.05 / 5
    family = in_family([claim(SURE), claim(WEAK), *[claim(NOISE)] * 18])
    sure, weak = family[0].paired, family[1].paired
    assert sure.family_p == pytest.approx(20 * sure.t_p)
    assert weak.family_p == pytest.approx(19 * weak.t_p)
    assert [one.holds for one in family[:3]] == [True, False, False]


def test_a_gain_that_could_not_be_asked_had_its_chance():
    """Leaving out runs does not make the others surer."""
    absent = Gain("shed", "thunder:count", "count", (1.5,), 0, None)
    family = in_family([claim(WEAK), *[absent] * 19])
    assert family[0].paired.family_p == pytest.approx(20 * claim(WEAK).paired.t_p)
    assert not family[1].holds


def test_a_gain_under_the_margin_is_none():
    """However sure it is."""
    assert not claim([value - 0.011 for value in SURE]).holds


def test_the_family_is_every_gain_of_both_modes(good, written):
    """Eleven arms, the nearest, and four controls of each; each with its MDE."""
    made = gains(Evidence.of(good))
    assert len({(one.arm, one.other, one.loads) for one in made}) == len(made) == 20
    assert {one.paired.family for one in made} == {20}
    shown = section(written, "Aims").split("### Gains")[1].split("###")[0]
    assert len(re.findall(r"\| 0\.\d{3} \| holds \|$", shown, re.MULTILINE)) == 20


# ------------------------------------------------------------------------- falsifiers


def _alone(gates):
    return {**_none(gates), "ledger_kv": gates["ledger_kv"]}


def _alone_but_a_wait(gates):
    return {**_alone(gates), "task_wait_s": [1000, 900]}


def _none(gates):
    return {gate: [n, 0] for gate, (n, _) in gates.items()}


REFUTED = {
    "The gain of `shed`": (
        lambda row: _in(row, arm="gate_one:count", mix="final") and row["load"] > 1.2,
        {"count": lambda old: old + 0.2},
    ),
    "An elephant rule": (
        lambda row: row["arm"] == "cap_elephant:count" and row["load"] > 1,
        {"count": lambda old: old + 0.185},
    ),
    "Thinning": (
        lambda row: _in(row, arm="thin_shed", mix="final", load=1.5),
        {"count": lambda old: old + 0.2},
    ),
    "The three ledger gates of `shed`": (
        lambda row: row["arm"] == "shed",
        {"gates": _alone},
    ),
    "The three ledger gates": (
        lambda row: row["arm"] == "shed",
        {"gates": _alone_but_a_wait},
    ),
    "The three ledger gates of `shed` never": (
        lambda row: row["arm"] == "shed",
        {"gates": _none},
    ),
}


@pytest.mark.parametrize("name", REFUTED)
def test_what_refutes_it_reads_yes(good, name):
    """Each by the runs it is about."""
    wanted, values = REFUTED[name]
    found = falsifiers(Evidence.of(changed(good, wanted, **values)))
    (one,) = (one for one in found if one.yes)
    assert one.name.startswith(name)


def test_a_size_rule_that_fails_under_the_shift_does_not_refute(good):
    """It has to hold in both."""
    wanted, values = REFUTED["An elephant rule"]
    rows = changed(good, lambda row: wanted(row) and row["mix"] == "final", **values)
    assert not any(one.yes for one in falsifiers(Evidence.of(rows)))


# ----------------------------------------------------------------------------- checks

BROKEN = {
    "met the same tasks": (lambda row: row["arm"] == "shed", {"plan": "another"}),
    "shift test is whole": (
        lambda row: _in(row, arm="shed", mix="x4", block=8),
        {"block": 9},
    ),
    "as cut for time": (
        lambda row: _in(row, arm="shed", mix="burst", block=8),
        {"block": 9},
    ),
    "controls are whole": (
        lambda row: _in(row, arm="memoryless_shed", block=8),
        {"block": 9},
    ),
    "has 8 blocks": (
        lambda row: _in(row, arm="none", mix="final", block=8, client="patient"),
        {"block": 9},
    ),
    "one parameter set": (
        lambda row: _in(row, arm="aimd", mix="x2"),
        {"parameters": {"quantum": 9}},
    ),
    "no run took over": (lambda row: row["block"] == 3, {"cpu_s": 3.01}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_check_says_no(good, name):
    """Of records that are not what the protocol asks for."""
    wanted, values = BROKEN[name]
    found = dict(checks(Evidence.of(changed(good, wanted, **values)), ABOUT))
    assert len([said for what, said in found.items() if name in what and said]) == 1


def test_checks_say_nothing_of_what_is_right(good):
    """All of them pass, and one fails that is about the budget."""
    assert not any(said for _, said in checks(Evidence.of(good), ABOUT))
    dear = {**ABOUT, "spent": {"final": [1, 3 * 3600 + 4]}}
    assert [said for _, said in checks(Evidence.of(good), dear) if said] == ["3.001"]
    guessed = {**ABOUT, "spent": {"explored (estimated)": [1, 3 * 3600 + 4]}}
    assert not any(said for _, said in checks(Evidence.of(good), guessed))


def test_a_gate_that_speaks_for_admission_is_counted_nowhere():
    """The ledger's own; another policy's gate of that name says what it says."""
    gates = {"in_flight": [10, 9], "ledger_kv": [10, 1]}
    row = {**record("shed", 1), "decisions": 10, "gates": gates}
    assert held([{**row, "policy": "session_ledger"}]) == {"ledger_kv": 0.1}
    assert held([{**row, "policy": "all_of"}])["in_flight"] == 0.9


def test_nothing_run_is_no_crash():
    """Each aim is missed, and what cannot be known is None."""
    empty = Evidence.of([])
    assert not any(one.yes for one in aims(empty))
    row = {**record("shed", 1), "ttft_p95_ms": None}
    assert Evidence.of([row]).mean("shed", Cell(*HERE), "ttft_p95_ms") is None


@pytest.mark.parametrize("broken", ["nothing", "no about", "cut off"])
def test_a_page_without_its_records_is_one_line(
    broken, good, tmp_path, monkeypatch, capsys
):
    """Exit 2, and nothing is rewritten."""
    lines = "".join(f"{json.dumps(row)}\n" for row in good[:500])
    data = gzip.compress(lines.encode())
    if broken != "nothing":
        whole = data if broken == "no about" else data[: len(data) // 2]
        (tmp_path / "final.jsonl.gz").write_bytes(whole)
    if broken != "no about":
        (tmp_path / page.ABOUT).write_text(json.dumps(ABOUT), encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    write = page.write
    monkeypatch.setattr(page, "write", lambda: write(tmp_path, tmp_path))
    monkeypatch.setattr(sys, "argv", ["sessions", "page"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_run_stands_in_the_records_once():
    """Else one of them was chosen by somebody."""
    with pytest.raises(EvidenceError, match="twice"):
        Evidence.of([record("shed", 1), record("shed", 1)])


def test_the_screen_is_not_judged():
    """It was for tuning."""
    assert not Evidence.of([{**record("shed", 1), "stage": "screen"}]).runs


# ------------------------------------------------------------------------------- page


def test_the_page_says_what_it_is(good, written):
    """Simulated first; what it cannot see last, and what was not run with it."""
    assert written.split("\n")[2].startswith("**SIMULATED**")
    assert written.rpartition("\n## ")[2].startswith("Cannot see")
    assert "What was not run" not in written
    without = (row for row in good if row["mix"] not in ("no_final", "burst"))
    last = page.text(Evidence.of(without), ABOUT).rpartition("\n## ")[2]
    assert "whose end nobody tells" in last
    assert "not run: Tasks that begin eight at a time; Without the end" in last


def test_no_table_is_wider_than_a_page(written):
    """Eight columns at most."""
    heads = re.findall(r"^\|(?:---\|)+$", written, re.MULTILINE)
    assert max(head.count("---") for head in heads) <= 8


def test_the_same_records_give_the_same_page_and_figures(good, tmp_path):
    """Byte for byte, from plain records, whatever stood in the page before."""
    made = []
    for place in ("one", "two"):
        folder = tmp_path / place
        folder.mkdir()
        lines = "".join(f"{json.dumps(row)}\n" for row in good)
        (folder / "final.jsonl").write_text(lines, encoding="utf-8")
        (folder / page.ABOUT).write_text(json.dumps(ABOUT), encoding="utf-8")
        page.write(folder, folder)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0] == made[1]
    shown = re.findall(r"\]\((sessions-\w+\.svg)\)", made[0]["sessions.md"].decode())
    assert {name for name in made[0] if name.endswith(".svg")} == set(shown)


def test_what_was_spent_is_counted_by_stage(tmp_path):
    """Tries too; the page says it in core-hours."""
    lines = [
        {"stages": ["try"], "runs": 6, "cpu_s": 3.5},
        {"stages": ["try"], "runs": 2, "cpu_s": 0.1},
        {"stages": ["final"], "runs": 1, "cpu_s": 3600.0},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "cpu.jsonl").write_text(text, encoding="utf-8")
    page.save(tmp_path)
    told = json.loads((tmp_path / page.ABOUT).read_text(encoding="utf-8"))
    assert told["spent"] == {"try": [8, 3.6], "final": [1, 3600.0]}
    assert told["machine"]["date"]


def test_the_committed_page_follows_from_the_committed_records():
    """Nobody edits it."""
    if not (page.RECORDS / "final.jsonl.gz").exists():
        pytest.skip("the final runs were not made yet: no records/final.jsonl.gz")
    told = json.loads((page.RECORDS / page.ABOUT).read_text(encoding="utf-8"))
    shown = (page.RESULTS / "sessions.md").read_text(encoding="utf-8")
    assert shown == page.text(Evidence.of(read()), told)
