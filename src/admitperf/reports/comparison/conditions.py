"""What else can void a comparison, of what logs can be asked.

A log need not be able to answer these; what it answers must not be no.
"""

from collections.abc import Callable, Iterator
from functools import partial

from admitperf.reports.comparison import score
from admitperf.reports.comparison.arms import Arm, Contest
from admitperf.reports.comparison.guard import Answered, each, few, told, values
from admitperf.reports.pages import stated
from admitperf.reports.pages.checks import NO, NOT_ASKED, OK
from admitperf.reports.pages.items import MOST_OFF_LOAD
from admitperf.reports.report import RunReport
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.wording import number, percent, plural, printable, share

MOST_LATE_MS = 50.0
"""How late the latest hundredth may be sent: the example of the method's description.
Beyond it the generator offered another load than planned."""

FEWEST_KNOWN = 0.99
"""Of the decisions, how many must know each signal they compare: the method's own."""


def _one_slo(contest: Contest) -> Answered:
    slos = values(contest, lambda run: run.cost.slo or "none")
    units = values(contest, score.unit)
    if len(slos) > 1:
        return NO, (f"The SLOs differ: {told(slos)}.",)
    if len(units) > 1:
        said = f"Goodput would count different things: {told(units)}."
        return NO, (f"{said} Pass logical_id in both arms, or in neither.",)
    (slo,), (unit,) = slos, units
    if slo == "none":
        return OK, (f"No SLO is declared: ok alone counts, of {unit}.",)
    return OK, (f"{printable(slo)}, of {unit} offered.",)


def _one_warmup(contest: Contest) -> Answered:
    cuts = values(contest, lambda run: run.warmup.asked if run.warmup else "none")
    if len(cuts) > 1:
        return NO, (f"The warm-ups differ: {told(cuts)}.",)
    (cut,) = cuts
    if cut == "none":
        return OK, ("Nothing is left out in either arm.",)
    left = sum(run.warmup.left_out for _, run in each(contest) if run.warmup)
    kept = sum(run.warmup.kept for _, run in each(contest) if run.warmup)
    what = f"{share(left, left + kept)} decisions"
    return OK, (f"The first {cut} of each run are left out, in both arms: {what}.",)


def _one_load(contest: Contest) -> Answered:
    """A mean over loads answers no question: what helps at one can harm at another."""
    for name in ("load", "session_load"):
        loads = [*values(contest, partial(_noted, name))]
        if len(found := [load for load in loads if load]) > 1:
            experiment = contest.arm.runs[0].header.get("experiment")
            which = printable(str(experiment)) if experiment else "EXPERIMENT"
            return NO, (
                (
                    f"The runs are at several loads ({', '.join(sorted(found))}):"
                    f" `admitperf bench compare {which}` asks them apart."
                ),
            )
        if found:
            return OK, (f"All at {found[0]}x of capacity.",)
    return NOT_ASKED, ("No run notes its load.",)


def _same_cluster(contest: Contest) -> Answered:
    differ, same = [], []
    for name in _CONDITIONS:
        found = values(contest, partial(_noted, name))
        found.pop("", None)
        if len(found) > 1:
            differ.append(f"{name} differs: {told(found)}.")
        elif found:
            same.append(name)
    if differ:
        return NO, few(differ)
    if not same:
        return NOT_ASKED, ("No run notes its model, engine, hardware or workload.",)
    return OK, (f"Noted and the same: {', '.join(same)}.",)


_CONDITIONS = (
    "model",
    "engine",
    "engine_version",
    "hardware",
    "workload",
    "client",
    "capacity_per_s",
    "ignore_eos",
    "slo_from",
    "simulated",
    "oracle",
)


def _noted(name: str, run: RunReport) -> str:
    value = stated.notes(run).get(name)
    return "" if value is None else printable(str(value))


def _all_paired(contest: Contest) -> Answered:
    n, by = plural(len(contest.pairs), "pair"), contest.paired_by
    if contest.unpaired:
        why = f"Repeat it in every arm, or leave it out of every arm. {n} by {by}."
        return NO, (*(f"{said}." for said in few(contest.unpaired)), why)
    names = ", ".join(pair.name for pair in contest.pairs)
    order = " of their beginning: the runs share no names" if by == "order" else ""
    return OK, (f"{n}, by {by}{order}: {names}.",)


def _no_copies(contest: Contest) -> Answered:
    copies = [said for arm in contest.sides for said in _copies(arm)]
    copies += _in_both(contest)
    if copies:
        return NO, (*few(copies), "A copy is no repeat: it shows no spread.")
    return OK, ("No two runs of an arm have the same numbers throughout.",)


