"""Keeps the order of the groups, and has a new one made when somebody would be late.

QLM's optimizer is slow and runs beside the requests: its order is that of the queue
some seconds ago. So an order has an age, and whoever uses it can say how old it is.
"""

from collections.abc import Callable, Sequence

from admitperf.policies.parts.qlm.exchange import exchanged, late_s
from admitperf.policies.parts.qlm.group import GROUPS_MOST, Group
from admitperf.policies.parts.qlm.plan import Plan
from admitperf.policies.parts.qlm.waiting_time import WaitingTime


class Planner:
    """The plan in use, and the one that is to be used next.

    Args:
        solve_s: seconds that making one is taken to need, besides what it does need.
    """

    def __init__(self, solve_s: float) -> None:
        self._solve_s = solve_s
        self._used: Plan | None = None
        self._made: Plan | None = None

    def work(
        self,
        waiting: Callable[[], Sequence[Group]],
        time: WaitingTime | None,
        now_s: float,
    ) -> Callable[[], Plan] | None:
        """What makes the plan of what waits now; None = one is to be used first.

        Args:
            waiting: tells the groups, nearest deadline first; called with the work.
            time: None while the rate is not measured; then nobody is found late.
        """
        self._used = self.at(now_s)
        if self._made is not None and self._made is not self._used:
            return None
        before, solve_s = self._used, self._solve_s
        return lambda: planned(waiting(), before, time, now_s, solve_s)

    def take(self, plan: Plan) -> None:
        """Takes what the work made."""
        self._made = plan

    def at(self, now_s: float) -> Plan | None:
        """The plan that may be used at a time; None before the first."""
        made = self._made
        return made if made is not None and made.ready_s <= now_s else self._used


def planned(
    groups: Sequence[Group],
    before: Plan | None,
    time: WaitingTime | None,
    now_s: float,
    solve_s: float,
) -> Plan:
    """The order as before while nobody is late in it, or one that is late less.

    Args:
        groups: what waits, nearest deadline first.
        before: the plan in use; groups that are new to it come last.
        time: as for `Planner.work`.
        now_s: when they wait so.
        solve_s: seconds until a new order may be used.
    """
    order = _as_before(groups, before)
    if time is None or late_s(order, time, now_s) <= 0:
        return Plan(order, now_s, now_s)
    return Plan(exchanged(groups, time, now_s), now_s, now_s + solve_s)


def _as_before(groups: Sequence[Group], plan: Plan | None) -> list[Group]:
    order = plan.order if plan else ()
    before = {key: n for n, group in enumerate(order) for key in group.keys}
    return sorted(
        groups,
        key=lambda group: min(before.get(key, GROUPS_MOST) for key in group.keys),
    )
