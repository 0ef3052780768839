"""A float that remembers which signal it is."""

from collections.abc import Callable
from typing import Self

from admitperf.core.gate import Gate

_KNOWN_KEPT = 64


_Comparison = Callable[["SignalValue", float], bool]


def _comparison(op: str) -> _Comparison:
    """The operator as a method. One call deep, because it is made for every request."""

    def compare(self: "SignalValue", bound: float) -> bool:
        try:
            gate = self._known[op, bound]
        except KeyError:
            gate = self.make(op, bound)
        self._gates.append(gate)
        return gate.held

    return compare


class SignalValue(float):
    """A signal's value inside `decide`: comparing it with a number records a gate.

    Arithmetic gives a plain float: a rule on a derived number names it with
    `metrics.gate(name, value, bound)`. A comparison already made on this reading is
    looked up, not made again.
    """

    __slots__ = ("_gates", "_known", "signal")

    signal: str
    _gates: list[Gate]
    _known: dict[tuple[str, float], Gate]

    def __new__(cls, value: float, signal: str, gates: list[Gate]) -> Self:
        """A value that records its comparisons in `gates`."""
        self = float.__new__(cls, value)
        self.signal = signal
        self._gates = gates
        self._known = {}
        return self

    def make(self, op: str, bound: float) -> Gate:
        """A comparison not made before on this reading."""
        if not hasattr(type(bound), "__float__"):
            msg = f"{self.signal} is compared with {bound!r}, which is no number"
            raise TypeError(msg)
        if len(self._known) >= _KNOWN_KEPT:
            self._known.clear()
        gate = self._known[op, bound] = Gate(self.signal, self, op, bound)
        return gate

    __ge__ = _comparison(">=")
    __gt__ = _comparison(">")
    __le__ = _comparison("<=")
    __lt__ = _comparison("<")
    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        return float.__eq__(self, other)

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)
