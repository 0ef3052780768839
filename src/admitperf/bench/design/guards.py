"""Checks before numbers: what must hold before an arm of a benchmark may claim.

Each is answered ok, no, or that it cannot be asked. A "no" voids the arms it is about,
and all of them when it is about the baseline: no claim is made. The first three must be
ok; the others must not be no.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from admitperf.bench.design.claims import Cell, pooled
from admitperf.bench.design.conditions import CONDITIONS
from admitperf.bench.design.evidence import follows, inside
from admitperf.bench.design.firing import fired
from admitperf.bench.design.guard import (
    EVERY,
    Ask,
    Guard,
    Row,
    identical,
    lacking,
    others,
    twins,
)
from admitperf.bench.design.planned import as_planned
from admitperf.bench.design.results import Experiment
from admitperf.reports.comparison.guard import few
from admitperf.reports.pages.checks import NO, NOT_ASKED, OK, Answer
from admitperf.reports.wording import plural, printable, share

_MUST_BE_OK = 3


def guards(
    experiment: Experiment, cells: Sequence[Cell], *, is_share: bool = True
) -> tuple[Guard, ...]:
    """All checks, in the order they are asked.

    Args:
        experiment: with logs.
        cells: of every arm, for the A/A pair.
        is_share: whether their metric is a share.
    """
    asked: tuple[tuple[str, Ask], ...] = (
        ("every planned run is there", _whole),
        ("one plan in each block", _one_plan),
        ("the policy fired above capacity", fired),
        *CONDITIONS,
        (
            "an A/A pair shows noise alone",
            partial(_noise_alone, cells, is_share=is_share),
        ),
        ("the design is the one that was planned first", as_planned),
        ("the numbers follow from the lines", follows),
        ("what it refused counts", inside),
    )
    return tuple(
        _guard(place, name, list(ask(experiment)), experiment)
        for place, (name, ask) in enumerate(asked, start=1)
    )


def _guard(place: int, name: str, rows: Sequence[Row], of: Experiment) -> Guard:
    answers = {row.answer for row in rows}
    needed = place <= _MUST_BE_OK
    worst: Answer = OK
    if NO in answers:
        worst = NO
    elif not rows or answers == {NOT_ASKED} or (needed and NOT_ASKED in answers):
        worst = NOT_ASKED
    hit = [row for row in rows if row.answer == worst]
    bad = (NO, NOT_ASKED) if needed else (NO,)
    voids = {row.arm for row in rows if row.answer in bad}
    return Guard(
        number=place,
        name=name,
        answer=worst,
        says=few(dict.fromkeys(row.said for row in hit)) or ("No run says.",),
        voids=_voided(voids, of),
    )


def _voided(named: set[str], of: Experiment) -> tuple[str, ...]:
    arms = others(of)
    if {EVERY, of.design.baseline} & named:
        return arms
    return tuple(arm for arm in arms if arm in named)


def _whole(of: Experiment) -> Iterator[Row]:
    there = {(run.arm, run.load, run.block) for run in of.runs}
    for arm in (of.design.baseline, *others(of)):
        missing = [
            f"x{load:g}-b{block}"
            for load, block in of.design.cells()
            if (arm, load, block) not in there
        ]
        n = len(of.design.loads) * of.design.blocks
        if missing:
            said = f"{printable(arm)}: {share(len(missing), n)} runs are missing"
            why = "the number of blocks was fixed before anyone looked"
            yield Row(arm, NO, f"{said}, {missing[0]} among them: {why}.")
        else:
            yield Row(arm, OK, f"{plural(n, 'run')} of each arm.")


def _one_plan(of: Experiment) -> Iterator[Row]:
    yield from lacking(of, "plan")
    plans = {(run.load, run.block): run for run in of.of(of.design.baseline)}
    for run in of.runs:
        base = plans.get((run.load, run.block))
        if base is None or run is base:
            continue
        ours, theirs = (one.manifest.get("plan") for one in (run, base))
        if not ours or not theirs:
            yield Row(run.arm, NOT_ASKED, f"{run.name}: no plan hash.")
        elif ours != theirs:
            both = printable(f"{ours} and {theirs}")
            yield Row(run.arm, NO, f"{run.name}: the plans differ: {both}.")
        else:
            n = len(plans)
            yield Row(run.arm, OK, f"{plural(n, 'plan')}, each met by every arm.")


def _noise_alone(
    cells: Sequence[Cell], of: Experiment, *, is_share: bool
) -> Iterator[Row]:
    for arm in twins(of):
        own = [one for one in cells if one.arm == arm]
        if identical(own, of):
            said = "identical by construction: it shows no noise"
            yield Row(EVERY, NOT_ASKED, f"{printable(arm)} is simulated, {said}.")
            continue
        met = pooled(own, of.design.margin, share=is_share)
        if met is None or met.statistics.interval is None:
            continue
        found, interval = met.statistics, met.statistics.interval
        told = (
            f"{found.mean or 0.0:+.3f}, 95 % interval {interval.low:+.3f} to"
            f" {interval.high:+.3f}"
        )
        who = f"{printable(arm)}, the same policy again"
        if found.word in ("better", "worse"):
            yield Row(EVERY, NO, f"{who}, is {found.word}: {told}.")
        else:
            yield Row(EVERY, OK, f"{who}: {told}.")
