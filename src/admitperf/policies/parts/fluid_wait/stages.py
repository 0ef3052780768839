"""Reservations that grow while a request runs, without looking at the request again.

Of an answer whose length is not known, the likely part is held at first. What it will
hold when it outlives that is charged at once, to an account that counts only from the
time at which that should be. So the ledger gives all of it back with the request.
"""

from collections.abc import Iterable

from admitperf.core.charge import Charge
from admitperf.core.ledger import LEASE_S
from admitperf.core.snapshot import Snapshot

STEP_S = 5.0
"""Seconds to which the time of a raise is rounded down. Plain choice: at most 181
accounts within a lease, and room is held too early rather than too late."""


class Stages:
    """What open requests hold now, of one kind of room at one replica.

    It keeps the accounts whose time came or is to come, at most those of one lease; the
    amounts are the ledger's.

    Args:
        owner: the policy's name, with which the accounts begin.
        replica: whose room it is.
    """

    def __init__(self, owner: str, replica: str | None) -> None:
        self._account = (owner, replica, "room")
        self._numbers: dict[int, None] = {}
        self._raised = 0.0

    def charge(
        self, now_s: float, first: float, raises: Iterable[tuple[float, float]]
    ) -> tuple[Charge, ...]:
        """What a request takes.

        Args:
            first: held from now on.
            raises: (seconds from now, how much more is held from then on); those past
                the lease are left out.
        """
        made = [Charge(self._account, first)]
        for after_s, more in raises:
            if more > 0.0 and after_s < LEASE_S:
                number = int((now_s + after_s) // STEP_S)
                self._numbers[number] = None
                made.append(Charge((*self._account, number), more))
        return tuple(made)

    def look(self, metrics: Snapshot) -> None:
        """Adds up the raises whose time has come; for each reading."""
        now = int(metrics.now_s // STEP_S)
        self._raised = 0.0
        for number in [number for number in self._numbers if number <= now]:
            more = metrics.charged((*self._account, number))
            if more <= 0.0:
                del self._numbers[number]
            self._raised += more

    def held(self, metrics: Snapshot) -> float:
        """What is held, the raises as of the last reading."""
        return metrics.charged(self._account) + self._raised
