"""What the paired differences of two arms say, row by row."""

from collections.abc import Iterator

from admitperf.reports.comparison.comparison import Comparison
from admitperf.reports.comparison.design import (
    FEWEST_ASKED,
    FEWEST_FLIPPED,
    MOST_BLOCKS,
    factor,
)
from admitperf.reports.comparison.statistics import Interval, least_sign_flip_p
from admitperf.reports.comparison.verdict import Paired
from admitperf.reports.pages.layout import Said
from admitperf.reports.wording import NOT_KNOWN, number, plural


def difference(one: Comparison) -> Iterator[Said]:
    """The section of a page; of a void comparison only what the design could show."""
    found = one.statistics
    if one.verdict == "void":
        yield "A check failed: no difference is judged."
    else:
        yield "by pair", _by_pair(one)
        yield from _judged(found)
    yield "margin", f"{found.margin:g}: a smaller difference does not matter"
    yield "MDE", _smallest(found)
    if one.verdict == "inconclusive":
        yield "needed", _needed(found)


def _by_pair(one: Comparison) -> str:
    told = (
        f"{pair.name} {NOT_KNOWN if pair.goodput is None else signed(pair.goodput)}"
        for pair in one.pairs
    )
    return ", ".join(told) or "no pair"


def _judged(found: Paired) -> Iterator[tuple[str, str]]:
    pairs = plural(found.n, "pair")
    if found.mean is not None:
        sd = "" if found.sd is None else f", SD {found.sd:.3f}"
        yield "mean", f"{signed(found.mean)}, {pairs}{sd}"
    if not found.asked or found.interval is None or found.interval_90 is None:
        least = f"with fewer than {FEWEST_ASKED} pairs"
        yield "verdict", f"{least}, which arm is better is not asked"
        return
    yield "95 % interval", f"{written(found.interval)}, paired t, p {_p(found.t_p)}"
    yield from _second(found)
    if found.family_p is not None:
        yield "Holm", f"p {_p(found.family_p)} among {found.family} arms with a gain"
    yield from _margins(found, written(found.interval_90))


def _margins(found: Paired, ninety: str) -> Iterator[tuple[str, str]]:
    """What is asked against the margin."""
    margin, not_inside = f"{found.margin:g}", "" if found.equivalent else "not "
    inside = f"the 90 % interval, {ninety}, is {not_inside}inside +-{margin}"
    yield "equivalent", f"{_yes(found.equivalent)}: {inside}"
    not_out = "" if found.not_worse else "not "
    loss = f"a loss of {margin} is {not_out}ruled out (one-sided 95 %)"
    yield "not worse", f"{_yes(found.not_worse)}: {loss}"


def _second(found: Paired) -> Iterator[tuple[str, str]]:
    """What is asked beside the interval."""
    apart = "do not overlap" if found.ranges_apart else "overlap"
    if found.n < FEWEST_FLIPPED:
        least = number(least_sign_flip_p(found.n))
        instead = f"below {FEWEST_FLIPPED} pairs this stands in for sign flips"
        yield "ranges", f"{apart}; {instead}, whose least p is {least}"
        return
    if found.sign_flip_p is not None:
        ways = f"{2**found.n} ways to flip {found.n} signs"
        yield "sign flips", f"p {_p(found.sign_flip_p)}, exact, over {ways}"
    yield "ranges", f"{apart}; from {FEWEST_FLIPPED} pairs on this decides nothing"


def _smallest(found: Paired) -> str:
    if found.smallest_effect is None:
        return f"cannot be said from {plural(found.n, 'pair')}: a spread takes two"
    return (
        f"{found.smallest_effect:.3f}: the smallest true difference that"
        f" {plural(found.n, 'pair')} like these show with 80 % power"
        f" ({factor(found.n):.2f} x SD)"
    )


def _needed(found: Paired) -> str:
    if found.sd is None:
        return f"at least {FEWEST_ASKED} pairs, better {FEWEST_FLIPPED} or more"
    if found.blocks_needed is None:
        return f"over {MOST_BLOCKS} pairs to resolve a mean like this one"
    what = "tell it from 0"
    if found.mean is not None and abs(found.mean) < found.margin:
        what = f"show that it is within +-{found.margin:g}"
    return f"{found.blocks_needed} pairs, if the mean stays, to {what}"


def written(found: Interval) -> str:
    """`+0.310 to +0.394`."""
    return f"{signed(found.low)} to {signed(found.high)}"


def signed(value: float) -> str:
    """A difference in goodput, its sign always shown."""
    return f"{value:+.3f}"


def _p(value: float | None) -> str:
    if value is None:
        return NOT_KNOWN
    return "<0.0001" if value < 0.0001 else f"{value:.2g}"  # noqa: PLR2004  what is printed


def _yes(value: object) -> str:
    return "yes" if value else "no"
