"""The arms, their grids, and what is run of them at each stage."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple


class Choice(NamedTuple):
    """A policy with its parameters.

    Attributes:
        policy: its name.
        parameters: as it takes them.
        engine: sizes of the engine that belong to it.
    """

    policy: str
    parameters: Mapping[str, object] = {}
    engine: Mapping[str, object] = {}


def grid(
    policy: str, given: Mapping[str, object], **values: Sequence[object]
) -> list[Choice]:
    """Every combination of values, beside what is given."""
    return [
        Choice(policy, {**given, **dict(zip(values, one, strict=True))})
        for one in product(*values.values())
    ]


PARTS = (
    *(f"kv_threshold:threshold={bound}" for bound in (0.5, 0.7, 0.9)),
    *(f"queue_depth:max_waiting={bound}" for bound in (0, 2, 8)),
    *(f"in_flight_cap:max_in_flight={bound}" for bound in (4, 8, 12, 16, 24)),
    *(
        f"kv_threshold:threshold={high}; queue_depth:max_waiting={waiting}"
        for high, waiting in product((0.7, 0.9), (0, 2))
    ),
)
"""The request gates of PROTOCOL.md, as `all_of` is told them: any may refuse."""

QUANTA = (10, 15)
CAPS = (4, 6, 8, 12, 16, 24)
"""Live tasks. Around what the three engines carry; plain choice."""

WATERMARKS = (0.5, 0.7, 0.85, 1.0, 1.3)
"""Around the 1.0 of its code, as the benchmark of policies has them; wider."""

QUEUED_TOKENS = (2_000, 8_000, 32_000)

GRIDS: dict[str, list[Choice]] = {
    "none": [Choice("no_admission")],
    "gate_one": grid("all_of", {}, policies=PARTS),
    "gate_elephant": grid("gate_elephant", {}, policies=PARTS, quantum=QUANTA),
    "cap_elephant": grid("cap_elephant", {}, max_live=CAPS, quantum=QUANTA),
    "thunder": grid(
        "thunder_inspired", {}, watermark=WATERMARKS, shared=("none", "measured")
    ),
    "protect": grid("session_ledger", {"mode": "protect"}),
    "shed": grid("session_ledger", {"mode": "shed"}),
    "aimd": grid("session_aimd", {"mode": "protect"}),
    "aimd_shed": grid("session_aimd", {"mode": "shed"}),
    "vllm_queued_tokens": [
        Choice("no_admission", engine={"max_num_queued_tokens": tokens})
        for tokens in QUEUED_TOKENS
    ],
}
"""What is screened for each arm; `gate_cell` takes the best of `gate_one` in each
cell."""

METRICS = ("count", "work")
PER_METRIC = ("gate_one", "gate_elephant", "cap_elephant", "thunder")
"""Arms that are tuned for each metric and stand in the records as `arm:metric`."""

METRIC = {"protect": "work", "shed": "count", "aimd": "work", "aimd_shed": "count"}
"""What an arm of one parameter set is tuned for."""

THIN = {"thin_protect": "protect", "thin_shed": "shed"}


def choices(arm: str) -> Iterator[Choice]:
    """All that is tried of an arm; a policy's own name is it at its defaults."""
    if arm in GRIDS:
        yield from GRIDS[arm]
    else:
        yield Choice(arm)
