"""A limit that grows by steps and is cut by a factor."""

import math
from dataclasses import dataclass

BEYOND = 1.1
"""Times the limit at the last cut that it has to be over before it is taken to be far
too low. Plain choice: a few good periods at the limit that was too high are luck."""


@dataclass(slots=True, kw_only=True)
class Window:
    """An additive-increase, multiplicative-decrease limit, in requests or sessions.

    It knows nothing of signals: its owner says when there was room, when there was
    congestion, and when there was neither. Where it is far too low, steps take long:
    from a cold start to the first cut, and after `patience` growths in a row that took
    it over where it was cut last, it is multiplied by `ramp` instead.

    Attributes:
        limit: how many may be in use, as a real number; `whole` is what to compare.
        floor, ceiling: it stays between them, included.
        step: added by a growth.
        cool_s: seconds after a cut in which no other is made.
        ramp: factor of a growth while it is taken to be far too low; 1 = steps always.
        patience: growths in a row, after a cut or a hold, that are steps.
        tried: part of the limit that must be in use for it to grow: what is not used
            was not tried. Default: half, as Netflix's limits have it.
        cut_s: when the last cut was, on the caller's clock; None = none yet.
    """

    limit: float
    floor: float
    ceiling: float
    step: float
    cool_s: float
    ramp: float = 1.0
    patience: int = 3
    tried: float = 0.5
    cut_s: float | None = None
    _growths: int = 0
    _cut_at: float = 0.0

    def __post_init__(self) -> None:
        self._set(self.limit)

    @property
    def whole(self) -> int:
        """The limit as a whole number, at least 1."""
        return max(1, math.floor(self.limit))

    def grow(self, used: float) -> bool:
        """There was room for a while.

        Args:
            used: most that was in use meanwhile, in the limit's unit.

        Returns:
            Whether it grew: not while too little of it is used, nor at the ceiling.
        """
        if used < self.tried * self.whole or self.limit >= self.ceiling:
            return False
        calm = self._growths >= self.patience and self.limit > BEYOND * self._cut_at
        far = calm or self.cut_s is None
        added = self.limit * (self.ramp - 1.0) if far else 0.0
        self._growths += 1
        self._set(self.limit + max(self.step, added))
        return True

    def hold(self) -> None:
        """There was neither room nor congestion: it is about right."""
        self._growths = 0

    def approach(self, limit: float) -> None:
        """It is about right, and would be more so there."""
        self._growths = 0
        self._set(limit)

    def cut(self, factor: float, now_s: float, used: float = math.inf) -> bool:
        """There was congestion.

        Args:
            factor: what is left of the limit, from 0 to 1.
            now_s: seconds on a monotonic clock.
            used: what was in use; a limit far above it is cut from there, or the cut
                would change nothing.

        Returns:
            Whether it was cut: not within `cool_s` of the last time.
        """
        if self.cut_s is not None and now_s - self.cut_s < self.cool_s:
            return False
        self.cut_s = now_s
        self._growths = 0
        self._cut_at = min(self.limit, used)
        self._set(self._cut_at * factor)
        return True

    def _set(self, limit: float) -> None:
        self.limit = min(max(limit, self.floor), self.ceiling)
