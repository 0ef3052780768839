"""What is believed of an engine's costs before its runs say anything.

Coefficients scale together when an engine is faster or slower, so beliefs are ratios to
the time of a prompt token. A run of one client at a time cannot tell what a sequence
costs from what a step does; the ratio then stands in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from admitperf.simulator.engine.model import EngineModel

RATIOS: Mapping[str, tuple[str, float]] = {
    "step_ms": ("ms_per_prefill_token", 26.0),
    "ms_per_resident_token": ("step_ms", 0.00015),
    "ms_per_sequence": ("ms_per_prefill_token", 2.1),
}
"""Beside which other coefficient each stands, and how many times it: weights and cache
are read at one speed, sequences and prompt tokens are computed at another.

Of a model of 19 million weights on two cores, from nine runs of vLLM 0.32 together:
vllmA2-rate1.75 and -rate7, vllmA-closed1 and -closed16, vllmC-closed1 to -closed16. The
second is also what the model's sizes say: bytes of a token in the cache over bytes of
all weights.
"""

SPREAD, STEP_SPREAD = 0.5, 1.0
"""Standard deviation of a ratio, as a part of it. Plain choices: a step's fixed part
differs widely between engines, and any run knows it, so that belief is weak."""

_NOTHING = 1e-6
"""Part of the usual ratio that stands for 0, which nothing can be measured by."""

FRONT_MS, FRONT_SD_MS = 5.0, 15.0
"""From a request's arrival to the engine's queue: on a machine of two cores, 1 to 21 ms
of vLLM's and llama.cpp's server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """A belief.

    Attributes:
        ratios: by coefficient, beside which other and how many times it.
        front_ms, front_sd_ms: of the front end's time.
        said: where it comes from, in words.
    """

    ratios: Mapping[str, tuple[str, float]] = field(default_factory=lambda: RATIOS)
    front_ms: float = FRONT_MS
    front_sd_ms: float = FRONT_SD_MS
    said: str = "the default prior, of a small model on a CPU"

    def spread(self, name: str) -> float:
        """Standard deviation of a coefficient's ratio, as a part of it."""
        return STEP_SPREAD if name == "step_ms" else SPREAD

    def start(self) -> dict[str, float]:
        """A first guess of each coefficient, in units of a prompt token's time."""
        guess = {"ms_per_prefill_token": 1.0, "front_ms": 1.0}
        for name in ("step_ms", "ms_per_resident_token", "ms_per_sequence"):
            beside, ratio = self.ratios[name]
            guess[name] = ratio * guess[beside]
        return guess

    def words(self, name: str) -> str:
        """What stands in for a coefficient, in words."""
        if name == "front_ms":
            return f"drawn to {self.front_ms:g} ms, of {self.said}"
        if name not in self.ratios:
            return f"weakly known; its ratios to the others are of {self.said}"
        beside, ratio = self.ratios[name]
        return f"drawn to {ratio:.3g} x {beside}, of {self.said}"


def taken_from(model: EngineModel, name: str) -> Prior:
    """The belief that an engine costs in the ratios of a profile.

    A cost that is 0 in it is believed to be next to nothing.
    """
    costs = {
        "step_ms": model.step_ms,
        "ms_per_prefill_token": model.ms_per_prefill_token
        or model.step_ms / RATIOS["step_ms"][1],
        "ms_per_resident_token": model.ms_per_resident_token,
        "ms_per_sequence": model.ms_per_sequence,
    }
    return Prior(
        ratios={
            at: (beside, max(costs[at] / costs[beside], _NOTHING * usual))
            for at, (beside, usual) in RATIOS.items()
        },
        front_ms=model.front_ms,
        front_sd_ms=max(2 * model.front_ms, 5.0),
        said=f"profile {name}",
    )
