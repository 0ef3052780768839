"""How numbers and names are written in a report: ASCII, nothing a terminal obeys."""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from admitperf.reports.quantile import Spread

NOT_KNOWN = "--"
_LONGEST_DIGITS = 9
_UNPRINTABLE = re.compile(r"[^ -~]")
_AS_WRITTEN: ContextVar[bool] = ContextVar("as_written", default=False)


def number(value: float | None) -> str:
    """A value in a table or a sentence; `--` when it is not known, or not finite."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    if value == int(value) and abs(value) < 10**_LONGEST_DIGITS:
        return str(int(value))
    if 1000 <= abs(value) < 10**_LONGEST_DIGITS:  # noqa: PLR2004  no fraction matters
        return f"{value:.0f}"
    return f"{value:.4g}" if 0.001 <= abs(value) < 1000 else f"{value:.3g}"  # noqa: PLR2004


def percent(n: int, of: int) -> str:
    """`n` of `of` as a percentage; `--` when there is nothing to divide by.

    Only none is 0.0 % and only all is 100.0 %.
    """
    if not of:
        return NOT_KNOWN
    if 0 < n < of:
        rounded = f"{100 * n / of:.1f} %"
        return {"0.0 %": "<0.1 %", "100.0 %": ">99.9 %"}.get(rounded, rounded)
    return f"{100 * n / of:.1f} %"


def share(n: int, of: int) -> str:
    """`n of of (p %)`."""
    return f"{n} of {of} ({percent(n, of)})"


def counted(counts: Mapping[str, int], most: int = 6) -> str:
    """`a 3, b 1`, the largest first."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{printable(name)} {n}" for name, n in ranked[:most]]
    rest = sum(n for _, n in ranked[most:])
    return ", ".join([*shown, f"others {rest}"] if rest else shown)


def plural(n: int, noun: str, nouns: str = "") -> str:
    """`1 line`, `2 lines`; `nouns` where an s does not make the plural."""
    return f"{n} {noun}" if n == 1 else f"{n} {nouns or noun + 's'}"


def printable(text: str) -> str:
    """The text in printable ASCII; what a log names may hold anything."""
    if _AS_WRITTEN.get():
        return text
    plain = text.encode("ascii", "backslashreplace").decode("ascii")
    return _UNPRINTABLE.sub("?", plain)


@contextmanager
def as_written() -> Iterator[None]:
    """Has `printable` change nothing: for a page that can show any text.

    What is shown there has to be safe already, see `sheets.plain`.
    """
    before = _AS_WRITTEN.set(True)
    try:
        yield
    finally:
        _AS_WRITTEN.reset(before)


def ratio(n: int, of: int) -> str:
    """`0.535 = 107 of 200`; `--` when there is nothing to divide by."""
    value = f"{n / of:.3f}" if of else NOT_KNOWN
    return f"{value} = {n} of {of}"


def spread(values: Spread, unit: str, of: str = "") -> str:
    """`p50 2, p95 3, max 3 ms, n 200`.

    Args:
        values: of which there is at least one.
        unit: stands once, behind the largest value.
        of: what n counts.
    """
    p95 = values.withheld or number(values.p95)
    said = f"p50 {number(values.p50)}, p95 {p95}, max {number(values.high)} {unit}"
    return f"{said}, n {values.n} {of}".rstrip()


def tails(values: Spread, unit: str, of: str = "") -> str:
    """As `spread`, with p99."""
    p95 = values.withheld or f"{number(values.p95)} {unit}"
    p99 = values.withheld_p99 or f"{number(values.p99)} {unit}"
    above = f"p95 and p99 {p95}" if values.withheld else f"p95 {p95}, p99 {p99}"
    said = f"p50 {number(values.p50)} {unit}, {above}, max {number(values.high)} {unit}"
    return f"{said}, n {values.n} {of}".rstrip()
