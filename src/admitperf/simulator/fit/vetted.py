"""What a run's file says, vetted: every number, text and list a reader takes from it.

Nothing reaches a fit that is not of its kind and within bounds. A fault is one line:
the file, the line, the field and what is wrong with it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from admitperf.core.errors import LogError

Fields = Mapping[str, Any]

MOST_S = 1e7
"""Of seconds: four months, longer than any recording. Plain choice."""

MOST_MS = MOST_S * 1e3

MOST_TOKENS = 10**7
"""In a request: more than any model takes. Plain choice."""

MOST_AT_ONCE = 10_000
"""Tokens that come together: each becomes a step. Plain choice."""

MOST_COUNT = 10**9
"""Of what an engine counts. Plain choice."""

MOST_WALL_S = 253_402_300_799.0
"""The last second of the year 9999, from 1970: the last that has a date."""

LATE_S = 0.01
"""By which an end may lie before the last token: two clocks' readings. Plain choice."""

_MOST_LETTERS = 1000
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Vetted:
    """The fields of one line, or of one object in it.

    Attributes:
        fields: as they were read.
        where: the file and the line, for a message.
    """

    fields: Fields
    where: str

    def refuse(self, name: str, why: str) -> NoReturn:
        """Ends the reading.

        Raises:
            LogError: always.
        """
        raise LogError(f"{self.where}: {name}: {why}")

    def maybe(self, name: str, most: float, least: float = 0.0) -> float | None:
        """A number from `least` to `most`; None = absent.

        Raises:
            LogError: it is something else.
        """
        value = self.fields.get(name)
        return None if value is None else self.value(value, name, most, least)

    def number(self, name: str, most: float, least: float = 0.0) -> float:
        """A number from `least` to `most`.

        Raises:
            LogError: it is absent, or something else.
        """
        return self.value(self.fields.get(name), name, most, least)

    def count(self, name: str, most: int, least: int = 0) -> int | None:
        """A whole number from `least` to `most`; None = absent.

        Raises:
            LogError: it is something else.
        """
        return None if self.fields.get(name) is None else self.whole(name, most, least)

    def whole(self, name: str, most: int, least: int = 0) -> int:
        """A whole number from `least` to `most`.

        Raises:
            LogError: it is absent, or something else.
        """
        return self.whole_value(self.fields.get(name), name, most, least)

    def value(self, value: object, name: str, most: float, least: float = 0.0) -> float:
        """A value that has to be a number.

        Raises:
            LogError: it is none from `least` to `most`.
        """
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not plain or not least <= value <= most:  # type: ignore[operator]
            self.refuse(name, f"{shown(value)} is no number from {least:g} to {most:g}")
        return float(value)  # type: ignore[arg-type]

    def whole_value(self, value: object, name: str, most: int, least: int = 0) -> int:
        """A value that has to be a whole number.

        Raises:
            LogError: it is none from `least` to `most`.
        """
        if self.value(value, name, most, least) % 1:
            self.refuse(name, f"{shown(value)} is no whole number")
        return int(value)  # type: ignore[call-overload, no-any-return]

    def text(self, name: str) -> str | None:
        """A text, or a whole number as text; None = absent.

        Raises:
            LogError: it is something else, or no text that can be written.
        """
        value = self.fields.get(name)
        return None if value is None else self.text_value(value, name)

    def text_value(self, value: object, name: str) -> str:
        """A value that has to be a text, or a whole number that stands for one.

        Raises:
            LogError: it is something else, or no text that can be written.
        """
        if isinstance(value, int) and not isinstance(value, bool):
            return str(self.whole_value(value, name, 10**18, -(10**18)))
        if not isinstance(value, str) or not 0 < len(value) <= _MOST_LETTERS:
            self.refuse(name, f"{shown(value)} is no text of up to {_MOST_LETTERS}")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            self.refuse(name, f"{shown(value)} is no text that can be written")
        return value

    def inner(self, name: str) -> "Vetted":
        """An object inside; an empty one when it is absent.

        Raises:
            LogError: it is something else.
        """
        value = self.fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.refuse(name, f"{shown(value)} is no object")
        return Vetted(value or {}, self.where)

    def pairs(self, name: str, what: str) -> Iterator[tuple[Any, Any]]:
        """Pairs of a list, unvetted; none when it is absent.

        Args:
            name: of the field.
            what: they have to be, in words.

        Raises:
            LogError: it is no list of pairs.
        """
        value = self.fields.get(name)
        for pair in self.many(name, what):
            if not isinstance(pair, list) or len(pair) != 2:  # noqa: PLR2004  a pair
                self.refuse(name, f"{shown(value)} are no pairs of {what}")
            yield pair[0], pair[1]

    def many(self, name: str, what: str) -> Sequence[Any]:
        """A list, unvetted; empty when it is absent.

        Raises:
            LogError: it is something else.
        """
        value = self.fields.get(name)
        if value is not None and not isinstance(value, list):
            self.refuse(name, f"{shown(value)} is no list of {what}")
        return value or ()

    def end_ms(self, name: str, end_ms: float, last_ms: float) -> float:
        """A time to the end of an answer, which its last token comes before.

        Raises:
            LogError: it comes after.
        """
        if end_ms <= 0 or last_ms > end_ms + LATE_S * 1e3:
            after = f"{last_ms:.6g} ms after it was sent"
            self.refuse(name, f"the answer ends {end_ms:.6g} ms after, a token {after}")
        return end_ms


def gauge(page: Fields, name: str) -> float | None:
    """A number on an engine's page; None = not shown, or shown as NaN."""
    value = page.get(name)
    return None if isinstance(value, float) and math.isnan(value) else value


def shown(value: object) -> str:
    """A value as a message can hold it."""
    try:
        return f"{value!r}"[:_SHOWN]
    except (ValueError, RecursionError):  # thousands of digits, or of brackets
        return "what was found"
