"""The repeats of both arms: a table each, and all of them on one axis."""

from collections.abc import Callable, Iterator, Sequence

from admitperf.reports.comparison.comparison import Comparison, Repeat, Side
from admitperf.reports.pages.columns import aligned
from admitperf.reports.pages.layout import wrapped
from admitperf.reports.pages.sketch import sketch
from admitperf.reports.quantile import Spread, nearest_rank
from admitperf.reports.ratio import Share
from admitperf.reports.wording import NOT_KNOWN, number, share


def repeats(one: Comparison) -> Iterator[str]:
    """The section of a page."""
    for side in (one.arm, one.baseline):
        yield from aligned([*_side(side)])
        yield ""
    yield from wrapped(columns(one))
    yield ""
    yield from goodputs([one.arm, one.baseline])


def columns(one: Comparison) -> str:
    """What the columns of the repeats hold."""
    return (
        f"goodput: met the SLO, of {_units(one)} offered. refused: never let in. TTFT"
        " in ms of those that ended well, by nearest rank (n), n<20 where p95 would be"
        " the maximum; user: from the arrival of a call's first attempt, or from when"
        " it was due; -- not told apart in the log. median: the middle repeat, by"
        " nearest rank; percentiles are never averaged."
    )


def _units(one: Comparison) -> str:
    units = {repeat.unit for side in (one.arm, one.baseline) for repeat in side.repeats}
    return " or ".join(sorted(units))


def _side(side: Side) -> Iterator[list[str]]:
    yield [side.label, "goodput", "TTFT p95", "p95 user", "refused"]
    for repeat in side.repeats:
        yield [
            repeat.name,
            _ratio(repeat),
            _p95(repeat.ttft_ms),
            _p95(repeat.ttft_user_ms),
            f"{repeat.refused.n} of {repeat.refused.of}",
        ]
    if len(side.repeats) > 1:
        yield from _middles(side)


def _ratio(repeat: Repeat) -> str:
    part = repeat.goodput
    if part is None or part.value is None:
        return NOT_KNOWN
    return f"{part.value:.3f} = {part.n} of {part.of}"


def _p95(spread: Spread | None) -> str:
    if spread is None or not spread.n:
        return NOT_KNOWN
    value = "n<20" if spread.p95 is None else number(spread.p95)
    return f"{value} ({spread.n})"


def _middles(side: Side) -> Iterator[list[str]]:
    """The middle repeat and the range, of each column."""
    columns: list[tuple[list[float], Callable[[float], str]]] = [
        (_values(side), _three),
        (_known(one.ttft_ms for one in side.repeats), number),
        (_known(one.ttft_user_ms for one in side.repeats), number),
        (_shares(side), _percent),
    ]
    for name, pick in (("median", _middle), ("lowest", min), ("highest", max)):
        cells = (say(pick(all_)) if all_ else NOT_KNOWN for all_, say in columns)
        yield [name, *cells]


def _known(spreads: Iterator[Spread | None]) -> list[float]:
    return [one.p95 for one in spreads if one is not None and one.p95 is not None]


def _shares(side: Side) -> list[float]:
    values = [one.refused.value for one in side.repeats]
    return [one for one in values if one is not None]


def _middle(values: Sequence[float]) -> float:
    return nearest_rank(sorted(values), 0.5)


def _three(value: float) -> str:
    return f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def arms(sides: Sequence[Side]) -> Iterator[str]:
    """One row an arm: the middle repeat, and what was refused in all of them."""
    rows = [["median of repeats", "n", "goodput", "TTFT p95", "refused"]]
    for side in sides:
        goodput, tail, refused = middle(side)
        rows.append(
            [
                side.label,
                str(len(side.repeats)),
                NOT_KNOWN if goodput is None else _three(goodput),
                NOT_KNOWN if tail is None else f"{number(tail)} ms",
                share(refused.n, refused.of),
            ]
        )
    yield from aligned(rows)


def middle(side: Side) -> tuple[float | None, float | None, Share]:
    """An arm's middle goodput and TTFT p95 in ms, and what was refused in all repeats.

    Returns:
        None for what no repeat has.
    """
    tails, values = _known(one.ttft_ms for one in side.repeats), _values(side)
    return (
        _middle(values) if values else None,
        _middle(tails) if tails else None,
        Share.part(
            sum(one.refused.n for one in side.repeats),
            sum(one.refused.of for one in side.repeats),
        ),
    )


def goodputs(sides: Sequence[Side]) -> Iterator[str]:
    """Each arm's repeats on one axis."""
    rows = {side.label: _values(side) for side in sides}
    if any(rows.values()):
        yield "Goodput of offered, one mark a repeat"
        yield from (f"  {line}" for line in sketch(rows))
        yield from wrapped("o one repeat; a figure: so many on one place; #: over 9.")


def _values(side: Side) -> list[float]:
    shares = [one.goodput for one in side.repeats]
    return [one.value for one in shares if one and one.value is not None]
