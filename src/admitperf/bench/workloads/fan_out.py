"""An agent's task that fans out: 40 calls, 30 of them within two seconds.

Nothing of it was measured, and no trace at hand shows it: of 692 recorded sessions of
coding agents 675 never begin two calls within two seconds. It stands for what people
fear of agents.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from admitperf.bench.workloads.workload import Recorded
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.sessions import Call, Session

NAME = "fan-out"

BURST = 30
"""Calls of a task that begin within `BURST_S`."""

BURST_S = 2.0

HANGS_UP = 0.05
"""Share of calls whose caller closes in the midst of the answer."""

RESENT = 0.03
"""Share of calls that are sent a second time."""

RESENT_S = (0.5, 5.0)
"""How much later. Plain choice."""

PAUSE_S = 1.0
"""From an answer to the next call, for those after the burst, on average. As above."""

SHARED_TOKENS = 400
"""With which every prompt of every task begins: a system prompt. As above."""

TASK_TOKENS = 400
"""What the prompts of one task have in common after that. As above."""

MAX_OUTPUT_TOKENS = 2_000
"""The bound its callers set. As above."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Calls of one kind: how many a task has, and their own prompt and answer.

    Sizes are drawn evenly between two bounds, included. Plain choices.
    """

    name: str
    count: int
    own_tokens: tuple[int, int]
    output_tokens: tuple[int, int]


KINDS = (
    Kind("read", 24, (50, 600), (20, 80)),
    Kind("test", 10, (200, 1_200), (60, 240)),
    Kind("plan", 6, (800, 2_400), (400, 1_200)),
)


def made(count: int, seed: int) -> Recorded:
    """So many tasks, the same for the same seed."""
    tasks = tuple(_task(number, seed) for number in range(1, count + 1))
    return Recorded(
        name=NAME,
        begun=None,
        pool=tasks,
        said=(
            f"SYNTHETIC fan-out: {count} tasks of 40 calls (24 reads, 10 test runs, 6"
            f" long plans), {BURST} of them within {BURST_S:g} s, 5 % hung up in the"
            " midst of the answer, 3 % sent twice"
        ),
        notes={"sessions": count},
        synthetic=True,
    )


def _task(number: int, seed: int) -> Session:
    chance = stream(seed, f"{NAME}/{number}")
    kinds = [kind for kind in KINDS for _ in range(kind.count)]
    chance.shuffle(kinds)
    calls = [_call(kind, place, chance) for place, kind in enumerate(kinds)]
    begin_s = sorted(chance.random() * BURST_S for _ in range(BURST - 1))
    for place, gap_s in enumerate((0.0, *begin_s)):
        calls[place] = replace(calls[place], after=None, gap_s=gap_s)
    return Session(f"{NAME}-{number}", tuple(calls), MAX_OUTPUT_TOKENS)


def _call(kind: Kind, place: int, chance: Random) -> Call:
    """One that follows the call before it."""
    own, output = chance.randint(*kind.own_tokens), chance.randint(*kind.output_tokens)
    gap_s = chance.expovariate(1 / PAUSE_S)
    return Call(
        after=place - 1,
        gap_s=gap_s,
        input_tokens=SHARED_TOKENS + TASK_TOKENS + own,
        output_tokens=output,
        prefix=tuple(_prefix(place, own)),
        kind=kind.name,
        hangs_up_after=(
            chance.randint(1, output - 1) if chance.random() < HANGS_UP else None
        ),
        resent_after_s=(
            chance.uniform(*RESENT_S) if chance.random() < RESENT else None
        ),
    )


def _prefix(place: int, own: int) -> Iterator[tuple[int | str, int]]:
    """The system prompt, the task, and what is the call's own."""
    yield f"{NAME}/shared", SHARED_TOKENS
    yield 0, TASK_TOKENS
    yield 1 + place, own
