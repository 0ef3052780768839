"""Lengths of time as people type them: `90s`, `5m`, `1h30m`."""

import re

import click

from admitperf.cli.typed import Typed

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


class Duration(Typed[float]):
    """A length of time, as seconds; a bare number is seconds.

    Args:
        least_s, most_s: its bounds.
    """

    name = "DURATION"

    def __init__(self, least_s: float, most_s: float) -> None:
        self._least_s = least_s
        self._most_s = most_s

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Reads the option; a fault is a usage error."""
        if isinstance(value, float):
            return value
        seconds = seconds_of(str(value))
        if seconds is None:
            self.fail(f"{value!r} is no duration such as 90s, 5m or 1h30m", param, ctx)
        if not self._least_s <= seconds <= self._most_s:
            low, high = spoken(self._least_s), spoken(self._most_s)
            self.fail(f"{value!r} is not between {low} and {high}", param, ctx)
        return seconds


def seconds_of(text: str) -> float | None:
    """The seconds a text names; None when it names none."""
    text = text.strip().lower()
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text):
        return float(text)
    if not _WHOLE.fullmatch(text):
        return None
    return sum(float(n) * _UNITS_S[unit] for n, unit in _PART.findall(text))


def spoken(seconds: float) -> str:
    """`1h30m`, `5m`, `2.5s`, `50ms`, `0s`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    if seconds < _UNITS_S["m"]:
        return f"{round(seconds, 1):g}s"
    left, said = round(seconds), ""
    for unit in ("d", "h", "m", "s"):
        n, left = divmod(left, int(_UNITS_S[unit]))
        said += f"{n}{unit}" if n else ""
    return said
