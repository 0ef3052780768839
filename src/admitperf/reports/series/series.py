"""What happened when: the lines of a run in bins of time.

A bin of a signal keeps its smallest and its largest value, so that no spike is lost,
however many decisions stand behind a plot.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from admitperf.reports.report import Report, RunReport
from admitperf.reports.runs.answers import BY_POSTURE, REASON
from admitperf.reports.runs.gates import Gate
from admitperf.reports.runs.log import Log
from admitperf.reports.runs.store import Row, Store, by_run
from admitperf.reports.series.grid import Grid

MOST_FINE = 300
"""Plain choice: bins of signals; a plot has about two pixels for each."""
MOST_COARSE = 60
"""Plain choice: bins of counts, which need some decisions each."""
EACH_COARSE = 10
"""Plain choice: decisions a coarse bin has on average, at the least."""
MOST_SIGNALS = 24
"""Plain choice: more than the catalogue has."""
MOST_REASONS = 8
"""Plain choice: as many as can be told apart; the rarer ones are one."""
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class SignalSeries:
    """One signal by bin of the fine grid.

    Attributes:
        name, unit: as in `signals`; a number a policy derived has no unit.
        derived: whether its values are those its gate compared: no line has it.
        n: values in each bin.
        low, mean, high: of them; None where there are none.
    """

    name: str
    unit: str
    derived: bool
    n: tuple[int, ...]
    low: tuple[float | None, ...]
    mean: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class BoundSeries:
    """A gate's bound that moved, by bin of the fine grid.

    Attributes:
        signal, op: whose bound it is.
        low, high: the smallest and the largest bound in each bin; None where none was
            asked, or it was infinite.
    """

    signal: str
    op: str
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class AnswerSeries:
    """One verdict for one reason by bin of the coarse grid.

    Attributes:
        verdict, reason, blind: as in `answers.rows`; the reason "others" with an empty
            verdict stands for all that are not named.
        n: decisions in each bin.
    """

    verdict: str
    reason: str
    blind: bool
    n: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """One run over time.

    Attributes:
        decisions: those that stand behind it: all that have a time.
        untimed: those that have none.
        fine: bins of signals and of bounds, at most 300; None when no decision has a
            time.
        coarse: bins of counts, at most 60; None likewise.
        signals: those that a gate compares, then those that moved.
        signals_left_out: how many more of these there are.
        bounds: of the gates whose bound moved.
        answers: by verdict and reason, the most frequent first.
        offered, admitted: decisions in each coarse bin, and those the policy admitted.
        good: attempts that arrived in each coarse bin and met the SLO; None without
            outcomes.
        goodput: those over the offered; None where nothing was offered.
    """

    decisions: int
    untimed: int
    fine: Grid | None
    coarse: Grid | None
    signals: tuple[SignalSeries, ...]
    signals_left_out: int
    bounds: tuple[BoundSeries, ...]
    answers: tuple[AnswerSeries, ...]
    offered: tuple[int, ...]
    admitted: tuple[int, ...]
    good: tuple[int, ...] | None
    goodput: tuple[float | None, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """As plain dicts and lists, ready for strict JSON."""
        return asdict(self)


def series(
    log: Log, report: Report, most: int | None = None
) -> tuple[Series | None, ...]:
    """The runs of a report over time.

    Args:
        log: the log it was made from, as `report.reported` gives it.
        report: of which run n is `run_n` n.
        most: how many runs, from the first; None = all. The others are None.
    """
    runs = report.runs[:most]
    asked = _Asked(log, runs)
    made = tuple(asked.series(number) for number in range(len(runs)))
    return (*made, *[None] * (len(report.runs) - len(runs)))


# --------------------------------------------------------------------------- ask


class _Asked:
    """What was asked of the tables, about all runs at once."""

    def __init__(self, log: Log, runs: Sequence[RunReport]) -> None:
        self.runs, self.store = runs, log.store
        columns = {name: f"s{place}" for place, name in enumerate(log.names.signals)}
        self.shown = [_shown(run) for run in runs]
        self.grids = _grids(log.store, runs)
        named = dict.fromkeys(name for shown in self.shown for name in shown)
        self.columns = {name: columns[name] for name in named if name in columns}
        self.fine = _fine(log.store, self.columns.values())
        self.compared = _compared(log.store, runs)
        self.counts = by_run(log.store.rows(_OFFERED))
        self.answers = _answers(log.store, runs)
        self.good = by_run(log.store.rows(_GOOD))

    def series(self, number: int) -> Series:
        """One run's."""
        run, grids = self.runs[number], self.grids.get(number)
        if grids is None:
            return _untimed(run)
        fine, coarse = grids
        bins = len(coarse.from_s)
        offered, admitted = _columns(self.counts[number], bins, 2, 0)
        good: tuple[int, ...] | None = None
        if run.cost.goodput is not None:
            (good,) = _columns(self.good[number], bins, 1, 0)
        shown = self.shown[number]
        signals = tuple(self._signals(number, shown[:MOST_SIGNALS], len(fine.from_s)))
        return Series(
            decisions=sum(offered),
            untimed=run.answers.offered - sum(offered),
            fine=fine,
            coarse=coarse,
            signals=signals,
            signals_left_out=len(shown) - len(signals),
            bounds=tuple(self._bounds(number, len(fine.from_s))),
            answers=tuple(_answered(run, self.answers[number], bins)),
            offered=offered,
            admitted=admitted,
            good=good,
            goodput=None if good is None else _shares(good, offered),
        )

    def _signals(
        self, number: int, shown: Sequence[str], bins: int
    ) -> Iterator[SignalSeries]:
        units = {moved.name: moved.unit for moved in self.runs[number].signals}
        known = _known(self.runs[number])
        places = {name: place for place, name in enumerate(self.columns)}
        for name in shown:
            if name in known:
                at = 1 + 4 * places[name]
                rows = [(row[0], *row[at : at + 4]) for row in self.fine[number]]
            else:
                rows = self.compared.values(number, name)
            n, low, mean, high = _columns(rows, bins, 4, None)
            yield SignalSeries(
                name=name,
                unit=units.get(name, ""),
                derived=name not in known,
                n=tuple(one or 0 for one in n),
                low=low,
                mean=mean,
                high=high,
            )

    def _bounds(self, number: int, bins: int) -> Iterator[BoundSeries]:
        moving = dict.fromkeys(
            (gate.signal, gate.op) for gate in self.runs[number].gates if _moves(gate)
        )
        for signal, op in moving:
            rows = self.compared.bounds(number, signal, op)
            yield BoundSeries(signal, op, *_columns(rows, bins, 2, None))


