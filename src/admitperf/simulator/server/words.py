"""What the engine answers: words that follow from the seed and the prompt.

One word is one token, and an answer is a stretch of one long tape of words, so that
nothing has to be made while it is given.
"""

from collections.abc import Iterator

from admitperf.simulator.server.tokens import Content
from admitperf.simulator.streams import stream

MEAN_TOKENS = 200.0
"""Mean length of answers nobody forces to be longer: that of short chat answers."""

FIRST_ID = 1000
"""Token id of the first word; prompts of a few small ids do not look like answers."""

_SAID = """
a about above after again all along also and any are as at away back be been both
but by call can come cost could day did do done down each end even ever every far few
find first for free from full gave get give go good half has have he held her here high
him his hold how if in into is it its just keep kind know last late least left less let
like line list live long look lost low made make many may me more most much must my near
need never new next no none not now of off old on once one only open or order other our
out over own part past place plan point put queue quite rate read rest right room run
said same say see seen sent set share she short show side since slow small so some soon
start step still stop such sure take tell than that the their them then there these they
thing this those three time to token too took tried true turn two under until up upon us
use used very wait was way we well went were what when where which while who whole why
will with word work would write yes yet you your
"""
WORDS = tuple(_SAID.split())
"""At most five letters each, so that each is one token: see `tokens`."""

_TAPE = 4096


class Tape:
    """The words of all answers.

    Args:
        seed: of the run.
        mean_tokens: mean length of answers that end of themselves.
    """

    def __init__(self, seed: int, mean_tokens: float = MEAN_TOKENS) -> None:
        self._seed = seed
        self._mean_tokens = mean_tokens
        chance = stream(seed, "tape")
        self._ids = [chance.randrange(len(WORDS)) for _ in range(_TAPE)]
        bare = [WORDS[number] for number in self._ids]
        self._bytes = [f" {word}".encode() for word in bare]
        self._words = bare

    def answer(self, name: str, most: int, *, forced: bool) -> tuple[int, int]:
        """Where the answer to a prompt begins on the tape, and its tokens.

        Args:
            name: of the prompt, and of what else tells answers apart.
            most: tokens.
            forced: it never ends of itself.
        """
        chance = stream(self._seed, f"answer/{name}")
        start = chance.randrange(_TAPE)
        length = 1 + int(chance.expovariate(1.0 / self._mean_tokens))
        return start, most if forced else min(most, length)

    def word(self, place: int, *, bare: bool = False) -> bytes:
        """The word at a place, a blank before it unless it has to stand bare."""
        word = self._bytes[place % _TAPE]
        return word[1:] if bare else word

    def text(self, start: int, length: int, *, bare: bool) -> str:
        """An answer as text.

        Args:
            start: place of its first word.
            length: words.
            bare: no blank before the first.
        """
        words = " ".join(self._words[place] for place in _places(start, length))
        return words if bare or not length else f" {words}"

    def ids(self, start: int, length: int) -> tuple[int, ...]:
        """An answer as token ids."""
        return tuple(FIRST_ID + self._ids[place] for place in _places(start, length))

    def said(self, kind: Content, start: int, length: int, *, bare: bool) -> Content:
        """An answer in the form its prompt had."""
        if isinstance(kind, tuple):
            return self.ids(start, length)
        return self.text(start, length, bare=bare)


def _places(start: int, length: int) -> Iterator[int]:
    return (place % _TAPE for place in range(start, start + length))
