"""The plan of an experiment: which arm meets which load and block, in which order.

A block fixes everything but the arm: window or seed of the trace, calls, lengths,
instants and client. Every arm meets it once. The number of blocks is set before anyone
looks at a result.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from admitperf.bench.design.measures import METRICS, is_share, margin_told, words
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.comparison.design import FEWEST_FLIPPED, POWER, factor
from admitperf.reports.comparison.statistics import ALPHA, least_sign_flip_p
from admitperf.reports.comparison.verdict import MARGIN
from admitperf.reports.wording import number, plural, printable
from admitperf.simulator.streams import stream

LOADS = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
"""Multiples of capacity: the brief's range."""

BLOCKS = 8
"""Plain choice of the method: sign flips can give 0.0078, a spread is known well."""

GAIN_FROM, HARM_UP_TO = 1.2, 0.8
"""Loads at which an arm may claim a gain, and at which it must do no harm; between
them nothing is claimed. The method's own."""

EXAMPLE_SD = 0.03
"""What the paired differences of bursty traffic may have at 1.2x; a stated example
until an experiment has shown its own."""

AGAIN = "_again"


class BudgetError(AdmitPerfError, ValueError):
    """Not even the least design fits into the time that was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Every arm once in every cell of loads and blocks.

    Attributes:
        arms: names, the baseline among them.
        loads: multiples of the capacity without a policy.
        blocks: how many a load has.
        baseline: the arm that the others are held against.
        margin: the smallest difference that matters: of shares, or as a fraction of
            the baseline's mean where the metric is no share.
        seed: of the order.
        aa: whether the baseline runs a second time, as the arm `again`: an A/A pair.
    """

    arms: tuple[str, ...]
    loads: tuple[float, ...] = LOADS
    blocks: int = BLOCKS
    baseline: str = "no_admission"
    margin: float = MARGIN
    seed: int = 1
    aa: bool = False

    @property
    def again(self) -> str:
        """Name of the arm that is the baseline a second time."""
        return f"{self.baseline}{AGAIN}"

    @property
    def claiming(self) -> tuple[str, ...]:
        """The arms that claim something: no baseline."""
        return tuple(arm for arm in self.arms if arm not in (self.baseline, self.again))

    @property
    def above(self) -> tuple[float, ...]:
        """The loads a gain is pooled over."""
        return tuple(load for load in self.loads if load >= GAIN_FROM)

    @property
    def below(self) -> tuple[float, ...]:
        """The loads at which no harm is pooled over."""
        return tuple(load for load in self.loads if load <= HARM_UP_TO)

    @property
    def runs(self) -> int:
        """How many runs it takes."""
        return len(self.loads) * self.blocks * len(self.arms)

    def cells(self) -> list[tuple[float, int]]:
        """Every load and block, in the order they are run.

        Block by block, so that what is ended early holds whole blocks; the loads of a
        block in random order, so that no load always comes first.
        """
        made = []
        for block in range(1, self.blocks + 1):
            loads = sorted(self.loads)
            stream(self.seed, f"order/loads/{block}").shuffle(loads)
            made += [(load, block) for load in loads]
        return made

    def order(self, load: float, block: int) -> tuple[str, ...]:
        """The arms in the order they meet a block.

        Random, and balanced over the blocks of a load: of two arms each is first as
        often as the other; of more each has each place, and follows each other arm, as
        often as any (rows of a Williams square).
        """
        chance = stream(self.seed, f"order/{load:g}")
        arms = sorted(self.arms)
        chance.shuffle(arms)
        rows = williams(len(arms))
        turns: list[tuple[int, ...]] = []
        while len(turns) < self.blocks:
            chance.shuffle(rows)
            turns += rows
        return tuple(arms[place] for place in turns[block - 1])


def williams(n: int) -> list[tuple[int, ...]]:
    """Orders of n things in which each precedes each other one equally often.

    Williams 1949: n rows when n is even, else those and their mirror images.

    Args:
        n: at least 1.
    """
    zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) for place in range(n)]
    rows = [tuple((first + one) % n for one in zigzag) for first in range(n)]
    return rows if n % 2 == 0 or n == 1 else rows + [row[::-1] for row in rows]


# ------------------------------------------------------------------------ faults


def faults(design: Design) -> list[str]:
    """Why a design cannot win anything, in sentences; empty = it can."""
    return [*_malformed(design), *_hopeless(design)]


def _malformed(design: Design) -> Iterator[str]:
    for arm, n in Counter(design.arms).items():
        if n > 1:
            yield f"{n} arms are called {printable(arm)}: give each a name"
    if design.baseline not in design.arms:
        yield f"the baseline {printable(design.baseline)} is no arm"
    if len(set(design.loads)) < len(design.loads):
        yield "a load is given twice"
    for load in design.loads:
        if not 0 < load < float("inf"):
            yield f"a load is a multiple of capacity above 0, not {load:g}"
    if not 0 < design.margin < 1:
        yield f"the margin is a fraction above 0, not {design.margin:g}"


