"""Chat requests that are made up, for who has no trace of real ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat

from admitperf.bench.workloads.workload import Noun, Workload
from admitperf.core.notes import Note
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.sessions import Beginning, Call, Session
from admitperf.simulator.traffic.workload import Kind, Phase, poisson

NAME = "chat"

TOKENS = ((100, 900), (50, 350), 384)
"""Prompt, answer and the bound on it. Plain choices: 200 tokens of answer on average,
and a bound that none reaches, of which over half comes: reports call less a short
answer."""

POOL = 2_000
"""Requests to draw from. Plain choice."""

POOL_SEED = 1
"""Of those."""

KIND = Kind(
    name=NAME,
    input_tokens=TOKENS[0],
    output_tokens=TOKENS[1],
    max_output_tokens=TOKENS[2],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Requests that nobody waits for to ask another one, at Poisson times.

    Attributes:
        kind: their sizes.
        scale: what became of them, to fit.
        priorities: of which each request has one, as often as any other; empty = none
            says how much it matters.
    """

    kind: Kind = KIND
    scale: float = 1.0
    priorities: tuple[int, ...] = ()

    name: str = field(default=NAME, init=False)
    noun: Noun = field(default="request", init=False)
    synthetic: bool = field(default=True, init=False)

    def pool(self) -> Sequence[Session]:
        """Some of them."""
        made = self._fits().at(repeat(0.0, POOL), POOL_SEED)
        return [_session(one) for one in made]

    def begun(
        self, rate_per_s: float, lasts_s: float, seed: int
    ) -> Sequence[Beginning]:
        """Exactly the rate times the time of them."""
        phases = [Phase(lasts_s=lasts_s, rate_per_s=rate_per_s)]
        made = self._fits().at(poisson(phases, seed, NAME), seed)
        chance, known = stream(seed, f"{NAME}/priority"), self.priorities or (0,)
        return [(one.at_s, _session(one, chance.choice(known))) for one in made]

    def words(self) -> str:
        """Its sizes."""
        kind = self._fits()
        return (
            f"chat: prompts of {_span(kind.input_tokens)} tokens, answers of"
            f" {_span(kind.output_tokens)} (at most {kind.max_output_tokens}), Poisson"
            + (f", priorities {list(self.priorities)}" if self.priorities else "")
        )

    def scaling(self) -> str:
        """By the rate alone."""
        return "Load is made by how many requests come, at Poisson times."

    def notes(self) -> dict[str, Note]:
        """By how much it was shortened."""
        told: dict[str, Note] = {"token_scale": round(self.scale, 4), "synthetic": True}
        if self.priorities:
            told["priorities"] = ",".join(map(str, self.priorities))
        return told

    def fitting(self, longest_tokens: int | None) -> Workload:
        """Shorter requests, where one would not fit."""
        most = self.kind.input_tokens[1] + self.kind.max_output_tokens
        fits = 1.0 if longest_tokens is None else longest_tokens / most
        return replace(self, scale=min(1.0, fits))

    def _fits(self) -> Kind:
        kind = self.kind
        return replace(
            kind,
            input_tokens=_scaled(kind.input_tokens, self.scale),
            output_tokens=_scaled(kind.output_tokens, self.scale),
            max_output_tokens=max(1, int(kind.max_output_tokens * self.scale)),
        )


def _session(one: Arrival, priority: int = 0) -> Session:
    call = Call(
        after=None,
        gap_s=0.0,
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        prefix=one.prefix,
    )
    return Session(one.id, (call,), one.max_output_tokens, priority=priority)


def _scaled(span: tuple[int, int], scale: float) -> tuple[int, int]:
    """Both bounds by so much, at least 1."""
    low, high = span
    return max(1, int(low * scale)), max(1, int(high * scale))


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]} to {span[1]}"
