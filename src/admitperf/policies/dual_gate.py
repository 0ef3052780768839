"""Two gates, memory and queue: full, and it hurts."""

from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH
from admitperf.core.snapshot import Snapshot


class DualGate(Policy):
    """Refuses while the KV cache is full and requests wait.

    Each gate alone errs in its own way: a full cache without a queue may be a
    well-used cache, and a queue over an empty cache is about slots or prefill, not
    memory. Together they say that memory is what requests wait for.
    """

    name = "dual_gate"
    signal_quantity = "kv_pressure"
    signal_structure = "dual-gate"
    refuses_with = (
        "kv_pressure",
        "queue_depth",
    )
    requires = (KV_PRESSURE, QUEUE_DEPTH)

    threshold: Annotated[
        float,
        Param(
            "KV cache in use at which its gate holds, as a fraction",
            low=0.0,
            high=1.0,
            origin="plain choice: room for what runs to grow before 1.0",
        ),
    ] = 0.90
    max_waiting: Annotated[
        int,
        Param(
            "requests that may wait, over all engines, before its gate holds",
            low=0,
            origin="plain choice: with a full cache, one that waits is enough",
        ),
    ] = 0
    match: Annotated[
        str,
        Param(
            "all: refuse when both gates hold; any: when one does",
            choices=("all", "any"),
            origin="the conjunction is what makes it more than two policies",
        ),
    ] = "all"

    def decide(self, metrics: Snapshot) -> Decision:
        """Ask both gates, so that both are recorded, then match them."""
        full = metrics.at_least(KV_PRESSURE, self.threshold)
        queued = metrics.above(QUEUE_DEPTH, self.max_waiting)
        refuse = (full or queued) if self.match == "any" else (full and queued)
        if not refuse:
            return self.admit()
        return self.defer("kv_pressure" if full else "queue_depth")
