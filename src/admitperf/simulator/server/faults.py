"""What the server can be told to do wrong: kinds of fault, and how they are written.

As JSON, `{"faults": [{"kind": "slow", "factor": 3, "at": 10, "for": 5}]}`; on a command
line, `slow:factor=3,at=10,for=5`.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite
from reprlib import Repr
from types import MappingProxyType
from typing import Any

from admitperf.core.errors import ConfigError
from admitperf.simulator.server.slowness import LEAST, MOST

Value = float | str

MOST_FAULTS = 1000
"""Faults that are under way or to come, at most. Plain choice."""

_LONGEST = 200  # characters of a word
_shown = Repr()
_shown.maxstring = _shown.maxother = 60


@dataclass(frozen=True, slots=True)
class _Number:
    """A parameter that is a number.

    Attributes:
        default: None = it has to be given.
        low, high: what it may be, inclusive.
        whole: without a fraction.
    """

    default: float | None
    low: float = 0.0
    high: float = 1e9
    whole: bool = False

    def fault(self, value: object) -> str | None:
        """What is wrong with a value."""
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
            and (not self.whole or float(value).is_integer())
        ):
            return None
        kind = "whole number" if self.whole else "number"
        return f"is no {kind} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class _Word:
    """A parameter that is a word; without `choices` any.

    Attributes:
        default: None = it has to be given.
        choices: what it may be; none = anything.
    """

    default: str | None
    choices: tuple[str, ...] = ()

    def fault(self, value: object) -> str | None:
        """What is wrong with a value."""
        if not isinstance(value, str) or not value.isprintable() or not value:
            return "is no text"
        if len(value) > _LONGEST:
            return f"has more than {_LONGEST} characters"
        if self.choices and value not in self.choices:
            return f"is none of {', '.join(self.choices)}"
        return None


_SHARE = _Number(1.0, 0.0, 1.0)
_TIMES: dict[str, _Number | _Word] = {"at": _Number(0.0)}
_LASTING: dict[str, _Number | _Word] = {**_TIMES, "for": _Number(inf, 0.001)}

KINDS: Mapping[str, Mapping[str, _Number | _Word]] = MappingProxyType(
    {
        "slow": {"factor": _Number(None, LEAST, MOST), **_LASTING},
        "failing": {"share": _SHARE, **_LASTING},
        "frozen": {"what": _Word("metrics", ("metrics", "engine")), **_LASTING},
        "nan": _LASTING,
        "renamed": {"from": _Word(None), "to": _Word(None), **_LASTING},
        "hang": {"share": _SHARE, **_LASTING},
        "cut": {
            "after": _Number(None, 0.0, 1e6, whole=True),
            "how": _Word("end", ("end", "reset")),
            "share": _SHARE,
            **_LASTING,
        },
        "reject_in_stream": {"share": _SHARE, **_LASTING},
        "scrape_delay": {"seconds": _Number(None, 0.0, 3600.0), **_LASTING},
        "restart": {
            "down": _Number(5.0, 0.0, 3600.0),
            "meanwhile": _Word("refused", ("refused", "503")),
            **_TIMES,
        },
        "counter_reset": _TIMES,
    }
)
"""Kinds of fault and their parameters."""

ONCE = frozenset({"restart", "counter_reset"})
"""Those that happen at one moment and do not last."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the server does wrong, and when.

    Attributes:
        kind: what it is.
        at_s: when it begins, in seconds from when it was told.
        for_s: how long it lasts; infinity = until it is cleared.
        values: its other parameters, all of them.
    """

    kind: str
    at_s: float
    for_s: float
    values: Mapping[str, Value]

    def number(self, name: str) -> float:
        """A parameter that is a number."""
        return float(self.values[name])

    def word(self, name: str) -> str:
        """A parameter that is a word."""
        return str(self.values[name])

    def document(self) -> dict[str, Any]:
        """The fault as it would be written."""
        lasts = {} if self.for_s == inf else {"for": self.for_s}
        return {"kind": self.kind, **self.values, "at": self.at_s, **lasts}


def faults(document: object, where: str) -> list[Fault]:
    """Faults from a document.

    Args:
        document: `{"faults": [...]}`, or the list alone.
        where: what an error calls it.

    Raises:
        ConfigError: with everything that is wrong in it.
    """
    wrong: list[str] = []
    if isinstance(document, dict):
        wrong += _unknown({"faults"}, document)
        document = document.get("faults")
    if not isinstance(document, list):
        raise ConfigError(where, [*wrong, "there is no list of faults"])
    if len(document) > MOST_FAULTS:
        raise ConfigError(where, [*wrong, f"there are more than {MOST_FAULTS} faults"])
    made = [_fault(told, place, wrong) for place, told in enumerate(document, 1)]
    if wrong:
        raise ConfigError(where, wrong)
    return [fault for fault in made if fault is not None]


def parsed(text: str | bytes, where: str) -> list[Fault]:
    """Faults from the text of a file.

    Raises:
        ConfigError: with everything that is wrong in it.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(where, [f"is no JSON: {why}"]) from None
    return faults(document, where)


def written(texts: Sequence[str]) -> list[Fault]:
    """Faults as a command line writes them.

    Raises:
        ConfigError: with everything that is wrong in them.
    """
    return faults([_told(text) for text in texts], "--fault")


def _told(text: str) -> dict[str, Any]:
    kind, _, rest = text.partition(":")
    told: dict[str, Any] = {"kind": kind}
    for pair in filter(None, rest.split(",")):
        name, equals, value = pair.partition("=")
        told[name.strip()] = _value(value) if equals else None
    return told


def _value(text: str) -> Value:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text


def _fault(told: object, place: int, wrong: list[str]) -> Fault | None:
    """One fault; None = it is none, and what is wrong was added."""
    if not isinstance(told, dict):
        wrong.append(f"fault {place} is no object")
        return None
    kind = told.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        told_kind, kinds = _shown.repr(kind), ", ".join(KINDS)
        wrong.append(f"fault {place}: kind {told_kind} is none of {kinds}")
        return None
    known, said = KINDS[kind], f"fault {place} ({kind})"
    given = {name: value for name, value in told.items() if name != "kind"}
    before = len(wrong)
    wrong += [f"{said}: {fault}" for fault in _unknown(known, given)]
    values = {name: _read(name, known[name], given, said, wrong) for name in known}
    if len(wrong) > before:
        return None
    at_s, for_s = float(values.pop("at")), float(values.pop("for", inf))
    return Fault(kind, at_s, for_s, MappingProxyType(values))


def _unknown(known: Container[str], given: Iterable[str]) -> list[str]:
    return [f"{_shown.repr(name)} is unknown" for name in given if name not in known]


def _read(
    name: str,
    known: _Number | _Word,
    given: Mapping[str, object],
    said: str,
    wrong: list[str],
) -> Value:
    if name not in given:
        if known.default is None:
            wrong.append(f"{said}: {name!r} is missing")
        return known.default or 0.0
    value = given[name]
    if isinstance(known, _Word) and isinstance(value, int | float):
        with suppress(OverflowError):  # then it is no word either
            value = f"{value:g}"  # 503 is a word here
    fault = known.fault(value)
    if fault:
        wrong.append(f"{said}: {name} = {_shown.repr(value)} {fault}")
    return value  # type: ignore[return-value]
