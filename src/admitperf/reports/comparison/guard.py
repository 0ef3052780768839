"""One check of a comparison, and how its sentences name runs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from admitperf.reports.comparison.arms import Contest
from admitperf.reports.pages.checks import NO, NOT_ASKED, Answer
from admitperf.reports.report import RunReport
from admitperf.reports.wording import printable

Answered = tuple[Answer, tuple[str, ...]]
"""An answer, and its numbers in sentences."""

_MOST_NAMED = 4  # plain choice: what one check's lines bear


@dataclass(frozen=True, slots=True)
class Guard:
    """One check of a comparison.

    Attributes:
        number: its place, from 1.
        name: what is asked, as the condition that should hold.
        answer: "ok", "no" or "cannot be asked".
        says: its numbers, in sentences.
        needed: whether it must be ok, and not just not "no".
        voids: whether the comparison is void when it fails.
    """

    number: int
    name: str
    answer: Answer
    says: tuple[str, ...]
    needed: bool
    voids: bool

    @property
    def failed(self) -> bool:
        """Whether it stands in the way of a claim."""
        return self.answer == NO or (self.needed and self.answer == NOT_ASKED)


def each(contest: Contest) -> Iterator[tuple[str, RunReport]]:
    """Every run, with the name it goes by in a sentence."""
    for arm in contest.sides:
        for name, run in zip(arm.names, arm.runs, strict=True):
            yield f"{arm.label} {name}", run


def values(contest: Contest, ask: Callable[[RunReport], str]) -> dict[str, list[str]]:
    """Which runs gave each answer, by answer."""
    found: dict[str, list[str]] = {}
    for who, run in each(contest):
        found.setdefault(ask(run), []).append(who)
    return found


def told(found: dict[str, list[str]]) -> str:
    """Each answer, and where it was given."""
    return "; ".join(
        f"{printable(value)} in {who[0]}"
        + (f" and {len(who) - 1} more" * bool(who[1:]))
        for value, who in found.items()
    )


def few(said: Iterable[str]) -> tuple[str, ...]:
    """The first few sentences, and how many more there are."""
    every = [one for one in said if one]
    rest = len(every) - _MOST_NAMED
    more = (f"And {rest} more.",) if rest > 0 else ()
    return (*every[:_MOST_NAMED], *more)
