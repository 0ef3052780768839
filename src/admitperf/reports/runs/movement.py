"""How the signals of a run moved."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from admitperf.core.signals import ALL
from admitperf.reports.quantile import Spread, spread_of
from admitperf.reports.runs.store import Store

MOST_VALUES = 1 << 23
"""Plain choice: a quantile holds its values in memory, 8 bytes each."""

_UNITS = {signal.name: signal.unit for signal in ALL}


@dataclass(frozen=True, slots=True)
class Movement:
    """How one signal moved over the decisions of a run.

    Attributes:
        name, unit: unit is "" for a signal this version does not know.
        spread: its values on decision lines, which leave out what had gone stale.
    """

    name: str
    unit: str
    spread: Spread


def movements(
    store: Store, columns: Mapping[str, str]
) -> defaultdict[int, tuple[Movement, ...]]:
    """Every signal of the catalogue, in its order, then those only the run's log knows.

    Args:
        store: with the view `decisions`.
        columns: its column by signal.

    Returns:
        By the number of the run.
    """
    spreads: defaultdict[int, dict[str, Spread]] = defaultdict(dict)
    ((rows,),) = store.rows("SELECT count(*) FROM decision")
    most = max(1, MOST_VALUES // (rows + 1))
    named = list(columns.items())
    for place in range(0, len(named), most):
        some = named[place : place + most]
        asked = ", ".join(spread_of(column) for _, column in some)
        for run, *found in store.rows(
            f"SELECT run_n, {asked} FROM decisions GROUP BY run_n"
        ):
            for (name, _), one in zip(some, found, strict=True):
                if one["n"]:
                    spreads[run][name] = Spread.read(one)
    made = {run: _movements(found) for run, found in spreads.items()}
    return defaultdict(lambda: _movements({}), made)


def _movements(spreads: Mapping[str, Spread]) -> tuple[Movement, ...]:
    names = [*_UNITS, *sorted(set(spreads) - set(_UNITS))]
    return tuple(
        Movement(name, _UNITS.get(name, ""), spreads.get(name, Spread.of(())))
        for name in names
    )
