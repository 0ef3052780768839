"""Whether a run's numbers follow from its lines, and its refusals count.

A summary can be edited, lines can go missing, and a policy can clear its own way by
refusing where nobody scores: what was refused in the warm-up leaves an empty queue.
"""

from collections.abc import Iterator, Sequence
from math import isclose

from admitperf.bench.design.guard import Row, others, twins
from admitperf.bench.design.results import Experiment, Run, number_at
from admitperf.reports.pages.checks import NO, NOT_ASKED, OK
from admitperf.reports.wording import percent, printable

FEWEST_DECISIONS = 0.99
"""Of the attempts a summary counts, how many have their decision in the log: the bound
that outcomes have."""

OUTSIDE_TIMES, OUTSIDE_MORE = 1.5, 0.05
"""The share refused outside the window may be so many times that inside, and so much
more. Plain choices: sessions under way at the start, and those of the end, meet another
load than those that are scored."""


OUTSIDE_LEAST = 0.05
"""Attempts outside, as a share of those inside, below which nothing follows from them:
so few clear no way. Plain choice."""


def follows(of: Experiment) -> Iterator[Row]:
    """Each summary against the lines beside it, as the report counts them."""
    for run in of.runs:
        if run.log is None or number_at(run.summary, "good") is None:
            yield Row(run.arm, NOT_ASKED, f"{run.name}: no lines, or nothing counted.")
            continue
        wrong = list(_wrong(run))
        yield from (Row(run.arm, NO, f"{run.name}: {said}.") for said in wrong)
        if not wrong:
            said = "Offered, good and attempts are those of the lines, in every run."
            yield Row(run.arm, OK, said)


def _wrong(run: Run) -> Iterator[str]:
    plan = run.log.planned if run.log else None
    if plan is None:
        yield "the lines of its calls are gone"
        return
    for name, counted in (("offered", plan.offered), ("good", plan.goodput.n)):
        stated = number_at(run.summary, name)
        if stated != counted:
            told = "nothing" if stated is None else f"{stated:g}"
            yield f"its summary says {told} {name}, its lines {counted}"
    offered, good = plan.offered, plan.goodput.n
    goodput = number_at(run.summary, "goodput")
    if offered and (goodput is None or not isclose(goodput, good / offered)):
        yield "the goodput of its summary is not that of its lines"
    yield from _without_decision(run)


def _without_decision(run: Run) -> Iterator[str]:
    counts = [
        number_at(run.summary, *names) for names in (("attempts",), _OUTSIDE_ATTEMPTS)
    ]
    decided = run.log.answers.offered if run.log else 0
    attempts = sum(count for count in counts if count is not None)
    if None not in counts and decided < FEWEST_DECISIONS * attempts:
        yield f"its log holds {decided} decisions on {attempts:g} attempts"


_OUTSIDE_ATTEMPTS = ("outside", "attempts")


def inside(of: Experiment) -> Iterator[Row]:
    """What an arm refused above capacity, in the window and outside of it."""
    for arm in others(of):
        runs = [run for run in of.of(arm) if run.load > 1]
        if arm in twins(of) or not runs:
            continue
        yield _inside(arm, runs)


def _inside(arm: str, runs: Sequence[Run]) -> Row:
    within, without = _refused(runs), _refused(runs, "outside")
    who = printable(arm)
    if within is None or without is None:
        return Row(arm, NOT_ASKED, f"{who}: what was refused outside is not said.")
    told = (
        f"{who} refused {percent(*within)} of attempts in the window and"
        f" {percent(*without)} outside"
    )
    share_in, share_out = (n / of if of else 0.0 for n, of in (within, without))
    enough = without[1] >= OUTSIDE_LEAST * within[1]
    if enough and share_out > OUTSIDE_TIMES * share_in + OUTSIDE_MORE:
        why = "what it refuses where nobody scores clears its way"
        return Row(arm, NO, f"{told}: {why}.")
    return Row(arm, OK, f"{told}.")


def _refused(runs: Sequence[Run], *where: str) -> tuple[int, int] | None:
    """Refusals and attempts; None = a run does not say."""
    counts = [
        [number_at(run.summary, *where, name) for run in runs]
        for name in ("refusals", "attempts")
    ]
    known = [[one for one in some if one is not None] for some in counts]
    if any(len(some) < len(runs) for some in known):
        return None
    refusals, attempts = (round(sum(some)) for some in known)
    return refusals, attempts
