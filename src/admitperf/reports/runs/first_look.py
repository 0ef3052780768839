"""A first look at the lines of files: how many, all as ours are written, what names."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from admitperf.reports.files.grammar import LINES, NEEDED
from admitperf.reports.runs.fields import Names
from admitperf.reports.runs.store import Store, quoted
from admitperf.reports.runs.tables import HEAD, Texts, kind, lines

MOST_NAMES = 256
"""Plain choice: an honest log has a few dozen signals, a broken one no end."""


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

    def take_names(self, shape: "_Shape") -> None:
        """Takes in the names of signals and facts on some decisions."""
        kinds = zip((self.signals, self.facts), shape.names[1:], strict=False)
        for counts, names in kinds:
            counts.update(dict.fromkeys(names, shape.n))

    @property
    def names(self) -> Names:
        """The names that get a column; the most frequent when there are too many."""
        cut = len(self.signals) > MOST_NAMES
        return Names(_kept(self.signals), _kept(self.facts), cut)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Lines of one file with the same names in the same order.

    Attributes:
        file: its number.
        fits: whether they are as ours are written, as far as a pattern can say.
        head: what follows `{"k":`.
        names: of the line, of its signals, of its facts; empty when they do not fit.
        n: how many.
    """

    file: int
    fits: bool
    head: str
    names: Sequence[Sequence[str]]
    n: int

    @property
    def good(self) -> bool:
        """Whether they also have what their kind needs, and no name twice."""
        if not self.fits:
            return False
        needed = NEEDED[self.head.split('"')[1]]
        whole = set(needed) <= set(self.names[0])
        return whole and all(len(set(some)) == len(some) for some in self.names)


def look(store: Store, texts: Texts, *, cleaned: bool) -> Looked:
    """Counts the lines of files, and finds those that are not as ours are written.

    Args:
        store: reads them.
        texts: the files.
        cleaned: their lines are known to be good, however they are written.

    Raises:
        UnreadableError: a file is no text, or a line is too long.
    """
    found = Looked()
    for shape in _shapes(store, lines(store, texts), "true" if cleaned else _FITS):
        found.take_names(shape)
        found.lines[shape.file] += shape.n
        if not (cleaned or shape.good):
            found.odd.add(shape.file)
    return found


def _shapes(store: Store, source: str, fits: str) -> Iterator[_Shape]:
    """The shapes of lines.

    Args:
        store: reads them.
        source: the lines, as a part of a query: (file, line).
        fits: whether a line is as ours are written, as a condition.
    """
    for file, does_fit, head, names, n in store.rows(
        f"""
        WITH fit AS (SELECT file, line, {fits} AS fits FROM {source}),
        named AS (
            SELECT file, fits, substring(line, {len(HEAD) + 1}, 11) AS head,
                CASE WHEN NOT fits THEN NULL
                    WHEN {kind("decision")}
                    THEN json_keys(line, ['$', '$.signals', '$.facts'])
                    ELSE [json_keys(line)] END AS names
            FROM fit)
        SELECT file, fits, any_value(head), any_value(names), count(*)
        FROM named GROUP BY file, fits, hash(head, names)"""
    ):
        known = [one or () for one in names or ()]
        yield _Shape(file, bool(does_fit), head, known, n)


def _fits() -> str:
    """Whether `line` is as ours are written.

    By kind, since the automaton of one is smaller, and so faster, than that of all.
    """
    cases = " ".join(
        f"WHEN {kind(name)} THEN regexp_full_match(line, {quoted(pattern)})"
        for name, pattern in LINES.items()
    )
    return f"CASE WHEN NOT starts_with(line, '{HEAD}') THEN false {cases} END"


_FITS = _fits()


def _kept(counts: Mapping[str, int]) -> tuple[str, ...]:
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(ranked[:MOST_NAMES])
