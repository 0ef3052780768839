"""The demo's engine below its capacity, without a policy: how full, and how good."""

from dataclasses import dataclass
from typing import Self

from admitperf.bench.demo import scene
from admitperf.bench.demo.calibration import Calibration
from admitperf.core.policy import Policy
from admitperf.core.signals import KV_PRESSURE
from admitperf.policies import load
from admitperf.simulator import VirtualClock, run
from admitperf.testing import MemoryLog

FULL = 0.90
"""What `kv_threshold` calls full by default."""


@dataclass(frozen=True, slots=True)
class Calm:
    """One run at the calm multiple of capacity.

    Attributes:
        offered: requests.
        full: of those, how many came while KV pressure was known to be at `FULL`.
        good: of those, how many met the SLO.
    """

    offered: int
    full: int
    good: int

    @classmethod
    def measured(cls, measured: Calibration, seed: int) -> Self:
        """Runs the scene without its burst."""
        clock, log = VirtualClock(), MemoryLog()
        policy: Policy = load("no_admission")(
            clock=clock, log=log, reports_outcomes=True
        )
        arrivals = scene.calm(measured.capacity_per_s, seed)
        run(policy, clock, arrivals, scene.setting(seed))
        pressures = [
            line["signals"].get(KV_PRESSURE.name, 0.0) for line in log.decisions
        ]
        slo = measured.slo
        good = sum(
            line["ttft_ms"] <= slo["ttft_ms"] and line["max_gap_ms"] <= slo["stall_ms"]
            for line in log.outcomes
        )
        return cls(len(pressures), sum(one >= FULL for one in pressures), good)
