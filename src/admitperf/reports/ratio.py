"""A count with its denominator."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Share:
    """A number with its denominator; `value` is None when that is 0."""

    n: int
    of: int
    value: float | None

    @classmethod
    def part(cls, n: int, of: int) -> Self:
        """`n` of `of`."""
        return cls(n, of, n / of if of else None)
