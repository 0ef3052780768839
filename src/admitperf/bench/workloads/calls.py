"""Calls whose prompts are given as blocks, as sessions whose prompts are chains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from admitperf.bench.workloads.chains import Path, Run, chains
from admitperf.simulator.traffic.sessions import Call, Session

MAX_OUTPUT_TOKENS = 32_000
"""The bound an agent sets for an answer; no trace says. Plain choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call: what it follows, after how long, and what its prompt is made of.

    Attributes:
        after, gap_s, input_tokens, output_tokens: as of `Call`.
        runs: of blocks; blocks of one number are alike.
    """

    after: int | None
    gap_s: float
    input_tokens: int
    output_tokens: int
    runs: Sequence[Run]


def made_session(name: str, asked: Sequence[Asked], block_tokens: int) -> Session:
    """A session of calls whose blocks are its own.

    Args:
        name: of the session.
        asked: its calls in order.
        block_tokens: tokens of a block.
    """
    paths = chains([one.runs for one in asked])
    calls = (
        Call(
            after=one.after,
            gap_s=one.gap_s,
            input_tokens=one.input_tokens,
            output_tokens=one.output_tokens,
            prefix=tuple(in_tokens(path, one.input_tokens, block_tokens)),
        )
        for one, path in zip(asked, paths, strict=True)
    )
    return Session(name, tuple(calls), MAX_OUTPUT_TOKENS)


def in_tokens(
    path: Path, prompt_tokens: int, block_tokens: int
) -> Iterator[tuple[int, int]]:
    """Chains in tokens, none of them over the end of the prompt."""
    blocks = begun = 0
    for place, (chain, more) in enumerate(path, 1):
        blocks += more
        end = min(prompt_tokens, blocks * block_tokens)
        if end > begun or place == len(path):  # the last holds the answer
            yield chain, end - begun
        begun = end
