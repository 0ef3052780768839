"""Outcome metrics by name, whoever wrote them: entry points of a group of their own.

A metric is a callable with a `name` and `better`, "higher" or "lower"; what it returns
stands in every summary of a benchmark under its name.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, cast

from admitperf.bench.callers.records import CallRecord
from admitperf.bench.callers.slo import Slo
from admitperf.core.errors import BadPlugin
from admitperf.core.notice import say
from admitperf.core.plugins import Plugins

GROUP = "admitperf.outcome_metrics"
"""The entry-point group: metric name to callable."""


class OutcomeMetric(Protocol):
    """A number of a run, made of what came of its scored calls."""

    @property
    def name(self) -> str:
        """Under which it stands in a summary."""
        ...

    @property
    def better(self) -> Literal["higher", "lower"]:
        """Which way is an improvement."""
        ...

    def __call__(self, records: Sequence[CallRecord], slo: Slo) -> float | None:
        """The number; None = it cannot be told from these calls."""
        ...


def installed() -> dict[str, OutcomeMetric]:
    """Every installed metric that can be used, by name, in alphabetical order.

    One that cannot be used is left out with a warning.

    Raises:
        BadPlugin: two distributions offer one name.
    """
    found = Plugins(GROUP, "outcome metric")
    usable = dict[str, OutcomeMetric]()
    for name in found:
        found.offer(name)  # a name offered twice is nobody's to choose
        try:
            usable[name] = _metric(found, name)
        except BadPlugin as fault:
            say(f"left out: {fault}")
    return usable


def _metric(found: Plugins, name: str) -> OutcomeMetric:
    made, where = found.loaded(name)
    if not callable(made):
        raise BadPlugin(f"{where} cannot be called")
    if getattr(made, "name", None) != name:
        raise BadPlugin(f"{where} calls itself {getattr(made, 'name', None)!r}")
    if getattr(made, "better", None) not in ("higher", "lower"):
        raise BadPlugin(f"{where}: better is neither 'higher' nor 'lower'")
    return cast("OutcomeMetric", made)
