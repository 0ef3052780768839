"""A bound on the engine's queue."""

from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import QUEUE_DEPTH
from admitperf.core.snapshot import Snapshot


class QueueDepth(Policy):
    """Refuses while more requests wait inside the engines than a bound allows."""

    name = "queue_depth"
    slo_awareness = "latency"
    signal_quantity = "queue_depth"
    refuses_with = ("queue_depth",)
    requires = (QUEUE_DEPTH,)

    max_waiting: Annotated[
        int,
        Param(
            "requests that may wait, over all engines",
            low=0,
            origin="plain choice: a few seconds' work for one busy engine",
        ),
    ] = 32
    action: Annotated[
        str,
        Param(
            "defer: come back, the queue drains; reject: go elsewhere",
            choices=("defer", "reject"),
            origin="a queue drains within seconds",
        ),
    ] = "defer"

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse over the bound; a queue that just reaches it is allowed."""
        if metrics.above(QUEUE_DEPTH, self.max_waiting):
            refuse = self.reject if self.action == "reject" else self.defer
            return refuse("queue_depth")
        return self.admit()
