"""Eight rules in one policy, each switched on by its bound."""

from collections.abc import Mapping
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.signals import (
    DEADLINE_SLACK_S,
    IN_FLIGHT,
    KV_CAPACITY_TOKENS,
    KV_PRESSURE,
    OLDEST_WAIT_S,
    POOL_LOAD,
    QUEUE_DEPTH,
    SESSION_IN_FLIGHT,
    TENANT_SHARE,
    UNCACHED_TOKENS,
)
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.forecast import first_token_s, held_tokens
from admitperf.policies.parts.replicas import Replicas
from admitperf.policies.parts.stuck import Stuck

GROWTH_QUANTILE = 0.8
"""Share of answers within what an answer is taken to need of memory. Origin: research
notes, 7.1: at least 0.8 for what must hold."""

EMPTY_KV = 0.05
"""KV in use up to which a cache is taken to be empty: a request that would not fit
under its bound even then is let in then, or it would wait for ever. Origin: the
resolver's bound between bookkeeping and use."""

STUCK = 10.0
"""Times the target that the oldest may wait where nothing is queued. Plain choice: with
the default 10 s, over the prefill of a long prompt and under a caller's patience."""

FIRST_OUT = -1.0
"""Rank of a cheap request among those that are held; all others have 0."""

_NEEDS: Mapping[str, tuple[Signal | str, ...]] = {
    "max_projected_kv": (
        KV_PRESSURE,
        KV_CAPACITY_TOKENS,
        "input_tokens",
        "max_output_tokens",
    ),
    "high_water": (KV_PRESSURE,),
    "target_wait_s": (OLDEST_WAIT_S,),
    "full_queue": (QUEUE_DEPTH,),
    "full_load": (POOL_LOAD,),
    "max_share": (IN_FLIGHT, "tenant"),
    "max_per_session": (IN_FLIGHT, "session"),
    "min_slack_s": (IN_FLIGHT, "deadline_s", "input_tokens", "cached_tokens"),
    "cheap_tokens": ("input_tokens", "cached_tokens"),
}
"""What each bound reads. All but `cheap_tokens` can refuse on their own."""

_ANSWERS_LATER: Mapping[str | None, int] = {
    "pool_saturated": 1,
    "kv_headroom": 2,
    "kv_pressure": 2,
    "queue_age": 2,
    "queue_depth": 2,
    "slots": 2,
}
"""What speaks of the pool answers after what speaks of the request or its caller, whom
no room would help; that no replica has room says more than that there is none now."""


