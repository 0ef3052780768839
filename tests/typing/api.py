"""A host, a policy and a plug-in as a user would write them; only type-checked.

Where an `ignore` stands, a mistake must be told: mypy fails on one it does not need.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, assert_never, assert_type

from admitperf import (
    AdmitPerfError,
    BadPlugin,
    ConfigError,
    Decision,
    MissingSignal,
    Outcome,
    Param,
    Policy,
    PolicyNotFound,
    Reading,
    Reason,
    Signal,
    Snapshot,
    Source,
    Verdict,
)
from admitperf.core.signals import INPUT_TOKENS, KV_CAPACITY_TOKENS, KV_PRESSURE
from admitperf.core.signals import QUEUE_DEPTH as QUEUE
from admitperf.policies import available, load
from admitperf.testing import FakeClock, MemoryLog, check_policy, snapshot

# A policy.


class Wall(Policy):
    """A policy with parameters, taxonomy, reasons of its own and a memory."""

    name = "wall"
    unit = "agent-session"
    slo_awareness = "latency"
    signal_quantity = "kv_pressure"
    signal_structure = "dual-gate"
    metadata_assumed = ("input_tokens",)
    requires = (KV_PRESSURE, "input_tokens")
    reasons: ClassVar[Mapping[str, Reason]] = {
        "acme_budget": Reason(429, fault="caller", retry=True)
    }

    threshold: Annotated[float, Param("refuse from here", low=0.0, high=1.0)] = 0.90
    max_waiting: Annotated[int | None, Param("requests; None = no bound", low=0)] = 32
    action: Annotated[str, Param("what to do", choices=("defer", "reject"))] = "defer"

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.longest_ms = 0.0

    def decide(self, metrics: Snapshot) -> Decision:
        """Operators, methods and derived numbers, side by side."""
        pressure = KV_PRESSURE.read(metrics)
        assert_type(pressure, float | None)
        if pressure is not None and pressure >= self.threshold:
            return self.reject("kv_pressure")
        if self.max_waiting is not None and metrics.above(QUEUE, self.max_waiting):
            return self.defer("queue_depth", retry_after_ms=200)
        if self._projected(metrics):
            return self.defer("kv_headroom", estimate_ms=1500)
        assert_type(metrics.request.tenant, str | None)
        assert_type(metrics.request.deadline_s, float | None)
        assert_type(metrics.request.stream, bool | None)
        assert_type(metrics.now_s, float)
        return self.admit()

    def _projected(self, metrics: Snapshot) -> bool:
        capacity = metrics.read(KV_CAPACITY_TOKENS)
        tokens = metrics.read(INPUT_TOKENS)
        if capacity is None or tokens is None:
            return False
        return metrics.gate("projected_kv", tokens / capacity, self.threshold, op=">")

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Learn from ends; a new reading comes as None."""
        if outcome is not None and outcome.ttft_ms is not None:
            assert_type(outcome.output_tokens, int | None)
            assert_type(outcome.admitted, bool)
            self.longest_ms = max(self.longest_ms, outcome.ttft_ms)


# A host.


def host(raw: Mapping[str, float]) -> int:
    """A gateway's few lines: the status to answer with."""
    policy = Wall(threshold=0.8, log=MemoryLog(), clock=FakeClock())
    decision = policy(raw, request_id="r", tenant="t", input_tokens=512)
    assert_type(decision, Decision)
    assert_type(decision.admitted, bool)
    assert_type(decision.status, int)
    assert_type(decision.verdict, Verdict)
    assert_type(decision.retry_after_ms, float | None)
    assert_type(decision.reason, str | None)
    assert_type(decision.request_id, str)
    assert_type(decision.enforced, bool)
    assert_type(decision.headers(), dict[str, str])
    assert_type(decision.body(), dict[str, object])
    if decision.admitted:
        policy.first_token(decision.request_id)
        policy.outcome(
            decision.request_id,
            ok=True,
            ttft_ms=418,
            max_gap_ms=35,
            e2e_ms=5200.5,
            output_tokens=212,
            cached_tokens=9100,
            finish_reason="stop",
            error=None,
        )
    return decision.status


def every_fact(policy: Policy, raw: Mapping[str, object]) -> Decision:
    """All facts, all optional, None = unknown."""
    policy(raw)
    policy(raw, logical_id=None, tenant=None, deadline_s=None, late_ms=None)
    return policy(
        raw,
        request_id="r",
        logical_id="call",
        attempt=1,
        tenant="t",
        session="s",
        parent_session="p",
        session_final=True,
        model="m",
        slo_class="chat",
        input_tokens=1,
        cached_tokens=0,
        max_output_tokens=1,
        n=1,
        deadline_s=2.5,
        priority=-1,
        stream=True,
        late_ms=12.0,
    )


