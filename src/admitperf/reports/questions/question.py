"""One question of the decision tree, and what a log answers to it."""

from dataclasses import dataclass

CANNOT_SAY = "this log cannot say"
TOO_FEW = "too few to say"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answer.

    Attributes:
        name: one word, for programs.
        asks: the question.
        answer: a word or two; `CANNOT_SAY` when the log does not hold it,
            `TOO_FEW` when it holds it on too few.
        says: the facts behind the answer, in sentences.
    """

    name: str
    asks: str
    answer: str
    says: tuple[str, ...]


def yes_or_no(found: bool | None) -> str:  # noqa: FBT001  what is turned into a word
    """yes, no, or that the log cannot say."""
    if found is None:
        return CANNOT_SAY
    return "yes" if found else "no"
