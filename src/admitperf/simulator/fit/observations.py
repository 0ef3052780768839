"""What a run says about costs: rows of a linear model, each with its duration.

A row is how often each cost was paid in some stretch of time:

    duration = front_ms * arrivals + step_ms * steps + ms_per_resident_token * tokens
             + ms_per_prefill_token * tokens + ms_per_sequence * sequences

A step is a row, the first token of a request that found the engine idle is one, and,
where only the ends of answers are known, so is an answer.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from admitperf.simulator.fit.recorded import Asked, Recorded
from admitperf.simulator.fit.steps import Kind, Step, steps

COEFFICIENTS = (
    "front_ms",
    "step_ms",
    "ms_per_resident_token",
    "ms_per_prefill_token",
    "ms_per_sequence",
)
"""The columns of a row, by the fields of an `EngineModel` that they estimate."""

FOREIGN_CORES = 0.1
"""Of a processor, taken by other processes: what was observed then is left out. A plain
choice; the clean runs have 0.02 at most."""

MOST_ANSWERS = 2_000
"""Answers of a log that become rows; of more, every second, third and so on. A plain
choice: five numbers need no more."""


@dataclass(frozen=True, slots=True)
class Row:
    """Some stretch of time.

    Attributes:
        at_s: when it ended, in seconds from the start of the run.
        took_ms: how long it took.
        paid: how often each coefficient was paid in it, in their order.
        steps: of the engine in it.
        alone: whether it is a first token on an idle engine.
    """

    at_s: float
    took_ms: float
    paid: tuple[float, float, float, float, float]
    steps: float = 1.0
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """All rows of a run.

    Attributes:
        rows: in the order of time.
        left_out: stretches that do not say what they paid for.
    """

    rows: tuple[Row, ...]
    left_out: int


def observed(run: Recorded) -> Observed:
    """What a run says: by steps when it says when tokens came, else by requests."""
    disturbed = disturbances(run)
    alone = list(_alone(run))
    if run.timed:
        rows, left = _by_step(run, steps(run.asked))
    else:
        rows = list(_answers(run.asked))
        left = sum(one.output_tokens <= 1 or not one.end_s for one in run.asked)
    kept = [row for row in (*rows, *alone) if not _within(row.at_s, disturbed)]
    return Observed(tuple(kept), left + len(rows) + len(alone) - len(kept))


def disturbances(run: Recorded) -> list[tuple[float, float]]:
    """From when to when other processes disturbed a run; none when they always did.

    What was always there belongs to the machine as it was measured.
    """
    found = [(f.from_s, f.to_s) for f in run.foreign if f.cores > FOREIGN_CORES]
    return found if len(found) <= len(run.foreign) / 2 else []


def _within(at_s: float, spans: Sequence[tuple[float, float]]) -> bool:
    """Whether a time lies in one of some rising spans."""
    place = bisect_right(spans, (at_s, math.inf)) - 1
    return place >= 0 and spans[place][0] <= at_s <= spans[place][1]


def _computed(run: Recorded, one: Asked) -> int | None:
    """Prompt tokens an engine had to compute; None = not known."""
    if one.cached_tokens is not None:
        return one.input_tokens - one.cached_tokens
    cached = run.engine.get("prefix_caching") is not False
    return None if cached and (one.prefix or one.session) else one.input_tokens


def _alone(run: Recorded) -> Iterator[Row]:
    """A row for each first token on an engine that had nothing else to do."""
    idle_s = -math.inf
    for one, following in zip_longest(run.asked, run.asked[1:]):
        next_s = math.inf if following is None else following.sent_s
        first_s, tokens = one.first_s, _computed(run, one)
        if first_s and tokens and idle_s <= one.sent_s and first_s <= next_s:
            yield _first(run, (one.sent_s, first_s), tokens)
        idle_s = max(idle_s, math.inf if one.end_s is None else one.end_s)


def _first(run: Recorded, span_s: tuple[float, float], tokens: int) -> Row:
    """The row of a prompt computed alone; each batch of a long one is a step."""
    batch = _batch(run)
    whole = -(-tokens // batch)
    resident = batch * whole * (whole - 1) / 2
    paid = (1.0, float(whole), resident, float(tokens), float(whole))
    return Row(span_s[1], (span_s[1] - span_s[0]) * 1e3, paid, whole, alone=True)


def _batch(run: Recorded) -> int:
    said = run.engine.get("max_num_batched_tokens")
    return said if isinstance(said, int) and said > 0 else 2048


def _by_step(run: Recorded, found: Sequence[Step]) -> tuple[list[Row], int]:
    """A row for each step whose predecessor ended where it began."""
    rows, left = list[Row](), 0
    for before, step in pairwise(found):
        at_work = {token.asked for token in before.tokens}
        goes_on = any(
            token.asked in at_work and token.kind is Kind.DECODE
            for token in step.tokens
        )
        paid = _paid(run, step) if goes_on else None
        if paid is None:
            left += 1
        else:
            rows.append(Row(step.end_s, (step.end_s - before.end_s) * 1e3, paid))
    return rows, left


def _paid(run: Recorded, step: Step) -> tuple[float, float, float, float, float] | None:
    """What a step paid for; None when it cannot be told."""
    resident = prefill = 0
    for token in step.tokens:
        one = run.asked[token.asked]
        if token.kind is Kind.RESUMED:
            return None  # how much of it was still cached is not known
        if token.kind is Kind.DECODE:
            resident += one.input_tokens + token.before - 1
            continue
        computed = _computed(run, one)
        if computed is None:
            return None
        prefill += computed
        resident += one.input_tokens - computed
    if prefill + len(step.tokens) > _batch(run):
        return None  # it was computed in several steps
    return (0.0, 1.0, float(resident), float(prefill), float(len(step.tokens)))


def _answers(asked: Sequence[Asked]) -> Iterator[Row]:
    """A row for each answer's time from its first token to its end.

    Who else decoded, and whose prompts were computed meanwhile, follows from their
    first tokens and ends; their tokens are taken as evenly spread.
    """
    spans = [(o.first_s, o.end_s, o) for o in asked if o.first_s and o.end_s]
    spans.sort(key=lambda span: span[0])
    begins = [begin_s for begin_s, _, _ in spans]
    longest_s = max((end_s - begin_s for begin_s, end_s, _ in spans), default=0.0)
    for first_s, end_s, one in spans[:: max(1, len(spans) // MOST_ANSWERS)]:
        if one.output_tokens > 1 and end_s > first_s:
            low = bisect_left(begins, first_s - longest_s)
            high = bisect_right(begins, end_s)
            yield _answer(one, (first_s, end_s), spans[low:high])


def _answer(
    one: Asked, span_s: tuple[float, float], near: Sequence[tuple[float, float, Asked]]
) -> Row:
    """The row of one answer, beside those that overlap it."""
    (first_s, end_s), made = span_s, one.output_tokens - 1
    sequences = resident = prefill = 0.0
    for begin_s, stop_s, other in near:
        from_s, to_s = max(first_s, begin_s), min(end_s, stop_s)
        if to_s > from_s and stop_s > begin_s:
            share = made * (to_s - from_s) / (end_s - first_s)
            sequences += share
            resident += share * _held(other, from_s, to_s)
        if other is not one and first_s < begin_s <= end_s:
            prefill += other.input_tokens - (other.cached_tokens or 0)
    paid = (0.0, float(made), resident, prefill, sequences)
    return Row(end_s, (end_s - first_s) * 1e3, paid, made)


def _held(one: Asked, from_s: float, to_s: float) -> float:
    """Tokens a request holds on average in a part of its decode."""
    first_s, end_s = one.first_s or 0.0, one.end_s or 0.0
    middle = ((from_s + to_s) / 2 - first_s) / (end_s - first_s)
    return one.input_tokens + middle * one.output_tokens
