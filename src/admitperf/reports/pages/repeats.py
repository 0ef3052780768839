"""Which runs of a report are repeats of each other: the runs of one arm."""

from collections.abc import Iterable, Sequence

from admitperf.reports.comparison.arms import Arm, experiments
from admitperf.reports.quantile import nearest_rank
from admitperf.reports.report import RunReport
from admitperf.reports.wording import number

FEWEST = 3
"""The survey's usual minimum: with fewer there is no spread to speak of."""


def repeated(runs: Iterable[RunReport]) -> tuple[tuple[str, Arm], ...]:
    """Each arm of two runs or more with its experiment's name, as they began.

    Grouping is declared: a run that names no experiment stands alone.
    """
    return tuple(
        (experiment.name, arm)
        for experiment in experiments(runs)
        if experiment.name is not None
        for arm in experiment.arms
        if len(arm.runs) > 1
    )


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