def _untimed(run: RunReport) -> Series:
    """Of a run none of whose decisions has a time."""
    return Series(
        decisions=0,
        untimed=run.answers.offered,
        fine=None,
        coarse=None,
        signals=(),
        signals_left_out=len(_shown(run)),
        bounds=(),
        answers=(),
        offered=(),
        admitted=(),
        good=None,
        goodput=None,
    )


def _shown(run: RunReport) -> tuple[str, ...]:
    """The signals worth a series: those of gates first."""
    compared = (gate.signal for gate in run.gates if gate.evaluated)
    moved = (one.name for one in run.signals if one.spread.moved)
    return tuple(dict.fromkeys((*compared, *moved)))


def _known(run: RunReport) -> set[str]:
    return {one.name for one in run.signals if one.spread.n}


def _moves(gate: Gate) -> bool:
    return gate.bound_low != gate.bound_high


def _shares(good: Sequence[int], offered: Sequence[int]) -> tuple[float | None, ...]:
    return tuple(n / of if of else None for n, of in zip(good, offered, strict=True))


def _columns(
    rows: Sequence[Row],
    bins: int,
    wide: int,
    absent: Any,  # noqa: ANN401
) -> list[tuple[Any, ...]]:
    """Rows that begin with their bin as columns, with a value for every bin."""
    made = [[absent] * bins for _ in range(wide)]
    for place, *values in rows:
        for column, value in zip(made, values, strict=True):
            column[place] = _finite(value)
    return [tuple(column) for column in made]


def _finite(value: Any) -> Any:  # noqa: ANN401  whatever a query answers
    return None if isinstance(value, float) and not isfinite(value) else value


# ------------------------------------------------------------------------- grids


