"""How much comes free a second: the basis of the waits that are told."""

from math import exp, expm1

LOOKS_BACK_S = 60.0
"""Seconds after which what came free counts a third. Plain choice: tasks last minutes,
and a wait is at most a minute."""


LEAST = 0.05
"""Least part of that time: what came free in the first seconds is no rate."""


class Rate:
    """An exponentially weighted amount a second, of the time since it began."""

    __slots__ = ("_at_ns", "_begun_ns", "_value")

    def __init__(self) -> None:
        self._value = 0.0
        self._at_ns = 0
        self._begun_ns: int | None = None

    def begin(self, now_ns: int) -> None:
        """There is something that may come free from now on; later calls say nothing.

        What came free is divided by this time, until `LOOKS_BACK_S` are over.
        """
        if self._begun_ns is None:
            self._begun_ns = self._at_ns = now_ns

    def add(self, amount: float, now_ns: int) -> None:
        """So much came free now."""
        self._value = self._now(now_ns) + amount
        self._at_ns = now_ns

    def per_s(self, now_ns: int) -> float | None:
        """The amount a second; None before anything came free."""
        if self._begun_ns is None or not self._value:
            return None
        passed = (now_ns - self._begun_ns) / 1e9 / LOOKS_BACK_S
        return self._now(now_ns) / LOOKS_BACK_S / max(-expm1(-passed), LEAST)

    def _now(self, now_ns: int) -> float:
        return self._value * exp((self._at_ns - now_ns) / 1e9 / LOOKS_BACK_S)
