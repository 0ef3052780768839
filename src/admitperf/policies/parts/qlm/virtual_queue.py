"""What waits, as far as an ingress can know: callers that were sent off for now.

A refused caller holds nothing here but a note, until it is let in or does not come
back.
"""

from collections import Counter, OrderedDict
from heapq import heapify, heappop, heappush
from math import inf

from admitperf.policies.parts.qlm.group import Key, Kind, Note, kind_of

WAITING_MOST = 500
"""Callers noted, the latest ones. Plain choice: some 100 KB."""

KINDS_MOST = 32
"""Groups told apart; what is new then keeps its deadline class alone. Plain choice:
four times what is ordered, so that invented names cost nothing."""

PATIENCE = 1.5
"""A caller is waited for so many times as long as it was told to stay away. Origin:
research notes, 7.4."""

FORGOTTEN_AT_ONCE = 32
"""Notes that one call forgets: a request may be waiting for it. Plain choice."""


class VirtualQueue:
    """Callers that will come back, by group. Bounded, and each note expires."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, Note] = OrderedDict()
        self._counts: Counter[Key] = Counter()
        self._ends: list[tuple[float, str]] = []  # a heap; of a note that stands no
        # longer, its time stays until it has come

    def __len__(self) -> int:
        return len(self._waiting)

    def count(self, key: Key) -> int:
        """Callers of a group."""
        return self._counts[key]

    def kinds(self) -> set[Kind]:
        """Whose answers are waited for."""
        return {kind_of(key) for key in self._counts}

    def notes(self) -> list[Note]:
        """A copy of what is noted, also what is about to be forgotten."""
        return list(self._waiting.values())

    def note(self, name: str, key: Key, due_s: float, until_s: float) -> None:
        """Takes a caller that was sent off; again, it keeps its first due time.

        Args:
            name: of the call, the same when it comes back.
            key: its group.
            due_s: when it is due, on the policy's clock.
            until_s: how long it is waited for, on that clock.
        """
        before = self.drop(name)
        if key not in self._counts and len(self._counts) >= KINDS_MOST:
            key = None, None, key[2]
        self._waiting[name] = key, min(due_s, before), until_s
        self._counts[key] += 1
        if len(self._waiting) > WAITING_MOST:
            self.drop(next(iter(self._waiting)))
        heappush(self._ends, (until_s, name))
        if len(self._ends) > 2 * WAITING_MOST:
            self._ends = [(noted[2], name) for name, noted in self._waiting.items()]
            heapify(self._ends)

    def drop(self, name: str) -> float:
        """Lets a caller go and returns when it was due; infinity for one not noted."""
        noted = self._waiting.pop(name, None)
        if noted is None:
            return inf
        key = noted[0]
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
        return noted[1]

    def expire(self, now_s: float) -> None:
        """Forgets who did not come back, `FORGOTTEN_AT_ONCE` at most."""
        for _ in range(FORGOTTEN_AT_ONCE):
            if not self._ends or self._ends[0][0] > now_s:
                return
            _, name = heappop(self._ends)
            noted = self._waiting.get(name)
            if noted is not None and noted[2] <= now_s:
                self.drop(name)
