"""Checks before numbers: what must hold before two arms may be compared.

The first five are the brief's and must be ok. The others are what else can be asked of
logs. One that fails makes the comparison void, but for the fourth: whether the arms
separate is what the verdict is about.
"""

from admitperf.reports.comparison.arms import Contest
from admitperf.reports.comparison.conditions import CONDITIONS
from admitperf.reports.comparison.design import FEWEST_ASKED, FEWEST_FLIPPED
from admitperf.reports.comparison.firing import fired
from admitperf.reports.comparison.guard import Answered, Guard, each, few
from admitperf.reports.comparison.same_load import same_load
from admitperf.reports.comparison.verdict import Paired
from admitperf.reports.pages.checks import MOST_LOST, NO, NOT_ASKED, OK
from admitperf.reports.pages.items import FEWEST_REPORTED
from admitperf.reports.report import RunReport
from admitperf.reports.runs.finding import MOST_BLIND
from admitperf.reports.wording import number, plural, share

_SEPARATE = 4


def guards(contest: Contest, paired: Paired) -> tuple[Guard, ...]:
    """All checks, in the order they are asked."""
    needed: tuple[tuple[str, Answered], ...] = (
        ("the policy fired in every repeat", fired(contest)),
        ("every run faced the same load", same_load(contest)),
        ("outcomes for at least 99 % of those let in", _outcomes(contest)),
        ("the arms separate", _separate(paired)),
        ("at most 0.1 % of records lost, at most 1 % blind", _instrument(contest)),
    )
    further = [(name, ask(contest)) for name, ask in CONDITIONS]
    return tuple(
        Guard(
            number=place,
            name=name,
            answer=answer,
            says=says,
            needed=place <= len(needed),
            voids=place != _SEPARATE,
        )
        for place, (name, (answer, says)) in enumerate([*needed, *further], start=1)
    )


def _outcomes(contest: Contest) -> Answered:
    rows = [(who, run.cost.reported) for who, run in each(contest)]
    short = [
        f"{who}: {share(part.n, part.of)}"
        for who, part in rows
        if part.n < FEWEST_REPORTED * part.of
    ]
    if short:
        return NO, few([f"{said} let in have an outcome." for said in short])
    n, of = sum(part.n for _, part in rows), sum(part.of for _, part in rows)
    return OK, (f"{share(n, of)} let in have one, at least 99 % in each run.",)


def _separate(paired: Paired) -> Answered:
    if paired.separate is None or paired.interval is None:
        n = plural(paired.n, "pair")
        return NOT_ASKED, (f"{n}: with fewer than {FEWEST_ASKED} it is not asked.",)
    interval = paired.interval
    zero = "does not hold 0" if interval.excludes_zero else "holds 0"
    told = f"The 95 % interval, {interval.low:+.3f} to {interval.high:+.3f}, {zero};"
    if paired.n < FEWEST_FLIPPED:
        ranges = "do not overlap" if paired.ranges_apart else "overlap"
        rest = f" the ranges {ranges}."
    else:
        kind = "sign-flip p" if paired.sign_flip_p is not None else "p of t"
        rest = f" {kind} {number(paired.p)}."
    return OK if paired.separate else NO, (told + rest,)


def _instrument(contest: Contest) -> Answered:
    faults: list[str] = []
    total_lost = total = blind = decided = 0
    for who, run in each(contest):
        lost, of = _lost(run)
        total_lost, total = total_lost + lost, total + of
        blind, decided = blind + run.faults.blind.n, decided + run.faults.blind.of
        if lost > MOST_LOST * of:
            faults.append(f"{who}: {share(lost, of)} records lost.")
        faults.extend(f"{who}: {one} ends early." for one in run.faults.ends_early)
        if run.faults.blind.n > MOST_BLIND * run.faults.blind.of:
            part = share(run.faults.blind.n, run.faults.blind.of)
            faults.append(f"{who}: {part} decisions made blind.")
    said = f"{share(total_lost, total)} records lost, {share(blind, decided)} blind."
    return (NO, few(faults)) if faults else (OK, (said,))


def _lost(run: RunReport) -> tuple[int, int]:
    """Lost records, of the decisions and outcomes there are and all that were lost."""
    lost = sum(run.faults.lost.values())
    kept = run.cost.offered + run.cost.reported.n + run.cost.without_decision
    return lost, kept + lost
