"""What a policy's comparisons add up to.

A gate is `signal op bound`. The log holds those that were evaluated; those that `and`
or `or` skipped are completed here from the signals of the same lines.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any

# More bounds than this on one signal and operator are one gate whose bound moves, as
# under a controller. Plain choice.
MOST_BOUNDS = 8

_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">=": ge,
    ">": gt,
    "<=": le,
    "<": lt,
}


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate over a whole run. Blind decisions are in none of its numbers but one.

    Attributes:
        signal: the signal's name, or the name given to a derived number.
        op: ">=", ">", "<=" or "<".
        bound_low, bound_high: equal when the bound stood still; None when infinite.
        asked: evaluated by the policy, with a value.
        held: of those, how often it was true.
        unknown: decisions, blind ones too, that asked for a value and got none.
        completed: decisions where the policy did not ask and the line has the signal;
            None when it cannot be completed (a derived number, or a bound that moved).
        completed_held: of those, how often it would have been true.
        value_low, value_high: the range of the values evaluated, completed ones too.
        nearest: the value that came nearest to the bound; None when there is none.
        nearest_bound: the bound it came nearest to.
        distance: how far that was from the bound, in the signal's unit; None also
            when that is more than a number can hold.
        crossed: whether the gate was both true and false in the run.
    """

    signal: str
    op: str
    bound_low: float | None
    bound_high: float | None
    asked: int
    held: int
    unknown: int
    completed: int | None
    completed_held: int | None
    value_low: float | None
    value_high: float | None
    nearest: float | None
    nearest_bound: float | None
    distance: float | None
    crossed: bool

    @property
    def evaluated(self) -> int:
        """Asked and completed together."""
        return self.asked + (self.completed or 0)

    @property
    def true(self) -> int:
        """Of the evaluated, how often it held."""
        return self.held + (self.completed_held or 0)


class Range:
    """The lowest and the highest so far; None while there is none."""

    __slots__ = ("high", "low")

    def __init__(self) -> None:
        self.low: float | None = None
        self.high: float | None = None

    def widen(self, low: float | None, high: float | None) -> None:
        """Takes another range in."""
        if low is not None and (self.low is None or low < self.low):
            self.low = low
        if high is not None and (self.high is None or high > self.high):
            self.high = high


class GateTally:
    """One gate's counts while the log is read."""

    __slots__ = ("asked", "bounds", "held", "nearest", "unknown", "values")

    def __init__(self) -> None:
        self.asked = 0
        self.held = 0
        self.unknown = 0
        self.values = Range()
        self.bounds = Range()
        self.nearest: tuple[float, float, float] | None = None

    def add(
        self,
        value: float | None,
        op: str,
        bound: float | None,
        *,
        held: bool | None = None,
    ) -> None:
        """Counts one evaluation.

        Args:
            value: None when it was not known.
            op: the operator.
            bound: None when it is infinite; then `held` is what the log says.
            held: as logged.
        """
        if value is None:
            self.unknown += 1
            return
        self.asked += 1
        self.values.widen(value, value)
        if bound is None:
            self.held += held is True
        else:
            self.held += _HOLDS[op](value, bound)
            self.bounds.widen(bound, bound)
            self._near((abs(value - bound), value, bound))

    def absorb(self, other: "GateTally") -> None:
        """Adds another's counts to its own."""
        self.asked += other.asked
        self.held += other.held
        self.unknown += other.unknown
        self.values.widen(other.values.low, other.values.high)
        self.bounds.widen(other.bounds.low, other.bounds.high)
        if other.nearest is not None:
            self._near(other.nearest)

    def _near(self, nearest: tuple[float, float, float]) -> None:
        if self.nearest is None or nearest < self.nearest:
            self.nearest = nearest


Key = tuple[str, str]


