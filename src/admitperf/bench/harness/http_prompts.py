"""Prompts as token ids: what plans share is shared, and nothing between two runs.

The text of a chain follows from the run's salt and the chain's name alone. An engine's
answers become part of the chain they belong to, as they do in an agent's history, where
the engine says their ids; otherwise the chain goes on with ids of ours, and the engine
computes the answer's part once more.
"""

from collections.abc import Sequence

from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.arrival import Arrival

_TAPE = 1 << 16
"""Ids of which all chains are cut; a longer chain repeats them. Plain choice."""

_OWN = 16
"""Ids at a chain's start that no other has: those that share fewer than a block share
nothing. Plain choice: 16 ids of 395 do not come twice."""


class Prompts:
    """The text of a run.

    Args:
        salt: of the run; another salt is another text.
        vocabulary: ids to use, from and up to, without the last.
    """

    def __init__(self, salt: str, vocabulary: tuple[int, int]) -> None:
        self._salt = salt
        self._vocabulary = vocabulary
        chance = stream(0, f"{salt}/tape")
        self._tape = [str(chance.randrange(*vocabulary)) for _ in range(_TAPE)]
        self._chains: dict[str, _Chain] = {}

    def of(self, arrival: Arrival) -> str:
        """The ids of a prompt, as they stand between the brackets of a JSON list."""
        parts, left = list[str](), arrival.input_tokens
        for chain, tokens in self._path(arrival):
            parts += chain.first(min(tokens, left))
            left -= min(tokens, left)
        return ",".join(parts)

    def answered(self, arrival: Arrival, ids: Sequence[int]) -> None:
        """What the engine said goes on the chain the prompt ended in."""
        if arrival.prefix:
            chain, tokens = self._path(arrival)[-1]
            chain.go_on(tokens, ids)

    def _path(self, arrival: Arrival) -> "list[tuple[_Chain, int]]":
        """The chains of a prompt, the last of them up to its end."""
        if not arrival.prefix:  # nobody repeats it but who sends it again
            own = self._new(arrival.logical_id or arrival.id)
            return [(own, arrival.input_tokens)]
        *before, (last, _) = arrival.prefix
        path = [(self._chain(name), tokens) for name, tokens in before]
        left = arrival.input_tokens - sum(tokens for _, tokens in before)
        return [*path, (self._chain(last), max(0, left))]

    def _chain(self, name: str) -> "_Chain":
        if name not in self._chains:
            self._chains[name] = self._new(name)
        return self._chains[name]

    def _new(self, name: str) -> "_Chain":
        chance = stream(0, f"{self._salt}/{name}")
        own = [str(chance.randrange(*self._vocabulary)) for _ in range(_OWN)]
        return _Chain(own, self._tape, chance.randrange(_TAPE))


class _Chain:
    """Text that only grows."""

    __slots__ = ("_ids", "_place", "_tape")

    def __init__(self, own: list[str], tape: Sequence[str], place: int) -> None:
        self._ids = own
        self._tape = tape
        self._place = place

    def first(self, tokens: int) -> list[str]:
        """So many of its first ids."""
        while len(self._ids) < tokens:
            more = self._tape[self._place : self._place + tokens - len(self._ids)]
            self._ids += more
            self._place = (self._place + len(more)) % _TAPE
        return self._ids[:tokens]

    def go_on(self, end: int, ids: Sequence[int]) -> None:
        """Grows by an answer, unless it has gone on from there already."""
        if len(self._ids) == max(end, _OWN) == end:
            self._ids += map(str, ids)
