"""Lines of a page: rows of a name and a value, tables, wrapped sentences.

At most 80 columns. What is passed in is ASCII already, see `wording.printable`.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 80
COLUMN = 16
"""Where the value of a row begins."""
CELL = 9
"""Width of a table's cell."""
Said = tuple[str, str] | str
"""A row of a name and its value, or a sentence. A row without a name goes on with what
the one before it says."""
_KEPT = "\0%"  # as wide as what it stands for, and nothing a line is broken at


def wrapped(said: str, indent: str = "  ", hang: str | None = None) -> list[str]:
    """A sentence in lines.

    Args:
        said: what is wrapped.
        indent: what the first line begins with.
        hang: what the others begin with; None = the same.
    """
    hang = indent if hang is None else hang
    lines = textwrap.wrap(
        said.replace(" %", _KEPT),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=hang,
        break_on_hyphens=False,
    )
    return [line.replace(_KEPT, " %") for line in lines]


def row(name: str, value: str, column: int = COLUMN) -> list[str]:
    """A name in the first column, its value wrapped in the second."""
    return wrapped(value, indent=f"  {name} ".ljust(column), hang=" " * column)


def laid_out(lines: Iterable[Said]) -> Iterator[str]:
    """Rows and sentences, in lines."""
    for one in lines:
        yield from wrapped(one) if isinstance(one, str) else row(*one)


def table(name: str, cells: Sequence[str]) -> str:
    """One line of a table, the cells to the right."""
    room = WIDTH - CELL * len(cells)
    return f"  {name:<{room - 2}}" + "".join(f"{cell:>{CELL}}" for cell in cells)


def named(name: str, cells: Sequence[str]) -> Iterator[str]:
    """A table line; a name too long for its column stands on a line of its own."""
    room = WIDTH - CELL * len(cells) - 3
    clipped = [cell if len(cell) < CELL else f"{cell[: CELL - 2]}~" for cell in cells]
    if len(name) <= room:
        yield table(name, clipped)
    else:
        yield from wrapped(name)
        yield table("", clipped)
