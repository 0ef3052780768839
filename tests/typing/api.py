"""A host, a policy and a plug-in as a user would write them; only type-checked."""

from collections.abc import Mapping
from typing import Annotated, assert_type

from admitperf import Policy
from admitperf.core.decision import Decision
from admitperf.core.param import Param
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies import available, load
from admitperf.testing import FakeClock, MemoryLog, check_policy


class Wall(Policy):
    """A policy with one parameter, as a plug-in declares it."""

    name = "wall"
    requires = (KV_PRESSURE,)
    threshold: Annotated[float, Param("refuse from here", low=0.0, high=1.0)] = 0.90

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse at the wall, wait behind a queue."""
        if metrics.at_least(KV_PRESSURE, self.threshold):
            return self.reject("kv_pressure")
        if metrics.above(QUEUE_DEPTH, 32):
            return self.defer("queue_depth", retry_after_ms=200)
        return self.admit()


def host(raw: Mapping[str, float]) -> int:
    """A gateway's few lines: the status to answer with."""
    policy = Wall(threshold=0.8, log=MemoryLog(), clock=FakeClock())
    decision = policy(raw, request_id="r", tenant="t", input_tokens=512)
    assert_type(decision.admitted, bool)
    assert_type(decision.status, int)
    assert_type(decision.verdict, Verdict)
    assert_type(decision.retry_after_ms, float | None)
    assert_type(decision.reason, str | None)
    if decision.admitted:
        policy.first_token(decision.request_id)
        policy.outcome(decision.request_id, ok=True, ttft_ms=418)
    return decision.status


def sources() -> None:
    """A source is a name or a function of the raw metrics."""
    KV_PRESSURE.add_source("acme.cache.used_frac")
    KV_PRESSURE.add_source(lambda m: m["blocks_used"] / m["blocks_total"])


def plug_ins() -> None:
    """Installed policies are classes, by name."""
    assert_type(available(), dict[str, type[Policy]])
    assert_type(load("wall"), type[Policy])
    check_policy(Wall)
    check_policy("wall")
