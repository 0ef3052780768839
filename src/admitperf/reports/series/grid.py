"""Bins of time, of a width a person can read."""

from dataclasses import dataclass
from typing import Self

_STEPS = (1, 2, 5)
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal bins that begin at a run's first decision.

    Attributes:
        bin_s: how wide each is, in s: 1, 2 or 5 times a power of ten.
        from_s: where each begins, in s from the first decision. The last bin may reach
            past the last decision.
    """

    bin_s: float
    from_s: tuple[float, ...]

    @classmethod
    def over(cls, span_us: int, most: int) -> Self:
        """The finest one with at most so many bins.

        Args:
            span_us: from the first decision to the last.
            most: how many bins, at least 1.
        """
        width_us = width(span_us, most)
        edges = (place * width_us / _US for place in range(span_us // width_us + 1))
        return cls(width_us / _US, tuple(edges))

    @property
    def width_us(self) -> int:
        """The width of a bin in microseconds, exactly."""
        return round(self.bin_s * _US)


def width(span_us: int, most: int) -> int:
    """The least round number of microseconds that cuts a span into so many bins."""
    least = span_us // most + 1
    unit = 1
    while True:
        for step in _STEPS:
            if step * unit >= least:
                return step * unit
        unit *= 10