class Gates:
    """All gates of one run: one per signal, operator and bound, until a bound moves."""

    def __init__(self) -> None:
        self.still: dict[Key, dict[float | None, GateTally]] = {}
        self.moving: dict[Key, GateTally] = {}

    def add(self, gate: Sequence[Any]) -> None:
        """Counts one gate of a decision line, `[name, value, op, bound, held]`."""
        name, value, op, bound, held = gate
        self._tally((name, op), bound).add(value, op, bound, held=held)

    def absorb(self, other: "Gates") -> None:
        """Adds another run's gates to its own."""
        for key, tally in other.moving.items():
            self._unite(key).absorb(tally)
        for key, tallies in other.still.items():
            for bound, tally in tallies.items():
                self._tally(key, bound).absorb(tally)

    def __iter__(self) -> Iterator[tuple[Key, GateTally, bool]]:
        """Yields (signal, operator), the counts, and whether the bound stood still."""
        for key, tallies in self.still.items():
            for tally in tallies.values():
                yield key, tally, True
        for key, tally in self.moving.items():
            yield key, tally, False

    def _tally(self, key: Key, bound: float | None) -> GateTally:
        if key in self.moving:
            return self.moving[key]
        tallies = self.still.setdefault(key, {})
        if bound not in tallies and len(tallies) == MOST_BOUNDS:
            return self._unite(key)
        return tallies.setdefault(bound, GateTally())

    def _unite(self, key: Key) -> GateTally:
        united = self.moving.setdefault(key, GateTally())
        for tally in self.still.pop(key, {}).values():
            united.absorb(tally)
        return united


def summarise(
    gates: Gates, columns: dict[str, "array[float]"], sighted: Iterable[int]
) -> tuple[Gate, ...]:
    """Completes every gate from the lines' signals.

    Args:
        gates: as counted.
        columns: each signal's value per decision, NaN where it is not known.
        sighted: per decision, whether the policy saw (1) or was blind (0).
    """
    seen = bytes(sighted)
    made = [
        _gate(key, tally, columns.get(key[0]) if still else None, seen)
        for key, tally, still in gates
    ]
    return tuple(sorted(made, key=lambda gate: (-gate.asked, gate.signal, gate.op)))


def held_together(
    gates: Iterable[Gate], columns: dict[str, "array[float]"], sighted: Iterable[int]
) -> tuple[int, int] | None:
    """How often all gates held on one decision, of those where all are known.

    None when there are fewer than two gates, or one of them cannot be completed.
    """
    tests = []
    for gate in gates:
        if gate.completed is None or gate.bound_low is None:
            return None
        tests.append((columns[gate.signal], _HOLDS[gate.op], gate.bound_low))
    if len(tests) < 2:  # noqa: PLR2004  one gate holds with nothing
        return None
    held = of = 0
    for row, saw in enumerate(sighted):
        values = [column[row] for column, _, _ in tests]
        if saw and all(value == value for value in values):  # noqa: PLR0124  no NaN
            of += 1
            held += all(
                holds(value, bound)
                for value, (_, holds, bound) in zip(values, tests, strict=True)
            )
    return held, of


def _gate(
    key: Key, tally: GateTally, column: "array[float] | None", sighted: bytes
) -> Gate:
    whole = tally if column is None else _over(column, sighted, key[1], tally)
    completed = None if column is None else max(whole.asked - tally.asked, 0)
    completed_held = None if completed is None else max(whole.held - tally.held, 0)
    distance, nearest, bound = whole.nearest or (None, None, None)
    return Gate(
        signal=key[0],
        op=key[1],
        bound_low=tally.bounds.low,
        bound_high=tally.bounds.high,
        asked=tally.asked,
        held=tally.held,
        unknown=tally.unknown,
        completed=completed,
        completed_held=completed_held,
        value_low=whole.values.low,
        value_high=whole.values.high,
        nearest=nearest,
        nearest_bound=bound,
        distance=distance if distance is not None and isfinite(distance) else None,
        crossed=0 < whole.held < whole.asked,
    )


def _over(
    column: "array[float]", sighted: bytes, op: str, asked: GateTally
) -> GateTally:
    """The gate as if evaluated on every sighted line that has the signal."""
    bound, whole = asked.bounds.low, GateTally()
    for value, saw in zip(column, sighted, strict=True):
        if saw and value == value:  # noqa: PLR0124  no NaN
            whole.add(value, op, bound)
    return asked if whole.asked < asked.asked else whole
