"""From readings to views: sources, windows, age, and what contradicts itself.

Rules this file holds:
- source order decides, not arrival order: while the preferred source's last value is
  fresh, one lower in the order does not take over;
- a memory gauge that shows occupancy while nothing runs and nothing waits is believed
  for `CONTRADICTION_S` only (an engine that aborted everything never refreshes it);
- age limit of a signal = max(1.5 s, 3 scrape intervals, the engine's own refresh).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from admitperf.core.gate import Gate
from admitperf.core.reading import Reading
from admitperf.core.signal import Signal
from admitperf.core.signals import ALL, KV_PRESSURE, QUEUE_DEPTH, RUNNING
from admitperf.core.source import Source
from admitperf.core.supply import Supply
from admitperf.core.value import SignalValue
from admitperf.core.view import FOREVER_NS, View
from admitperf.core.window import Window

WINDOW_S = 10.0
"""Length of counter windows in seconds. Plain choice: moves within seconds, and spans
several scrapes of the slowest engine that refreshes per event."""

STEP_S = 2.0
"""Readings closer together than this extend a step instead of adding one: it bounds
the window to 5 steps, and the readings kept for each replica to 6."""

MIN_AGE_LIMIT_S = 1.5
"""Lower bound of the age limit. Origin: brief, decision 7."""

CONTRADICTION_S = 5.0
"""How long an impossible pair of gauges is believed. Plain choice: ten times the lag
seen between gauges of one page, half of what a locked-out client is asked to bear."""

CONTRADICTION_FRACTION = 0.05
"""Occupancy below this with nothing running is bookkeeping (5.9e-5 seen on a real
idle engine), above it the gauge is frozen. Plain choice."""

_REPLICAS_MOST = 1024
_NOTES_MOST = 4

Event = Callable[[str, dict[str, object]], None]


class _Memory:
    """What has to be remembered about one replica between its readings."""

    __slots__ = ("history", "idle_since_ns", "last")

    def __init__(self) -> None:
        self.history: deque[tuple[int, Reading, Window]] = deque()
        self.last: dict[Signal, tuple[int, Supply]] = {}
        self.idle_since_ns: int | None = None

    def window(self, reading: Reading) -> Window:
        """Steps whose end lies within the last `WINDOW_S`, the newest one included."""
        now_ns, history = reading.taken_ns, self.history
        oldest_ns = now_ns - int(WINDOW_S * 1e9)
        while len(history) > 1 and history[0][0] <= oldest_ns:
            history.popleft()
        if not history:
            history.append((now_ns, reading, Window.EMPTY))
            return Window.EMPTY
        then_ns, before, _ = history[-1]
        seconds = (now_ns - then_ns) / 1e9
        whole = Window.EMPTY
        for at_ns, _, earlier in history:
            if at_ns > oldest_ns:
                whole = whole.then(earlier)
        if seconds <= 0:  # came late: it says nothing that is not known
            return whole
        step = Window.between(before.series, reading.series, seconds)
        if seconds >= STEP_S:
            history.append((now_ns, reading, step))
        return whole.then(step)


class Resolver:
    """Makes the views of one policy; keeps what has to be remembered between readings.

    Args:
        number: tells this policy's views of a shared reading from another's.
        gates: where the values it makes record their comparisons.
        sources: sources asked before a signal's own.
        max_age_s: age limit in seconds instead of the computed one; None = computed.
        event: called with (event, details) when something should be written down.
    """

    def __init__(
        self,
        number: int,
        gates: list[Gate],
        sources: Mapping[Signal, tuple[Source, ...]],
        max_age_s: float | None,
        event: Event,
    ) -> None:
        self._number = number
        self._gates = gates
        self._sources = sources
        self._max_age_s = max_age_s
        self._event = event
        self._made = 0
        self._memories: dict[str | None, _Memory] = {}
        self._warned: set[tuple[Signal, str]] = set()

    def view(self, reading: Reading, *, timed: bool) -> View:
        """The view of a new reading.

        Args:
            timed: whether `taken_ns` is when the engine was read. A plain mapping
                carries no time, so its values do not grow old.
        """
        memory = self._memory(reading.replica)
        window = memory.window(reading)
        supplies: dict[Signal, Supply] = {}
        absent: dict[Signal, str] = {}
        for signal in self._signals():
            supply, notes = self._supply(signal, reading, window, timed, memory)
            if supply is not None:
                supplies[signal] = supply
            elif notes:
                absent[signal] = _told(notes)
        _doubt(supplies, reading, memory)
        self._made += 1
        values = {
            signal: SignalValue(supply.found.value or 0.0, signal.name, self._gates)
            for signal, supply in supplies.items()
        }
        return View(self._made, reading, supplies, values, absent, {}, timed=timed)

    def _memory(self, replica: str | None) -> _Memory:
        memory = self._memories.get(replica)
        if memory is None:
            if len(self._memories) >= _REPLICAS_MOST:
                del self._memories[next(iter(self._memories))]
            memory = self._memories[replica] = _Memory()
        return memory

    def _signals(self) -> Iterable[Signal]:
        return {**dict.fromkeys(ALL), **dict.fromkeys(self._sources)}

    def _supply(
        self,
        signal: Signal,
        reading: Reading,
        window: Window,
        timed: bool,  # noqa: FBT001
        memory: _Memory,
    ) -> tuple[Supply | None, tuple[str, ...]]:
        first = self._sources.get(signal, ())
        source, found, notes = signal.find(reading.series, window, first)
        for note in notes:
            self._warn(signal, note)
        if source is None or found is None:
            return None, notes
        limit_s = self._age_limit_s(source, reading)
        until = reading.taken_ns + int(limit_s * 1e9) if timed else FOREVER_NS
        supply = Supply(
            found, source, reading.taken_ns, until, f"older than {limit_s:g} s"
        )
        rank = (*first, *signal.sources).index(source)
        return self._preferred(memory, signal, rank, supply, limit_s), notes

    def _age_limit_s(self, source: Source, reading: Reading) -> float:
        if self._max_age_s is not None:
            return self._max_age_s
        return max(MIN_AGE_LIMIT_S, 3 * (reading.interval_s or 0.0), source.refresh_s)

    def _preferred(
        self, memory: _Memory, signal: Signal, rank: int, supply: Supply, limit_s: float
    ) -> Supply:
        last = memory.last.get(signal)
        fresh_ns = supply.taken_ns - int(limit_s * 1e9)
        if last is not None and last[0] < rank and last[1].taken_ns >= fresh_ns:
            return last[1]
        if last is not None and last[1].source is not supply.source:
            self._event(
                "source_changed",
                {
                    "signal": signal.name,
                    "from": last[1].source.name,
                    "to": supply.source.name,
                },
            )
        memory.last[signal] = (rank, supply)
        return supply

    def _warn(self, signal: Signal, note: str) -> None:
        key = (signal, note.partition(" = ")[0])
        if key not in self._warned and len(self._warned) < 256:  # noqa: PLR2004  flood bound
            self._warned.add(key)
            self._event("out_of_range", {"signal": signal.name, "series": note})


def _told(notes: tuple[str, ...]) -> str:
    """The first notes, and how many there are: a page may have thousands."""
    more = f"; {len(notes) - _NOTES_MOST} more" if len(notes) > _NOTES_MOST else ""
    return "; ".join(notes[:_NOTES_MOST]) + more


def _doubt(supplies: dict[Signal, Supply], reading: Reading, memory: _Memory) -> None:
    """Bounds the belief in a memory gauge that contradicts an idle engine."""
    kv = supplies.get(KV_PRESSURE)
    if kv is None or not _contradicts(kv, supplies):
        memory.idle_since_ns = None
        return
    if memory.idle_since_ns is None:
        memory.idle_since_ns = reading.taken_ns
    until = memory.idle_since_ns + int(CONTRADICTION_S * 1e9)
    if until < kv.good_until_ns:
        why = f"contradicts running 0 and queue_depth 0 for over {CONTRADICTION_S:g} s"
        supplies[KV_PRESSURE] = Supply(kv.found, kv.source, kv.taken_ns, until, why)


def _contradicts(kv: Supply, supplies: dict[Signal, Supply]) -> bool:
    idle = all(
        signal in supplies and supplies[signal].found.value == 0.0
        for signal in (RUNNING, QUEUE_DEPTH)
    )
    return (
        idle
        and kv.source.running_only
        and (kv.found.value or 0.0) > CONTRADICTION_FRACTION
    )
