"""The lines of a log as tables.

    decision   one row a decision
    other      one row for any other line: `k` says of which kind
    outcome    a view of its outcomes
    reading    a view of its readings

Rows keep the order of the files and of their lines: `rowid` says what came first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from admitperf.reports import fields
from admitperf.reports.fields import Names
from admitperf.reports.grammar import LINES, NEEDED
from admitperf.reports.store import Store, quoted

MOST_NAMES = 256
"""Plain choice: an honest log has a few dozen signals, a broken one no end."""

LONGEST_BYTES = 1 << 25
"""Twice the longest line that is read; DuckDB raises on a longer one."""

LONGEST_PLAIN_BYTES = 1 << 21
"""Plain choice: buffers are a multiple of it, and a line of 10,000 series is 1 MB."""

_HEAD = '{"k":'


@dataclass(frozen=True, slots=True)
class Texts:
    """Files to read.

    Attributes:
        numbers: each is `<number>.jsonl` in the folder of the store, or a link there.
        longest_bytes: the longest line they may have.
    """

    numbers: Sequence[int]
    longest_bytes: int


@dataclass(slots=True)
class Looked:
    """What a first look at some files found.

    Attributes:
        lines: lines that are not blank, by file.
        odd: files with a line that needs a second look.
        signals, facts: how often each name was met.
    """

    lines: Counter[int] = field(default_factory=Counter)
    odd: set[int] = field(default_factory=set)
    signals: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Looked") -> None:
        """Takes in what was found in other files."""
        self.lines.update(other.lines)
        self.odd |= other.odd
        self.signals.update(other.signals)
        self.facts.update(other.facts)

    @property
    def names(self) -> Names:
        """The names that get a column; the most frequent when there are too many."""
        cut = len(self.signals) > MOST_NAMES
        return Names(_kept(self.signals), _kept(self.facts), cut)


def look(store: Store, texts: Texts, *, cleaned: bool) -> Looked:
    """Counts the lines of files, and finds those that are not as ours are written.

    Args:
        store: reads them.
        texts: the files.
        cleaned: their lines are known to be good, however they are written.

    Raises:
        UnreadableError: a file is no text, or a line is too long.
    """
    fits = "true" if cleaned else _FITS
    found = Looked()
    for file, fit, head, keys, n in store.rows(
        f"""
        WITH fit AS (SELECT file, line, {fits} AS fits FROM {lines(store, texts)}),
        keyed AS (
            SELECT file, fits, substring(line, {len(_HEAD) + 1}, 11) AS head, CASE
                WHEN NOT fits THEN NULL
                WHEN {kind("decision")}
                THEN json_keys(line, ['$', '$.signals', '$.facts'])
                ELSE [json_keys(line)] END AS keys
            FROM fit)
        SELECT file, fits, any_value(head), any_value(keys), count(*)
        FROM keyed GROUP BY file, fits, hash(head, keys)"""
    ):
        found.lines[file] += n
        named = [one or () for one in keys or ()]
        if not cleaned and not (fit and _whole(head, named)):
            found.odd.add(file)
        for counts, one in zip((found.signals, found.facts), named[1:], strict=False):
            counts.update(dict.fromkeys(one, n))
    return found


def _whole(head: str, named: list[Sequence[str]]) -> bool:
    """Whether a line has what its kind needs, and no name twice."""
    needed = NEEDED[head.split('"')[1]]
    return set(needed) <= set(named[0]) and all(len(set(n)) == len(n) for n in named)


def load(store: Store, texts: Texts, names: Names) -> None:
    """Fills the tables.

    Args:
        store: gets them.
        texts: the files, in the order in which they are read.
        names: what gets a column of its own.

    Raises:
        UnreadableError: a line is no JSON, or a field of another type than it may be.
    """
    text, decision = lines(store, texts), kind("decision")
    for name, query in (
        ("decision", fields.decisions(names, text, decision)),
        ("other", fields.others(text, decision, kind("outcome"))),
    ):
        store.rows(f"CREATE OR REPLACE TABLE {name} AS {query}")
    for name, columns in (("outcome", _OUTCOME), ("reading", "file, run, id")):
        store.rows(
            f"""CREATE OR REPLACE VIEW {name} AS
            SELECT {columns}, rowid AS row FROM other WHERE k = '{name}'"""
        )


_OUTCOME = """file, run, "of", ok, ttft_ms, max_gap_ms, e2e_ms, output_tokens, error"""


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
    return f"""CASE WHEN starts_with(line, {quoted(_HEAD)})
        THEN starts_with(line, '{_HEAD}"{word}"')
            OR starts_with(line, '{_HEAD} "{word}"')
        ELSE json_extract_string(line, '$.k') = '{word}' END"""


def _fits() -> str:
    """Whether `line` is as ours are written.

    By kind, since the automaton of one is smaller, and so faster, than that of all.
    """
    cases = " ".join(
        f"WHEN {kind(name)} THEN regexp_full_match(line, {quoted(pattern)})"
        for name, pattern in LINES.items()
    )
    return f"CASE WHEN NOT starts_with(line, '{_HEAD}') THEN false {cases} END"


_FITS = _fits()


def _kept(counts: Mapping[str, int]) -> tuple[str, ...]:
    ranked: Iterable[str] = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(ranked)[:MOST_NAMES]
