"""The JSON of a request: read strictly, all faults of form at once."""

import json
from collections.abc import Iterable
from math import isfinite
from typing import Any

from admitperf.simulator.server.refusal import invalid, no_json

Fault = tuple[str, str, str, str]

_WORDS: dict[type, tuple[str, str]] = {
    bool: ("bool_type", "Input should be a valid boolean"),
    int: ("int_type", "Input should be a valid integer"),
    float: ("float_type", "Input should be a valid number"),
    str: ("string_type", "Input should be a valid string"),
    list: ("list_type", "Input should be a valid list"),
    dict: ("dict_type", "Input should be a valid dictionary"),
}
_MOST = 2**63 - 1
_DEEPEST = 100  # levels of lists and objects; what walks them calls itself
_SHOWN = 60  # characters of a wrong value that the answer repeats


def parsed(raw: bytes) -> dict[str, Any]:
    """A body as an object.

    Raises:
        Refusal: it is no JSON object.
    """
    try:
        value = json.loads(raw, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise no_json(error.pos, error.msg) from None
    except UnicodeDecodeError as error:
        raise no_json(error.start, "not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise no_json(0, why) from None
    if _deep(raw, value):
        raise no_json(0, "nested too deeply")
    if not isinstance(value, dict):
        kind, text = _WORDS[dict]
        raise invalid([(kind, "body", text, shown(value))])
    return value


def _deep(raw: bytes, value: object) -> bool:
    """Whether a value has more levels than are read."""
    if raw.count(b"[") + raw.count(b"{") <= _DEEPEST:
        return False
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _finite(word: str) -> float:
    value = float(word)
    if not isfinite(value):
        raise ValueError(f"{word[:_SHOWN]} is too large for a number")
    return value


def shown(value: object) -> str:
    """A value as an error repeats it: short, never a page of it."""
    if isinstance(value, dict):
        return f"<dict of {len(value)} items>"
    if isinstance(value, list):
        return f"<list of {len(value)} items>"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class Body:
    """The fields of a request; what has the wrong form is remembered.

    Args:
        fields: as they came.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self._faults: list[Fault] = []

    def flag(self, name: str) -> bool:
        """True or false; missing or null = false."""
        return bool(self._of(bool, name, default=False))

    def whole(self, name: str) -> int | None:
        """A whole number; None = it was not given."""
        value = self._of(int, name)
        if value is not None and abs(value) > _MOST:
            self.wrong(int, name, "a number too large")
            return None
        return None if value is None else int(value)

    def number(self, name: str, default: float) -> float:
        """A number."""
        value = self._of(float, name, default=default)
        try:
            return float(value)
        except OverflowError:  # an integer of hundreds of digits
            self.wrong(float, name, "a number too large")
            return default

    def text(self, name: str) -> str | None:
        """A text; None = it was not given."""
        value = self._of(str, name)
        return None if value is None else str(value)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object; missing or null = an empty one."""
        value = self._of(dict, name)
        return value if isinstance(value, dict) else {}

    def items(self, name: str, *, needed: bool = False) -> list[Any]:
        """A list; missing or null = an empty one, unless it is needed."""
        if needed and name not in self.fields:
            self.missing(name)
            return []
        value = self._of(list, name)
        return value if isinstance(value, list) else []

    def missing(self, name: str, beside: int = 0) -> None:
        """Remembers that a field is not there.

        Args:
            name: of the field.
            beside: fields vLLM has added itself by then, and counts.
        """
        there = f"<dict of {len(self.fields) + beside} items>"
        self._faults.append(("missing", f"body.{name}", "Field required", there))

    def wrong(self, kind: type, name: str, value: object) -> None:
        """Remembers that a field is of another kind than it should be."""
        word, text = _WORDS[kind]
        self._faults.append((word, f"body.{name}", text, shown(value)))

    def check(self) -> None:
        """Ends here if anything was wrong.

        Raises:
            Refusal: with all of it.
        """
        if self._faults:
            raise invalid(self._faults)

    def _of(self, kind: type, name: str, default: Any = None) -> Any:  # noqa: ANN401
        value = self.fields.get(name)
        if value is None:
            return default
        if isinstance(value, bool) is not (kind is bool):
            self.wrong(kind, name, value)
            return default
        if isinstance(value, (int, float) if kind is float else kind):
            return value
        self.wrong(kind, name, value)
        return default
