"""The page's first section: what was shown, what was missed, what to choose."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.sessions.arms import METRICS
from benchmarks.sessions.evidence import MODES, Evidence, sets
from benchmarks.sessions.judged import (
    ABOVE,
    Answer,
    Regret,
    better_gate,
    difference,
    gain,
    ranked,
    regrets,
    three,
)


def short(
    evidence: Evidence,
    made: Sequence[Answer],
    refuted: Sequence[Answer],
    unexpected: Sequence[str],
) -> Iterator[str]:
    """The section.

    Args:
        evidence: what was run.
        made: the aims.
        refuted: what would refute it.
        unexpected: a line for each comparison in which no gain was expected.
    """
    yield "## In short"
    yield ""
    for one, words in zip(made, AIMS, strict=True):
        parts = f"{sum(one.parts)} of {len(one.parts)} parts hold"
        yield f"- {'Shown' if one.yes else f'MISSED ({parts})'}: {words}."
    true = [one for one in refuted if one.yes]
    yield f"- Of {len(refuted)} things that would refute it, {len(true)} came true."
    for one in true:
        yield f"    - {one.name}."
    shown = sum(": YES." in line for line in unexpected)
    yield (
        f"- Of {len(unexpected)} comparisons in which no gain was expected, {shown}"
        " show one."
    )
    for mode, metric in MODES.items():
        yield _against_gates(evidence, mode, metric)
    for metric in METRICS:
        yield from _to_choose(evidence, metric)
        yield from _to_tune(evidence, metric)
    yield ""


AIMS = (
    """
with one parameter set everywhere, `shed` on count and `protect` on work have the
  least bad worst cell, also under the shift
`protect` wastes at most 1 % of tokens, and at 1.2x and more it gains on work over
  every other arm
at 0.8x neither mode does harm
at 1.2x and more `shed` on count and `protect` on work beat `thunder_inspired`
at 1.5x each mode beats its own gates without memory, chance at equal volume, and the
  elephant rule without a ledger
""".replace("\n  ", " ")
    .strip()
    .splitlines()
)
"""The five aims, in words."""


def _against_gates(evidence: Evidence, mode: str, metric: str) -> str:
    told = " and ".join(
        f"{difference(one.paired)} against `{one.other}`"
        for one in (
            gain(evidence, mode, arm, ABOVE)
            for arm in (better_gate(evidence, metric), "gate_cell")
        )
    )
    return f"- `{mode}` on {metric} at 1.2x and more: {told}."


def _to_choose(evidence: Evidence, metric: str) -> Iterator[str]:
    """The arm whose worst cell, shifted ones among them, is the least bad."""
    grid, shift = evidence.grid(), evidence.shift()
    main = {one.arm: one for one in ranked(evidence, metric, grid)}
    moved = {one.arm: one for one in ranked(evidence, metric, shift)}
    both = [arm for arm in main if arm in moved]
    if not both:
        return
    best = min(both, key=lambda arm: (_worst(arm, main, moved), arm))
    what = "; ".join(sets(evidence.of_arm(best, [*grid, *shift])))
    yield (
        f"- To choose, if {CHOICE[metric]} and load, engine and sizes are not known:"
        f" `{best}`, which is `{what}`. It is at most"
        f" {three(_worst(best, main, moved))} behind the best arm of any cell, the"
        f" shift test among them; {_others(both, best, main, moved)}."
    )


def _to_tune(evidence: Evidence, metric: str) -> Iterator[str]:
    """What a request gate is worth to who can tune it for each load and engine."""
    arm = evidence.named("gate_cell", metric)
    for one in regrets(evidence, metric, evidence.grid()):
        if one.arm == arm:
            yield (
                f"- Who can tune a request gate for each engine, client and load"
                f" (`{arm}`) is at most {three(one.worst)} behind on {metric}, on"
                f" average {three(one.mean)}."
            )


CHOICE = {
    "count": "every task counts alike",
    "work": "a long task counts for more than a short one",
}


def _worst(arm: str, main: Mapping[str, Regret], moved: Mapping[str, Regret]) -> float:
    return max(main[arm].worst, moved[arm].worst)


def _others(
    both: Sequence[str],
    best: str,
    main: Mapping[str, Regret],
    moved: Mapping[str, Regret],
) -> str:
    """The modes of the ledger, and what stands next."""
    rest = sorted(
        (arm for arm in both if arm != best), key=lambda arm: _worst(arm, main, moved)
    )
    wanted = [arm for arm in rest if arm in (*rest[:1], *MODES)]
    return ", ".join(f"`{arm}` {three(_worst(arm, main, moved))}" for arm in wanted)
