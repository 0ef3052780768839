"""Memory first: refuse while the KV cache is full."""

from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import KV_PRESSURE
from admitperf.core.snapshot import Snapshot


class KvThreshold(Policy):
    """Refuses while the fullest engine's KV cache is at or over a threshold."""

    name = "kv_threshold"
    signal_quantity = "kv_pressure"
    refuses_with = ("kv_pressure",)
    requires = (KV_PRESSURE,)

    threshold: Annotated[
        float,
        Param(
            "KV cache in use at which requests are refused, as a fraction",
            low=0.0,
            high=1.0,
            origin="plain choice: room for what runs to grow before 1.0",
        ),
    ] = 0.90
    action: Annotated[
        str,
        Param(
            "defer: come back, the cache drains; reject: go elsewhere",
            choices=("defer", "reject"),
            origin="a full cache drains within seconds",
        ),
    ] = "defer"

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse at the threshold."""
        if metrics.at_least(KV_PRESSURE, self.threshold):
            refuse = self.reject if self.action == "reject" else self.defer
            return refuse("kv_pressure")
        return self.admit()
