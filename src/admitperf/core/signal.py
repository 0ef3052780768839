"""A signal: a name, a unit, a range and ordered sources.

Two rules never break: a signal nothing supplies reads None, and a value outside its
range is skipped, not clamped.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from admitperf.core.found import Found
from admitperf.core.series import Series
from admitperf.core.source import Source
from admitperf.core.window import Window

if TYPE_CHECKING:
    from admitperf.core.reading import Reading
    from admitperf.core.snapshot import Snapshot

_lock = threading.Lock()


class Signal:
    """A quantity a policy can read.

    Attributes:
        name: lower case; the constant in `core.signals` is its upper case.
        unit: what one means ("fraction", "requests", "s", "tokens", "per_s", …).
        low, high: legal range, inclusive; infinities are never legal values.
        combine: how several engines make one value (sum for counts, max for fractions).
        origin: "engine", "request" or "ledger": who knows it.
        serves: the rule it is good for.
        fails_when: when it says nothing.
        sources: where to look, first one first.
    """

    __slots__ = (
        "combine",
        "fails_when",
        "high",
        "low",
        "name",
        "origin",
        "serves",
        "sources",
        "unit",
    )

    def __init__(  # noqa: PLR0913  a table row, written by keyword
        self,
        name: str,
        *,
        unit: str,
        low: float,
        high: float,
        combine: str,
        origin: str,
        serves: str,
        fails_when: str,
    ) -> None:
        self.name = name
        self.unit = unit
        self.low = low
        self.high = high
        self.combine = combine
        self.origin = origin
        self.serves = serves
        self.fails_when = fails_when
        self.sources: tuple[Source, ...] = (Source(name),)

    def __repr__(self) -> str:
        return self.name.upper()

    def add_source(
        self, source: str | Source | Callable[[Mapping[str, Any]], object]
    ) -> Source:
        """Puts a source first, for the whole process, and returns it.

        Policies take it up with their next new reading.

        Raises:
            TypeError: `source` is no name, function or Source.
        """
        made = Source.of(source)
        with _lock:
            self.sources = (made, *self.sources)
        return made

    def extend(self, *sources: Source) -> None:
        """Appends sources of lower precedence; the ones already there stay once."""
        with _lock:
            fresh = tuple(source for source in sources if source not in self.sources)
            self.sources = (*self.sources, *fresh)

    def remove_source(self, source: Source) -> None:
        """Takes a source out again; unknown ones are ignored."""
        with _lock:
            self.sources = tuple(known for known in self.sources if known is not source)

    def find(
        self,
        series: Series,
        window: Window = Window.EMPTY,
        first: tuple[Source, ...] = (),
    ) -> tuple[Source | None, Found | None, tuple[str, ...]]:
        """Asks the sources in order.

        Args:
            first: sources asked before the signal's own.

        Returns:
            The source that supplied, what it found, and the notes of all series that
            were skipped on the way; (None, None, notes) when nothing supplies it.
        """
        notes: tuple[str, ...] = ()
        for source in (*first, *self.sources):
            found = source.read(series, window, self.combine, self.low, self.high)
            if found is None:
                continue
            notes += found.skipped
            if found.value is not None:
                return source, found, notes
        return None, None, notes

    def read(
        self, metrics: "Snapshot | Reading | Mapping[str, object]"
    ) -> float | None:
        """Its value, in its unit; None when nothing supplies it. Never raises.

        Inside `decide` the float remembers its signal, so that comparing it records a
        gate. On a plain mapping it is a plain float, and counter windows are not known.
        """
        try:
            return metrics.read_signal(self)  # type: ignore[union-attr]
        except AttributeError:
            return self._read_plain(metrics)  # type: ignore[arg-type]

    def _read_plain(self, metrics: Mapping[str, object]) -> float | None:
        try:
            _, found, _ = self.find(Series(metrics))
        except Exception:  # noqa: BLE001  what is no mapping supplies nothing
            return None
        return None if found is None else found.value
