"""The tables of the page, eight columns at most."""

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.sessions.arms import METRICS
from benchmarks.sessions.cells import LOAD, Cell
from benchmarks.sessions.controls import Memoryless
from benchmarks.sessions.evidence import (
    ARMS,
    ENGINES,
    MODES,
    SHIFTED,
    Evidence,
    Row,
    held,
    mean_of,
    middle_of,
    one_set,
    part,
    per_task,
    sets,
)
from benchmarks.sessions.judged import (
    ABOVE,
    Answer,
    Gain,
    cell_by_cell,
    difference,
    gain,
    place_of,
    ranked,
    three,
)

from admitperf.policies.session_aimd import SessionAimd
from admitperf.policies.session_ledger import SessionLedger

LIVE = ("protect", "shed", "aimd", "aimd_shed")
GATED = ("gate_one:count", "gate_one:work", "gate_elephant:count", "gate_elephant:work")
CAPPED = ("cap_elephant:count", "cap_elephant:work", "thunder:count", "thunder:work")
"""Arms whose gates' liveness is shown."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, and an empty line behind it; nothing without rows."""
    made = [f"| {' | '.join(row)} |" for row in rows]
    if made:
        yield f"| {' | '.join(head)} |"
        yield f"|{'---|' * len(head)}"
        yield from made
        yield ""


def code(name: str) -> str:
    """A name as code."""
    return f"`{name}`"


def p(value: float | None) -> str:
    """A p."""
    if value is None:
        return "--"
    return "<0.001" if value < 0.001 else three(value)


# ------------------------------------------------------------------------ answers


def answered(answers: Sequence[Answer]) -> Iterator[str]:
    """The aims, met or missed."""
    rows = []
    for one in answers:
        first = [one.name, _met(one.yes)]
        for holds, said in zip(one.parts, one.says, strict=True):
            rows.append([*first, _met(holds), said])
            first = ["", ""]
    yield from table(["aim", "", "part", "numbers"], rows)


def _met(yes: bool) -> str:  # noqa: FBT001  the only thing it says
    return "met" if yes else "MISSED"


def claimed(gains: Sequence[Gain]) -> Iterator[str]:
    """Every gain of the family."""
    head = ["gain of", "over", "at", "difference", "p, Holm", "p, flips", "MDE", ""]
    yield from table(head, map(_claim, gains))


def _claim(one: Gain) -> list[str]:
    at = ", ".join(f"{load:g}x" for load in one.loads)
    found = one.paired
    return [
        f"`{one.arm}`, {one.metric}",
        code(one.other),
        f"{at} ({one.cells} cells)",
        difference(found),
        p(found.family_p) if found else "--",
        p(found.sign_flip_p) if found else "--",
        three(found.smallest_effect) if found else "--",
        "holds" if one.holds else "not shown",
    ]


def beside(evidence: Evidence) -> Iterator[str]:
    """Both modes against every arm at 1.2x and more, on the mode's metric."""
    rows = []
    for arm in ARMS:
        made = {mode: gain(evidence, mode, arm, ABOVE) for mode in MODES if mode != arm}
        told = (difference(made[m].paired) if m in made else "" for m in MODES)
        rows.append([code(arm), *told])
    yield from table(["over", *_modes()], rows)


def _modes() -> list[str]:
    return [f"`{mode}`, {metric}" for mode, metric in MODES.items()]


def by_cell(evidence: Evidence) -> Iterator[str]:
    """Both modes against the gate with one parameter set, cell by cell."""
    found = {mode: cell_by_cell(evidence, mode) for mode in MODES}
    rows = (
        [place_of(cell), *(difference(found[mode][cell]) for mode in MODES)]
        for cell in evidence.grid()
    )
    yield from table(["cell", *_modes()], rows)


# ------------------------------------------------------------------------- regret


def regret(evidence: Evidence, cells: Sequence[Cell], metric: str) -> Iterator[str]:
    """The arms with one parameter set, by their worst cell."""
    rows = (
        [code(one.arm), three(one.worst), three(one.mean), place_of(one.where)]
        for one in ranked(evidence, metric, cells)
    )
    yield from table(["arm", "worst cell", "mean", "where it is worst"], rows)


