"""What a policy's comparisons add up to.

A gate is `signal op bound`. The log holds those that were evaluated; those that `and`
or `or` skipped are completed here from the signals of the same lines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from admitperf.reports.runs.store import Store, by_run

# More bounds than this on one signal and operator are one gate whose bound moves, as
# under a controller. Plain choice.
MOST_BOUNDS = 8


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate over a whole run.

    Blind decisions are in none of its numbers but one, refusals of the host's own in
    none.

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


_HOLDS = """CASE op WHEN '>=' THEN value >= bound WHEN '>' THEN value > bound
    WHEN '<=' THEN value <= bound WHEN '<' THEN value < bound END"""

_NEAREST = """
    min(value) FILTER (value >= bound) AS above,
    max(value) FILTER (value <= bound) AS below"""

_ASKED = f"""
WITH texts AS (
    SELECT run_n, blind IS NULL AND NOT host AS sighted, gates, count(*) AS n
    FROM decisions WHERE gates IS NOT NULL GROUP BY ALL),
asked AS (
    SELECT run_n, sighted, n, unnest(from_json(gates, '[["VARCHAR"]]')) AS gate
    FROM texts),
compared AS (
    SELECT run_n, n, gate[1] AS signal, gate[2]::DOUBLE AS value, gate[3] AS op,
        gate[4]::DOUBLE AS bound, gate[5] = 'true' AS said
    FROM asked WHERE sighted OR gate[2] IS NULL),
by_bound AS (
    SELECT run_n, signal, op, bound, sum(n) FILTER (value IS NOT NULL) AS asked,
        sum(n) FILTER (value IS NULL) AS unknown,
        sum(n) FILTER (value IS NOT NULL AND coalesce({_HOLDS}, said)) AS held,
        min(value) AS low, max(value) AS high, {_NEAREST}
    FROM compared GROUP BY run_n, signal, op, bound),
nearest AS (
    SELECT *, count(*) OVER (PARTITION BY run_n, signal, op) <= {MOST_BOUNDS} AS still,
        CASE WHEN below IS NULL OR above - bound < bound - below
            THEN above ELSE below END AS near
    FROM by_bound)
SELECT run_n, signal, op, min(bound), max(bound), coalesce(sum(asked), 0)::BIGINT,
    coalesce(sum(held), 0)::BIGINT, coalesce(sum(unknown), 0)::BIGINT,
    min(low), max(high),
    min({{'distance': abs(near - bound), 'value': near, 'bound': bound}})
        FILTER (near IS NOT NULL),
    still
FROM nearest GROUP BY run_n, signal, op, still, CASE WHEN still THEN bound END"""


@dataclass(frozen=True, slots=True)
class _Counts:
    """One gate's numbers, as asked or as completed; see `Gate`."""

    asked: int
    held: int
    low: float | None
    high: float | None
    near: Mapping[str, float] | None


def gates(
    store: Store, columns: Mapping[str, str], known: Mapping[int, set[str]]
) -> dict[int, tuple[Gate, ...]]:
    """The gates of every run, completed from the signals of the same lines.

    Args:
        store: with the view `decisions`.
        columns: its column by signal.
        known: the signals that each run has values of, by its number.

    Returns:
        Those asked most often first, by the number of the run; runs without gates are
        absent.
    """
    asked = store.rows(_ASKED)
    still = [
        (place, row)
        for place, row in enumerate(asked)
        if row[-1] and row[1] in known[row[0]]
    ]
    completed = _completed(store, columns, still)
    made = by_run(
        (row[0], _gate(row, completed.get(place))) for place, row in enumerate(asked)
    )
    return {
        run: tuple(sorted((gate for (gate,) in found), key=_order))
        for run, found in made.items()
    }


def _order(gate: Gate) -> tuple[int, str, str, float]:
    return -gate.asked, gate.signal, gate.op, gate.bound_low or 0.0


def _completed(
    store: Store, columns: Mapping[str, str], still: Sequence[tuple[int, Any]]
) -> dict[int, _Counts]:
    """Gates as if each was evaluated on every sighted line that has its signal.

    Args:
        store, columns: as for `gates`.
        still: the gates to complete, by any number.
    """
    store.table(
        "gate",
        {
            "place INTEGER": [place for place, _ in still],
            "run_n INTEGER": [row[0] for _, row in still],
            "signal VARCHAR": [row[1] for _, row in still],
            "op VARCHAR": [row[2] for _, row in still],
            "bound DOUBLE": [row[3] for _, row in still],
        },
    )
    found = {place: _Counts(0, 0, None, None, None) for place, _ in still}
    for signal in sorted({row[1] for _, row in still}):
        value = columns[signal]
        for place, bound, n, held, low, high, above, below in store.rows(
            f"""SELECT place, bound, count(*), count(*) FILTER ({_HOLDS}),
                min(value), max(value), {_NEAREST}
            FROM (SELECT run_n, {value} AS value FROM decisions
                WHERE blind IS NULL AND NOT host AND {value} IS NOT NULL)
            JOIN gate USING (run_n) WHERE signal = $signal GROUP BY place, bound""",
            {"signal": signal},
        ):
            near = _near(bound, above, below)
            found[place] = _Counts(n, held, low, high, near)
    return found


def _near(
    bound: float | None, above: float | None, below: float | None
) -> Mapping[str, float] | None:
    """The nearer of two values on either side of a bound."""
    known = [value for value in (below, above) if value is not None]
    if bound is None or not known:
        return None
    value = min(known, key=lambda one: abs(one - bound))
    return {"distance": abs(value - bound), "value": value, "bound": bound}


def _gate(row: Sequence[Any], completed: _Counts | None) -> Gate:
    """One gate from its row; `completed` is None when it cannot be completed."""
    _, signal, op, bound_low, bound_high, asked, held, unknown, *rest = row
    own = _Counts(asked, held, *rest[:-1])
    whole = own if completed is None or completed.asked < asked else completed
    near = whole.near or dict.fromkeys(("distance", "value", "bound"))
    distance = near["distance"]
    return Gate(
        signal=signal,
        op=op,
        bound_low=bound_low,
        bound_high=bound_high,
        asked=asked,
        held=held,
        unknown=unknown,
        completed=None if completed is None else whole.asked - asked,
        completed_held=None if completed is None else max(whole.held - held, 0),
        value_low=whole.low,
        value_high=whole.high,
        nearest=near["value"],
        nearest_bound=near["bound"],
        distance=distance if distance is not None and isfinite(distance) else None,
        crossed=0 < whole.held < whole.asked,
    )
