"""How the fields of lines become columns of tables."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from admitperf.core.signals import ALL
from admitperf.reports.files.forms import (
    COUNT,
    DURATION,
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    Form,
)
from admitperf.reports.files.shape import FACTS, KINDS
from admitperf.reports.runs.store import quoted

Types = dict[str, object]

_SIGNALS = {signal.name for signal in ALL}
_TYPES = {
    COUNT: "BIGINT",
    WHOLE: "BIGINT",
    DURATION: "DOUBLE",
    NUMBER: "DOUBLE",
    FLAG: "BOOLEAN",
    TEXT: "VARCHAR",
}


@dataclass(frozen=True, slots=True)
class Names:
    """What the decisions of a log name and a table has columns for.

    Attributes:
        signals: signal n is column `s<n>`, a number.
        facts: fact n is column `f<n>`, whether the decision carries it.
        cut: whether there were more signals.
    """

    signals: tuple[str, ...]
    facts: tuple[str, ...]
    cut: bool


def decisions(names: Names, lines: str, kind: str) -> str:
    """A query for the decisions among lines.

    Args:
        names: the signals and facts that get a column. Ours are read with the line;
            others may have any name, and each is looked up by its own path.
        lines: a part of a query: (file, line).
        kind: whether a line is a decision, as a condition.
    """
    signals = _SIGNALS.intersection(names.signals)
    facts = {*_USED_FACTS, *names.facts} & FACTS.keys()
    types = {
        **_types(KINDS["decision"].needed),
        **_types(KINDS["decision"].optional, _TAKEN),
        "gates": "JSON",
        "signals": dict.fromkeys(sorted(signals) or ("kv_pressure",), "DOUBLE"),
        "facts": _types(FACTS, facts),
    }
    values = [_signal(name) for name in names.signals]
    columns = (
        *_DECISION,
        *(f"{one} AS s{place}" for place, one in enumerate(values)),
        *(f"{_carries(one)} AS f{place}" for place, one in enumerate(names.facts)),
        f"{_left_out(values) if names.cut else 0} AS left_out",
    )
    return f"""
        SELECT file, {", ".join(columns)}
        FROM (SELECT file, line, {_read(types)} AS d FROM {lines} WHERE {kind})"""


_USED_FACTS = ("logical_id", "slo_class", "stream", "late_ms", "max_output_tokens")
_TAKEN = (
    "id",
    "reason",
    "enforced",
    "status",
    "retry_after_ms",
    "wait",
    "reading",
    "age_ms",
    "decide_us",
    "blind",
    "why",
    "by",
    "probe",
    "held_ms",
)
_LONGEST_HOLD_MS = 1e12
"""Plain choice: thirty years, so that no number is too large for a time."""

_DECISION = (
    "d.run",
    "d.seq",
    # When it arrived: a held request has its line when it was answered.
    f"""greatest(d.t_us - (least(coalesce(d.held_ms, 0), {_LONGEST_HOLD_MS}) * 1000)
        ::BIGINT, 0) AS t_us""",
    # DuckDB's own `hash` gives two names that are built alike the same number.
    "md5_number_lower(d.id) AS id",
    "d.verdict",
    "coalesce(d.reason, '') AS reason",
    "d.admitted",
    "coalesce(d.enforced, true) AS enforced",
    "coalesce(d.status, 0) AS status",
    "d.retry_after_ms",
    "d.wait",
    "d.gates",
    "d.reading",
    "d.age_ms",
    "d.decide_us",
    "d.blind",
    "d.why",
    "coalesce(d.by = 'host', false) AS host",
    "coalesce(d.probe, false) AS probe",
    "CASE WHEN d.held_ms > 0 THEN d.held_ms END AS held_ms",
    # Its caller left while it was held: nobody was let in or turned away.
    """coalesce(d.by = 'host' AND d.why = 'client_closed' AND d.held_ms > 0
        AND NOT d.admitted, false) AS gone""",
    "d.facts.logical_id IS NOT NULL AS named",
    """CASE WHEN d.facts.logical_id IS NOT NULL
        THEN md5_number_lower(d.facts.logical_id) ELSE hash(d.run, d.seq)
        END AS call""",
    "d.facts.slo_class",
    "NOT coalesce(d.facts.stream, true) AS whole",
    "d.facts.late_ms",
    "d.facts.max_output_tokens AS asked_tokens",
)


def calls(lines: str, kind: str) -> str:
    """A query for the planned calls among lines.

    Args:
        lines: a part of a query: (file, line).
        kind: whether a line is a planned call, as a condition.
    """
    types = _types(KINDS["call"].optional, _CALL) | dict.fromkeys(_CALLED, "VARCHAR")
    return f"""
        SELECT file, {", ".join(f"d.{name}" for name in (*_CALLED, *_CALL))},
            coalesce(d.scored, true) AS counts
        FROM (SELECT file, {_read(types)} AS d FROM {lines} WHERE {kind})"""


_CALLED = ("run", "id", "session", "ended")
_CALL = (
    "slo_class",
    "attempts",
    "ttft_ms",
    "max_gap_ms",
    "e2e_ms",
    "output_tokens",
    "got_tokens",
    "scored",
)


def others(lines: str, apart: str, outcome: str) -> str:
    """A query for all lines but those with a table of their own.

    Only outcomes are many; of the rest `line` is kept where a report reads more of it.

    Args:
        lines: a part of a query: (file, line).
        apart, outcome: whether a line has another table, or is an outcome, as a
            condition.
    """
    types = _types({**KINDS["outcome"].needed, **KINDS["outcome"].optional}, _OUTCOME)
    return f"""
        SELECT file,
            CASE WHEN ended THEN 'outcome' ELSE json_extract_string(line, '$.k')
                END AS k,
            CASE WHEN ended THEN d.run ELSE json_extract_string(line, '$.run')
                END AS run,
            CASE WHEN ended THEN d.t_us
                ELSE json_extract(line, '$.t_us')::BIGINT END AS t_us,
            CASE WHEN k = 'reading' THEN json_extract(line, '$.id')::BIGINT END AS id,
            CASE WHEN k IN ('run', 'lost', 'control') THEN line END AS line,
            d."of", d.ok, d.ttft_ms, d.max_gap_ms, d.e2e_ms, d.output_tokens,
            CASE WHEN NOT d.ok THEN coalesce(nullif(d.error, ''),
                nullif(d.finish_reason, ''), 'no error given') END AS error,
            coalesce(d.finish_reason IN {CUT_SHORT}, false) AS truncated
        FROM (
            SELECT file, line, {outcome} AS ended,
                CASE WHEN ended THEN {_read(types)} END AS d
            FROM {lines} WHERE NOT {apart})"""


_OUTCOME = (
    "run",
    "t_us",
    "of",
    "ok",
    "ttft_ms",
    "max_gap_ms",
    "e2e_ms",
    "output_tokens",
    "error",
    "finish_reason",
)


CUT_SHORT = ("length", "max_tokens", "max_output_tokens")
"""Finish reasons of an answer cut at its token limit, as the three dialects say it."""


def member(*path: str) -> str:
    """A value deep inside `line`, whatever the names on the way; NULL when absent."""
    steps = (name.replace("~", "~0").replace("/", "~1") for name in path)
    return f"json_extract(line, {quoted('/' + '/'.join(steps))})"


def _types(forms: Mapping[str, Form], names: Iterable[str] | None = None) -> Types:
    """The types of some fields by name; those of all when none are named."""
    some = forms if names is None else {name: forms[name] for name in sorted(names)}
    return {name: _TYPES.get(form, "VARCHAR") for name, form in some.items()}


def _read(types: Types) -> str:
    return f"from_json(line, {quoted(json.dumps(types))})"


def _signal(name: str) -> str:
    if name in _SIGNALS:
        return f"d.signals.{name}"
    return f"{member('signals', name)}::DOUBLE"


def _carries(fact: str) -> str:
    if fact in FACTS:
        return f'd.facts."{fact}" IS NOT NULL'
    return f"coalesce({member('facts', fact)}::VARCHAR <> 'null', false)"


def _left_out(values: list[str]) -> str:
    """How many known values of signals a line has beside those that have a column."""
    every = "list_filter(json_extract(line, '$.signals.*'), lambda one: one <> 'null')"
    kept = " + ".join(f"({one} IS NOT NULL)::INTEGER" for one in values)
    return f"len({every}) - ({kept})"
