"""Who was refused, is to be back about now, and was not served since."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import islice, takewhile

CLAIMS_MOST = 1000
"""Calls with a claim, of all tenants. Plain choice: about 0.3 MB. Past it a tenant gets
a place from the one that has most, as long as that one has two more."""

CALLS_MOST = 100
"""Calls with a claim of one tenant; more are not noted until one of them is served or
given up. Plain choice: a tenth of all."""

NEAR_S = 3.0
"""Seconds before and after the time that was told in which a call is awaited. Plain
choice: `Retry-After` is rounded up to whole seconds, and one for the way. Room that is
kept for longer is room that nobody uses."""

_NEAR_NS = int(NEAR_S * 1e9)
_NEVER_NS = 1 << 63

_Calls = dict[str, int]
"""Of one tenant: call and when it is given up. Who names no call has one, ""."""


class Claims:
    """Calls that are awaited. Not thread-safe by itself: the policy's lock is.

    Only `look`, `refused` and `served` change anything.
    """

    def __init__(self) -> None:
        self._end_ns: dict[str, _Calls] = {}
        self._count = 0
        self._far: list[tuple[int, str, str]] = []  # in order of time
        self._near: dict[str, _Calls] = {}
        self._first_ns = _NEVER_NS  # not before it is a near one given up

    def __len__(self) -> int:
        return self._count

    def look(self, now_ns: int) -> None:
        """Takes over the calls whose time has come, and gives up what is overdue."""
        came = self._came(now_ns)
        if came:
            _add(self._near, came)
            del self._far[: len(came)]
            self._first_ns = min(self._first_ns, came[0][0] + 2 * _NEAR_NS)
        if now_ns >= self._first_ns:
            self._give_up(now_ns)

    def refused(self, tenant: str, call: str | None, back_ns: int) -> None:
        """It was told to be back at that time; a try at it before claims no more.

        Args:
            tenant: whose call it is.
            call: the same for each try at it; None or "" = it cannot be told from
                others.
            back_ns: on the policy's clock.
        """
        known = self._end_ns.get(tenant, {})
        if (call or "") in known:
            self.served(tenant, call)
        elif len(known) >= CALLS_MOST or not self._has_place(len(known)):
            return
        end_ns = back_ns + _NEAR_NS
        self._end_ns.setdefault(tenant, {})[call or ""] = end_ns
        self._count += 1
        insort(self._far, _waits(tenant, call or "", end_ns))

    def served(self, tenant: str, call: str | None) -> None:
        """It was let in, or left for good: it claims nothing any more."""
        name = call or ""
        end_ns = _taken(self._end_ns, tenant, name)
        if end_ns is None:
            return
        self._count -= 1
        if _taken(self._near, tenant, name) is None:
            at = bisect_left(self._far, _waits(tenant, name, end_ns))
            del self._far[at]

    def awaits(self, tenant: str) -> bool:
        """Whether any of its calls was awaited when they were last looked at."""
        return tenant in self._near

    def near(self, now_ns: int) -> Iterator[tuple[str, int, int]]:
        """Who is awaited now: tenant, calls, and when the first of them is given up."""
        came: dict[str, _Calls] = {}
        _add(came, self._came(now_ns))
        for tenant, calls in self._near.items():
            first_ns = next(iter(calls.values()))
            if first_ns > now_ns and tenant not in came:
                yield tenant, len(calls), first_ns
            else:
                more = calls | came.pop(tenant, {})
                yield from _awaited(tenant, more, now_ns)
        for tenant, calls in came.items():
            yield from _awaited(tenant, calls, now_ns)

    def _give_up(self, now_ns: int) -> None:
        overdue = [
            (tenant, tuple(islice(calls, _overdue(calls, now_ns))))
            for tenant, calls in self._near.items()
        ]
        for tenant, calls in overdue:
            for call in calls:
                self.served(tenant, call)
        firsts = (next(iter(calls.values())) for calls in self._near.values())
        self._first_ns = min(firsts, default=_NEVER_NS)

    def _has_place(self, held: int) -> bool:
        """Whether there is one for a tenant that has so many; takes it if need be."""
        if self._count < CLAIMS_MOST:
            return True
        tenant, calls = max(self._end_ns.items(), key=lambda one: len(one[1]))
        if len(calls) < held + 2:
            return False
        self.served(tenant, next(reversed(calls)))
        return True

    def _came(self, now_ns: int) -> list[tuple[int, str, str]]:
        """When, whose and which: what is near since the last look."""
        return list(takewhile(lambda one: one[0] <= now_ns, self._far))


def _add(table: dict[str, _Calls], came: list[tuple[int, str, str]]) -> None:
    """Adds calls that are near by now."""
    for begin_ns, tenant, call in came:
        table.setdefault(tenant, {})[call] = begin_ns + 2 * _NEAR_NS


def _awaited(tenant: str, calls: _Calls, now_ns: int) -> Iterator[tuple[str, int, int]]:
    """A tenant, its calls that are not given up, and when the first of them is."""
    gone = _overdue(calls, now_ns)
    if gone < len(calls):
        yield tenant, len(calls) - gone, next(islice(calls.values(), gone, None))


def _waits(tenant: str, call: str, end_ns: int) -> tuple[int, str, str]:
    """How a call stands among those that are not near yet."""
    return end_ns - 2 * _NEAR_NS, tenant, call


def _taken(table: dict[str, _Calls], tenant: str, call: str) -> int | None:
    """Takes a call out, and its tenant with the last; None = it is not there."""
    calls = table.get(tenant)
    end_ns = None if calls is None else calls.pop(call, None)
    if calls is not None and not calls:
        del table[tenant]
    return end_ns


def _overdue(calls: _Calls, now_ns: int) -> int:
    """How many of a tenant's calls are given up: they are in order of time."""
    return sum(1 for _ in takewhile(lambda end_ns: end_ns <= now_ns, calls.values()))
