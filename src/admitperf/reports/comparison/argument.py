"""What a comparison comes to, in sentences: the argument, with its numbers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from admitperf.reports.comparison import score
from admitperf.reports.comparison.arms import Contest
from admitperf.reports.comparison.verdict import Paired
from admitperf.reports.quantile import nearest_rank
from admitperf.reports.report import RunReport
from admitperf.reports.wording import number, plural, share

_TAIL = 0.05  # above p95: with more than this unserved, p95 over offered is no time

_VISIBLE = 1.05  # plain choice: a tail within 5 % of another is as long


@dataclass(frozen=True, slots=True)
class Tail:
    """How the p95 time to first token of those served changed.

    Attributes:
        arm_ms, baseline_ms: the middle repeat's, by nearest rank: percentiles of
            repeats are never averaged.
        n: pairs in which both arms have one.
    """

    arm_ms: float
    baseline_ms: float
    n: int

    @property
    def changed(self) -> bool:
        """Whether the longer is visibly longer."""
        low, high = sorted((self.arm_ms, self.baseline_ms))
        return high > _VISIBLE * low

    @property
    def shorter(self) -> bool:
        """Whether it got visibly shorter."""
        return self.changed and self.arm_ms < self.baseline_ms

    @property
    def times(self) -> str:
        """By how much, the longer over the shorter: `12.4 times`."""
        low, high = sorted((self.arm_ms, self.baseline_ms))
        return f"{high / low:.3g} times" if low else "from 0 ms"

    @property
    def both(self) -> str:
        """`14200 to 1150 ms, middle of 5 repeats`."""
        told = f"{number(self.baseline_ms)} to {number(self.arm_ms)} ms"
        return told if self.n == 1 else f"{told}, middle of {self.n} repeats"


def tail(contest: Contest) -> Tail | None:
    """The change of the tail over the pairs; None when no pair has both."""
    both = [
        (pair.arm.cost.ttft_ms.p95, pair.baseline.cost.ttft_ms.p95)
        for pair in contest.pairs
    ]
    known = [(a, b) for a, b in both if a is not None and b is not None]
    if not known:
        return None
    arm, baseline = ([*map(float, one)] for one in zip(*known, strict=True))
    middle = nearest_rank(sorted(arm), 0.5), nearest_rank(sorted(baseline), 0.5)
    return Tail(*middle, len(known))


def argument(contest: Contest, paired: Paired, *, void: bool) -> tuple[str, ...]:
    """The sentences, the most important first.

    Args:
        contest: the arms.
        paired: what their differences say.
        void: whether a check failed: then nothing is said of what the policy did to
            goodput or to the tail.
    """
    said = [_refused(contest)]
    if not void and paired.mean is not None:
        said.extend(_change(contest, paired, tail(contest)))
    return tuple(said)


def _refused(contest: Contest) -> str:
    runs, unit = contest.arm.runs, score.unit(contest.arm.runs[0])
    n, of = _away(contest), _total(runs, score.offered)
    repeats = plural(len(runs), "repeat")
    held = _total(runs, lambda run: run.answers.held.n)
    asked = _total(runs, lambda run: run.answers.offered)
    also = f" and held {share(held, asked)} attempts" if held else ""
    return f"It refused {share(n, of)} {unit} offered{also}, in {repeats}."


def _away(contest: Contest) -> int:
    """How many of the arm's were never let in: 0 where all were only held."""
    return _total(contest.arm.runs, lambda run: score.refused(run).n)


def _total(runs: Sequence[RunReport], ask: Callable[[RunReport], int]) -> int:
    return sum(map(ask, runs))


def _change(contest: Contest, paired: Paired, moved: Tail | None) -> Iterator[str]:
    mean, word = paired.mean or 0.0, paired.word
    doubt = "" if word in ("better", "worse") else _DOUBT.get(word, "")
    if mean < 0:
        yield from _fell(contest, paired, moved, doubt)
    elif mean > 0:
        yield from _rose(contest, paired, moved, doubt)
    else:
        yield f"Goodput did not change{_and_tail(moved)}."


_DOUBT = {
    "equivalent": " The difference is within the margin.",
    "inconclusive": " These pairs do not settle it.",
}


def _fell(
    contest: Contest, paired: Paired, moved: Tail | None, doubt: str
) -> Iterator[str]:
    short = moved is not None and moved.shorter and _away(contest) > 0
    how = _ends(contest)
    if moved is None or not short:
        yield f"Goodput fell {how}{_and_tail(moved)}.{doubt}"
    else:
        yield (
            f"Goodput fell {how}, although the p95 tail of those served got"
            f" {moved.times} shorter ({moved.both}): the policy refused requests that"
            f" the cluster could have served.{doubt}"
        )
    yield _could_have(contest, paired)
    if short:
        yield from _no_win(contest)


def _could_have(contest: Contest, paired: Paired) -> str:
    """How many more the baseline served in time."""
    runs = [(score.met(pair.arm), score.met(pair.baseline)) for pair in contest.pairs]
    ours = sum(one.n for one, _ in runs if one)
    theirs = sum(one.n for _, one in runs if one)
    of = sum(score.offered(pair.baseline) for pair in contest.pairs)
    return (
        f"Over {plural(paired.n, 'pair')} {contest.baseline.label} met the SLO on"
        f" {theirs} of {of} offered, {contest.arm.label} on {ours}."
    )


def _no_win(contest: Contest) -> Iterator[str]:
    n, of = _away(contest), _total(contest.arm.runs, score.offered)
    said = (
        "That is no win: a tail of those served leaves out everyone who was turned"
        " away, and shrinks the more are."
    )
    if n > _TAIL * of:
        said += (
            f" Over all offered the p95 is no time at all: {share(n, of)} got no"
            " answer."
        )
    yield said


def _rose(
    contest: Contest, paired: Paired, moved: Tail | None, doubt: str
) -> Iterator[str]:
    how = _ends(contest)
    if moved is None or not moved.shorter:
        yield f"Goodput rose {how}{_and_tail(moved)}.{doubt}"
        return
    yield (
        f"Goodput rose {how}, and the p95 tail of those served got {moved.times}"
        f" shorter ({moved.both}).{doubt}"
    )
    if paired.word == "better" and _away(contest):
        yield (
            "What it turned away was more than paid back: more requests met the SLO,"
            " refused ones counted as not met."
        )


def _ends(contest: Contest) -> str:
    """`from 0.551 to 0.903 of offered`, means over the pairs."""
    both = [(score.met(pair.baseline), score.met(pair.arm)) for pair in contest.pairs]
    known = [(a.value, b.value) for a, b in both if a and b]
    n = max(len(known), 1)
    start = sum(a or 0.0 for a, _ in known) / n
    end = sum(b or 0.0 for _, b in known) / n
    of = "of offered" if n == 1 else f"of offered, means of {n} pairs"
    return f"from {start:.3f} to {end:.3f} {of}"


def _and_tail(moved: Tail | None) -> str:
    if moved is None:
        return ""
    if not moved.changed:
        return f", and the p95 tail of those served hardly changed ({moved.both})"
    way = "shorter" if moved.shorter else "longer"
    said = f"the p95 tail of those served got {moved.times} {way} ({moved.both})"
    return f", and {said}"
