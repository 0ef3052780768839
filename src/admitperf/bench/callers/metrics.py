"""Outcome metrics by name, whoever wrote them: entry points of a group of their own.

A metric is a callable with a `name` and `better`, "higher" or "lower"; what it returns
stands in every summary of a benchmark under its name.
"""

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, Protocol, cast

from admitperf.bench.callers.records import CallRecord
from admitperf.bench.callers.slo import Slo
from admitperf.core.errors import BadPlugin
from admitperf.core.notice import say

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
    found, usable = _offers(), dict[str, OutcomeMetric]()
    for name in sorted(found):
        offer = _only(name, found[name])
        try:
            usable[name] = _loaded(offer)
        except BadPlugin as fault:
            say(f"left out: {fault}")
    return usable


def _offers() -> dict[str, list[EntryPoint]]:
    offers = dict[str, list[EntryPoint]]()
    for offer in entry_points(group=GROUP):
        offers.setdefault(offer.name, []).append(offer)
    return offers


def _only(name: str, found: Sequence[EntryPoint]) -> EntryPoint:
    if len({(_distribution(offer), offer.value) for offer in found}) > 1:
        told = ", ".join(f"{_distribution(offer)} ({offer.value})" for offer in found)
        raise BadPlugin(f"outcome metric {name!r} is offered more than once: {told}")
    return found[0]


def _loaded(offer: EntryPoint) -> OutcomeMetric:
    where = f"outcome metric {offer.name!r} of distribution {_distribution(offer)}"
    try:
        made: object = offer.load()
    except Exception as error:  # whatever a package does when it is imported
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadPlugin(f"{where} cannot be imported: {told}") from error
    if not callable(made):
        raise BadPlugin(f"{where}: {offer.value} cannot be called")
    if getattr(made, "name", None) != offer.name:
        calls = getattr(made, "name", None)
        raise BadPlugin(f"{where}: {offer.value} calls itself {calls!r}")
    if getattr(made, "better", None) not in ("higher", "lower"):
        raise BadPlugin(f"{where}: better is neither 'higher' nor 'lower'")
    return cast("OutcomeMetric", made)


def _distribution(offer: EntryPoint) -> str:
    return offer.dist.name if offer.dist is not None else "(unknown)"
