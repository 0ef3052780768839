"""The lines that need no second look, as one pattern in RE2's language.

It is made from the table in `shape`, the one that `shape.fault` checks by.
"""

from collections.abc import Mapping

from admitperf.reports.files import pattern
from admitperf.reports.files.shape import KINDS, Kind

NEEDED: Mapping[str, tuple[str, ...]] = {
    name: tuple(kind.needed) for name, kind in KINDS.items()
}
"""Per kind, the fields a line must have. A pattern cannot say so in reasonable size:
look for nulls in these columns once the line is loaded."""

_DEEP = {"control": 3}  # plain choice: the details of an event are open
_DEEP_OTHERS = 1  # plain choice


def _line(name: str, kind: Kind) -> str:
    """The rest of a line behind `{"k":`."""
    fields = {field: form.pattern for field, form in kind.needed.items()} | {
        field: pattern.or_null(form.pattern) for field, form in kind.optional.items()
    }
    others = pattern.anything(_DEEP.get(name, _DEEP_OTHERS))
    return f'"{name}"(?:, ?{pattern.members(fields, others, ("k", *fields))})*'


LINES: Mapping[str, str] = {
    name: rf'\{{"k": ?{_line(name, kind)}\}}' for name, kind in KINDS.items()
}
"""`LINE` for the lines of one kind alone."""

LINE: str = (
    r'\{"k": ?' + pattern.either(*(_line(*item) for item in KINDS.items())) + r"\}"
)
"""Fully matches every line that AdmitPerf writes: `k` first, the other fields in any
order, a space behind `,` and `:` or none.

A line that it matches, that DuckDB reads as JSON without an error, and that has the
fields `NEEDED` of its kind, is one that `shape.fault` takes, and DuckDB gives each of
its fields the value that stands there: no 1.5 in a whole number, no "12" for a number,
no true for one, nothing infinite. What is not well-formed may match, and a name that
stands twice: DuckDB raises on the first, and on the second in a column it reads.

Left out, so that `vet.clean` decides: numbers from about 1e289 up, whole numbers of 19
digits, values nested more than 3 deep in parameters and details of an event and more
than 1 in fields nobody knows, and names among those with spaces, backslashes or more
than ASCII.

The whole is about 8,000 instructions of RE2. DuckDB gives it 8 MB; from about 16,000 on
they no longer hold its automaton, and it becomes 10 times slower.
"""
