"""Every decision as a row of a Parquet file, and rows found in it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admitperf.reports.extra import needed
from admitperf.reports.report import Report
from admitperf.reports.runs.log import Log
from admitperf.reports.runs.store import quoted
from admitperf.reports.runs.tables import kind, lines

MOST_ROWS = 1000
"""Plain choice: more than a person scrolls through; how many match is said beside."""

_AT = {
    "run": "/run",
    "seq": "/seq",
    "request_id": "/id",
    "replica": "/replica",
    **{
        name: f"/facts/{name}"
        for name in (
            *("tenant", "session", "logical_id", "model", "slo_class"),
            *("attempt", "input_tokens", "max_output_tokens"),
        )
    },
}
"""Where a line has what a decision's row has no column for; looked up all at once."""

_NUMBERS = ("seq", "attempt", "input_tokens", "max_output_tokens")

_ROWS = """
SELECT d.run_n, d.t_us, d.seq, d.verdict, d.reason, d.admitted, d.enforced, d.status,
    d.retry_after_ms, coalesce(d.blind, '') <> '' AS blind, d.host,
    s.* EXCLUDE (run, seq),
    o.ok, o.ttft_ms, o.max_gap_ms, o.e2e_ms, o.output_tokens, o.error
FROM decisions d
LEFT JOIN (
    SELECT {once} {said}
    FROM (SELECT json_extract_string(line, {paths}) AS found
        FROM {lines} WHERE {decision})) s USING (run, seq)
LEFT JOIN outcomes o ON o.process_n = d.process_n AND o."of" = d.seq"""


def write(log: Log, made: Report, path: Path) -> None:
    """Writes the decisions of every run, in any order.

    What was left out as warm-up is not in it, so rows count as the report counts.

    Args:
        log, made: as `report.reported` hands them over.
        path: of the Parquet file.

    Raises:
        UnreadableError: it cannot be written.
    """
    twice = any(run.faults.repeated for run in made.runs)
    rows = _ROWS.format(
        once="DISTINCT ON (run, seq)" if twice else "",
        said=", ".join(_said(place, name) for place, name in enumerate(_AT, 1)),
        paths=list(_AT.values()),
        lines=lines(log.store, log.texts),
        decision=kind("decision"),
    )
    log.store.rows(f"COPY ({rows}) TO {quoted(str(path))} (FORMAT parquet)")


def _said(place: int, name: str) -> str:
    value = f"found[{place}]"
    if name in _NUMBERS:
        return f"{value}::BIGINT AS {name}"
    return f"coalesce({value}, '') AS {name}"


@dataclass(frozen=True, slots=True)
class Found:
    """Rows that were asked for.

    Attributes:
        columns: their names.
        rows: the first of them, `MOST_ROWS` at the most.
        n: how many match.
        of: how many the run has.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    n: int
    of: int


def find(
    path: Path,
    run: int,
    chosen: Mapping[str, str],
    between_s: tuple[float, float] | None = None,
) -> Found:
    """The decisions of a run that match.

    Args:
        path: of the Parquet file.
        run: its number.
        chosen: what some columns of text must equal, by their names.
        between_s: seconds since the run's first decision, both ends included; None =
            any time, and those without one.

    Raises:
        OSError: it is no such file.
    """
    where, given = ["run_n = $run"], dict[str, object](run=run)
    for name, value in chosen.items():
        where.append(f"{name} = ${name}")
        given[name] = value
    if between_s is not None:
        where.append("at_s BETWEEN $from_s AND $to_s")
        given |= {"from_s": between_s[0], "to_s": between_s[1]}
    named, rows = _asked(path, f"WHERE {' AND '.join(where)}", given)
    (counts,) = _asked(path, "", {"run": run}, _COUNT)[1]
    return Found(named[:-1], tuple(row[:-1] for row in rows), *_numbers(rows, counts))


def values(path: Path, run: int, name: str) -> list[str]:
    """What stands in a column of a run, the commonest first, 200 at the most.

    Raises:
        OSError: it is no such file.
    """
    asked = (
        f"SELECT {name} FROM rows WHERE run_n = $run AND {name} <> ''"
        f" GROUP BY {name} ORDER BY count(*) DESC, {name} LIMIT 200"
    )
    return [value for (value,) in _asked(path, "", {"run": run}, asked)[1]]


_COUNT = "SELECT count(*) FROM rows WHERE run_n = $run"


def _numbers(rows: Sequence[tuple[Any, ...]], counts: tuple[int]) -> tuple[int, int]:
    return (rows[0][-1] if rows else 0), counts[0]


def _asked(
    path: Path, where: str, given: Mapping[str, object], asked: str = ""
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    duckdb = needed("duckdb")
    asked = asked or (
        "SELECT * EXCLUDE (run_n, t_us), count(*) OVER () AS n_found"
        f" FROM rows {where} ORDER BY at_s, seq LIMIT {MOST_ROWS}"
    )
    with_time = f"""WITH rows AS (
        SELECT (t_us - min(t_us) OVER (PARTITION BY run_n)) / 1e6 AS at_s, *
        FROM read_parquet({quoted(str(path))})) {asked}"""
    try:
        with duckdb.connect() as connection:
            made = connection.execute(with_time, dict(given))
            return tuple(one[0] for one in made.description), made.fetchall()
    except duckdb.Error as error:
        raise OSError(str(error).partition("\n")[0]) from None
