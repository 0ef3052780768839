"""The start-up check: is what a policy requires really there?"""

from collections.abc import Mapping

from admitperf.core.errors import MissingSignal
from admitperf.core.series import Series
from admitperf.core.signal import Signal
from admitperf.core.source import Source
from admitperf.core.window import Window


def check(
    required: tuple[Signal, ...],
    raw: Mapping[str, object],
    sources: Mapping[Signal, tuple[Source, ...]],
    *,
    promised: bool,
) -> None:
    """Whether a reading supplies every required signal.

    A windowed signal counts as supplied when its counters are there: they are moved
    on by one step to see.

    Args:
        promised: whether outcomes are reported, so that the ledger's signals are known.

    Raises:
        MissingSignal: for the first one it does not, naming the others.
    """
    series = Series(raw)
    moved = Series({key: _moved(value) for key, value in raw.items()})
    window = Window.between(series, moved, 1.0)
    known = {"request"} | ({"ledger"} if promised else set())
    absent = [
        signal
        for signal in required
        if signal.origin not in known
        and signal.find(series, window, sources.get(signal, ()))[0] is None
    ]
    if absent:
        also = [signal.name for signal in absent[1:]]
        raise _fault(absent[0], series, sources.get(absent[0], ()), also)


def _fault(
    signal: Signal, series: Series, first: tuple[Source, ...], also: list[str]
) -> MissingSignal:
    if signal.origin == "ledger":
        why = (
            "no outcome has been seen; construct the policy with reports_outcomes=True"
        )
        return MissingSignal(signal.name, why=why, also=also)
    tried = [source.name for source in (*first, *signal.sources)]
    return MissingSignal(signal.name, tried, series.nearest(signal.name), also=also)


def _moved(value: object) -> object:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value * 2 + 1 if plain else value  # type: ignore[operator]
