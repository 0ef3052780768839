"""How long the answers of a group are, and how far they scatter: mean and variance.

`core.lengths` gives quantiles of one answer; a sum of many goes by these two.
"""

from collections import OrderedDict
from collections.abc import Hashable

from admitperf.core.lengths import KEPT, SHRINK

GROUPS_MOST = 64
"""Groups remembered, those heard of last. Plain choice: some KB."""


class _Moments:
    """Mean and variance of the last answers, older ones counting less and less."""

    __slots__ = ("count", "mean", "variance")

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.variance = 0.0

    def learn(self, tokens: float) -> None:
        self.count = min(self.count + 1, KEPT)
        step = 1.0 / self.count
        off = tokens - self.mean
        self.mean += step * off
        self.variance += step * (off * (tokens - self.mean) - self.variance)


class AnswerSpread:
    """Mean and variance of output tokens, by group.

    A group that has seen little leans on all answers together, as in `core.lengths`.
    """

    def __init__(self) -> None:
        self._all = _Moments()
        self._groups: OrderedDict[Hashable, _Moments] = OrderedDict()

    def learn(self, group: Hashable, output_tokens: int) -> None:
        """Takes an answer that ended properly."""
        own = self._groups.setdefault(group, _Moments())
        self._groups.move_to_end(group)
        if len(self._groups) > GROUPS_MOST:
            self._groups.popitem(last=False)
        for known in (self._all, own):
            known.learn(float(output_tokens))

    def of(self, group: Hashable) -> tuple[float, float]:
        """Mean in tokens and variance in tokens squared; zeros before any answer."""
        own = self._groups.get(group)
        if own is None:
            return self._all.mean, self._all.variance
        share = own.count / (own.count + SHRINK)
        return (
            self._all.mean + share * (own.mean - self._all.mean),
            self._all.variance + share * (own.variance - self._all.variance),
        )
