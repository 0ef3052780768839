"""Reads Mooncake's traces: requests with the blocks of their prompts, 512 tokens each.

Their instants are whole milliseconds, and those of the conversations lie on a grid of
three seconds: replayed as they are, all requests of three seconds come at once. So up
to three seconds are added to each, drawn with a seed, and that is said.
"""

from pathlib import Path

from admitperf.bench.workloads import timed
from admitperf.bench.workloads.recovered import PRIVATE
from admitperf.bench.workloads.workload import Recorded

NAME = "mooncake"

BLOCK_TOKENS = 512
"""Tokens of a block of the trace."""

GRID_S = 3.0
"""Between two instants of the conversations."""


def read(
    path: str | Path,
    *,
    jitter_s: float = GRID_S,
    seed: int = 1,
    sessions: bool = False,
    private: int = PRIVATE,
) -> Recorded:
    """Requests at their instants, or sessions that were recovered.

    Args:
        path: of the file; a name that ends in .gz is unpacked.
        jitter_s: up to so much is added to each instant; 0 = nothing.
        seed: of that.
        sessions: recover them, for pauses between their requests.
        private: requests that may hold a block of one session.

    Raises:
        TraceError: it cannot be read, or is none of these; names file and line.
    """
    form = timed.Form(
        name=NAME,
        block_tokens=BLOCK_TOKENS,
        unit_s=0.001,
        jitter_s=jitter_s,
        seed=seed,
        sessions=sessions,
        private=private,
    )
    return timed.read(path, form)
