"""The lines of a log as tables.

    decision   one row a decision
    call_line  one row for the line of a planned call
    other      one row for any other line: `k` says of which kind
    outcome    a view of its outcomes
    reading    a view of its readings

Rows keep the order of the files and of their lines: `rowid` says what came first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from admitperf.reports.runs import fields
from admitperf.reports.runs.fields import Names
from admitperf.reports.runs.store import Store, quoted

LONGEST_BYTES = 1 << 25
"""Twice the longest line that is read; DuckDB raises on a longer one."""

LONGEST_PLAIN_BYTES = 1 << 21
"""Plain choice: buffers are a multiple of it, and a line of 10,000 series is 1 MB."""

HEAD = '{"k":'
"""How every line of ours begins."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Files to read.

    Attributes:
        numbers: each is `<number>.jsonl` in the folder of the store, or a link there.
        longest_bytes: the longest line they may have.
    """

    numbers: Sequence[int]
    longest_bytes: int


def load(store: Store, texts: Texts, names: Names) -> None:
    """Fills the tables.

    Args:
        store: gets them.
        texts: the files, in the order in which they are read.
        names: what gets a column of its own.

    Raises:
        UnreadableError: a line is no JSON, or a field of another type than it may be.
    """
    text, decision, call = lines(store, texts), kind("decision"), kind("call")
    for name, query in (
        ("decision", fields.decisions(names, text, decision)),
        ("call_line", fields.calls(text, call)),
        ("other", fields.others(text, f"({decision} OR {call})", kind("outcome"))),
    ):
        store.rows(f"CREATE OR REPLACE TABLE {name} AS {query}")
    for name, columns in (("outcome", _OUTCOME), ("reading", "file, run, id")):
        store.rows(
            f"""CREATE OR REPLACE VIEW {name} AS
            SELECT {columns}, rowid AS row FROM other WHERE k = '{name}'"""
        )


_OUTCOME = """file, run, "of", ok, t_us AS ended_us, ttft_ms, max_gap_ms, e2e_ms,
    output_tokens, error, truncated"""


def lines(store: Store, texts: Texts) -> str:
    """All lines of some files, in order, as a part of a query: (file, line)."""
    paths = ", ".join(quoted(f"{store.folder}/{one}.jsonl") for one in texts.numbers)
    return f"""(
        SELECT parse_filename(filename, true)::INTEGER AS file, line
        FROM read_csv([{paths}], columns = {{'line': 'VARCHAR'}}, delim = '\\x01',
            quote = '', escape = '', header = false, auto_detect = false,
            new_line = '\\n', max_line_size = {texts.longest_bytes},
            filename = true))"""


def kind(word: str) -> str:
    """Whether `line` is of a kind, as a condition; ours say it first."""
    return f"""CASE WHEN starts_with(line, {quoted(HEAD)})
        THEN starts_with(line, '{HEAD}"{word}"')
            OR starts_with(line, '{HEAD} "{word}"')
        ELSE json_extract_string(line, '$.k') = '{word}' END"""
