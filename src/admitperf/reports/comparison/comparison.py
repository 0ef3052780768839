"""Two arms, compared: checks before numbers, one of five verdicts.

`compare` takes the reports on both arms' runs, one for each repeat. It computes nothing
from their logs: what a run's numbers are is the report's business.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from admitperf.reports.comparison import score
from admitperf.reports.comparison.argument import argument
from admitperf.reports.comparison.arms import NO_HEADER, Arm, Contest, Pair, contest
from admitperf.reports.comparison.comparison_notices import notices
from admitperf.reports.comparison.guard import Guard
from admitperf.reports.comparison.guards import guards
from admitperf.reports.comparison.verdict import MARGIN, Paired, Word, in_family
from admitperf.reports.pages import stated
from admitperf.reports.pages.items import tally
from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.report import RunReport
from admitperf.reports.wording import plural, printable

Claim = Literal["better", "not-worse", "equivalent"]
CLAIMS: tuple[Claim, ...] = ("better", "not-worse", "equivalent")

SCHEMA = 1
"""Number of the JSON format."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """One run of an arm.

    Attributes:
        name: which repeat; `#2` where the second has no name.
        ids: its run ids.
        finding: LIVE, INERT, UNKNOWN, BASELINE or SHADOW.
        unit: what is counted: "planned calls", "calls" or "attempts".
        goodput: those that met the SLO, of those offered; None without outcomes.
        refused: those that were never let in, of those offered.
        held: attempts that were held before they were answered, of those offered.
        failed: outcomes that did not end well, of those reported.
        ttft_ms: time to first token of those that ended well, each attempt's clock.
        ttft_user_ms: the same on the user's clock; None when the log does not tell
            the two apart.
        rate_per_s: arrivals a second; None when it is not known.
    """

    name: str
    ids: tuple[str, ...]
    finding: str
    unit: score.Unit
    goodput: Share | None
    refused: Share
    held: Share
    failed: Share
    ttft_ms: Spread
    ttft_user_ms: Spread | None
    rate_per_s: float | None


@dataclass(frozen=True, slots=True)
class Side:
    """One arm of a comparison.

    Attributes:
        label: the policy, and what tells it from another arm of the same policy.
        policy: its name.
        baseline: whether it refuses nothing by design.
        params, provenance: as the header of its first run says.
        repeats: in the order they began.
        items: how many of them answer each of the seven reporting items how: by item,
            by answer.
    """

    label: str
    policy: str
    baseline: bool
    params: dict[str, Any]
    provenance: dict[str, str]
    repeats: tuple[Repeat, ...]
    items: dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One pair.

    Attributes:
        name: the repeat.
        goodput: of the arm minus of the baseline; None when either has none.
    """

    name: str
    goodput: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """An arm against a baseline.

    Attributes:
        experiment: as the headers say; None when they do not, or differ.
        simulated: whether any outcome comes from a simulated engine.
        oracle: whether a policy was told how long answers would be.
        verdict: better, worse, equivalent, inconclusive or void.
        arm, baseline: both sides.
        checks: asked before the numbers.
        paired_by: "name" or "order".
        pairs: the difference in each.
        statistics: what the differences say.
        says: what it comes to, in sentences.
        notices: what a reader should know before believing the numbers.
    """

    experiment: str | None
    simulated: bool
    oracle: bool
    verdict: Word
    arm: Side
    baseline: Side
    checks: tuple[Guard, ...]
    paired_by: Literal["name", "order"]
    pairs: tuple[Difference, ...]
    statistics: Paired
    says: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def failed(self) -> tuple[Guard, ...]:
        """The checks that make it void."""
        return tuple(one for one in self.checks if one.voids and one.failed)

    def against_claim(self, claim: Claim = "better") -> tuple[str, ...]:
        """Why it does not support a claim, one sentence a reason; empty = it does."""
        if self.failed:
            return tuple(map(_why_void, self.failed))
        held = {
            "better": self.verdict == "better",
            "equivalent": self.verdict == "equivalent",
            "not-worse": self.statistics.not_worse is True,
        }[claim]
        return () if held else (_why_not(self, claim),)

    def to_dict(self) -> dict[str, Any]:
        """As plain dicts and lists, ready for JSON."""
        plain = asdict(self)
        found = self.statistics
        plain["statistics"] |= {
            "asked": found.asked,
            "separate": found.separate,
            "equivalent": found.equivalent,
            "not_worse": found.not_worse,
            "blocks_needed": found.blocks_needed,
        }
        return plain