# -------------------------------------------------------------------------- cells


def goodput(evidence: Evidence, metric: str) -> Iterator[str]:
    """Every arm at 1.5x, by engine and client."""
    cells = evidence.grid((LOAD,))
    head = [f"{cell.engine}, {cell.client}" for cell in cells]
    rows = (
        [code(arm), *(three(evidence.mean(arm, cell, metric)) for cell in cells)]
        for arm in shown(evidence, cells)
    )
    yield from table(["arm", *head], rows)


def engine(evidence: Evidence, name: str) -> Iterator[str]:
    """What the arms did on an engine at 1.5x, over both clients."""
    cells = [cell for cell in evidence.grid((LOAD,)) if cell.engine == name]
    head = [
        "arm",
        "wasted",
        "short",
        "long",
        "TTFT p95 s",
        "refusals",
        "killed",
        "Jain",
    ]
    rows = (_did(arm, evidence.of_arm(arm, cells)) for arm in shown(evidence, cells))
    yield from table(head, rows)


def _did(arm: str, rows: Sequence[Row]) -> list[str]:
    ttft_ms = middle_of(rows, "ttft_p95_ms")
    return [
        code(arm),
        three(mean_of(rows, "wasted_share")),
        three(part(rows, "short")),
        three(part(rows, "long")),
        three(None if ttft_ms is None else ttft_ms / 1000),
        three(per_task(rows, "refusals")),
        three(per_task(rows, "killed")),
        three(mean_of(rows, "jain")),
    ]


def shown(evidence: Evidence, cells: Sequence[Cell]) -> list[str]:
    """Every arm that ran in one of these cells, the protocol's first, in its order."""
    first = [name for arm in ARMS for name in (arm, f"{arm}:count", f"{arm}:work")]
    every = {arm for cell in cells for arm in evidence.runs[cell]}
    return [
        *(arm for arm in first if arm in every),
        *sorted(every.difference(first)),
    ]


def situation(evidence: Evidence, cells: Sequence[Cell]) -> Iterator[str]:
    """Every arm on both metrics, a column each engine: over whatever clients ran."""
    names = [one for one in ENGINES if any(cell.engine == one for cell in cells)]
    columns = [(metric, one) for metric in METRICS for one in names]
    rows = (
        [code(arm), *(_of(evidence, arm, cells, *column) for column in columns)]
        for arm in shown(evidence, cells)
    )
    yield from table(["arm", *(f"{m}, {one}" for m, one in columns)], rows)


def _of(
    evidence: Evidence, arm: str, cells: Sequence[Cell], metric: str, name: str
) -> str:
    own = [cell for cell in cells if cell.engine == name]
    return three(evidence.over(arm, own, metric))


def shift(evidence: Evidence, metric: str) -> Iterator[str]:
    """Every arm on the other mixes, over whatever clients ran; `final` beside them."""
    cells = evidence.shift()
    mixes = [mix for mix in SHIFTED if any(cell.mix == mix for cell in cells)]
    sames = {(cell.client, cell.load) for cell in cells}
    here = [Cell("final", "kv", *one) for one in sorted(sames)]
    here = [cell for cell in here if cell in evidence.runs]
    rows = []
    for arm in shown(evidence, cells):
        groups = [here, *([c for c in cells if c.mix == mix] for mix in mixes)]
        rows.append(
            [code(arm), *(three(evidence.over(arm, g, metric)) for g in groups)]
        )
    yield from table(["arm", "unchanged", *mixes], rows)


# ----------------------------------------------------------------- what stands beside


def liveness(evidence: Evidence) -> Iterator[str]:
    """In what share of decisions each gate held, by engine, over the main cells."""
    rows = []
    for arm in (*LIVE, *GATED, *CAPPED):
        by_engine = [held(evidence.of_arm(arm, _cells(evidence, e))) for e in ENGINES]
        gates = sorted({gate for own in by_engine for gate in own})
        rows += [
            [code(arm), code(gate), *(three(own.get(gate)) for own in by_engine)]
            for gate in gates
        ]
    yield from table(["arm", "gate", *ENGINES], rows)


