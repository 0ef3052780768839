"""What arms may be compared by, which way it improves, and what a margin of it is."""

from collections.abc import Mapping
from math import floor, log10
from typing import Literal, NamedTuple

Better = Literal["higher", "lower"]


class Measure(NamedTuple):
    """How a metric is judged.

    Attributes:
        better: which way is an improvement.
        share: whether it is a share, from 0 to 1, so that a margin is a difference of
            shares. Of any other metric a margin is a fraction of the baseline's mean:
            0.01 of a cost means something else in every currency.
    """

    better: Better
    share: bool


METRICS: Mapping[str, Measure] = {
    "goodput": Measure("higher", share=True),
    "session_goodput": Measure("higher", share=True),
    "session_completed": Measure("higher", share=True),
    "work_goodput": Measure("higher", share=True),
    "session_work_goodput": Measure("higher", share=True),
    "wasted_share": Measure("lower", share=True),
    "jain": Measure("higher", share=False),
    "attempts_per_call": Measure("lower", share=False),
    "cost_per_good": Measure("lower", share=False),
}
"""What arms may be compared by; installed metrics besides, which are no shares. What
was refused is none: refusing is no merit."""


def is_share(metric: str) -> bool:
    """Whether a metric is a share; one that is not known here is none."""
    return metric in METRICS and METRICS[metric].share


def words(metric: str) -> str:
    """A metric's name as sentences have it."""
    return metric.replace("_", " ")


def signed(value: float, margin: float) -> str:
    """A difference with as many places as show its margin, three at least."""
    places = 3 if margin <= 0 else max(3, 1 - floor(log10(margin)))
    return f"{value:+.{places}f}"


def margin_told(margin: float, metric: str) -> str:
    """`0.01`, or `1 % of the baseline's mean` of what is no share."""
    if is_share(metric):
        return f"{margin:g}"
    return f"{100 * margin:g} % of the baseline's mean"
