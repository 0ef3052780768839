"""Makes recorded sessions fit into an engine: fewer tokens, or fewer calls."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from admitperf.bench.workloads.workload import WorkloadError
from admitperf.core.notes import Note
from admitperf.reports.wording import number, share
from admitperf.simulator.traffic.sessions import Call, Session, fitting

FITS = 0.95
"""Of all calls, how many have to fit into an engine. Plain choice."""

DIVISORS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Divisors of token counts that are tried for that. Up to 64 a block of 64 tokens, as
agent traces have them, stays a whole number of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What was done to make calls fit.

    Attributes:
        divisor: by which every count of tokens was divided.
        left_out: calls that are gone, as too long even so.
        calls: how many there were.
        longest_tokens: what the engine takes; None = nobody asked.
    """

    divisor: int = 1
    left_out: int = 0
    calls: int = 0
    longest_tokens: int | None = None

    def words(self) -> str:
        """What is to be said after the workload's own words; empty = nothing."""
        told = ""
        if self.divisor > 1:
            told += f", token counts divided by {number(self.divisor)}"
        if self.left_out:
            left_out = share(self.left_out, self.calls)
            told += f"; {left_out} calls left out, over {self.longest_tokens} tokens"
        return told

    def notes(self) -> dict[str, Note]:
        """The same by name."""
        return {
            "token_divisor": self.divisor,
            "calls_left_out": self.left_out,
            "calls": self.calls,
        }


def fitted(
    sessions: Sequence[Session], longest_tokens: int | None, divisor: int | None
) -> tuple[list[Session], Fit]:
    """Sessions whose every call an engine takes.

    Args:
        sessions: as recorded.
        longest_tokens: what the engine takes; None = anything.
        divisor: of token counts; None = the least with which most calls fit.

    Raises:
        WorkloadError: no call is left.
    """
    calls = sum(len(session.calls) for session in sessions)
    if divisor is not None and (not isinstance(divisor, int) or divisor < 1):
        raise WorkloadError(f"divisor = {divisor!r} is no whole number of at least 1")
    if divisor is None:
        divisor = least_divisor(sessions, longest_tokens)
    made = [divided(session, divisor) for session in sessions]
    if longest_tokens is None:
        return made, Fit(divisor=divisor, calls=calls)
    made, left_out = fitting(made, longest_tokens)
    if not made:
        raise WorkloadError(f"no call fits into {longest_tokens} tokens")
    fit = Fit(
        divisor=divisor, left_out=left_out, calls=calls, longest_tokens=longest_tokens
    )
    return made, fit


def least_divisor(sessions: Iterable[Session], longest_tokens: int | None) -> int:
    """The first that makes most calls fit, else the last."""
    if longest_tokens is None:
        return 1
    sizes = [
        call.input_tokens + call.output_tokens
        for session in sessions
        for call in session.calls
    ]
    for divisor in DIVISORS:
        fit = sum(size <= longest_tokens * divisor for size in sizes)
        if fit >= FITS * len(sizes):
            return divisor
    return DIVISORS[-1]


def divided(session: Session, divisor: int) -> Session:
    """The same with every count of tokens divided, so that what is shared stays so."""
    if divisor == 1:
        return session
    return replace(
        session,
        calls=tuple(_divided(call, divisor) for call in session.calls),
        max_output_tokens=max(1, session.max_output_tokens // divisor),
    )


def _divided(call: Call, divisor: int) -> Call:
    prompt = max(1, ceil(call.input_tokens / divisor))
    answer = max(1, round(call.output_tokens / divisor))
    closes = call.hangs_up_after
    return replace(
        call,
        input_tokens=prompt,
        output_tokens=answer,
        prefix=tuple(_rounded(call.prefix, prompt, divisor)),
        hangs_up_after=None
        if closes is None
        else min(answer, max(1, closes // divisor)),
    )


def _rounded(
    prefix: Sequence[tuple[int | str, int]], prompt: int, divisor: int
) -> Iterator[tuple[int | str, int]]:
    """Chains that are rounded at their ends, so that sums stay exact."""
    begun = whole = 0
    for place, (chain, tokens) in enumerate(prefix, 1):
        whole += tokens
        end = min(prompt, whole // divisor)
        if end > begun or place == len(prefix):  # the last holds the answer
            yield chain, end - begun
        begun = end
