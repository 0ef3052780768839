"""Keeps the order of the groups, and makes a new one when somebody would be late.

QLM's optimizer is slow and runs beside the requests: its order is that of the queue
some seconds ago. So an order has an age, and whoever uses it can say how old it is.
"""

from collections.abc import Sequence

from admitperf.policies.parts.qlm.exchange import exchanged, late_s
from admitperf.policies.parts.qlm.group import GROUPS_MOST, Group
from admitperf.policies.parts.qlm.plan import Plan
from admitperf.policies.parts.qlm.waiting_time import WaitingTime


class Planner:
    """The plan in use, and the one that is being made.

    Args:
        solve_s: seconds that making one is taken to need; one is made at a time.
    """

    def __init__(self, solve_s: float) -> None:
        self._solve_s = solve_s
        self._used: Plan | None = None
        self._made: Plan | None = None

    def look(
        self, groups: Sequence[Group], time: WaitingTime | None, now_s: float
    ) -> None:
        """Takes what waits now: is anybody late in the order that there is?

        Args:
            groups: nearest deadline first.
            time: None while the rate is not measured; then nobody is found late.
        """
        self._used = self.at(now_s)
        if self._made is not None and self._made is not self._used:
            return  # it is still at it
        self._made = None
        order = self._as_before(groups)
        if time is None or late_s(order, time, now_s) <= 0:
            self._used = Plan(order, now_s, now_s)
            return
        found = exchanged(groups, time, now_s)
        self._made = Plan(found, now_s, now_s + self._solve_s)

    def at(self, now_s: float) -> Plan | None:
        """The plan that may be used at a time; None before the first."""
        made = self._made
        return made if made is not None and made.ready_s <= now_s else self._used

    def _as_before(self, groups: Sequence[Group]) -> list[Group]:
        """In the order of the plan in use; groups that are new to it come last."""
        order = self._used.order if self._used else ()
        before = {key: n for n, group in enumerate(order) for key in group.keys}
        return sorted(
            groups,
            key=lambda group: min(before.get(key, GROUPS_MOST) for key in group.keys),
        )
