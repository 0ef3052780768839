"""What is offered: how often requests of each class come, and how long they are.

The mean answer of a class of sizes is kept here and not asked of `core.lengths`: a
rate times a mean is the tokens that come, which a quantile is not, and the moments
there are of a model's answers, whatever their size.
"""

from collections.abc import Hashable
from math import exp, expm1

from admitperf.policies.parts.fluid_wait.model import class_tokens

MEASURED_AFTER = 5
"""Finished requests after which a class has a size. Plain choice: a mean of five."""

SMOOTHING = 0.1
"""Weight of the last finished request in its class's means. Plain choice: ten or so."""

_YOUNG_S = 1.0


class _Class:
    """One class. Rates are per second, as of `at_s`."""

    __slots__ = ("at_s", "finished", "length", "output", "rate")

    def __init__(self) -> None:
        self.at_s = 0.0
        self.rate = 0.0
        self.finished = 0
        self.length = 0.0
        self.output = 0.0

    @property
    def tokens(self) -> float:
        """Resident tokens of one request at each stage; 0 until it is measured."""
        if self.finished < MEASURED_AFTER:
            return 0.0
        return class_tokens(1.0, self.length, self.output)


class Mix:
    """Offered rates with exponential forgetting, and sizes of what finished.

    Its size is that of the set of classes, which its owner bounds.

    Args:
        window_s: seconds after which an arrival counts 1/e.

    Attributes:
        finished: requests whose size was learnt, of all classes.
    """

    def __init__(self, window_s: float) -> None:
        self.finished = 0
        self._window_s = window_s
        self._classes: dict[Hashable, _Class] = {}
        self._load = 0.0
        self._load_s = 0.0
        self._begun_s: float | None = None

    def offered(self, now_s: float, cls: Hashable) -> None:
        """A request of this class came, whatever became of it."""
        if self._begun_s is None:
            self._begun_s = now_s
        known = self._classes.setdefault(cls, _Class())
        known.rate = known.rate * self._kept(now_s, known.at_s) + 1 / self._window_s
        known.at_s = now_s
        self._weigh(now_s, known.tokens / self._window_s)

    def ended(self, now_s: float, cls: Hashable, length: float, output: float) -> None:
        """A request of this class finished with so many tokens."""
        known = self._classes.setdefault(cls, _Class())
        before = known.tokens
        self.finished += 1
        known.finished += 1
        weight = max(SMOOTHING, 1 / known.finished)
        known.length += (length - known.length) * weight
        known.output += (output - known.output) * weight
        rate = known.rate * self._kept(now_s, known.at_s)
        self._weigh(now_s, rate * (known.tokens - before))

    def rate(self, now_s: float, cls: Hashable) -> float:
        """Requests of the class per second."""
        known = self._classes.get(cls)
        if known is None:
            return 0.0
        return known.rate * self._kept(now_s, known.at_s) * self._grown(now_s)

    def load(self, now_s: float) -> float:
        """`class_tokens` of the rates of all measured classes together."""
        return self._load * self._kept(now_s, self._load_s) * self._grown(now_s)

    def output(self, cls: Hashable) -> float | None:
        """Mean tokens of the class's answers; None until it is measured."""
        known = self._classes.get(cls)
        return known.output if known and known.finished >= MEASURED_AFTER else None

    def _weigh(self, now_s: float, more: float) -> None:
        kept = self._load * self._kept(now_s, self._load_s)
        self._load, self._load_s = max(0.0, kept + more), now_s

    def _kept(self, now_s: float, since_s: float) -> float:
        return exp((since_s - now_s) / self._window_s)

    def _grown(self, now_s: float) -> float:
        """Makes up for what a young window has not seen yet."""
        begun_s = now_s if self._begun_s is None else self._begun_s
        age_s = max(_YOUNG_S, now_s - begun_s)
        return -1.0 / expm1(-age_s / self._window_s)
