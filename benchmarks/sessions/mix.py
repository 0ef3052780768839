"""What is offered: tasks made of published facts, and those of the shift test.

Where nothing else is said a number is of TraceLab (arXiv 2606.30560) or, where that
says nothing, a plain choice; PROTOCOL.md says them all. Nothing of it was measured
here: a median and a spread are facts, the shape between them is ours.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from math import exp, log
from pathlib import Path
from random import Random

from admitperf.bench.workloads import fan_out, weka
from admitperf.bench.workloads.pooled import Pooled
from admitperf.bench.workloads.workload import Recorded
from admitperf.simulator import stream
from admitperf.simulator.traffic.sessions import Call, Session, capped

TASKS = 400
"""Of a pool: more than begin in a run. Plain choice."""

SEEDS = {"train": 1, "final": 4, "short": 5}
"""Of each pool; its name stands in the names of its tasks, too. 2 and 3 went into
trials of this harness and are used up."""

SHARED_TOKENS = 2_000
"""With which every prompt begins: system prompt and tools. Plain choice."""

CALLS = (13.0, 1.0, 1, 120)
FIRST_TOKENS = (14_000.0, 0.6, 2_500, 60_000)
ANSWER_TOKENS = (180.0, 0.9, 1, 2_000)
RESULT_TOKENS = (600.0, 0.9, 20, 60_000)
GAP_S = (1.5, 1.6, 0.0, 60.0)
"""Median, sigma, least and most of a log-normal."""

SHORT_CALLS = (1, 3)
"""Least and most calls of the tasks in which no gain is expected."""

MOST_ANSWER_TOKENS = 4_096
"""The bound that callers set for an answer. Plain choice."""

TENANTS = 4
SHIFTS = {"x0.4": 0.4, "x2": 2.0, "x4": 4.0}
"""What the first prompts of the final pool are multiplied by."""

AT_ONCE = 8
"""Tasks that begin side by side in `burst`."""

RECORDED = Path("traces/weka_cc_sessions.part2.jsonl")
RECORDED_GAP_S = 60.0
"""A pause in the recorded sessions is cut to this, as in the mix."""

SHARED = "ADMITPERF_SHARED"
"""The folder that holds the traces; without it, one beside this checkout."""


def mix(pool: str, scale: float = 1.0, tasks: int = TASKS) -> Pooled:
    """Tasks of a pool, the same for the same name.

    Args:
        pool: train, final or short.
        scale: multiplies the first prompts.
        tasks: how many.
    """
    made = tuple(_task(pool, number, scale) for number in range(tasks))
    said = f"SYNTHETIC mix {pool}: {tasks} tasks"
    recorded = Recorded(name=pool, begun=None, pool=made, said=said, synthetic=True)
    return Pooled(name=pool, recorded=recorded).fitting(None)


def workload(name: str, longest_tokens: int) -> Pooled:
    """A mix by its name in the records, for an engine of a size.

    Args:
        name: train, final, short, x0.4, x2, x4, burst, no_final, fan-out or weka.
        longest_tokens: most of a prompt and its answer that the engine takes.

    Raises:
        FileNotFoundError: the recorded sessions are not there.
    """
    return _made(name).fitting(longest_tokens)


def shared() -> Path:
    """The folder of the traces."""
    beside = Path(__file__).resolve().parents[3] / "shared"
    return Path(os.environ.get(SHARED, beside))


def _task(pool: str, number: int, scale: float) -> Session:
    name = f"{pool}-{number}"
    chance = stream(SEEDS[pool], name)
    count, calls = _count(pool, chance), list[Call]()
    said = int(_drawn(chance, FIRST_TOKENS) * scale)
    for place in range(count):
        answer = int(_drawn(chance, ANSWER_TOKENS))
        calls.append(_call(place, said, answer, chance))
        said += answer + int(_drawn(chance, RESULT_TOKENS))
    tenant = f"t{number % TENANTS}"
    return Session(name, tuple(calls), MOST_ANSWER_TOKENS, tenant=tenant)


def _count(pool: str, chance: Random) -> int:
    if pool == "short":
        return chance.randint(*SHORT_CALLS)
    return round(_drawn(chance, CALLS))


def _call(place: int, said: int, answer: int, chance: Random) -> Call:
    """One that follows the call before it."""
    shared_tokens = min(SHARED_TOKENS, said)
    return Call(
        after=place - 1 if place else None,
        gap_s=_drawn(chance, GAP_S) if place else 0.0,
        input_tokens=said,
        output_tokens=answer,
        prefix=(("shared", shared_tokens), (0, said - shared_tokens)),
    )


def _drawn(chance: Random, spread: tuple[float, float, float, float]) -> float:
    median, sigma, least, most = spread
    return min(most, max(least, exp(chance.gauss(log(median), sigma))))


@cache
def _made(name: str) -> Pooled:
    made: dict[str, Callable[[], Pooled]] = {
        **{pool: partial(mix, pool) for pool in SEEDS},
        **{shift: partial(mix, "final", by) for shift, by in SHIFTS.items()},
        "burst": lambda: replace(mix("final"), name="burst", at_once=AT_ONCE),
        "no_final": partial(mix, "final"),
        "fan-out": lambda: _pooled(fan_out.made(TASKS, SEEDS["final"])),
        "weka": _weka,
    }
    return made[name]()


def _weka() -> Pooled:
    path = shared() / RECORDED
    if not path.exists():
        raise FileNotFoundError(f"{path}: set {SHARED} to the folder of the traces")
    read = weka.read(path)
    return _pooled(replace(read, pool=tuple(capped(read.pool, RECORDED_GAP_S))))


def _pooled(recorded: Recorded) -> Pooled:
    return Pooled(name=recorded.name, recorded=recorded)
