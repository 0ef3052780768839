"""Tables whose columns are as wide as what stands in them."""

from collections.abc import Iterator, Sequence

from admitperf.reports.pages.layout import WIDTH

_GAP = 2
_NARROWEST = 8  # plain choice: a first column is not cut below this


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of cells in columns, the first to the left, the others to the right.

    The first column is cut where the others need its room.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rest = sum(width + _GAP for width in widths[1:])
    first = min(widths[0], max(WIDTH - _GAP - rest, _NARROWEST))
    for name, *cells in rows:
        line = f"{'':{_GAP}}{cut(name, first):<{first}}"
        for cell, width in zip(cells, widths[1:], strict=True):
            line += f"{'':{_GAP}}{cell:>{width}}"
        yield line.rstrip()


def cut(name: str, room: int) -> str:
    """A name that fits its column, `~` where it was cut."""
    return name if len(name) <= room else f"{name[: room - 1]}~"
