"""Repeats on a line: one row an arm, all on one axis."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from admitperf.reports.pages.columns import cut

_DOTS = 48  # plain choice: fits beside a policy's name in 80 columns
_LONGEST = 24  # plain choice: a longer name is cut
_LEAST_SPAN = 1e-9  # below it all values are one


def sketch(rows: Mapping[str, Sequence[float]], columns: int = _DOTS) -> Iterator[str]:
    """A dot for each value, a figure where several fall on one place.

    Args:
        rows: values by name; a row may be empty.
        columns: places on the axis.

    Returns:
        One line a row, then the axis with its two ends.
    """
    values = [value for row in rows.values() for value in row]
    if not values:
        return
    low, high = min(values), max(values)
    room = min(max(map(len, rows)), _LONGEST)
    for name, row in rows.items():
        dots = _dots(row, low, high, columns)
        yield f"{cut(name, room):<{room}} |{dots}|"
    ends = f"{low:.3f}", f"{high:.3f}"
    gap = max(columns + 2 - sum(map(len, ends)), 1)
    yield f"{'':<{room}} {ends[0]}{'':{gap}}{ends[1]}"


def _dots(row: Sequence[float], low: float, high: float, columns: int) -> str:
    span = high - low
    middle = columns // 2
    places = Counter(
        round((value - low) / span * (columns - 1)) if span > _LEAST_SPAN else middle
        for value in row
    )
    return "".join(_mark(places[place]) for place in range(columns))


def _mark(n: int) -> str:
    if n <= 1:
        return " o"[n]
    return str(n) if n <= 9 else "#"  # noqa: PLR2004  one column, one figure
