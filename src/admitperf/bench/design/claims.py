"""What an arm may claim: a gain above capacity, no harm below it.

Two claims are set before any run, and each block is one observation of each: the mean
difference over the loads the claim is about.

gain      at 1.2x of capacity and more. Holds when the p of the paired t test is below
          0.05 after Holm's procedure over the gains of all arms, the sign-flip p is
          below 0.05, and the mean is at least the margin.
no harm   at 0.8x and less. Holds when a loss of the margin or more is ruled out, one-
          sided at 95 %.

better        the gain holds, and no harm holds or could not be asked.
worse         the arms separate the other way above capacity; or harm is shown below
              it, with no gain above.
equivalent    above capacity the 90 % interval lies inside the margin, and no harm
              holds or could not be asked.
inconclusive  anything else. A gain above capacity with harm below it, or with harm not
              ruled out, is no "better": it is said in words.

Single loads are exploratory: their intervals are shown as they are.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Literal

from admitperf.bench.design.design import GAIN_FROM, HARM_UP_TO
from admitperf.bench.design.measures import Better, signed, words
from admitperf.reports.comparison.design import FEWEST_ASKED, FEWEST_FLIPPED
from admitperf.reports.comparison.statistics import ALPHA, holm
from admitperf.reports.comparison.verdict import MARGIN, Paired, Word
from admitperf.reports.wording import number, plural

Claim = Literal["better", "gain", "no-harm"]
CLAIMS: tuple[Claim, ...] = ("better", "gain", "no-harm")

_Judge = Callable[[Sequence[float], Sequence[float]], Paired]


@dataclass(frozen=True, slots=True)
class Cell:
    """One block of one load, met by an arm and by the baseline.

    Attributes:
        arm: its name.
        load: multiple of capacity.
        block: from 1.
        value, baseline: the metric of both.
    """

    arm: str
    load: float
    block: int
    value: float
    baseline: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """A claim's blocks, each the mean over its loads.

    Attributes:
        loads: the claim is about, ascending.
        blocks: those that have all of these loads.
        lacking: blocks that lack some and are left out.
        statistics: of the means, arm and baseline; `family_p` is the p of the t test
            after Holm's procedure.
    """

    loads: tuple[float, ...]
    blocks: tuple[int, ...]
    lacking: tuple[int, ...]
    statistics: Paired

    @property
    def rises(self) -> bool:
        """Whether a gain is shown."""
        found = self.statistics
        p = found.t_p if found.family_p is None else found.family_p
        if found.n < FEWEST_FLIPPED or found.mean is None or p is None:
            return False
        flips = found.sign_flip_p
        return (
            found.mean >= found.margin
            and p < ALPHA
            and (flips is None or flips < ALPHA)
        )

    @property
    def falls(self) -> bool:
        """Whether a loss of the margin or more is shown."""
        return self.statistics.word == "worse"

    @property
    def not_worse(self) -> bool:
        """Whether a loss of the margin or more is ruled out."""
        return self.statistics.not_worse is True

    @property
    def equivalent(self) -> bool:
        """Whether the difference is shown to be within the margin."""
        return self.statistics.equivalent is True


@dataclass(frozen=True, slots=True)
class Explored:
    """One load by itself; no claim.

    Attributes:
        load: multiple of capacity.
        value, baseline: means over the blocks.
        statistics: of the blocks' differences, unadjusted.
    """

    load: float
    value: float
    baseline: float
    statistics: Paired


@dataclass(frozen=True, slots=True)
class Standing:
    """How an arm stands against the baseline.

    Attributes:
        arm: its name.
        gain: over the loads above capacity; None = none ran.
        no_harm: over the loads below it; None = none ran.
        cells: one for each load.
    """

    arm: str
    gain: Pooled | None
    no_harm: Pooled | None
    cells: tuple[Explored, ...]

    @property
    def word(self) -> Word:
        """The verdict, when every check lets it be given."""
        gain, harm = self.gain, self.no_harm
        harmless = harm is None or harm.not_worse
        if gain is None:
            return "worse" if harm is not None and harm.falls else "inconclusive"
        if gain.rises:
            return "better" if harmless else "inconclusive"
        if gain.falls or (harm is not None and harm.falls):
            return "worse"
        return "equivalent" if gain.equivalent and harmless else "inconclusive"

    @property
    def headline(self) -> str:
        """What the two claims come to, in words."""
        return f"{_above(self.gain)}, {_below(self.no_harm)}"

    def against(self, claim: Claim, metric: str = "goodput") -> Iterator[str]:
        """Why a claim is not supported, one sentence a reason; none = it is.

        Args:
            claim: which.
            metric: what is compared, for the sentences.
        """
        if claim in ("better", "gain"):
            yield from _no_gain(self.gain, words(metric))
        if claim == "no-harm" and self.no_harm is None:
            yield f"no harm is not asked: no load is {HARM_UP_TO:g}x or less"
        elif claim in ("better", "no-harm") and self.no_harm is not None:
            yield from _harm(self.no_harm)


def _above(gain: Pooled | None) -> str:
    if gain is None:
        return "above capacity not asked"
    if gain.rises:
        return "better above capacity"
    if gain.falls:
        return "worse above capacity"
    if gain.equivalent:
        return "equal above capacity within the margin"
    return "not settled above capacity"


def _below(harm: Pooled | None) -> str:
    if harm is None:
        return "harm below it not asked"
    if harm.falls:
        return "harm below it"
    return "no harm below it" if harm.not_worse else "harm below it not ruled out"


def _no_gain(gain: Pooled | None, metric: str) -> Iterator[str]:
    if gain is None:
        yield f"no gain is asked: no load is {GAIN_FROM:g}x or more"
        return
    found = gain.statistics
    if gain.rises:
        return
    if found.n < FEWEST_FLIPPED or found.mean is None:
        blocks = plural(found.n, "whole block")
        yield f"no gain: {blocks}, and {FEWEST_FLIPPED} are the least that can show one"
    elif gain.falls:
        yield f"{metric} is worse above capacity: {signed(found.mean, found.margin)}"
    else:
        yield (
            f"no gain in {metric} is shown: mean"
            f" {signed(found.mean, found.margin)}, margin"
            f" {number(found.margin)}, p"
            f" {number(found.t_p if found.family_p is None else found.family_p)}, sign"
            f" flips {number(found.sign_flip_p)}"
        )


def _harm(harm: Pooled) -> Iterator[str]:
    found = harm.statistics
    if harm.not_worse:
        return
    if found.n < FEWEST_ASKED or found.interval_90 is None:
        blocks = plural(found.n, "whole block")
        yield f"no harm is not asked: {blocks}, and {FEWEST_ASKED} are the least"
    else:
        shown = "harm is shown" if harm.falls else "harm is not ruled out"
        yield (
            f"{shown} below capacity: the one-sided 95 % bound is"
            f" {signed(found.interval_90.low, found.margin)}, margin"
            f" {number(found.margin)}"
        )


# ------------------------------------------------------------------------ judging


def standings(
    cells: Iterable[Cell],
    margin: float = MARGIN,
    better: Better = "higher",
    *,
    share: bool = True,
    family: int = 0,
) -> list[Standing]:
    """How each arm stands, in the order the arms come in.

    Args:
        cells: of any arms; every arm in them claims a gain.
        margin: the smallest difference that matters.
        better: "lower" turns the difference around: a gain is always above 0.
        share: whether the margin is a difference of shares; False = it is a fraction
            of the baseline's mean over the cells of each claim.
        family: arms that were to claim a gain, those without a cell among them; one
            that was left out had its chance of a false alarm all the same.
    """
    judge = partial(_paired, margin=margin, better=better, share=share)
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.arm, []).append(cell)
    judged = [
        Standing(
            arm=arm,
            gain=_pooled([one for one in own if one.load >= GAIN_FROM], judge),
            no_harm=_pooled([one for one in own if one.load <= HARM_UP_TO], judge),
            cells=tuple(_explored(own, judge)),
        )
        for arm, own in found.items()
    ]
    return _in_family(judged, family)


def _in_family(many: Sequence[Standing], family: int) -> list[Standing]:
    """Raises the t p of each gain when several are claimed."""
    asked = [
        (place, one.gain)
        for place, one in enumerate(many)
        if one.gain is not None and one.gain.statistics.t_p is not None
    ]
    made = list(many)
    family = max(family, len(asked))
    if family < 2:  # noqa: PLR2004  one alone has one chance
        return made
    absent = [1.0] * (family - len(asked))
    raised = holm([*(gain.statistics.t_p or 0.0 for _, gain in asked), *absent])
    for (place, gain), p in zip(asked, raised, strict=False):
        own = replace(gain.statistics, family=family, family_p=p)
        made[place] = replace(many[place], gain=replace(gain, statistics=own))
    return made


def pooled(cells: Sequence[Cell], margin: float, *, share: bool) -> Pooled | None:
    """One observation a block: the mean over the loads. None without cells.

    A block that lacks a load would weigh the others more; it is left out.

    Args:
        cells: of one arm.
        margin, share: as in `standings`; higher is better.
    """
    judge = partial(_paired, margin=margin, better="higher", share=share)
    return _pooled(cells, judge)


def _pooled(cells: Sequence[Cell], judge: _Judge) -> Pooled | None:
    if not cells:
        return None
    loads = tuple(sorted({cell.load for cell in cells}))
    blocks: Mapping[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        blocks[cell.block].append(cell)
    whole = sorted(block for block, own in blocks.items() if len(own) == len(loads))
    return Pooled(
        loads=loads,
        blocks=tuple(whole),
        lacking=tuple(sorted(set(blocks) - set(whole))),
        statistics=judge(
            [fmean(cell.value for cell in blocks[block]) for block in whole],
            [fmean(cell.baseline for cell in blocks[block]) for block in whole],
        ),
    )


def _paired(
    arm: Sequence[float],
    baseline: Sequence[float],
    margin: float,
    better: Better,
    *,
    share: bool,
) -> Paired:
    if not share and baseline:
        margin *= abs(fmean(baseline))
    two = (arm, baseline) if better == "higher" else (baseline, arm)
    return Paired.of(*two, margin)


def _explored(cells: Sequence[Cell], judge: _Judge) -> Iterator[Explored]:
    for load in sorted({cell.load for cell in cells}):
        own = [cell for cell in cells if cell.load == load]
        values, baseline = [one.value for one in own], [one.baseline for one in own]
        yield Explored(
            load=load,
            value=fmean(values),
            baseline=fmean(baseline),
            statistics=judge(values, baseline),
        )