def _grids(store: Store, runs: Sequence[RunReport]) -> dict[int, tuple[Grid, Grid]]:
    """The grids of every run that has times; makes the table `grid` of them."""
    made: dict[int, tuple[Grid, Grid]] = {}
    began: dict[int, int] = {}
    for number, first_us, last_us, n in store.rows(_WHEN):
        if number < len(runs):
            few = max(min(MOST_COARSE, n // EACH_COARSE), 1)
            span_us, began[number] = last_us - first_us, first_us
            made[number] = (
                Grid.over(span_us, min(MOST_FINE, n)),
                Grid.over(span_us, few),
            )
    store.table(
        "grid",
        {
            "run_n INTEGER": list(made),
            "first_us BIGINT": [began[number] for number in made],
            "fine_us BIGINT": [fine.width_us for fine, _ in made.values()],
            "coarse_us BIGINT": [coarse.width_us for _, coarse in made.values()],
        },
    )
    return made


_WHEN = """SELECT run_n, min(t_us), max(t_us), count(*) FROM decisions
    WHERE t_us IS NOT NULL GROUP BY run_n ORDER BY run_n"""

_FINE_BIN = "((t_us - first_us) // fine_us)::INTEGER"
_COARSE_BIN = "((t_us - first_us) // coarse_us)::INTEGER"

_OFFERED = f"""
SELECT run_n, {_COARSE_BIN} AS bin, count(*), count(*) FILTER (verdict = 'admit')
FROM decisions JOIN grid USING (run_n) WHERE t_us IS NOT NULL GROUP BY run_n, bin"""

_GOOD = f"""
SELECT run_n, {_COARSE_BIN} AS bin, count(*) FROM judged JOIN grid USING (run_n)
WHERE t_us IS NOT NULL AND ok AND missed IS NULL GROUP BY run_n, bin"""


# ----------------------------------------------------------------------- signals


def _fine(store: Store, columns: Any) -> defaultdict[int, list[Row]]:  # noqa: ANN401
    """Of each signal n, min, mean and max by run and bin."""
    asked = [f"count({one}), min({one}), favg({one}), max({one})" for one in columns]
    if not asked:
        return defaultdict(list)
    rows = store.rows(
        f"""SELECT run_n, {_FINE_BIN} AS bin, {", ".join(asked)}
        FROM decisions JOIN grid USING (run_n)
        WHERE t_us IS NOT NULL GROUP BY run_n, bin"""
    )
    return defaultdict(list, by_run(rows))


class _Compared:
    """What gates compared, by bin: where no line has the value, or a bound moved."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows: defaultdict[tuple[int, str], list[Row]] = defaultdict(list)
        for number, place, signal, *rest in rows:
            self.rows[number, signal].append((place, *rest))

    def values(self, number: int, signal: str) -> list[Row]:
        """Bin, n, min, mean and max of what was compared under a name."""
        first = {op for _, op, *_ in self.rows[number, signal]}
        op = min(first, default="")
        return [
            (place, n, low, total / n if n else None, high)
            for place, its, n, low, total, high, *_ in self.rows[number, signal]
            if its == op
        ]

    def bounds(self, number: int, signal: str, op: str) -> list[Row]:
        """Bin, smallest and largest bound."""
        return [
            (place, least, most)
            for place, its, *_, least, most in self.rows[number, signal]
            if its == op
        ]


def _compared(store: Store, runs: Sequence[RunReport]) -> _Compared:
    needed = [
        number
        for number, run in enumerate(runs)
        if any(_moves(gate) or gate.signal not in _known(run) for gate in run.gates)
    ]
    if not needed:
        return _Compared([])
    return _Compared(store.rows(_COMPARED, {"runs": needed}))


_COMPARED = f"""
WITH texts AS (
    SELECT run_n, {_FINE_BIN} AS bin, gates, count(*) AS n
    FROM decisions JOIN grid USING (run_n)
    WHERE t_us IS NOT NULL AND gates IS NOT NULL AND blind IS NULL AND NOT host
        AND list_contains($runs, run_n)
    GROUP BY ALL),
asked AS (
    SELECT run_n, bin, n, unnest(from_json(gates, '[["VARCHAR"]]')) AS gate
    FROM texts),
compared AS (
    SELECT run_n, bin, n, gate[1] AS signal, gate[2]::DOUBLE AS value, gate[3] AS op,
        gate[4]::DOUBLE AS bound
    FROM asked WHERE gate[2] IS NOT NULL)
SELECT run_n, bin, signal, op, sum(n)::BIGINT, min(value), sum(n * value), max(value),
    min(bound), max(bound)
FROM compared GROUP BY run_n, bin, signal, op"""


# ----------------------------------------------------------------------- answers


def _answers(store: Store, runs: Sequence[RunReport]) -> defaultdict[int, list[Row]]:
    """How often each of the answers that are named stands in each bin.

    Returns:
        Place of the answer in the run's, -1 for one that is not named, bin, n; by the
        number of the run.
    """
    named = [
        (number, place, one)
        for number, run in enumerate(runs)
        for place, one in enumerate(_named(run))
    ]
    store.table(
        "named_answer",
        {
            "run_n INTEGER": [number for number, _, _ in named],
            "place INTEGER": [place for _, place, _ in named],
            "verdict VARCHAR": [one.verdict for _, _, one in named],
            "said VARCHAR": [one.reason for _, _, one in named],
            "posture BOOLEAN": [one.blind for _, _, one in named],
        },
    )
    return defaultdict(list, by_run(store.rows(_ANSWERS)))


_ANSWERS = f"""
WITH counted AS (
    SELECT run_n, {_COARSE_BIN} AS bin, verdict, {REASON} AS said,
        {BY_POSTURE} AS posture, count(*) AS n
    FROM decisions JOIN grid USING (run_n) WHERE t_us IS NOT NULL GROUP BY ALL)
SELECT run_n, coalesce(place, -1), bin, sum(n)::BIGINT
FROM counted LEFT JOIN named_answer USING (run_n, verdict, said, posture)
GROUP BY ALL"""


def _named(run: RunReport) -> Sequence[Any]:
    rows = run.answers.rows
    return rows if len(rows) <= MOST_REASONS else rows[: MOST_REASONS - 1]


def _answered(run: RunReport, rows: Sequence[Row], bins: int) -> Iterator[AnswerSeries]:
    by_place: Mapping[int, list[Row]] = by_run(rows)
    for place, one in enumerate(_named(run)):
        (n,) = _columns(by_place.get(place, []), bins, 1, 0)
        yield AnswerSeries(one.verdict, one.reason, one.blind, n)
    if -1 in by_place:
        (n,) = _columns(by_place[-1], bins, 1, 0)
        yield AnswerSeries(verdict="", reason=OTHERS, blind=False, n=n)
