"""What this host sent to an engine since the engine was last read.

A reading is a quarter of a second old, or more; a front door that admits meanwhile
knows what the reading cannot: a burst between two readings would pass any gate. So a
reading taken with `own_since=True` is seen with the host's own requests added:

- queue: admitted since less ended since, and less the slots that are free. None is
  when the reading shows a queue. How many there are the reading says, or it is learnt:
  once a queue was seen, the most that ran; until then twice the most that ran, and at
  least `FIRST_SLOTS`, so that an engine nobody has seen full yet is filled quickly;
- memory: prompt tokens of what was admitted since and is still open, as a fraction of
  the capacity, where both are known.

Nothing is taken away: when more ended than came, the next reading says so.
"""

from collections import deque

from admitperf.core.entry import Entry
from admitperf.core.gate import Gate
from admitperf.core.signal import Signal
from admitperf.core.signals import KV_CAPACITY_TOKENS, KV_PRESSURE, QUEUE_DEPTH, RUNNING
from admitperf.core.view import View

LATELY_MOST = 4096
"""Starts and ends remembered, for readings handed over after they were taken. Plain
choice: 8000 requests a second for a quarter of a second."""

FIRST_SLOTS = 8
"""Requests that an engine is taken to run at once before more were seen to. Plain
choice: the smallest servers run that many; it doubles with each reading, as a new TCP
connection does."""

_READINGS_KEPT = 2
"""Readings counted for each replica: the newest, and one that is held on to."""

_REPLICAS_MOST = 1024


class _Since:
    """What came and went since one reading was taken.

    Attributes:
        more: admitted less ended.
        tokens: prompt tokens of those admitted since and still open.
        room: requests that the reading shows room for.
        seen: the last view with what was added, and the view and amounts it is of.
    """

    __slots__ = ("more", "number", "replica", "room", "seen", "taken_ns", "tokens")

    def __init__(self, view: View, room: float) -> None:
        self.number = view.number
        self.replica = view.reading.replica
        self.taken_ns = view.taken_ns
        self.room = room
        self.more = self.tokens = 0
        self.seen: tuple[View, float, int, View] | None = None

    def opened(self, entry: Entry) -> None:
        if entry.opened_ns >= self.taken_ns and self._counts(entry):
            self.more += 1
            self.tokens += entry.request.input_tokens or 0

    def closed(self, entry: Entry, now_ns: int) -> None:
        if now_ns >= self.taken_ns and self._counts(entry):
            self.more -= 1
            if entry.opened_ns >= self.taken_ns:
                self.tokens -= entry.request.input_tokens or 0

    def _counts(self, entry: Entry) -> bool:
        """A pool's reading counts everything, a replica's what was decided on it."""
        return self.replica is None or self.replica == entry.replica


class Own:
    """Counts a host's own requests against the readings of one policy.

    Not thread-safe by itself: the policy's lock covers it.

    Args:
        gates: where the values it makes record their comparisons.

    Attributes:
        live: whether any reading asked for it; until then nothing is counted.
    """

    def __init__(self, gates: list[Gate]) -> None:
        self.live = False
        self._gates = gates
        self._since: dict[str | None, deque[_Since]] = {}
        self._lately: deque[tuple[int, Entry]] = deque(maxlen=LATELY_MOST)
        self._most_running: dict[str | None, float] = {}
        self._seen_full: set[str | None] = set()

    def opened(self, entry: Entry) -> None:
        """Takes a request that was started."""
        self._lately.append((0, entry))
        for since in self._counting(entry):
            since.opened(entry)

    def closed(self, entry: Entry, now_ns: int) -> None:
        """Takes a started request that ended."""
        self._lately.append((now_ns, entry))
        for since in self._counting(entry):
            since.closed(entry, now_ns)

    def added(self, view: View) -> View:
        """A view with what was sent since; the same one when that is nothing."""
        since = self._find(view)
        queue = self._queue(view, since)
        if queue <= 0 and since.tokens <= 0:
            return view
        if since.seen is None or since.seen[:3] != (view, queue, since.tokens):
            seen = self._plus(view, queue, since.tokens)
            since.seen = view, queue, since.tokens, seen
        return since.seen[3]

    def _queue(self, view: View, since: _Since) -> float:
        return since.more - since.room if QUEUE_DEPTH in view.values else 0.0

    def _plus(self, view: View, queue: float, tokens: int) -> View:
        added: dict[Signal, float] = {QUEUE_DEPTH: queue} if queue > 0 else {}
        capacity = view.values.get(KV_CAPACITY_TOKENS)
        if tokens > 0 and capacity and KV_PRESSURE in view.values:
            added[KV_PRESSURE] = tokens / float(capacity)
        return view.plus(added, self._gates) if added else view

    def _counting(self, entry: Entry) -> list[_Since]:
        mine = self._since.get(entry.replica, ()) if entry.replica else ()
        return [*self._since.get(None, ()), *mine]

    def _find(self, view: View) -> _Since:
        of_replica = self._since.get(view.reading.replica, ())
        for since in of_replica:
            if since.number == view.number:
                return since
        return self._begin(view)

    def _begin(self, view: View) -> _Since:
        """Starts to count from a reading, with what happened since it was taken."""
        self.live = True
        replica = view.reading.replica
        since = _Since(view, self._room(view, replica))
        for ended_ns, entry in reversed(self._lately):
            if (ended_ns or entry.opened_ns) < since.taken_ns:
                break  # in order of time: nothing before it is newer
            if ended_ns:
                since.closed(entry, ended_ns)
            else:
                since.opened(entry)
        if len(self._since) >= _REPLICAS_MOST:
            del self._since[next(iter(self._since))]
        kept = self._since.setdefault(replica, deque(maxlen=_READINGS_KEPT))
        kept.appendleft(since)
        return since

    def _room(self, view: View, replica: str | None) -> float:
        """Requests that can start at once; none while others wait."""
        if RUNNING not in view.values:
            return 0.0
        running = float(view.values[RUNNING])
        most = max(self._most_running.get(replica, 0.0), running)
        if len(self._most_running) >= _REPLICAS_MOST:
            self._most_running.clear()
            self._seen_full.clear()
        self._most_running[replica] = most
        if view.values.get(QUEUE_DEPTH, 0.0) > 0:
            self._seen_full.add(replica)
            return 0.0
        return max(0.0, self._slots(view.reading.slots, replica, most) - running)

    def _slots(self, told: int | None, replica: str | None, most: float) -> float:
        if told is not None:
            return told
        if replica in self._seen_full:
            return most
        return max(FIRST_SLOTS, 2 * most)
