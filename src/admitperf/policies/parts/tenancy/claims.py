"""Who was refused, is to be back about now, and was not served since."""

import heapq
from collections.abc import Iterator

CLAIMS_MOST = 1000
"""Calls with a claim, of all tenants; more are not noted. Plain choice: about 0.3 MB,
and who is refused again is noted then."""

NEAR_S = 3.0
"""Seconds before and after the time that was told in which a call is awaited. Plain
choice: `Retry-After` is rounded up to whole seconds, and one for the way. Room that is
kept for longer is room that nobody uses."""

_NEAR_NS = int(NEAR_S * 1e9)

_Call = tuple[str, str | None]


class Claims:
    """Calls that are awaited. Not thread-safe by itself: the policy's lock is."""

    def __init__(self) -> None:
        self._end_ns: dict[_Call, int] = {}
        self._far: list[tuple[int, str, str]] = []
        self._near: dict[str, dict[str | None, int]] = {}

    def __len__(self) -> int:
        return len(self._end_ns)

    def refused(self, tenant: str, call: str | None, back_ns: int) -> None:
        """It was told to be back at that time.

        Args:
            tenant: whose call it is.
            call: the same for each try at it; None = it cannot be told from others.
            back_ns: on the policy's clock.
        """
        self.served(tenant, call)
        if max(len(self._end_ns), len(self._far) // 2) < CLAIMS_MOST:
            self._end_ns[tenant, call] = back_ns + _NEAR_NS
            heapq.heappush(self._far, (back_ns - _NEAR_NS, tenant, call or ""))

    def served(self, tenant: str, call: str | None) -> None:
        """It was let in, or left for good: it claims nothing any more."""
        if self._end_ns.pop((tenant, call), None) is not None:
            self._drop(tenant, call)

    def awaits(self, tenant: str) -> bool:
        """Whether any of its calls is awaited, as far as time has come."""
        return tenant in self._near

    def near(self, now_ns: int) -> Iterator[tuple[str, int, int]]:
        """Who is awaited now: tenant, calls, and when the first of them is given up."""
        self._approach(now_ns)
        for tenant in tuple(self._near):
            calls = self._near[tenant]
            call, end_ns = next(iter(calls.items()))
            while end_ns <= now_ns:
                self.served(tenant, call)
                if not calls:
                    break
                call, end_ns = next(iter(calls.items()))
            else:
                yield tenant, len(calls), end_ns

    def _approach(self, now_ns: int) -> None:
        """Takes over the calls whose time has come, in its order."""
        while self._far and self._far[0][0] <= now_ns:
            near_ns, tenant, word = heapq.heappop(self._far)
            call = word or None
            if self._end_ns.get((tenant, call)) == near_ns + 2 * _NEAR_NS:
                self._near.setdefault(tenant, {})[call] = near_ns + 2 * _NEAR_NS

    def _drop(self, tenant: str, call: str | None) -> None:
        calls = self._near.get(tenant)
        if calls is not None:
            calls.pop(call, None)
            if not calls:
                del self._near[tenant]
