"""A bound on the first token's delay, checked before a request is let in."""

from collections.abc import Mapping
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.request import Request
from admitperf.core.signals import RUNNING
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.chronos.admissions import Admissions
from admitperf.policies.parts.chronos.response_time import (
    decodes_most,
    first_token_bound,
    load_most,
    prefill_time,
)
from admitperf.policies.parts.replicas import REPLICAS_MOST

_INHERITED = "inherited: the paper's 7B on A100-80GB, roofline, not measured"


class ChronosInspired(Policy):
    """Refuses what could miss its deadline although the bound is met so far.

    Three checks in the paper's order: prefill utilisation below 1, Theorem 1's bound on
    the first token within the deadline, and room for one more answer under the budget
    for a token. The arrivals are those it admitted itself, and the request in question.
    Windows belong to one process, by replica; a forked child goes on with a copy.

    Raises:
        ConfigError: no answer at all fits a budget for a token.
    """

    name = "chronos_inspired"
    slo_awareness = "deadline"
    signal_quantity = "deadline_slack"
    signal_structure = "formal-bound"
    metadata_assumed = ("input_tokens", "deadline_s")
    refuses_with = (
        "prefill_backlog",
        "deadline_unmeetable",
        "slots",
    )
    requires = (RUNNING, "input_tokens", "cached_tokens", "deadline_s", "slo_class")

    alpha_ms: Annotated[
        float,
        Param(
            "time of a step for each prompt token in it, in ms",
            above=0.0,
            high=1e3,
            origin=_INHERITED,
        ),
    ] = 0.080
    beta_ms: Annotated[
        float,
        Param(
            "time of a step for each answer it carries on, in ms",
            low=1e-6,
            high=1e3,
            origin=_INHERITED,
        ),
    ] = 0.250
    gamma_ms: Annotated[
        float,
        Param(
            "time of a step besides, in ms",
            low=0.0,
            high=1e5,
            origin=_INHERITED,
        ),
    ] = 7.0
    chunk_tokens: Annotated[
        int,
        Param(
            "prompt tokens computed in one step",
            low=1,
            high=1e6,
            origin="inferred: with 128 the paper's own 731 comes out",
        ),
    ] = 128
    ttft_s: Annotated[
        float,
        Param(
            "until the first token where neither request nor SLO says, in s",
            above=0.0,
            high=3600.0,
            origin="inherited: the paper's evaluation",
        ),
    ] = 2.0
    tbt_ms: Annotated[
        float,
        Param(
            "between two tokens where the SLO has no stall_ms, in ms",
            above=0.0,
            high=3.6e6,
            origin="inherited: the paper's evaluation",
        ),
    ] = 200.0
    window_s: Annotated[
        float,
        Param(
            "seconds of admissions that the arrival rate is taken from",
            low=0.1,
            high=3600.0,
            origin="inherited: the paper's 60 s",
        ),
    ] = 60.0
    sub_windows: Annotated[
        int,
        Param(
            "parts of the window, the fullest of which is the peak",
            low=1,
            high=30,
            origin="plain choice: 10 s, so that one prompt is no peak",
        ),
    ] = 6
    rate: Annotated[
        str,
        Param(
            "peak: the rate of the fullest part; mean: of the whole window",
            choices=("peak", "mean"),
            origin="the paper's: the peak within 60 s",
        ),
    ] = "peak"
    prefill_share: Annotated[
        float,
        Param(
            "part of an engine's prefill that this process may use, as a fraction",
            low=1e-6,
            high=1.0,
            per_process=True,
            origin="one process before the engine has all of it",
        ),
    ] = 1.0

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._ttft_s = _limits(self.settings.slo, "ttft_ms", self.ttft_s)
        budgets = _limits(self.settings.slo, "stall_ms", self.tbt_ms / 1000)
        self._decodes = {cls: self._decodes_in(each) for cls, each in budgets.items()}
        if min(self._decodes.values()) < 1:
            fault = "tbt_ms (or stall_ms of the slo) is too short for one answer"
            raise ConfigError(f"policy {self.name}", [fault])
        self._admissions: dict[str | None, Admissions] = {}

    def decide(self, metrics: Snapshot) -> Decision:
        """Check utilisation, then the bound, then room for one more answer."""
        late = self._late(metrics)
        request = metrics.request
        room = max(0, _of(self._decodes, request) - request.n)
        full = metrics.above(RUNNING, room)
        if late is not None:
            return late
        return self.defer("slots") if full else self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> None:
        """Count what was admitted."""
        if d.verdict is Verdict.ADMIT:
            cost_s = self._prefill_s(metrics.request)
            window = self._of_replica(metrics)
            self._admissions.setdefault(self._key(metrics), window)
            window.add(metrics.now_s, cost_s)

    def _late(self, metrics: Snapshot) -> Decision | None:
        """What the first two checks say; None = in time, or the size is not known."""
        request = metrics.request
        cost_s = self._prefill_s(request)
        if cost_s is None:
            return None
        left_s = self._left_s(request)
        load = self._load(metrics, cost_s)
        if metrics.gate("prefill_utilisation", load, 1.0):
            wait_ms = self._fits_in_ms(metrics, cost_s, left_s)
            if wait_ms is not None:
                return self.defer("prefill_backlog", estimate_ms=wait_ms)
            return self.reject("deadline_unmeetable")
        bound_s = first_token_bound(load, cost_s, left_s)
        if metrics.gate("first_token_bound_s", bound_s, left_s, ">"):
            wait_ms = self._fits_in_ms(metrics, cost_s, left_s)
            return self.reject("deadline_unmeetable", estimate_ms=wait_ms)
        return None

    def _load(self, metrics: Snapshot, cost_s: float) -> float:
        """Work that arrives, with this request; one before an idle engine is no rate.

        What this process admitted stands for what the others did.
        """
        window, now_s = self._of_replica(metrics), metrics.now_s
        if window.empty(now_s) and metrics.read(RUNNING) == 0:
            return 0.0
        return window.load(now_s, cost_s, self.prefill_share)

    def _fits_in_ms(
        self, metrics: Snapshot, cost_s: float, left_s: float
    ) -> float | None:
        """Until as much time would be enough, as the window empties; None = never."""
        most, share = load_most(cost_s, left_s), self.prefill_share
        now_s = metrics.now_s
        wait_s = self._of_replica(metrics).falls_in_s(now_s, cost_s, share, most)
        return None if wait_s is None else 1000.0 * wait_s

    def _prefill_s(self, request: Request) -> float | None:
        """Time to compute what of the prompt is not known to be cached."""
        tokens = request.uncached_tokens
        if tokens is None:
            tokens = request.input_tokens
        if tokens is None:
            return None
        return prefill_time(
            tokens, self.chunk_tokens, self.alpha_ms / 1000, self.gamma_ms / 1000
        )

    def _left_s(self, request: Request) -> float:
        if request.deadline_s is not None:
            return max(0.0, request.deadline_s)
        return _of(self._ttft_s, request)

    def _decodes_in(self, budget_s: float) -> int:
        return decodes_most(
            1000 * budget_s,
            self.chunk_tokens,
            self.alpha_ms,
            self.beta_ms,
            self.gamma_ms,
        )

    def _of_replica(self, metrics: Snapshot) -> Admissions:
        """The window of a replica, for `decide`: a new one is not kept."""
        known, peak = self._admissions.get(self._key(metrics)), self.rate == "peak"
        return known or Admissions(self.window_s, self.sub_windows, peak=peak)

    def _key(self, metrics: Snapshot) -> str | None:
        """Its replica; those met past the bound share one window."""
        known, replica = self._admissions, metrics.replica
        if replica not in known and len(known) >= REPLICAS_MOST:
            return None
        return replica


def _limits(
    slo: Mapping[str, object] | None, name: str, default_s: float
) -> dict[str | None, float]:
    """A limit in seconds by SLO class; by None the one for all others."""
    found: dict[str | None, float] = {None: default_s}
    told = slo or {}
    nested = any(isinstance(limits, Mapping) for limits in told.values())
    for cls, limits in told.items() if nested else ((None, told),):
        if isinstance(limits, Mapping) and name in limits:
            found[cls] = limits[name] / 1000
    return found


def _of(limits: Mapping[str | None, float], request: Request) -> float:
    found = limits.get(request.slo_class)
    return limits[None] if found is None else found
