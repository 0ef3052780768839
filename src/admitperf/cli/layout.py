"""Lines of at most 80 columns, in printable ASCII."""

import textwrap
from collections.abc import Iterator

from admitperf.reports.wording import printable

WIDTH = 80


def row(name: str, value: str, indent: int = 2, column: int = 16) -> Iterator[str]:
    """A name, and its value wrapped from a column on.

    Args:
        name: what stands first; one as wide as its column pushes the value on.
        value: what is wrapped.
        indent: columns before the name.
        column: where the value begins.
    """
    start = f"{'':{indent}}{name} ".ljust(column)
    yield from wrapped(value, start, " " * column)


def wrapped(text: str, first: str = "", rest: str = "") -> Iterator[str]:
    """A text in lines, what is not printable ASCII replaced."""
    yield from textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    ) or [first.rstrip()]
