"""Agents that are made up, for who has no trace of real ones."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.sessions import Call, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """Sessions of one kind. Each number is drawn evenly between two bounds, included.

    A session's prompt grows: each holds the one before it, its answer, and something
    new. All defaults are plain choices, at a sixteenth of what coding agents were seen
    to send (WEKA's Claude Code sessions: half of the prompts are over 101,000 tokens,
    half of what is new in one under 713, half of the sessions have over 44 calls).

    Attributes:
        name: begins the names of its sessions.
        calls: calls in a session.
        first_tokens: the first prompt.
        new_tokens: what each later prompt adds to what was said.
        output_tokens: answers.
        max_output_tokens: the bound its callers set.
        gap_s: mean seconds between an answer and the next call, exponentially
            distributed: tools mostly.
        shared_tokens: of each first prompt, the beginning that all sessions share.
    """

    name: str = "agent"
    calls: tuple[int, int] = (5, 60)
    first_tokens: tuple[int, int] = (1_500, 3_000)
    new_tokens: tuple[int, int] = (20, 120)
    output_tokens: tuple[int, int] = (10, 100)
    max_output_tokens: int = 2_000
    gap_s: float = 15.0
    shared_tokens: int = 1_000

    @property
    def longest_tokens(self) -> float:
        """What the last call of a long session needs, on average."""
        more = sum(self.new_tokens) / 2 + sum(self.output_tokens) / 2
        return self.first_tokens[1] + self.calls[1] * more

    def fitting(self, longest_tokens: int) -> "Agents":
        """The same for an engine that takes so many tokens, shorter where needed."""
        scale = min(1.0, longest_tokens / self.longest_tokens)
        return replace(
            self,
            first_tokens=scaled(self.first_tokens, scale),
            new_tokens=scaled(self.new_tokens, scale),
            output_tokens=scaled(self.output_tokens, scale),
            max_output_tokens=max(1, int(self.max_output_tokens * scale)),
            shared_tokens=int(self.shared_tokens * scale),
        )

    def sessions(self, count: int, seed: int) -> Iterator[Session]:
        """So many of them, the same for the same seed."""
        chance = stream(seed, f"{self.name}/sessions")
        for number in range(1, count + 1):
            calls = tuple(self._calls(chance))
            yield Session(f"{self.name}-{number}", calls, self.max_output_tokens)

    def _calls(self, chance: Random) -> Iterator[Call]:
        said = chance.randint(*self.first_tokens)
        for place in range(chance.randint(*self.calls)):
            output = chance.randint(*self.output_tokens)
            yield Call(
                after=place - 1 if place else None,
                gap_s=chance.expovariate(1 / self.gap_s) if place else 0.0,
                input_tokens=said,
                output_tokens=output,
                prefix=self._prefix(said),
            )
            said += output + chance.randint(*self.new_tokens)

    def _prefix(self, said: int) -> tuple[tuple[int | str, int], ...]:
        shared = min(self.shared_tokens, said)
        if not shared:
            return ((0, said),)
        return (f"{self.name}/shared", shared), (0, said - shared)


def scaled(span: tuple[int, int], scale: float) -> tuple[int, int]:
    """Both bounds by so much, at least 1."""
    low, high = span
    return max(1, int(low * scale)), max(1, int(high * scale))
