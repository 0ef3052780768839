"""Count what is open: for a caller, for a session, for the pool."""

from collections.abc import Mapping
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.signals import IN_FLIGHT, SESSION_IN_FLIGHT, TENANT_IN_FLIGHT
from admitperf.core.snapshot import Snapshot

_LEDGER: tuple[Signal | str, ...] = (IN_FLIGHT,)
"""Known whenever the host's open requests are, which all three bounds count."""


_NEEDS: Mapping[str, tuple[Signal | str, ...]] = {
    "max_per_tenant": ("tenant",),
    "max_per_session": ("session",),
}
"""What each adds to what is read."""


class InFlightCap(Policy):
    """Refuses a request while as many are open as a bound allows.

    Up to three bounds, the narrowest asked first: a caller over its own bound is told
    so (429) also when the pool is full. A request that names no tenant or no session
    is held by the remaining bounds only.

    Raises:
        ConfigError: all three bounds are None.
    """

    name = "in_flight_cap"
    signal_quantity = "batch_state"
    metadata_assumed = ("tenant", "session")
    refuses_with = (
        "caller_in_flight",
        "session_in_flight",
        "in_flight_cap",
    )
    requires = _LEDGER
    needs = _NEEDS

    max_in_flight: Annotated[
        int | None,
        Param(
            "open requests of this host; None = no bound",
            low=1,
            per_process=True,
            origin="llm-d's concurrency detector, for one replica",
        ),
    ] = 100
    max_per_tenant: Annotated[
        int | None,
        Param(
            "open requests of one tenant; None = no bound",
            low=1,
            per_process=True,
            origin="off: only the host knows what a tenant may hold",
        ),
    ] = None
    max_per_session: Annotated[
        int | None,
        Param(
            "open requests of one session; None = no bound",
            low=1,
            per_process=True,
            origin="off: only the host knows what a session may hold",
        ),
    ] = None

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        facts = {"tenant": self.max_per_tenant, "session": self.max_per_session}
        if self.max_in_flight is None and not any(facts.values()):
            known = ", ".join(self.declared())
            raise ConfigError(f"policy {self.name}", [f"give at least one of {known}"])
        self.requires = (*_LEDGER, *(fact for fact, bound in facts.items() if bound))

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse at the first bound that is reached."""
        request = metrics.request
        if request.tenant is not None and _reached(
            metrics, TENANT_IN_FLIGHT, self.max_per_tenant
        ):
            return self.reject("caller_in_flight")
        if request.session is not None and _reached(
            metrics, SESSION_IN_FLIGHT, self.max_per_session
        ):
            return self.defer("session_in_flight")
        if _reached(metrics, IN_FLIGHT, self.max_in_flight):
            return self.defer("in_flight_cap")
        return self.admit()


def _reached(metrics: Snapshot, signal: Signal, bound: int | None) -> bool:
    """Whether one more would be over the bound."""
    return bound is not None and metrics.at_least(signal, bound)
