"""The second check of a comparison: both arms of each pair faced the same load."""

from collections.abc import Iterator
from dataclasses import dataclass

from admitperf.reports.comparison.arms import Contest, Pair
from admitperf.reports.comparison.guard import Answered, few
from admitperf.reports.pages.checks import NO, NOT_ASKED, OK, Answer
from admitperf.reports.wording import number, plural, printable

SAME_LOAD = 0.05
"""The brief's tolerance: loads this near to each other, over the larger, are equal."""


def same_load(contest: Contest) -> Answered:
    """By the hash of the plan where both runs have it, else by what was offered."""
    if not contest.pairs:
        return NOT_ASKED, ("No repeat stands opposite another.",)
    answers = [_pair_load(pair) for pair in contest.pairs]
    differ = [said for answer, _, said in answers if answer == NO]
    if differ:
        retried = any(" attempts" in said for said in differ)
        return NO, (*few(differ), *([_RETRIES] if retried else []))
    blank = [said for answer, _, said in answers if answer == NOT_ASKED]
    if blank:
        return NOT_ASKED, few(blank)
    by_plan = [said for _, apart, said in answers if apart == _ONE_PLAN]
    measured = [(apart, said) for _, apart, said in answers if apart != _ONE_PLAN]
    said = []
    if by_plan:
        said.append(f"{plural(len(by_plan), 'pair')} with one plan each; {by_plan[0]}")
    if measured:
        _, worst = max(measured, key=lambda row: row[0])
        said.append(f"{plural(len(measured), 'pair')}; {worst}")
    return OK, tuple(said)


def _pair_load(pair: Pair) -> tuple[Answer, float, str]:
    """Whether it is the same, how far apart as a fraction, and in words."""
    plans = [run.load.plan for run in (pair.arm, pair.baseline)]
    if all(plans):
        if plans[0] == plans[1]:
            count = next(row for row in _quantities(pair) if row.name in _COUNTS)
            if count.known and count.apart > SAME_LOAD:
                said = f"{pair.name}: one plan, and the load differs by {count.text}."
                return NO, 1.0, said
            return OK, _ONE_PLAN, f"{pair.name}: {printable(str(plans[0]))}."
        both = " and ".join(printable(str(plan)) for plan in plans)
        return NO, 1.0, f"{pair.name}: the plans differ: {both}."
    asked = [row for row in _quantities(pair) if row.known]
    if not asked:
        return NOT_ASKED, 0.0, f"{pair.name}: the logs hold no load."
    off = [row.text for row in asked if row.apart > SAME_LOAD]
    if off:
        return NO, 1.0, f"{pair.name}: the load differs by {'; by '.join(off)}."
    worst = max(asked, key=lambda row: row.apart)
    return OK, worst.apart, f"furthest apart {pair.name}, by {worst.text}."


def rates_apart(pair: Pair) -> str | None:
    """How the rates differ although both arms met one plan; None when they do not."""
    rates = next(_quantities(pair))
    plans = pair.arm.load.plan, pair.baseline.load.plan
    if not plans[0] or plans[0] != plans[1] or not rates.known or rates.name != _RATE:
        return None
    return rates.text if rates.apart > SAME_LOAD else None


_ONE_PLAN = -1.0  # nearer than any measure
_RATE = "requests/s"
_COUNTS = ("calls", "attempts")
_RETRIES = "Without logical ids a retry counts as load: pass logical_id."


@dataclass(frozen=True, slots=True)
class _Quantity:
    """Something both runs of a pair were offered."""

    name: str
    arm: float | None
    baseline: float | None

    @property
    def known(self) -> bool:
        return self.arm is not None and self.baseline is not None

    @property
    def apart(self) -> float:
        """The difference, over the larger."""
        a, b = self.arm or 0.0, self.baseline or 0.0
        return abs(a - b) / max(a, b) if max(a, b) > 0 else 0.0

    @property
    def text(self) -> str:
        arm, baseline = map(self._written, (self.arm, self.baseline))
        return f"{100 * self.apart:.0f} %: {arm} and {baseline} {self.name}"

    def _written(self, value: float | None) -> str:
        return f"{value:.1f}" if self.name == _RATE else number(value)


def _quantities(pair: Pair) -> Iterator[_Quantity]:
    arm, baseline = pair.arm.load, pair.baseline.load
    plans = pair.arm.planned, pair.baseline.planned
    if plans[0] is not None and plans[1] is not None:
        # what is asked of a plan depends on the answers, and what it offers does not
        yield _Quantity("calls", plans[0].calls, plans[1].calls)
        return
    yield _Quantity(_RATE, arm.rate_per_s, baseline.rate_per_s)
    if arm.calls is not None and baseline.calls is not None:
        yield _Quantity("calls", arm.calls, baseline.calls)
    else:
        yield _Quantity("attempts", arm.attempts, baseline.attempts)
    for name in ("input_tokens", "max_output_tokens"):
        one, other = getattr(arm, name), getattr(baseline, name)
        yield _Quantity(f"{name} p50", one.p50, other.p50)
        yield _Quantity(f"{name} p95", one.p95, other.p95)
