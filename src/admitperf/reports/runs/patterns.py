"""The decisions of one run, grouped by which comparisons are true on them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from admitperf.core.gate import Gate
from admitperf.reports.ratio import Share
from admitperf.reports.runs.store import Store


@dataclass(frozen=True, slots=True)
class Bound:
    """One comparison of a policy: signal, operator and bound."""

    signal: str
    op: str
    bound: float

    @classmethod
    def of(cls, gate: Gate) -> "Bound":
        """That of a gate which was recorded."""
        return cls(gate.name, gate.op, gate.bound)


@dataclass(frozen=True, slots=True)
class Reach:
    """How near the values of a run came to a bound.

    Attributes:
        signal, op, bound: the comparison.
        true: on how many decisions it would have been, of those that have the signal.
        nearest: the value that came nearest to making it true.
        distance: how far that was from the bound, in the signal's unit; 0 when true.
    """

    signal: str
    op: str
    bound: float
    true: Share
    nearest: float
    distance: float


@dataclass(frozen=True, slots=True)
class Pattern:
    """Decisions on which the same comparisons are true.

    Attributes:
        values: of the signals, on one of these decisions.
        n: how many.
    """

    values: Mapping[str, float]
    n: int


@dataclass(frozen=True, slots=True)
class Rows:
    """One run of a log.

    Attributes:
        store: with the view `decisions`.
        run: the run's number.
        columns: its column by signal.
    """

    store: Store
    run: int
    columns: Mapping[str, str]

    def patterns(
        self, signals: Sequence[str], bounds: Sequence[Bound]
    ) -> Iterator[Pattern]:
        """The decisions that have all signals, by the truth of the comparisons."""
        values = [self.columns[name] for name in signals]
        truths = ", ".join(f"({self._holds(bound)})::INTEGER" for bound in bounds)
        known = " AND ".join(f"{value} IS NOT NULL" for value in values)
        for n, first in self.store.rows(
            f"""SELECT count(*), min({{'row': row, 'of': [{", ".join(values)}]}})
            FROM (SELECT *, [{truths}] AS truths FROM decisions
                WHERE run_n = {self.run} AND {known})
            GROUP BY truths ORDER BY min(row)"""
        ):
            yield Pattern(dict(zip(signals, first["of"], strict=True)), n)

    def reach(self, bound: Bound) -> Reach:
        """How near the run came to one comparison, of whose signal it has values."""
        value, up = self.columns[bound.signal], bound.op.startswith(">")
        ((n, of, nearest),) = self.store.rows(
            f"""SELECT count(*) FILTER ({self._holds(bound)}), count({value}),
                {"max" if up else "min"}({value})
            FROM decisions WHERE run_n = {self.run}"""
        )
        short = bound.bound - nearest if up else nearest - bound.bound
        return Reach(
            bound.signal,
            bound.op,
            bound.bound,
            Share.part(n, of),
            nearest,
            0.0 if n else max(short, 0.0),
        )

    def _holds(self, bound: Bound) -> str:
        """The comparison as a condition; a bound that is no number is never met."""
        if not isfinite(bound.bound):
            return "false"
        return f"{self.columns[bound.signal]} {bound.op} '{bound.bound!r}'::DOUBLE"
