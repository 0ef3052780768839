"""What a server is made of."""

from dataclasses import dataclass
from typing import Literal

from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.server.words import MEAN_TOKENS

Dialect = Literal["vllm", "sglang"]

MOST_BYTES = 32 * 2**20
"""Largest body that is read; a prompt of a million tokens as ids has about 8 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a server is made of.

    Attributes:
        engine: what the engine can do.
        profile: name of the profile that the engine comes from.
        model: the name it is served under.
        dialect: whose names the page of metrics has.
        seed: of noise, answers, ids and faults.
        mean_tokens: mean length of answers that end of themselves.
        most_bytes: largest body that is read.
    """

    engine: EngineModel
    profile: str = "unnamed"
    model: str = "simulated"
    dialect: Dialect = "vllm"
    seed: int = 0
    mean_tokens: float = MEAN_TOKENS
    most_bytes: int = MOST_BYTES
