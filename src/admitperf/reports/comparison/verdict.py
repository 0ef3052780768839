"""Better, worse, equivalent, inconclusive or void: the rule, in one place.

void          a check said no: no claim is made.
better        from 6 pairs: the 95 % t interval lies above 0, the sign-flip p is below
              0.05 and the mean is at least the margin. With 3 to 5 pairs "the ranges
              do not overlap" takes the place of the sign flips.
worse         the mirror image.
equivalent    the 90 % t interval lies inside +-margin (two one-sided tests).
inconclusive  anything else, and always with 1 or 2 pairs: there it is not asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal, Self

from admitperf.reports.comparison.design import (
    FEWEST_ASKED,
    FEWEST_FLIPPED,
    blocks_to_resolve,
    fewest_for_family,
    smallest_effect,
)
from admitperf.reports.comparison.statistics import (
    ALPHA,
    EQUIVALENCE_CONFIDENCE,
    Interval,
    equivalence_p,
    holm,
    not_worse_p,
    ranges_apart,
    sign_flip_p,
    t_interval,
    t_p,
)

MARGIN = 0.01
"""Goodput differences below one request in a hundred matter to nobody. Plain choice,
as in the method's own description; `--margin` sets another."""

Word = Literal["better", "worse", "equivalent", "inconclusive", "void"]


@dataclass(frozen=True, slots=True)
class Paired:
    """What the paired differences of two arms say, arm minus baseline.

    Attributes:
        n: pairs.
        margin: the smallest difference that matters, in goodput of offered.
        differences: one a pair, in goodput of offered.
        mean: their mean; None without pairs.
        sd: their standard deviation; None below 2 pairs, like all that follows.
        interval: paired t, 95 %.
        interval_90: paired t, 90 %: inside the margin = equivalent.
        t_p: two-sided, that the mean is 0.
        sign_flip_p: exact, two-sided; None below 6 pairs, where it cannot be below
            0.05, and above 40.
        ranges_apart: whether no repeat of one arm lies within the other's range.
        equivalence_p: of the two one-sided tests.
        not_worse_p: that the arm is worse by the margin or more.
        smallest_effect: the smallest true difference that such a design shows with
            80 % power (MDE).
        family: how many arms claim a gain in the same comparison, this one among them.
        family_p: the p of this arm after Holm over them; None when it is alone.
    """

    n: int
    margin: float
    differences: tuple[float, ...]
    mean: float | None = None
    sd: float | None = None
    interval: Interval | None = None
    interval_90: Interval | None = None
    t_p: float | None = None
    sign_flip_p: float | None = None
    ranges_apart: bool | None = None
    equivalence_p: float | None = None
    not_worse_p: float | None = None
    smallest_effect: float | None = None
    family: int = 1
    family_p: float | None = None

    @classmethod
    def of(
        cls, arm: Sequence[float], baseline: Sequence[float], margin: float = MARGIN
    ) -> Self:
        """From the goodput of each pair.

        Args:
            arm, baseline: fractions of offered, the pairs in one order.
            margin: above 0.
        """
        both = zip(arm, baseline, strict=True)
        differences = tuple(one - other for one, other in both)
        n = len(differences)
        if n < 2:  # noqa: PLR2004  a spread takes two
            return cls(n, margin, differences, mean=differences[0] if n else None)
        sd = stdev(differences)
        return cls(
            n=n,
            margin=margin,
            differences=differences,
            mean=fmean(differences),
            sd=sd,
            interval=t_interval(differences),
            interval_90=t_interval(differences, EQUIVALENCE_CONFIDENCE),
            t_p=t_p(differences),
            sign_flip_p=sign_flip_p(differences) if n >= FEWEST_FLIPPED else None,
            ranges_apart=ranges_apart(arm, baseline),
            equivalence_p=equivalence_p(differences, margin),
            not_worse_p=not_worse_p(differences, margin),
            smallest_effect=smallest_effect(n, sd),
        )

    @property
    def asked(self) -> bool:
        """Whether there are enough pairs to ask which arm is better."""
        return self.n >= FEWEST_ASKED

    @property
    def p(self) -> float | None:
        """The p that decides: of the sign flips where they can be asked, else of t."""
        return self.t_p if self.sign_flip_p is None else self.sign_flip_p

    @property
    def separate(self) -> bool | None:
        """Whether the arms are told apart; None below 3 pairs."""
        if not self.asked or self.interval is None or self.p is None:
            return None
        apart = self.n >= FEWEST_FLIPPED or bool(self.ranges_apart)
        return self.interval.excludes_zero and self.p < ALPHA and apart

    @property
    def equivalent(self) -> bool | None:
        """Whether the difference is shown to be within the margin; None as above."""
        if not self.asked or self.interval_90 is None:
            return None
        return self.interval_90.inside(self.margin)

    @property
    def not_worse(self) -> bool | None:
        """Whether a loss of the margin or more is ruled out; None as above."""
        if not self.asked or self.interval_90 is None:
            return None
        return self.interval_90.low > -self.margin

    @property
    def claims_gain(self) -> bool:
        """Whether its mean lies above 0, so that it stands in the family of gains."""
        return self.asked and self.mean is not None and self.mean > 0

    @property
    def word(self) -> Word:
        """The verdict, when every check lets it be given."""
        if self.separate and self.mean is not None and abs(self.mean) >= self.margin:
            if self.mean < 0:
                return "worse"
            if self.family_p is None or self.family_p < ALPHA:
                return "better"
        return "equivalent" if self.equivalent else "inconclusive"

    @property
    def blocks_needed(self) -> int | None:
        """Pairs that would resolve the observed mean; None when it cannot be said.

        More than there are, and as many as the family's sign flips take.
        """
        if self.mean is None or self.sd is None:
            return None
        needed = blocks_to_resolve(self.mean, self.sd, self.margin)
        least = max(self.n + 1, fewest_for_family(self.family))
        return None if needed is None else max(needed, least)


def in_family(many: Sequence[Paired]) -> list[Paired]:
    """Raises the p of each arm that claims a gain when several do.

    Several arms against one baseline have several chances of a false alarm. The family
    is the arms whose mean difference lies above 0: another one cannot be called better,
    so it takes no part of the 5 %. Holm over their p.

    Returns:
        In the order given.
    """
    gains = [i for i, one in enumerate(many) if one.claims_gain]
    found = list(many)
    if len(gains) < 2:  # noqa: PLR2004  one alone has one chance
        return found
    ps = [many[i].p for i in gains]
    raised = holm([1.0 if p is None else p for p in ps])
    for i, p in zip(gains, raised, strict=True):
        found[i] = replace(many[i], family=len(gains), family_p=p)
    return found
