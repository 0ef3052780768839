"""Several pages as one reading: each replica read by itself, then combined.

Merged series carry a last label, `replica`. A signal is read off each replica's own
series, since replicas may be of different engines and releases and restart by
themselves; then counts are summed, fractions take the largest, and what is a mean is
one over engines, as on a single page.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from admitperf.core.found import Found
from admitperf.core.series import REPLICA_LABEL, Series
from admitperf.core.signal import Signal
from admitperf.core.signals import ENGINE, PREFIX_HIT_RATE
from admitperf.core.source import Formula, Source
from admitperf.core.window import Window
from admitperf.engines import epp
from admitperf.engines.catalogue import ENGINES
from admitperf.engines.engine import HitCounters
from admitperf.engines.formulas import rise, summed

_MARK = f'{REPLICA_LABEL}="'
_OWN_LABEL = "exported_replica"  # as Prometheus renames a label it needs for itself
_KEPT = 32
"""Pages and pairs of pages remembered. Plain choice: several times the six readings
that a window has at most."""

_One = tuple[str, Source, Found]
_Answer = tuple[list[_One], tuple[str, ...]]
_Asked = tuple[Signal, int, tuple[tuple[int, int, float], ...]]
K = TypeVar("K")
V = TypeVar("V")


def merged(pages: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The series of all pages, each with its replica's name.

    Args:
        pages: by replica, whose name holds no quote. A single page stays as it is.
    """
    if len(pages) == 1:
        return dict(next(iter(pages.values())))
    return {
        _labelled(key, replica): value
        for replica, page in pages.items()
        for key, value in page.items()
    }


def pool_sources() -> dict[Signal, list[Source]]:
    """Sources that read merged pages, for the `sources` of a policy.

    Each engine's signal has two: the first is for pools in which a full cache with
    nothing running contradicts itself, the second for the others.
    """
    pool = _Pool()
    return {
        signal: [
            Source(
                f"{signal.combine} over replicas",
                running_only=running_only,
                formula=pool.formula(signal, running_only=running_only),
            )
            for running_only in (True, False)
        ]
        for signal in ENGINE
    }


def _labelled(key: str, replica: str) -> str:
    name, brace, rest = key.partition("{")
    if not brace:
        return f'{name}{{{_MARK}{replica}"}}'
    if rest.startswith(_MARK) or f",{_MARK}" in rest:
        rest = f",{rest}".replace(f",{_MARK}", f',{_OWN_LABEL}="')[1:]
    labels = rest[:-1]
    return f'{name}{{{labels}{"," if labels else ""}{_MARK}{replica}"}}'


def _split(series: Series) -> dict[str, Series]:
    """Each replica's series under the names its page had."""
    raws: dict[str, dict[str, object]] = {}
    for key, value in series.raw.items():
        own, mark, rest = key.rpartition(_MARK)
        if mark:
            labels = own[:-1] + "}" if own.endswith(",") else own[:-1]
            raws.setdefault(rest[:-2], {})[labels] = value
    return {replica: Series(raw) for replica, raw in raws.items()}


