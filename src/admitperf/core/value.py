"""A float that remembers which signal it is."""

from admitperf.core.gate import Gate

_KNOWN_KEPT = 64


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

    def __new__(cls, value: float, signal: str, gates: list[Gate]) -> "SignalValue":
        self = float.__new__(cls, value)
        self.signal = signal
        self._gates = gates
        self._known = {}
        return self

    def compare(self, op: str, bound: float) -> bool:
        """Whether `self op bound` holds; recorded.

        Raises:
            TypeError: `bound` is no number.
        """
        try:
            gate = self._known[op, bound]
        except KeyError:
            gate = self._make(op, bound)
        self._gates.append(gate)
        return gate.held

    def _make(self, op: str, bound: float) -> Gate:
        if not isinstance(bound, (int, float)):
            msg = f"{self.signal} is compared with {bound!r}, which is no number"
            raise TypeError(msg)
        if len(self._known) >= _KNOWN_KEPT:
            self._known.clear()
        gate = self._known[op, bound] = Gate(self.signal, self, op, bound)
        return gate

    def __ge__(self, bound: float) -> bool:
        return self.compare(">=", bound)

    def __gt__(self, bound: float) -> bool:
        return self.compare(">", bound)

    def __le__(self, bound: float) -> bool:
        return self.compare("<=", bound)

    def __lt__(self, bound: float) -> bool:
        return self.compare("<", bound)

    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        return float.__eq__(self, other)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)