class FrontDoor(Policy):
    """Eight rules, the cheapest first; each is on when its bound is given.

    Every rule that is on is asked for every request, so that the log tells how near
    each came. Of those that refuse, one that speaks of the request or its caller
    answers before one that speaks of the pool, and of the latter first the one that
    every replica is full; beyond that, the first of them. A fact that a request lacks
    skips the rule that needs it and no other.

    Raises:
        ConfigError: no bound that can refuse is given, `cheap_tokens` without
            `high_water`, or `hard_kv` under it.
    """

    name = "front_door"
    slo_awareness = "latency"
    signal_quantity = "kv_pressure"
    signal_structure = "dual-gate"
    metadata_assumed = (
        "tenant",
        "session",
        "deadline_s",
        "input_tokens",
        "cached_tokens",
    )
    refuses_with = (
        "kv_headroom",
        "too_large",
        "tenant_share",
        "session_in_flight",
        "deadline_unmeetable",
        "kv_pressure",
        "queue_age",
        "pool_saturated",
        "queue_depth",
        "slots",
    )
    requires = (KV_PRESSURE, OLDEST_WAIT_S)
    needs = _NEEDS

    max_projected_kv: Annotated[
        float | None,
        Param(
            "KV cache that a prompt and its answer may fill it to, as a fraction; "
            "None = not asked",
            above=0.05,
            high=1.0,
            origin="off: not every engine says how large its cache is",
        ),
    ] = None
    max_share: Annotated[
        float | None,
        Param(
            "part of the open work that one tenant may hold while others want the "
            "pool, as a fraction; None = not asked",
            above=0.0,
            high=1.0,
            origin="off: only the host knows what a tenant may hold",
        ),
    ] = None
    max_per_session: Annotated[
        int | None,
        Param(
            "open requests of one session; None = not asked",
            low=1,
            per_process=True,
            origin="off: only the host knows what a session may hold",
        ),
    ] = None
    min_slack_s: Annotated[
        float | None,
        Param(
            "seconds of the deadline that must be left when the first token should "
            "come; None = not asked",
            low=0.0,
            high=86400.0,
            origin="off: its refusals are final, and rest on a forecast",
        ),
    ] = None
    high_water: Annotated[
        float | None,
        Param(
            "KV cache in use from which a request waits, as a fraction; "
            "None = not asked",
            above=0.0,
            high=1.0,
            origin="plain choice: room for what runs to grow before 1.0",
        ),
    ] = 0.90
    target_wait_s: Annotated[
        float | None,
        Param(
            "seconds that the oldest request may have waited for its first token; "
            "None = not asked",
            above=0.0,
            high=3600.0,
            origin="plain choice: half of an objective of 2 s",
        ),
    ] = 1.0
    cheap_tokens: Annotated[
        int | None,
        Param(
            "tokens left to compute up to which a request with a cached prefix is "
            "cheap; None = none is",
            low=1,
            origin="off: only a host that knows what is cached can use it",
        ),
    ] = None
    hard_kv: Annotated[
        float,
        Param(
            "KV cache in use from which a cheap request waits too, as a fraction",
            low=0.0,
            high=1.0,
            origin="plain choice: between the default mark and a full cache",
        ),
    ] = 0.97
    full_queue: Annotated[
        int | None,
        Param(
            "requests that wait at a replica from which it is full; None = not asked",
            low=1,
            origin="off: it follows from the SLO and the engine",
        ),
    ] = None
    full_load: Annotated[
        float | None,
        Param(
            "load of a replica from which it is full, 1 = all its slots or memory; "
            "None = not asked",
            above=0.0,
            high=1000.0,
            origin="off: few engines say it",
        ),
    ] = None

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        on = [bound for bound in _NEEDS if getattr(self, bound) is not None]
        faults = list(self._faults(on))
        if faults:
            raise ConfigError(f"policy {self.name}", faults)
        needs = dict.fromkeys(one for bound in on for one in _NEEDS[bound])
        facts = [one for one in needs if isinstance(one, str)]
        self.require(*(one for one in needs if one not in facts), *facts)
        full = {QUEUE_DEPTH: self.full_queue, POOL_LOAD: self.full_load}
        bounds = {signal: b for signal, b in full.items() if b is not None}
        self._replicas = Replicas(bounds) if bounds else None
        self._stuck = Stuck(self.target_wait_s or 0.0)

    def _faults(self, on: list[str]) -> list[str]:
        faults = []
        if not [bound for bound in on if bound != "cheap_tokens"]:
            known = ", ".join(bound for bound in _NEEDS if bound != "cheap_tokens")
            faults.append(f"give at least one of {known}")
        if self.cheap_tokens is not None and self.high_water is None:
            faults.append("cheap_tokens says who may pass high_water: give that too")
        elif self.cheap_tokens is not None and self.hard_kv < (self.high_water or 0):
            faults.append("hard_kv is under high_water")
        return faults

    def decide(self, metrics: Snapshot) -> Decision:
        """Ask every rule that is on, then choose who answers."""
        cheap = self._is_cheap(metrics)
        queued = self._queued(metrics)
        marked, memory = self._memory(metrics, cheap=cheap)
        said = (
            self._headroom(metrics, cheap=cheap),
            self._share(metrics, marked=marked, queued=queued),
            self._session(metrics),
            self._deadline(metrics),
            memory,
            self._wait(metrics, queued=queued),
            self._full(metrics),
        )
        refused = [one for one in said if one is not None]
        if not refused:
            return self.admit()
        d = min(refused, key=_place)
        if cheap and d.verdict is Verdict.DEFER:
            d.rank = FIRST_OUT
        return d

    def decided(self, metrics: Snapshot, d: Decision) -> None:
        """Note when one was let in."""
        self._stuck.decided(metrics, d)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Learn who was served, and how full replicas are."""
        if outcome is not None:
            self._stuck.observe(metrics, outcome)
        elif self._replicas is not None:
            self._replicas.observe(metrics)

    def _is_cheap(self, metrics: Snapshot) -> bool:
        """Whether most of it is known cached, and little of it left to compute."""
        if self.cheap_tokens is None or not metrics.request.cached_tokens:
            return False
        uncached = metrics.read(UNCACHED_TOKENS)
        return uncached is not None and uncached <= self.cheap_tokens

    def _headroom(self, metrics: Snapshot, *, cheap: bool) -> Decision | None:
        """The whole prompt and its answer; of a cheap one what has to be computed.

        That is let in up to the hard bound, or to this one where it is the higher.
        """
        prompt, bound = held_tokens(metrics), self.max_projected_kv
        if bound is None or prompt is None:
            return None
        capacity, pressure = _largest(metrics), metrics.read(KV_PRESSURE)
        if capacity is None or pressure is None:
            return None
        if metrics.gate("prompt_kv", prompt / capacity, 1.0, ">"):
            return self.reject("too_large")
        if cheap:
            prompt = metrics.request.own_prefill_tokens or 0
            bound = max(bound, self.hard_kv)
        tokens = prompt + (metrics.output_tokens(GROWTH_QUANTILE) or 0.0)
        own = min(tokens / capacity, bound - EMPTY_KV)
        if not metrics.gate("projected_kv", pressure + own, bound, ">"):
            return None
        metrics.above(KV_PRESSURE, bound - own)  # what the wait is computed from
        return self.defer("kv_headroom")

    def _queued(self, metrics: Snapshot) -> bool | None:
        """Whether anything waits at the engine; None when it does not say."""
        if self.max_share is None and self.target_wait_s is None:
            return None
        waiting = metrics.read(QUEUE_DEPTH)
        return None if waiting is None else waiting > 0

    def _share(
        self, metrics: Snapshot, *, marked: bool, queued: bool | None
    ) -> Decision | None:
        """Over its share, while somebody else has work here and room is short."""
        share = None if self.max_share is None else metrics.read(TENANT_SHARE)
        if self.max_share is None or share is None:
            return None
        over = share > self.max_share
        if queued is None and self.high_water is None:
            marked = True  # nobody says that there is room
        if not (over and (marked or queued) and float(share) < 1.0):
            return None
        return self.reject("tenant_share", limit=self.max_share, used=float(share))

    def _session(self, metrics: Snapshot) -> Decision | None:
        if self.max_per_session is None or metrics.request.session is None:
            return None
        if metrics.at_least(SESSION_IN_FLIGHT, self.max_per_session):
            return self.defer("session_in_flight")
        return None

    def _deadline(self, metrics: Snapshot) -> Decision | None:
        deadline_s = metrics.request.deadline_s
        if self.min_slack_s is None or deadline_s is None:
            return None
        if metrics.at_most(DEADLINE_SLACK_S, 0.0):
            return self.reject("deadline_unmeetable")
        first_s = first_token_s(metrics)
        if first_s is None:
            return None
        slack_s = deadline_s - first_s
        late = metrics.gate("forecast_slack_s", slack_s, self.min_slack_s, "<")
        alone = not metrics.prefill_tokens  # nothing ahead: to measure again
        if not late or alone or self._stuck.probe_is_due(metrics):
            return None
        late_ms = 1000 * (self.min_slack_s - slack_s)
        return self.reject("deadline_unmeetable", estimate_ms=late_ms)

    def _memory(
        self, metrics: Snapshot, *, cheap: bool
    ) -> tuple[bool, Decision | None]:
        """Whether KV is at the mark, and what that means for this request.

        The bound that counts for it is asked last: its wait is computed from that gate.
        """
        if self.high_water is None:
            return False, None
        bounds = [self.high_water]
        if self.cheap_tokens is not None:
            bounds.insert(1 if cheap else 0, self.hard_kv)
        reached = {b: metrics.at_least(KV_PRESSURE, b) for b in bounds}
        refused = reached[bounds[-1]]
        return reached[self.high_water], self.defer("kv_pressure") if refused else None

    def _wait(self, metrics: Snapshot, *, queued: bool | None) -> Decision | None:
        """The oldest waits too long, and as others will: in a queue, or a stuck engine.

        With no queue it may be a long prompt that is worked on, and with one a request
        that was lost on the way; those who come next need not wait for either. While
        it shuts out everybody, a probe is let in now and then to find that out.
        """
        target_s = self.target_wait_s
        if target_s is None:
            return None
        if not metrics.above(OLDEST_WAIT_S, target_s):
            return None
        if queued is False and not metrics.above(OLDEST_WAIT_S, STUCK * target_s):
            return None
        if self._stuck.overtaken(metrics) or self._stuck.probe_is_due(metrics):
            return None
        return self.defer("queue_age")

    def _full(self, metrics: Snapshot) -> Decision | None:
        """Refused for good where the readings show a full pool, and only there.

        One replica that is full sends to the next. With what was sent since its
        reading it may only seem full, since how many it runs at once is a guess.
        """
        replicas = self._replicas
        if replicas is None:
            return None
        if metrics.gate("emptiest_replica", replicas.emptiest(metrics), 1.0):
            return self.reject("pool_saturated")
        if not metrics.gate("this_replica", replicas.here(metrics), 1.0):
            return None
        most = self.full_queue
        queued = most is not None and metrics.at_least(QUEUE_DEPTH, most)
        return self.defer("queue_depth" if queued else "slots")


def _place(d: Decision) -> int:
    return _ANSWERS_LATER.get(d.reason, 0)


def _largest(metrics: Snapshot) -> float | None:
    """Tokens that fit into the largest engine: a request is served by one of them."""
    supply = metrics.view.supplies.get(KV_CAPACITY_TOKENS)
    parts = supply.found.parts if supply is not None else None
    return max(parts.values()) if parts else metrics.read(KV_CAPACITY_TOKENS)
