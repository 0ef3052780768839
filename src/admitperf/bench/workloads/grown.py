"""Sessions whose prompts grow from call to call, made from measures of some."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from admitperf.bench.workloads.calls import Asked, made_session
from admitperf.bench.workloads.chains import Run
from admitperf.bench.workloads.tables import Table, drawn
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.sessions import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How sessions of one kind grow; each quantity is drawn for itself.

    Attributes:
        calls: of a session.
        first: tokens of its first prompt.
        fresh: tokens of a prompt that were not in the one before.
        lost: tokens of the one before that are gone at its end.
        output: tokens of an answer.
        gap_s: from an answer to the next call.
        resets: share of calls that lose over half of the prompt before.
        kept: share of it that is left then.
        reset_fresh: as `fresh`, of those.
        most: tokens of the longest prompt; one that would be longer is a reset.
        shared: tokens with which every prompt begins, of all sessions alike.
    """

    calls: Table
    first: Table
    fresh: Table
    lost: Table
    output: Table
    gap_s: Table
    resets: float
    kept: Table
    reset_fresh: Table
    most: int
    shared: int = 0

    def sessions(self, name: str, count: int, seed: int) -> Iterator[Session]:
        """So many of them, the same for the same seed.

        Args:
            name: begins their names.
            count: how many.
            seed: of all that is drawn.
        """
        for number in range(1, count + 1):
            yield self.session(name, number, stream(seed, f"{name}/{number}"))

    def session(self, name: str, number: int, chance: Random) -> Session:
        """One of them."""
        made = made_session(f"{name}-{number}", list(self._asked(chance)), 1)
        if not self.shared:
            return made
        calls = tuple(
            replace(
                call, prefix=tuple(_sharing(call.prefix, f"{name}/all", self.shared))
            )
            for call in made.calls
        )
        return replace(made, calls=calls)

    def length(self, chance: Random) -> int:
        """Calls of a session, which are drawn first."""
        return max(1, round(drawn(self.calls, chance)))

    def _asked(self, chance: Random) -> Iterator[Asked]:
        count = self.length(chance)
        prompt = _Prompt(round(drawn(self.first, chance)))
        for place in range(count):
            if place:
                self._grow(prompt, chance)
            yield Asked(
                after=place - 1 if place else None,
                gap_s=drawn(self.gap_s, chance) if place else 0.0,
                input_tokens=prompt.tokens,
                output_tokens=max(1, round(drawn(self.output, chance))),
                runs=tuple(prompt.runs),
            )

    def _grow(self, prompt: "_Prompt", chance: Random) -> None:
        """What the next prompt keeps of this one, and what is new in it."""
        fresh, lost = drawn(self.fresh, chance), drawn(self.lost, chance)
        grown = prompt.tokens - lost + fresh
        if chance.random() < self.resets or grown > self.most:
            fresh = drawn(self.reset_fresh, chance)
            lost = prompt.tokens * (1 - drawn(self.kept, chance))
        prompt.drop(round(lost))
        prompt.add(round(fresh))


def _sharing(
    prefix: Sequence[tuple[int | str, int]], chain: str, tokens: int
) -> Iterator[tuple[int | str, int]]:
    """A prompt whose first chain is all sessions' as far as they share it."""
    (first, whole), *rest = prefix
    yield chain, min(tokens, whole)
    yield first, max(0, whole - tokens)
    yield from rest


class _Prompt:
    """A prompt as runs of tokens; no two tokens of a session have one number."""

    def __init__(self, tokens: int) -> None:
        self.runs: list[Run] = []
        self.tokens = self._next = 0
        self.add(max(1, tokens))

    def add(self, tokens: int) -> None:
        """Puts so many new ones at its end."""
        if tokens > 0:
            self.runs.append((self._next, tokens))
            self.tokens += tokens
            self._next += tokens

    def drop(self, tokens: int) -> None:
        """Takes so many from its end; one is always left."""
        left = min(tokens, self.tokens - 1)
        self.tokens -= left
        while left > 0:
            first, count = self.runs.pop()
            if count > left:
                self.runs.append((first, count - left))
            left -= count


def common_tokens(
    one: Sequence[tuple[int | str, int]], other: Sequence[tuple[int | str, int]]
) -> int:
    """Tokens that two prompts of one session have in common at their beginning."""
    found = 0
    for (chain, tokens), (its, others) in zip(one, other, strict=False):
        if chain != its:
            break
        found += min(tokens, others)
        if tokens != others:
            break
    return found