class _Pool:
    """Reads signals off merged pages; remembers how pages were taken apart."""

    def __init__(self) -> None:
        self._parts: OrderedDict[int, tuple[Series, dict[str, Series]]] = OrderedDict()
        self._steps: OrderedDict[
            tuple[int, int, float], tuple[Series, Series, dict[str, Window]]
        ] = OrderedDict()
        self._found: OrderedDict[_Asked, tuple[Series, Window, _Answer]] = OrderedDict()

    def formula(self, signal: Signal, *, running_only: bool) -> Formula:
        """How a signal is read from a merged page."""

        def read(series: Series, window: Window) -> Found | None:
            each, notes = self._each(signal, series, window)
            alike = all(source.running_only for _, source, _ in each)
            if not each:
                return Found(None, {}, notes) if notes and running_only else None
            if alike is not running_only:
                return None
            weigh = self._lookups(window) if signal is PREFIX_HIT_RATE else {}
            return _combined(signal, each, notes, weigh)

        return read

    def _each(self, signal: Signal, series: Series, window: Window) -> _Answer:
        """What each replica supplies, and the notes on what was left out.

        Several policies ask the same of one reading, and each signal has two sources.
        """
        steps = tuple((id(s.before), id(s.after), s.seconds) for s in window.steps)
        key = (signal, id(series), steps)
        known = self._found.get(key)
        if known is None:
            made = self._ask(signal, series, window)
            known = _keep(self._found, key, (series, window, made))
        return known[2]

    def _ask(self, signal: Signal, series: Series, window: Window) -> _Answer:
        windows = self._windows(window)
        found: list[_One] = []
        notes: list[str] = []
        for replica, own in self._replicas(series).items():
            source, one, skipped = signal.find(own, windows.get(replica, Window.EMPTY))
            notes += [f"{replica}: {note}" for note in skipped]
            if source is not None and one is not None:
                found.append((replica, source, one))
        return _engines_first(found), tuple(notes)

    def _replicas(self, series: Series) -> dict[str, Series]:
        known = self._parts.get(id(series))
        if known is None:  # the series is kept too, so that its id stays its own
            known = _keep(self._parts, id(series), (series, _split(series)))
        return known[1]

    def _windows(self, window: Window) -> dict[str, Window]:
        whole: dict[str, Window] = {}
        for step in window.steps:
            for replica, one in self._step(
                step.before, step.after, step.seconds
            ).items():
                whole[replica] = whole.get(replica, Window.EMPTY).then(one)
        return whole

    def _step(self, before: Series, after: Series, seconds: float) -> dict[str, Window]:
        key = (id(before), id(after), seconds)
        known = self._steps.get(key)
        if known is None:
            old, new = self._replicas(before), self._replicas(after)
            made = {
                replica: Window.between(old[replica], own, seconds)
                for replica, own in new.items()
                if replica in old
            }
            known = _keep(self._steps, key, (before, after, made))
        return known[2]

    def _lookups(self, window: Window) -> dict[str, float]:
        """How much each replica looked up in its prefix cache."""
        counted = {
            replica: _looked_up(own) for replica, own in self._windows(window).items()
        }
        return {replica: n for replica, n in counted.items() if n}


def _keep(table: OrderedDict[K, V], key: K, value: V) -> V:
    table[key] = value
    if len(table) > _KEPT:
        table.popitem(last=False)
    return value


def _engines_first(found: list[_One]) -> list[_One]:
    """Without routers, which repeat what their engines say, where an engine says it."""
    own = [one for one in found if one[1].engine != epp.ENGINE.name]
    return own or found


def _combined(
    signal: Signal,
    each: Iterable[_One],
    notes: tuple[str, ...],
    weights: Mapping[str, float],
) -> Found:
    parts: dict[str, float] = {}
    weighed: list[tuple[float, float | None]] = []
    for replica, _, found in each:
        name = f"{REPLICA_LABEL}={replica}"
        values = found.parts or {"": found.value or 0.0}
        for part, value in values.items():
            parts[f"{name},{part}" if part else name] = value
        weighed.append((found.value or 0.0, weights.get(replica)))
    known = _weighted(weighed)
    value = _FOLD[signal.combine](list(parts.values())) if known is None else known
    return Found(value, parts, notes)


def _weighted(values: list[tuple[float, float | None]]) -> float | None:
    """By lookups: hits of all over lookups of all; None when some are not known."""
    known = [(value, weight) for value, weight in values if weight is not None]
    if len(known) < len(values):
        return None
    whole = summed(weight for _, weight in known)
    return summed(value * weight for value, weight in known) / whole


def _looked_up(window: Window) -> float | None:
    pairs = (pair for engine in ENGINES for pair in engine.hit_counters)
    counts = (_rise_of(pair, window) for pair in pairs)
    return next((count for count in counts if count is not None), None)


def _rise_of(pair: HitCounters, window: Window) -> float | None:
    rises = [rise(window)(counter) for counter in pair.lookups]
    known = [one for one in rises if one is not None]
    return summed(known) if len(known) == len(rises) else None


_FOLD: dict[str, Callable[[list[float]], float]] = {
    "sum": summed,
    "max": max,
    "min": min,
    "mean": lambda values: summed(values) / len(values),
}
