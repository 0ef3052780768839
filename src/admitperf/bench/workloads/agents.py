"""Agents that are made up, for who has no trace of real ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from admitperf.reports.wording import number
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

    def words(self) -> str:
        """What they are."""
        return (
            f"agents: {_span(self.calls)} calls a session, first prompts of"
            f" {_span(self.first_tokens)} tokens and {_span(self.new_tokens)} more each"
            f" time, answers of {_span(self.output_tokens)},"
            f" {number(self.gap_s)} s between calls on average"
        )

    def sessions(self, count: int, seed: int) -> Iterator[Session]:
        """So many of them, the same for the same seed."""
        chance = stream(seed, f"{self.name}/sessions")
        for place in range(1, count + 1):
            calls = tuple(self._calls(chance))
            yield Session(f"{self.name}-{place}", calls, self.max_output_tokens)

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


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]} to {span[1]}"