def _hopeless(design: Design) -> Iterator[str]:
    if not design.claiming:
        if not design.aa:
            yield f"there is no arm beside the baseline {printable(design.baseline)}"
        elif design.blocks < 2:  # noqa: PLR2004  a spread takes two
            yield "an A/A pair takes at least 2 blocks: one shows no spread"
        return
    if design.blocks < FEWEST_FLIPPED:
        least = number(least_sign_flip_p(max(design.blocks, 1)))
        yield (
            f"{plural(design.blocks, 'block')} cannot win: the smallest sign-flip p is"
            f" {least}, and it must be below {ALPHA:g}; take {FEWEST_FLIPPED} or more"
        )
    if not design.above:
        most = max(design.loads, default=0)
        yield (
            f"no load is {GAIN_FROM:g}x of capacity or more (the highest is {most:g}x):"
            " no policy was tested"
        )


# -------------------------------------------------------------------------- told


def told(design: Design, sd: float | None, metric: str = "goodput") -> list[str]:
    """What a design can show, in sentences, before it is run.

    Args:
        design: without faults.
        sd: of the paired differences, in the metric; None = not known, an example
            stands in its place where the metric is a share.
        metric: what is compared.
    """
    if sd is None and is_share(metric):
        power = _power(design, EXAMPLE_SD, "as an example, none is known yet")
    else:
        power = _power(design, sd, "as measured")
    return [*_claims(design, metric), *power, *_not_asked(design)]


def _claims(design: Design, metric: str) -> Iterator[str]:
    claiming, known = design.claiming, METRICS.get(metric)
    verb = "falls" if known and known.better == "lower" else "rises"
    if claiming and design.above:
        yield (
            f"Gain, claimed for {_names(claiming)}: {words(metric)}"
            f" {verb if known else 'improves'} against"
            f" {printable(design.baseline)}, mean over {_multiples(design.above)}."
        )
    if claiming and design.below:
        yield (
            f"No harm, claimed for the same: no loss of"
            f" {margin_told(design.margin, metric)} or more, mean over"
            f" {_multiples(design.below)}."
        )
    if len(claiming) > 1:
        yield (
            f"{len(claiming)} gains are claimed: Holm's procedure raises the p of their"
            " t tests."
        )
    if design.aa:
        yield f"{printable(design.again)} is the baseline again: the noise floor."


def _power(design: Design, sd: float | None, whose: str) -> Iterator[str]:
    n = design.blocks
    yield (
        f"{plural(n, 'block')}: the smallest p that sign flips can give is"
        f" {number(least_sign_flip_p(n))}."
    )
    if n < 2:  # noqa: PLR2004  a spread takes two
        return
    effect = ""
    if sd is not None:
        effect = f": {factor(n) * sd:.3f} with an SD of {sd:.3f} ({whose})"
    yield (
        f"MDE {factor(n):.2f} x SD of the paired differences, with {100 * POWER:g} %"
        f" power{effect}."
    )


def _not_asked(design: Design) -> Iterator[str]:
    if not design.below:
        yield (
            f"Not asked: whether it does harm, as no load is {HARM_UP_TO:g}x or less."
        )
    between = [one for one in design.loads if HARM_UP_TO < one < GAIN_FROM]
    cells = "Every single load is exploratory"
    if between:
        cells += f", and {_multiples(between)} enters no claim"
    yield f"{cells}: its interval is shown as it is."


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(printable, names))


def _multiples(loads: Sequence[float]) -> str:
    return ", ".join(f"{load:g}x" for load in sorted(loads))


# ------------------------------------------------------------------------ budget


def trimmed(
    design: Design, seconds_per_run: float, budget_s: float
) -> tuple[Design, list[str]]:
    """What of a design fits into a budget, and what it leaves out.

    What no claim needs goes first: loads below the highest that no harm is asked at,
    loads between the claims, loads above the lowest that a gain is asked at, from the
    highest down. Then blocks, as far as 6.

    Args:
        design: without faults.
        seconds_per_run: of one run of one arm, on average.
        budget_s: for all runs together.

    Returns:
        The design, and a sentence for each thing left out.

    Raises:
        BudgetError: not even the least design fits.
    """
    left_out: list[str] = []
    for smaller, what in _smaller(design):
        if _takes(design, seconds_per_run) <= budget_s:
            break
        design = smaller
        left_out.append(what)
    if (least_s := _takes(design, seconds_per_run)) > budget_s:
        raise BudgetError(
            f"a budget of {budget_s:.0f} s is too small: {design.runs} runs, the least"
            f" of {_names(design.arms)} at {_multiples(design.loads)} in"
            f" {plural(design.blocks, 'block')}, take {least_s:.0f} s"
        )
    return design, left_out


def _takes(design: Design, seconds_per_run: float) -> float:
    return design.runs * seconds_per_run


def _smaller(design: Design) -> Iterator[tuple[Design, str]]:
    """Designs one step smaller each, and what the step leaves out."""
    for load in _spare(design):
        kept = tuple(one for one in design.loads if one != load)
        design = replace(design, loads=kept)
        yield design, f"For the budget, load {load:g}x is left out."
    fewest = FEWEST_FLIPPED if design.claiming else min(design.blocks, 3)
    for blocks in range(design.blocks - 1, fewest - 1, -1):
        design = replace(design, blocks=blocks)
        said = f"For the budget, block {blocks + 1} is left out: {blocks} remain."
        yield design, said


def _spare(design: Design) -> list[float]:
    """The loads that the claims can do without, the least needed first."""
    below, above = sorted(design.below), sorted(design.above)
    between = sorted({*design.loads} - {*below, *above})
    return [*below[:-1], *between, *above[:0:-1]]