def _copies(arm: Arm) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name, run in zip(arm.names, arm.runs, strict=True):
        mark = _mark(run)
        if mark in seen and run.span_s:
            yield f"{arm.label}: {name} has the numbers of {seen[mark]}."
        seen.setdefault(mark, name)


def _mark(run: RunReport) -> str:
    """What no two honest runs share throughout."""
    paid = run.cost
    said = (paid.offered, paid.goodput, paid.ttft_ms, run.span_s, run.answers.rows)
    return repr(said)


def _in_both(contest: Contest) -> list[str]:
    """Runs that stand in both arms, by their ids."""
    ours = {(run.ids, _mark(run)) for run in contest.arm.runs}
    return [
        f"{name} of {contest.baseline.label} stands in both arms."
        for name, run in zip(contest.baseline.names, contest.baseline.runs, strict=True)
        if (run.ids, _mark(run)) in ours
    ]


def _on_time(contest: Contest) -> Answered:
    rows = [(who, run) for who, run in each(contest) if run.load.late_ms.n]
    if not rows:
        return NOT_ASKED, ("No run carries late_ms, which load generators know.",)
    late = [
        f"{who}: the latest hundredth was sent {number(_latest(run))} ms late or more"
        f" (n {run.load.late_ms.n}); {MOST_LATE_MS:g} ms is the bound."
        for who, run in rows
        if _latest(run) > MOST_LATE_MS
    ]
    if late:
        return NO, few(late)
    worst = max(_latest(run) for _, run in rows)
    return OK, (f"p99 of how late they were sent: at most {number(worst)} ms.",)


def _latest(run: RunReport) -> float:
    """p99 of lateness; by nearest rank the maximum where there are few."""
    late = run.load.late_ms
    return (late.high if late.p99 is None else late.p99) or 0.0


def _as_stated(contest: Contest) -> Answered:
    rows = [row for who, run in each(contest) for row in _multiple(who, run)]
    if not rows:
        return NOT_ASKED, ("No run notes load and capacity_per_s.",)
    off = [said for near, _, said in rows if not near]
    if off:
        return NO, few(off)
    found = [multiple for _, multiple, _ in rows]
    runs, both = plural(len(rows), "run"), f"{min(found):.2f}x to {max(found):.2f}x"
    return OK, (f"{both} in {runs}, each near what it states.",)


def _multiple(who: str, run: RunReport) -> Iterator[tuple[bool, float, str]]:
    """Whether it is near the stated one, the measured one, and both in words."""
    load, capacity = (stated.positive(run, name) for name in ("load", "capacity_per_s"))
    rate, reached = run.load.rate_per_s, stated.positive(run, "load_reached")
    if reached is not None and capacity is not None:
        rate = reached * capacity  # of the plan, in the unit of the capacity
    if load is None or capacity is None or rate is None:
        return
    # A Poisson plan of n requests misses its own rate by 1/sqrt(n), and two of those
    # are no fault.
    n = score.offered(run) if run.planned is None else run.planned.sessions.of
    tolerance = max(MOST_OFF_LOAD, 2 / max(n, 1) ** 0.5)
    found = rate / capacity
    near = abs(found - load) <= tolerance * load
    yield near, found, f"{who}: {found:.2f}x of capacity, stated {number(load)}x."


def _known(contest: Contest) -> Answered:
    rows = [
        (who, gate_text(gate), gate.unknown, run.answers.offered)
        for who, run in each(contest)
        for gate in run.gates
    ]
    if not rows:
        return NOT_ASKED, ("No comparison was recorded.",)
    unknown = [
        f"{who}: {gate} could not be evaluated on {share(n, of)}."
        for who, gate, n, of in rows
        if n > (1 - FEWEST_KNOWN) * of
    ]
    if unknown:
        return NO, few(unknown)
    worst = max(rows, key=lambda row: row[2] / max(row[3], 1))
    return OK, (f"Unknown on at most {percent(worst[2], worst[3])} of a run.",)


CONDITIONS: tuple[tuple[str, Callable[[Contest], Answered]], ...] = (
    ("every repeat has its partner", _all_paired),
    ("repeats are no copies", _no_copies),
    ("one SLO, one unit of counting", _one_slo),
    ("one warm-up", _one_warmup),
    ("the noted conditions are the same", _same_cluster),
    ("requests were sent when they were due", _on_time),
    ("the rate is the stated multiple of capacity", _as_stated),
    ("the signals it compares were known on 99 %", _known),
    ("one multiple of capacity", _one_load),
)
"""What is asked, in order."""
