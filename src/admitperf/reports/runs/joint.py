"""All gates of a run at once: how often all were true, and how near it came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from admitperf.reports.ratio import Share
from admitperf.reports.runs.gates import Gate
from admitperf.reports.runs.store import Store


@dataclass(frozen=True, slots=True)
class Joint:
    """The decision at which all gates together came nearest to being true.

    Attributes:
        values: each gate's signal at that decision, by name.
        distance: how far it was from all of them true: the largest over the gates of
            how far the value is on the side that is not, over the size of the bound
            (1 for a bound of 0); 0 when all were true or stood at their bounds.
        held: decisions at which all were true, of those where every gate's value is
            known.
    """

    values: dict[str, float]
    distance: float
    held: Share


def joint(
    store: Store, run: int, gates: Sequence[Gate], columns: Mapping[str, str]
) -> tuple[Share, Joint | None] | None:
    """How often all gates were true at once, and the decision that came nearest.

    Args:
        store: with the view `decisions`.
        run: the run's number.
        gates: the run's.
        columns: its column by signal.

    Returns:
        None when there are fewer than two gates, or one of them cannot be completed;
        no nearest decision when on none all values are known.
    """
    if len(gates) < 2:  # noqa: PLR2004  one gate holds with nothing
        return None
    if any(gate.completed is None or gate.bound_low is None for gate in gates):
        return None
    values = {gate.signal: columns[gate.signal] for gate in gates}
    known = " AND ".join(f"{value} IS NOT NULL" for value in values.values())
    holds = " AND ".join(
        f"{values[gate.signal]} {gate.op} {_bound(gate)}" for gate in gates
    )
    short = ", ".join(_short_of(gate, values[gate.signal]) for gate in gates)
    ((of, held, nearest),) = store.rows(
        f"""SELECT count(*), count(*) FILTER ({holds}),
            min({{'distance': greatest({short}, 0.0), 'row': row}})
        FROM decisions WHERE run_n = {run} AND blind IS NULL AND NOT host
            AND {known}"""
    )
    if nearest is None:
        return Share.part(held, of), None
    (found,) = store.rows(
        f"SELECT {', '.join(values.values())} FROM decision"
        f" WHERE rowid = {nearest['row']}"
    )
    share = Share.part(held, of)
    at = dict(zip(values, found, strict=True))
    return share, Joint(at, nearest["distance"], share)


def _bound(gate: Gate) -> str:
    return f"'{gate.bound_low!r}'::DOUBLE"


def _short_of(gate: Gate, value: str) -> str:
    """How far a value is from holding, over the size of the bound."""
    bound = _bound(gate)
    short = f"{bound} - {value}" if gate.op.startswith(">") else f"{value} - {bound}"
    return f"({short}) / {abs(gate.bound_low or 0.0) or 1.0!r}"
