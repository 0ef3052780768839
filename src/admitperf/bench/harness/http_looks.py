"""Looks at engines on a fixed schedule, beside the traffic and never in its way."""

import threading
from collections.abc import Callable, Mapping, Sequence

from admitperf.core.errors import AdmitPerfError
from admitperf.core.reading import Reading
from admitperf.core.signals import ENGINE, PREEMPTIONS
from admitperf.core.window import Window
from admitperf.reports.quantile import nearest_rank
from admitperf.scrape.pool import merged, pool_sources
from admitperf.scrape.target import Endpoint
from admitperf.scrape.watch import Round, Watcher

_STARTED = "process_start_time_seconds"
_COUNTED = ("_total", "_count")
_FOREVER = 1 << 40  # rounds: a thousand years of them
_JOIN_S = 10.0


class Looks:
    """Reads the metrics pages of engines until it is stopped.

    Args:
        endpoints: their pages.
        interval_s: seconds from one look to the next.

    Attributes:
        newest: the last reading that came; an empty one before the first.
        moved: lowest and highest value of each of the engines' signals, by name.
        on_new: called with each reading before it is the newest, in the thread that
            looks.
    """

    def __init__(self, endpoints: Sequence[Endpoint], interval_s: float) -> None:
        self.newest = Reading({}, taken_ns=0, interval_s=interval_s)
        self.moved: dict[str, tuple[float, float]] = {}
        self.on_new: Callable[[Reading], None] = _nobody
        self._earliest = self.newest
        self._interval_s = interval_s
        self._watcher = Watcher(list(endpoints), interval_s)
        self.sources = pool_sources() if len(endpoints) > 1 else {}
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._took_s: list[float] = []
        self._faults: dict[str, int] = {}
        self._skipped = self._missed = self._restarts = 0

    def first(self) -> Reading:
        """Looks once.

        Raises:
            AdmitPerfError: no page could be had; its text names the first that failed.
        """
        found = self._watcher.first()
        if found is None or not found.pages:
            failed = found.failed if found else ()
            raise failed[0] if failed else AdmitPerfError("nothing to look at")
        self._take(found)
        return self.newest

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Looks no more, and waits until a look under way is over."""
        self._watcher.stop()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)

    def facts(self) -> dict[str, object]:
        """What became of the looks, as plain values."""
        took = sorted(self._took_s)
        return {
            "scrapes": len(took),
            "scrapes_failed": self._faults,
            "scrapes_skipped": self._skipped,
            "scrapes_missed": self._missed,
            "scrape_ms_p50": _rank_ms(took, 0.5),
            "scrape_ms_p95": _rank_ms(took, 0.95),
            "restarts": self._restarts,
            "moved": {name: list(span) for name, span in self.moved.items()},
            "preemptions": self._preempted(),
        }

    def _preempted(self) -> int | None:
        """Requests that lost their place between the first look and the last one."""
        seconds = (self.newest.taken_ns - self._earliest.taken_ns) / 1e9
        if seconds <= 0:
            return None
        window = Window.between(self._earliest.series, self.newest.series, seconds)
        _, found, _ = PREEMPTIONS.find(self.newest.series, window)
        if found is None or found.value is None:
            return None
        return round(found.value * seconds)

    def _look(self) -> None:
        for found in self._watcher.rounds(_FOREVER):
            self._take(found)

    def _take(self, found: Round) -> None:
        self._skipped += len(found.skipped)
        self._missed += found.missed
        for fault in found.failed:
            self._faults[fault.kind] = self._faults.get(fault.kind, 0) + 1
        if not found.pages:
            return
        raw = merged({name: one.page for name, one in found.pages.items()})
        reading = Reading(raw, taken_ns=found.taken_ns, interval_s=self._interval_s)
        if not self.newest.raw:
            self._earliest = reading
        self._took_s += [one.took_s for one in found.pages.values() if one.took_s]
        self._restarts += restarted(self.newest.raw, raw)
        self.on_new(reading)
        self.newest = reading
        self._note(reading)

    def _note(self, reading: Reading) -> None:
        for name, value in values(reading).items():
            low, high = self.moved.get(name, (value, value))
            self.moved[name] = min(low, value), max(high, value)


def _nobody(_reading: Reading) -> None:
    """Nobody wants to know."""


def values(reading: Reading) -> dict[str, float]:
    """What a reading says of each of the engines' signals that needs no window."""
    found = {signal.name: signal.read(reading) for signal in ENGINE}
    return {name: value for name, value in found.items() if value is not None}


def restarted(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Whether an engine began anew between two pages: its start moved, or a count fell.

    Args:
        before: metric key to number; empty = there was no page before.
        after: the same, later.
    """
    for key, value in after.items():
        old = before.get(key)
        if not isinstance(old, (int, float)) or not isinstance(value, (int, float)):
            continue
        name = key.partition("{")[0]
        if name == _STARTED and value > old:
            return True
        if name.endswith(_COUNTED) and value < old:
            return True
    return False


def _rank_ms(ordered_s: list[float], quantile: float) -> float | None:
    if not ordered_s:
        return None
    return round(nearest_rank(ordered_s, quantile) * 1e3, 3)
