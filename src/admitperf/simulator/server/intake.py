"""From a request to what the engine is asked for."""

from dataclasses import dataclass

from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.server.ask import Ask
from admitperf.simulator.server.part import Part
from admitperf.simulator.server.prefixes import Prefixes
from admitperf.simulator.server.refusal import no_room, too_long, too_much
from admitperf.simulator.server.tokens import Content, count, digest, hashes
from admitperf.simulator.server.words import Tape
from admitperf.simulator.traffic.arrival import Arrival, Prefix

_REMEMBERED = 8  # blocks by name for each block of the engine's cache
_REMEMBERED_LEAST = 65_536


@dataclass(frozen=True, slots=True)
class Entry:
    """A prompt ready for the engine.

    Attributes:
        part: where its answer is kept.
        arrival: what the engine gets.
    """

    part: Part
    arrival: Arrival


class Intake:
    """Turns requests into arrivals for one engine's life.

    Args:
        model: what the engine can do.
        tape: the words of answers.
    """

    def __init__(self, model: EngineModel, tape: Tape) -> None:
        self._model = model
        self._tape = tape
        most = max(_REMEMBERED * model.kv_blocks, _REMEMBERED_LEAST)
        self._prefixes = Prefixes(model.block_size, most)
        self._ids = 0

    @property
    def longest_tokens(self) -> int:
        """Most tokens of prompt and answer."""
        return self._model.longest_tokens

    def entries(self, ask: Ask) -> list[Entry]:
        """Every prompt of a request.

        Raises:
            Refusal: one of them, or what is asked for, is too long.
        """
        return [self._entry(ask, index) for index in range(len(ask.prompts))]

    def _entry(self, ask: Ask, index: int) -> Entry:
        prompt, size = ask.prompts[index], self._model.block_size
        blocks, rest = hashes(prompt, size)
        tokens = len(blocks) * size + count(rest)
        most = self._most(ask, prompt, tokens)
        name = f"{digest(prompt)}/{ask.seed}"
        start, length = self._tape.answer(name, most, forced=ask.forced)
        self._ids += 1
        part = Part(
            id=f"r{self._ids}",
            index=index,
            prompt=prompt,
            tokens=tokens,
            start=start,
            length=length,
            finish="length" if length == most else "stop",
        )
        prefix = self._prefix(part, ask, blocks, rest)
        return Entry(part, self._arrival(part, ask, most, prefix))

    def _most(self, ask: Ask, prompt: Content, tokens: int) -> int:
        longest = self.longest_tokens
        room = longest - tokens
        if room < 1:
            raise too_long(tokens, longest, exact=isinstance(prompt, tuple))
        if ask.most is None or ask.clipped:
            return room if ask.most is None else min(room, ask.most)
        if ask.most > longest:
            raise too_much(ask.most_name, ask.most, longest)
        if ask.most > room:
            raise no_room(tokens, ask.most, longest)
        return ask.most

    def _prefix(self, part: Part, ask: Ask, blocks: list[int], rest: Content) -> Prefix:
        if not self._model.prefix_caching:
            return ()
        said = self._tape.said(part.prompt, part.start, part.length, bare=ask.bare)
        after = blocks[-1] if blocks else 0
        more, _ = hashes(rest + said, self._model.block_size, after)  # type: ignore[operator]
        return self._prefixes.path(blocks + more, part.tokens)

    @staticmethod
    def _arrival(part: Part, ask: Ask, most: int, prefix: Prefix) -> Arrival:
        return Arrival(
            id=part.id,
            at_s=0.0,  # it is submitted when it is there
            input_tokens=part.tokens,
            max_output_tokens=most,
            output_tokens=part.length,
            prefix=prefix,
            priority=ask.priority,
        )
