"""Weighted shares of the work, in tokens, among those who want some."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Annotated, cast

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.signals import IN_FLIGHT, QUEUE_DEPTH, TENANT_SHARE
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.settled import never_started, prompt_tokens
from admitperf.policies.parts.tenancy.claims import Claims
from admitperf.policies.parts.tenancy.holders import Holders
from admitperf.policies.parts.tenancy.weights import weights_of

TENANTS_MOST = 1000
"""Tenants whose work is remembered, those met last. Plain choice: about 0.2 MB. One
that is forgotten starts again where the others are."""

_IDLE_NS = 1_000_000_000
"""So long room is kept for who is awaited although nothing is open. Plain choice: who
waits comes back within the whole second that `Retry-After` is rounded up to."""

_NEEDED: tuple[Signal | str, ...] = (
    IN_FLIGHT,
    "tenant",
    "logical_id",
    "input_tokens",
    "max_output_tokens",
)


_NEEDS: Mapping[str, tuple[Signal | str, ...]] = {"contended_at": (QUEUE_DEPTH,)}
"""What each adds to what is read."""


class TenantShare(Policy):
    """Refuses a tenant that is ahead of its share while one that is behind waits.

    What a tenant was let in with is added up in tokens, divided by its weight. It is
    refused only while another one that had less was refused and is to be back: alone,
    or while nobody waits, a tenant may take everything. Who was away has no claim from
    that time.

    Raises:
        ConfigError: `weights` cannot be read.
    """

    name = "tenant_share"
    unit = "tenant"
    slo_awareness = "fairness"
    signal_quantity = "predicted_length"
    metadata_assumed = ("tenant", "input_tokens")
    refuses_with = ("tenant_share",)
    requires = _NEEDED
    needs = _NEEDS

    weights: Annotated[
        str | Mapping[str, float] | None,
        Param(
            "weights of tenants, as a=2,b=1 or a mapping; who is not named has 1",
            origin="equal shares: only the host knows who paid for more",
        ),
    ] = None
    contended_at: Annotated[
        int | None,
        Param(
            "requests that wait, over all engines, past which who holds more than its "
            "share of the open work is refused, whoever else asks; None = off",
            low=0,
            origin="off: who waits says so by coming back",
        ),
    ] = None

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        try:
            self._weights = weights_of(self.weights)
        except ConfigError as error:
            raise ConfigError(f"policy {self.name}", error.faults) from None
        self._had: OrderedDict[str, float] = OrderedDict()
        self._now = 0.0  # of the fair share: what the last one let in had had before
        self._full_at = 0.0  # open requests when room was last refused
        self._claims = Claims()
        self._holders = Holders()
        self._empty_ns: int | None = None  # first time with none open since it was full
        if self.contended_at is not None:
            self.require(QUEUE_DEPTH, *_NEEDED)

    def decide(self, metrics: Snapshot) -> Decision:
        """Who names no tenant has no share, and is not asked about it."""
        tenant = metrics.request.tenant
        if tenant is None:
            return self.admit()
        had = self._had_by(tenant)
        least, calls, until_ns = self._behind(tenant, had, metrics.now_ns)
        ahead = metrics.gate("tenant_share_ahead_tokens", had - least, 0.0, ">")
        none_left = metrics.gate(
            "tenant_share_room", self._room(metrics, calls), 1.0, "<"
        )
        if ahead and none_left:
            left_ms = (until_ns - metrics.now_ns) / 1e6
            return self.reject("tenant_share", estimate_ms=left_ms)
        if self._crowds(metrics, tenant):
            return self.reject("tenant_share")
        return self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """Count the work of who is let in; note who is to be back for want of room."""
        request = metrics.request
        tenant, call = request.tenant, request.logical_id
        self._claims.look(metrics.now_ns)
        self._forget_idle(metrics)
        if tenant is None:
            return None
        had = self._had_by(tenant)
        if d.verdict is Verdict.ADMIT:
            tokens = _tokens(metrics)
            self._now = max(self._now, had)
            self._note(tenant, had + tokens / self._weight(tenant))
            self._claims.served(tenant, call)
            return Charge((self.name, tenant), tokens)
        if not d.admitted and _wants_room(d):
            self._refused(metrics, d, tenant)
        return None

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Settle what ended by what it took; look who is awaited and who holds work."""
        self._claims.look(metrics.now_ns)
        self._forget_idle(metrics)
        charge = outcome.charge if outcome is not None else None
        if self._empty_ns is None and metrics.read(IN_FLIGHT) == 0:
            self._empty_ns = metrics.now_ns
        if outcome is None or not isinstance(charge, Charge):
            return
        _, tenant = cast("tuple[str, str]", charge.account)
        used = _used(outcome, charge.amount)
        if tenant in self._had:
            self._had[tenant] += (used - charge.amount) / self._weight(tenant)

    def _refused(self, metrics: Snapshot, d: Decision, tenant: str) -> None:
        """Where others say full, and who is to be back for that."""
        if d.fault == "capacity":
            self._empty_ns = None
            self._full_at = metrics.read(IN_FLIGHT) or 0.0
        if d.should_retry:
            self._note(tenant, self._had_by(tenant))
            wait_ns = int((d.retry_after_ms or 0.0) * 1e6)
            back_ns = metrics.now_ns + wait_ns
            self._claims.refused(tenant, metrics.request.logical_id, back_ns)

    def _weight(self, tenant: str) -> float:
        return self._weights.get(tenant, 1.0)

    def _had_by(self, tenant: str) -> float:
        """What it had so far, per weight; who comes anew starts where others are."""
        had = self._had.get(tenant, self._now)
        return had if self._claims.awaits(tenant) else max(had, self._now)

    def _note(self, tenant: str, had: float) -> None:
        self._had[tenant] = had
        self._had.move_to_end(tenant)
        if len(self._had) > TENANTS_MOST:
            self._had.popitem(last=False)
        if self.contended_at is not None:
            self._holders.note(tenant, self._weight(tenant))

    def _behind(self, tenant: str, had: float, now_ns: int) -> tuple[float, int, int]:
        """Those who had less and are awaited: the least, their calls, until when.

        What the tenant has had itself, where there are none.
        """
        least, calls, until_ns = had, 0, now_ns
        for other, theirs, end_ns in self._claims.near(now_ns):
            others = self._had.get(other, self._now)
            if other != tenant and others < had:
                calls += theirs
                if others < least:
                    least, until_ns = others, end_ns
        return least, calls, until_ns

    def _room(self, metrics: Snapshot, calls: int) -> float:
        """Requests that fit beyond what those calls need.

        Where several fit and none is open, a second after that was so for the first
        time, one is anybody's: an engine does not stand idle for who may never come
        back.
        """
        in_flight = metrics.read(IN_FLIGHT) or 0.0
        room = self._full_at - in_flight - calls
        if in_flight or self._full_at <= 1 or self._empty_ns is None:
            return room
        idle = metrics.now_ns - self._empty_ns >= _IDLE_NS
        return max(1.0, room) if idle else room

    def _crowds(self, metrics: Snapshot, tenant: str) -> bool:
        """Whether it holds more than its share while requests wait in the engines."""
        if self.contended_at is None:
            return False
        total = self._holders.weight
        if tenant not in self._holders:
            total += self._weight(tenant)
        over = metrics.above(TENANT_SHARE, self._weight(tenant) / total)
        return metrics.above(QUEUE_DEPTH, self.contended_at) and over

    def _forget_idle(self, metrics: Snapshot) -> None:
        """Forgets some that neither hold open work nor are to be back for some."""
        if self.contended_at is not None:
            self._holders.look(
                lambda tenant: (
                    metrics.charges((self.name, tenant)) > 0
                    or self._claims.awaits(tenant)
                )
            )


def _tokens(metrics: Snapshot) -> float:
    """What a request should take; its answer alone when its prompt is not known.

    At least 1: where nobody knows any size, requests are shared.
    """
    work = metrics.work_tokens()
    return max(1.0, (metrics.output_tokens() or 0.0) if work is None else work)


def _used(outcome: Outcome, charged: float) -> float:
    """What it took in the end; what it should have, when nobody says."""
    if never_started(outcome):
        return 0.0
    prompt, answer = prompt_tokens(outcome, cached=True), outcome.output_tokens
    return charged if prompt is None or answer is None else float(prompt + answer)


def _wants_room(d: Decision) -> bool:
    """Whether it waits for others to leave, and not for a limit of its own."""
    return d.fault == "capacity" or d.reason == "tenant_share"