def _cells(evidence: Evidence, name: str) -> list[Cell]:
    return [cell for cell in evidence.grid() if cell.engine == name]


def refused(evidence: Evidence) -> Iterator[str]:
    """Why the arms of whole tasks refused, for each task offered."""
    rows = []
    for arm in LIVE:
        by_engine = [_reasons(evidence, arm, engine) for engine in ENGINES]
        for reason in sorted({r for own in by_engine for row in own for r in row}):
            if reason != "offered":
                shares = (three(per_task(own, reason)) for own in by_engine)
                rows.append([code(arm), code(reason), *shares])
    yield from table(["arm", "reason", *ENGINES], rows)


def _reasons(evidence: Evidence, arm: str, name: str) -> list[Row]:
    """How often each reason was given, run by run."""
    runs = evidence.of_arm(arm, _cells(evidence, name))
    return [{**row["refused"], "offered": row["offered"]} for row in runs]


def findings(evidence: Evidence) -> Iterator[str]:
    """Arms whose runs were not all alive."""
    for arm in shown(evidence, evidence.grid()):
        rows = evidence.of_arm(arm, evidence.grid())
        inert = sum(row["finding"] == "INERT" for row in rows)
        if inert:
            yield f"- `{arm}` is INERT in {inert} of {len(rows)} runs."


def cost(evidence: Evidence) -> Iterator[str]:
    """What a decision takes: the middle run at 1.5x."""
    cells = evidence.grid((LOAD,))
    rows = []
    for arm in shown(evidence, cells):
        told = [row["decide_us"] for row in evidence.of_arm(arm, cells)]
        known = [{"p50": a, "p99": b} for a, b in filter(None, told)]
        middles = (middle_of(known, key) for key in ("p50", "p99"))
        rows.append([code(arm), *map(three, middles)])
    yield from table(["arm", "p50 us", "p99 us"], rows)


OWN = (SessionLedger, SessionAimd, Memoryless)
LATER = ("longest_wait_s",)
"""Parameters that did not exist when the runs were made: it was the constant 10."""

AT_FREEZE = {"in_flight": 8}
"""Defaults that were others then."""


def effective(row: Row) -> Row:
    """A run with its policy's defaults beside what was given."""
    for policy in OWN:
        if policy.name == row["policy"]:
            every = policy.declared().items()
            kept = {
                name: AT_FREEZE.get(name, one.default)
                for name, one in every
                if name not in LATER
            }
            return {**row, "parameters": {**kept, **row["parameters"]}}
    return row


def frozen(evidence: Evidence) -> Iterator[str]:
    """The parameter set of each arm that has one."""
    rows = []
    for arm in shown(evidence, list(evidence.runs)):
        if one_set(arm):
            of_arm = evidence.of_arm(arm, evidence.runs)
            own = map(effective, of_arm)
            rows.append([code(arm), "; ".join(map(code, sets(own)))])
    yield from table(["arm", "policy and parameters"], rows)


def by_the_cell(evidence: Evidence) -> Iterator[str]:
    """What the gate that is tuned per cell is in each."""
    arms = [evidence.named("gate_cell", metric) for metric in METRICS]
    rows = (
        [
            place_of(cell),
            *("; ".join(sets(evidence.of_arm(arm, [cell]))) or "--" for arm in arms),
        ]
        for cell in evidence.grid()
    )
    yield from table(["cell", *METRICS], rows)


ESTIMATED = "(estimated)"
"""In the name of a stage whose time nobody counted."""


def counted(about: Row) -> tuple[int, float]:
    """Runs and processor seconds of all stages, without what is estimated."""
    some = [one for stage, one in about["spent"].items() if ESTIMATED not in stage]
    return sum(runs for runs, _ in some), sum(cpu_s for _, cpu_s in some)


def spent(about: Row) -> Iterator[str]:
    """Runs and processor time, by stage."""
    rows = [(stage, *one) for stage, one in about["spent"].items()]
    rows.append(("all that was counted", *counted(about)))
    told = ([stage, str(runs), three(cpu_s / 3600)] for stage, runs, cpu_s in rows)
    yield from table(["stage", "runs", "core-hours"], told)