def compare(
    arm: Sequence[RunReport], baseline: Sequence[RunReport], margin: float = MARGIN
) -> Comparison:
    """Compares the repeats of a policy with those of a baseline.

    Args:
        arm, baseline: one report a repeat; at least one each.
        margin: the smallest difference in goodput that matters, a fraction above 0.
    """
    sides = (Arm(_policy(runs), _policy(runs), tuple(runs)) for runs in (arm, baseline))
    return compare_all(*sides, margin=margin)[0]


def compare_all(*sides: Arm, margin: float = MARGIN) -> tuple[Comparison, ...]:
    """Compares arms with a baseline, the p of gains raised when several claim one.

    Args:
        sides: the arms, the baseline last; two or more.
        margin: as in `compare`.
    """
    *arms, baseline = sides
    contests = [contest(arm, baseline) for arm in arms]
    asked = [(one, _paired(one, margin)) for one in contests]
    void = [any(g.voids and g.failed for g in guards(*both)) for both in asked]
    sound = [found for (_, found), bad in zip(asked, void, strict=True) if not bad]
    raised = iter(in_family(sound))
    return tuple(
        _comparison(one, found if bad else next(raised))
        for (one, found), bad in zip(asked, void, strict=True)
    )


def _comparison(met: Contest, paired: Paired) -> Comparison:
    checks = guards(met, paired)
    void = any(check.voids and check.failed for check in checks)
    runs = [run for arm in met.sides for run in arm.runs]
    return Comparison(
        experiment=_experiment(met),
        simulated=any(map(stated.simulated, runs)),
        oracle=any(map(stated.oracle, runs)),
        verdict="void" if void else paired.word,
        arm=_side(met.arm, runs),
        baseline=_side(met.baseline, runs),
        checks=checks,
        paired_by=met.paired_by,
        pairs=tuple(Difference(pair.name, _difference(pair)) for pair in met.pairs),
        statistics=paired,
        says=argument(met, paired, void=void),
        notices=notices(met),
    )


def _paired(met: Contest, margin: float) -> Paired:
    both = [_goodputs(pair) for pair in met.pairs]
    known = [two for two in both if two is not None]
    return Paired.of([a for a, _ in known], [b for _, b in known], margin)


def _goodputs(pair: Pair) -> tuple[float, float] | None:
    ours, theirs = score.met(pair.arm), score.met(pair.baseline)
    if ours is None or theirs is None or ours.value is None or theirs.value is None:
        return None
    return ours.value, theirs.value


def _difference(pair: Pair) -> float | None:
    both = _goodputs(pair)
    return None if both is None else both[0] - both[1]


def _experiment(met: Contest) -> str | None:
    names = {run.header.get("experiment") for arm in met.sides for run in arm.runs}
    (name, *others) = names
    return printable(str(name)) if name and not others else None


def _side(arm: Arm, runs: Sequence[RunReport]) -> Side:
    header = arm.runs[0].header
    return Side(
        label=arm.label,
        policy=arm.policy,
        baseline=arm.baseline,
        params=dict(header.get("params") or {}),
        provenance=dict(header.get("provenance") or {}),
        repeats=tuple(map(_repeat, arm.names, arm.runs)),
        items=tally(arm.runs, runs),
    )


def _repeat(name: str, run: RunReport) -> Repeat:
    return Repeat(
        name=name,
        ids=run.ids,
        finding=run.finding.word,
        unit=score.unit(run),
        goodput=score.met(run),
        refused=score.refused(run),
        held=Share.part(run.answers.held.n, run.answers.offered),
        failed=run.cost.failed,
        ttft_ms=run.cost.ttft_ms,
        ttft_user_ms=score.ttft_user_ms(run),
        rate_per_s=run.load.rate_per_s,
    )


def _policy(runs: Sequence[RunReport]) -> str:
    return printable(str(runs[0].header.get("policy") or NO_HEADER))


# ------------------------------------------------------------------------ claim


def _why_void(check: Guard) -> str:
    said = " ".join(check.says)
    return f"void: check {check.number}, {check.name}: {check.answer}. {said}"


def _why_not(made: Comparison, claim: Claim) -> str:
    found = made.statistics
    if not found.asked:
        return f"{made.verdict}: with {plural(found.n, 'pair')} it is not asked"
    if claim == "not-worse":
        low = found.interval_90.low if found.interval_90 else 0.0
        return (
            f"a loss of {found.margin:g} is not ruled out: the one-sided 95 % bound is"
            f" {low:+.3f}"
        )
    return f"{made.verdict}, not {claim}"
