"""The order of the groups: nearest deadline first, or the one that is late least.

QLM gives its integer program to a solver and falls back to the nearest deadline. Here
two groups change places for as long as that helps, from the order of deadlines on, so
that what comes out is never worse than it.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

from admitperf.policies.parts.qlm.group import Group
from admitperf.policies.parts.qlm.waiting_time import WaitingTime

ROUNDS_MOST = 8
"""Exchanges looked for at most. Plain choice: so that it ends soon whatever waits."""

_LEAST_GAIN_S = 1e-9
"""What rounding alone may win is no gain."""


def late_s(order: Iterable[Group], time: WaitingTime, now_s: float) -> float:
    """QLM's objective: by how long groups end past their deadline, all together."""
    tokens = variance = total_s = 0.0
    for group in order:
        tokens += group.tokens
        variance += group.variance
        late = now_s + time.seconds(tokens, variance) - group.due_s
        if late > 0:
            total_s += late
    return total_s


def by_deadline(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Nearest deadline first; of equals, whoever came first."""
    return tuple(sorted(groups, key=lambda group: group.due_s))


def exchanged(
    groups: Iterable[Group], time: WaitingTime, now_s: float
) -> tuple[Group, ...]:
    """The order that no exchange of two groups improves, from that of deadlines on."""
    best = by_deadline(groups)
    best_s = late_s(best, time, now_s)
    for _ in range(ROUNDS_MOST):
        if best_s <= 0 or len(best) < 2:  # noqa: PLR2004
            break
        swaps = [_swapped(best, *two) for two in combinations(range(len(best)), 2)]
        found_s, found = min(
            ((late_s(order, time, now_s), order) for order in swaps),
            key=lambda found: found[0],
        )
        if found_s > best_s - _LEAST_GAIN_S:
            break
        best, best_s = found, found_s
    return best


def _swapped(order: Sequence[Group], one: int, other: int) -> tuple[Group, ...]:
    changed = list(order)
    changed[one], changed[other] = changed[other], changed[one]
    return tuple(changed)
