"""The start-up check: is what a policy requires really there?"""

from collections.abc import Mapping

from admitperf.core.errors import MissingSignal
from admitperf.core.series import Series
from admitperf.core.signal import Signal
from admitperf.core.source import Source
from admitperf.core.window import Window


def missing(
    required: tuple[Signal, ...],
    raw: Mapping[str, object],
    sources: Mapping[Signal, tuple[Source, ...]],
    *,
    promised: bool,
) -> list[MissingSignal]:
    """One fault per required signal that a reading cannot supply.

    A windowed signal counts as supplied when its counters are there: they are moved
    on by one step to see.

    Args:
        promised: whether outcomes are reported, so that the ledger's signals are known.
    """
    series = Series(raw)
    moved = Series({key: _moved(value) for key, value in raw.items()})
    window = Window.between(series, moved, 1.0)
    faults: list[MissingSignal] = []
    for signal in required:
        first = sources.get(signal, ())
        if signal.find(series, window, first)[0] is not None:
            continue
        if signal.origin == "request" or (signal.origin == "ledger" and promised):
            continue
        faults.append(_fault(signal, series, first))
    return faults


def _fault(signal: Signal, series: Series, first: tuple[Source, ...]) -> MissingSignal:
    if signal.origin == "ledger":
        why = (
            "no outcome has been seen; construct the policy with reports_outcomes=True"
        )
        return MissingSignal(signal.name, why=why)
    tried = [source.name for source in (*first, *signal.sources)]
    return MissingSignal(signal.name, tried, series.nearest(signal.name))


def _moved(value: object) -> object:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value * 2 + 1 if plain else value  # type: ignore[operator]