def mistakes(policy: Policy, raw: Mapping[str, object]) -> None:
    """What a type checker tells a host before it runs."""
    policy(raw, tenants="t")  # type: ignore[call-arg]
    policy(raw, tenant=7)  # type: ignore[arg-type]
    policy(raw, "r")  # type: ignore[call-arg]
    policy(raw, input_tokens="many")  # type: ignore[arg-type]
    policy.outcome("r", ttft="fast")  # type: ignore[call-arg]
    policy.outcome("r", ok=True, ttft_ms="fast")  # type: ignore[arg-type]


def scraper(policy: Policy, page: Mapping[str, object], taken_ns: int) -> Decision:
    """A host that reads its engines itself hands over what it read and when."""
    reading = Reading(page, taken_ns=taken_ns, interval_s=0.25, replica="r1")
    try:
        policy.check(reading)
        policy.check(page)
    except MissingSignal as missing:
        assert_type(missing.signal, str)
        assert_type(missing.tried, list[str])
        assert_type(missing.nearest, list[str])
        raise
    return policy(reading)


def words(verdict: Verdict) -> str:
    """There are three verdicts, and a checker knows it."""
    match verdict:
        case Verdict.ADMIT:
            return "start"
        case Verdict.DEFER:
            return "wait"
        case Verdict.REJECT:
            return "go"
        case never:
            assert_never(never)


def set_up() -> Iterator[Policy]:
    """Every reserved keyword, and what a wrong one raises."""
    try:
        with Wall(
            log="decisions.jsonl",
            experiment="e",
            run="r",
            notes={"model": "m", "load": 1.5, "ignore_eos": True, "seed": None},
            provenance={"threshold": "fitted"},
            enforce=0.5,
            slo={"ttft_ms": 1500, "stall_ms": 500},
            sources={KV_PRESSURE: ["acme", lambda m: 0.5, Source("x", scale=0.01)]},
            on_blind="degrade",
            blind_cap=8,
            hold_last_s=5.0,
            max_age_s=2.0,
            max_defer_s=60.0,
            preset="openai",
            raw="auto",
            log_max_mb=100,
            log_keep=5,
            reports_outcomes=True,
        ) as policy:
            assert_type(policy, Wall)
            assert_type(policy.threshold, float)
            assert_type(policy.max_waiting, int | None)
            assert_type(policy.flush(1.0), bool)
            yield policy
    except ConfigError as error:
        assert_type(error.faults, list[str])
        raise


class Recorder:
    """A host's own place for lines: any object with these five methods."""

    def decision(self, view: object, line: str) -> None:
        """Takes a decision line."""

    def event(self, kind: str, line: str) -> None:
        """Takes an outcome or control line."""

    def flush(self, timeout_s: float = 1.0) -> bool:
        """Writes what is buffered."""
        return True

    def close(self, timeout_s: float = 1.0) -> None:
        """Writes what is left."""

    def after_fork(self, run: str) -> None:
        """Starts anew."""


class Ticks:
    """A host's own clock."""

    def monotonic_ns(self) -> int:
        """Nanoseconds."""
        return 0

    def wall_ns(self) -> int:
        """Nanoseconds."""
        return 0


def own_parts() -> Policy:
    """A log and a clock of one's own are taken as they are."""
    return Wall(log=Recorder(), clock=Ticks())


# A plug-in.


FEVER = Signal(
    "acme_fever",
    unit="celsius",
    low=30.0,
    high=45.0,
    combine="max",
    origin="engine",
    serves="too hot: wait",
    fails_when="nobody measures",
)


def sources() -> None:
    """A source is a name, a function of the raw metrics, or a Source."""
    KV_PRESSURE.add_source("acme.cache.used_frac")
    KV_PRESSURE.add_source(lambda m: m["acme"])
    made = FEVER.add_source(Source("acme_fever_tenths", scale=0.1))
    assert_type(made, Source)
    FEVER.remove_source(made)
    assert_type(FEVER.read({"acme_fever": 37.0}), float | None)


def plug_ins() -> None:
    """Installed policies are classes, by name."""
    assert_type(available(), dict[str, type[Policy]])
    try:
        assert_type(load("wall"), type[Policy])
    except (PolicyNotFound, BadPlugin) as error:
        wrong: AdmitPerfError = error
        raise wrong from None
    check_policy(Wall)
    check_policy("wall")


def by_hand() -> Decision:
    """A rule can be asked without an engine."""
    seen = snapshot({KV_PRESSURE: 0.95, "queue_depth": 3}, tenant="t", now_s=1.0)
    assert_type(seen, Snapshot)
    return Wall().decide(seen)
