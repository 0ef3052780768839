"""The last check of a benchmark: its design is the one that was planned first.

Blocks added after a look at the numbers, loads or arms left out, a metric or margin
that was changed: each gives chance another try, and none can be seen in the runs that
are there.
"""

from collections.abc import Iterator

from admitperf.bench.design.design import Design
from admitperf.bench.design.guard import EVERY, Row
from admitperf.bench.design.results import PLANNED_FIRST, Experiment
from admitperf.reports.pages.checks import NO, NOT_ASKED, OK
from admitperf.reports.wording import plural, printable


def as_planned(of: Experiment) -> Iterator[Row]:
    """Holds what was planned before the first run against what is there now."""
    if PLANNED_FIRST not in of.stated:
        yield Row(
            EVERY, NOT_ASKED, "What was planned before the first run is not said."
        )
        return
    first = of.first
    if first is None:
        yield Row(EVERY, NO, "What was planned before the first run makes no sense.")
        return
    changed = [*_changed(first, of), *_unplanned(first, of)]
    yield from (Row(EVERY, NO, said) for said in changed)
    if not changed:
        yield Row(EVERY, OK, f"{_whole(first)}; on {of.declared}{_hash(of)}.")


def _changed(first: Design, of: Experiment) -> Iterator[str]:
    now = of.design
    for name, before, after in (
        ("Loads", _multiples(first), _multiples(now)),
        ("Blocks", f"{first.blocks}", f"{now.blocks}"),
        ("Arms", _arms(first), _arms(now)),
        ("The baseline", first.baseline, now.baseline),
        ("The metric", of.declared, of.metric),
        ("The margin", f"{first.margin:g}", f"{now.margin:g}"),
    ):
        if before != after:
            both = f"{before} planned first, {after} now"
            yield printable(f"{name} changed after the first run: {both}.")


def _unplanned(first: Design, of: Experiment) -> Iterator[str]:
    """Runs that are there though no cell of the first plan holds them."""
    arms, loads = set(first.arms), set(first.loads)
    cells_there = [*((run.arm, run.load, run.block) for run in of.runs), *of.beside]
    more = [
        (arm, load, block)
        for arm, load, block in cells_there
        if arm not in arms or load not in loads or not 1 <= block <= first.blocks
    ]
    for arm, load, block in more[:1]:
        name = f"{printable(arm)} x{load:g}-b{block}"
        yield f"{plural(len(more), 'run')} not planned first, {name} among them."


def _whole(first: Design) -> str:
    arms = plural(len(first.arms), "arm")
    return f"{_multiples(first)}; {plural(first.blocks, 'block')}; {arms}"


def _hash(of: Experiment) -> str:
    told = of.stated[PLANNED_FIRST].get("hash")
    return f"; hash {printable(str(told))}" if told else ""


def _multiples(design: Design) -> str:
    return ", ".join(f"{load:g}x" for load in sorted(set(design.loads)))


def _arms(design: Design) -> str:
    return ", ".join(sorted(set(design.arms)))
