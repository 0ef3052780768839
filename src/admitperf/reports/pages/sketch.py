"""Small plots in letters: repeats on a line, and how a quantity was spread."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from admitperf.reports.pages.columns import cut
from admitperf.reports.quantile import FEWEST_FOR_P95
from admitperf.reports.runs.histogram import Histogram
from admitperf.reports.wording import number

_DOTS = 48  # plain choice: fits beside a policy's name in 80 columns
_LONGEST = 24  # plain choice: a longer name is cut
_LEAST_SPAN = 1e-9  # below it all values are one
_BARS = 8  # plain choice: a page has two of these, and they are a glance each
_LONGEST_BAR = 32  # plain choice: leaves room for a mark in 80 columns


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


def bars(
    found: Histogram, title: str, bounds: Sequence[tuple[float, str]] = ()
) -> Iterator[str]:
    """A bar for each range of values, the longest as wide as the page allows.

    Args:
        found: of which quantity; too few values make no bars.
        title: the quantity, its unit and what is counted.
        bounds: marked in the row where they lie, each with what it is called.
    """
    if found.n < FEWEST_FOR_P95:
        return
    shown = found.coarser(_BARS)
    most, room = max(shown.counts, default=0), len(str(found.n))
    yield f"  {title}"
    if found.below:
        yield f"  {'0':>15} {found.below:>{room}}"
    for low, high, n in zip(shown.edges, shown.edges[1:], shown.counts, strict=False):
        bar = "#" * (-(-n * _LONGEST_BAR // most) if most else 0)
        marks = "".join(f" <- {name}" for at, name in bounds if low <= at < high)
        ends = f"{number(low)} to {number(high)}"
        yield f"  {ends:>15} {n:>{room}} {bar}{marks}".rstrip()


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
