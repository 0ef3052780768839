"""One check of a benchmark, its answers, and the arms they are about."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from admitperf.bench.design.claims import Cell
from admitperf.bench.design.results import Experiment, Run
from admitperf.reports.pages.checks import NO, Answer

EVERY = ""
"""Stands for the arm in a row that is about all of them."""


@dataclass(frozen=True, slots=True)
class Guard:
    """One check of an experiment.

    Attributes:
        number: its place, from 1.
        name: what is asked, as the condition that should hold.
        answer: "ok", "no" or "cannot be asked".
        says: its numbers, in sentences.
        voids: the arms that may claim nothing because of it.
    """

    number: int
    name: str
    answer: Answer
    says: tuple[str, ...]
    voids: tuple[str, ...]


class Row(NamedTuple):
    """What one arm, one run or one block answers; no arm = all of them."""

    arm: str
    answer: Answer
    said: str


Ask = Callable[[Experiment], Iterable[Row]]
"""One check: what it found, arm by arm or run by run."""


def lacking(of: Experiment, *keys: str) -> Iterator[Row]:
    """Runs of ours, whole by their own word, without a key that each of ours has."""
    for run in of.runs:
        if run.manifest.get("complete") is True and "config" in run.manifest:
            for key in keys:
                if run.manifest.get(key) is None:
                    said = f"{run.name}: its manifest lacks {key}."
                    yield Row(run.arm, NO, said)


def others(of: Experiment) -> tuple[str, ...]:
    """The arms beside the baseline, as planned, then any that are there too."""
    names = dict.fromkeys([*of.design.arms, *(run.arm for run in of.runs)])
    return tuple(name for name in names if name != of.design.baseline)


def twins(of: Experiment) -> tuple[str, ...]:
    """The arms that are the baseline a second time: what they show is noise."""
    mark = _mark(of.of(of.design.baseline))
    return tuple(
        arm
        for arm in others(of)
        if arm == of.design.again or (mark and _mark(of.of(arm)) == mark)
    )


def identical(own: Sequence[Cell], of: Experiment) -> bool:
    """Whether a twin's simulated runs are the baseline's very runs.

    Virtual time repeats itself: from one seed the same policy makes the same numbers,
    and differences of exactly 0 show nothing of the noise.

    Args:
        own: the cells of the twin.
        of: where they are from.
    """
    same = all(cell.value == cell.baseline for cell in own)
    return bool(own) and of.simulated and same


def _mark(runs: Sequence[Run]) -> str:
    """What two arms share that are one policy on one engine; empty = not known."""
    names = ("policy", "parameters", "url")
    marks = {
        repr([run.manifest.get(name) or None for name in names])
        for run in runs
        if run.manifest.get("policy")
    }
    return marks.pop() if len(marks) == 1 else ""
