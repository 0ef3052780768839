"""Which runs of a report are repeats of each other: the runs of one arm."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from admitperf.reports.comparison.arms import Arm, experiments
from admitperf.reports.pages import stated
from admitperf.reports.quantile import nearest_rank
from admitperf.reports.report import RunReport
from admitperf.reports.wording import number

FEWEST = 3
"""The survey's usual minimum: with fewer there is no spread to speak of."""


def repeated(runs: Iterable[RunReport]) -> tuple[tuple[str, Arm], ...]:
    """Each arm of two runs or more with its experiment's name, as they began.

    Grouping is declared: a run that names no experiment stands alone. Runs that note
    different loads repeat nothing of each other.
    """
    return tuple(
        (experiment.name, one)
        for experiment in experiments(runs)
        if experiment.name is not None
        for arm in experiment.arms
        for one in _by_load(arm)
        if len(one.runs) > 1
    )


def _by_load(arm: Arm) -> Iterator[Arm]:
    """The runs of an arm apart by the load they note, least first."""
    loads: dict[float | None, list[RunReport]] = {}
    for run in arm.runs:
        loads.setdefault(stated.positive(run, "load"), []).append(run)
    if len(loads) == 1:
        yield arm
        return
    for load in sorted(loads, key=lambda load: load or 0.0):
        label = arm.label if load is None else f"{arm.label} at {number(load)}x"
        yield replace(arm, label=label, runs=tuple(loads[load]))


def repeats(run: RunReport, runs: Iterable[RunReport]) -> tuple[RunReport, ...]:
    """The runs that repeat `run`, itself among them."""
    for _, arm in repeated(runs):
        if any(one is run for one in arm.runs):
            return arm.runs
    return (run,)


def middle_and_range(values: Sequence[float]) -> str:
    """`median 0.81, 0.78 to 0.84`; the median by nearest rank."""
    ordered = sorted(values)
    low, high = number(ordered[0]), number(ordered[-1])
    return f"median {number(nearest_rank(ordered, 0.5))}, {low} to {high}"
