"""What each kind of log line must look like to be used.

The schemas in `docs/reference/log/` are the published form; this is the part of them
that the readers rely on, and they take older and newer lines that keep to it. Fields
that are not named here are left alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]
Check = Callable[[Any], bool]

LARGEST = 1.7e308  # the finite range of a float, written so that huge ints compare
DEEPEST = 20  # plain choice: how far parameters may be nested
LARGEST_SEQ = 2**63 - 1  # what an array of 64-bit integers holds
VERDICTS = ("admit", "defer", "reject")
OPERATORS = (">=", ">", "<=", "<")


def is_text(value: object) -> bool:
    """A string."""
    return isinstance(value, str)


def is_flag(value: object) -> bool:
    """True or false."""
    return isinstance(value, bool)


def is_number(value: object) -> bool:
    """A finite number; a boolean is none."""
    kind = type(value)
    return (kind is float or kind is int) and -LARGEST <= value <= LARGEST  # type: ignore[operator]


def is_count(value: object) -> bool:
    """A whole number from 0 up to what 64 bits hold."""
    return type(value) is int and 0 <= value <= LARGEST_SEQ


def is_object(value: object) -> bool:
    """A JSON object."""
    return isinstance(value, dict)


def is_plain(value: object, depth: int = DEEPEST) -> bool:
    """Not nested without end, and every number in it finite."""
    if isinstance(value, dict):
        return depth > 0 and all(is_plain(one, depth - 1) for one in value.values())
    if isinstance(value, list):
        return depth > 0 and all(is_plain(one, depth - 1) for one in value)
    return is_number(value) if isinstance(value, float) else True


def is_stated(value: object) -> bool:
    """An object that a report may print as it stands."""
    return isinstance(value, dict) and is_plain(value)


def is_texts(value: object) -> bool:
    """A list of strings."""
    return isinstance(value, list) and all(map(is_text, value))


def is_numbers(value: object) -> bool:
    """An object whose values are numbers or null."""
    return isinstance(value, dict) and all(
        number is None or is_number(number) for number in value.values()
    )


def is_found(value: object) -> bool:
    """The `signals` of a reading: an object per signal."""
    return isinstance(value, dict) and all(
        isinstance(found, dict)
        and all(is_text(found[name]) for name in ("source", "absent") if name in found)
        for found in value.values()
    )


def is_slo(value: object) -> bool:
    """Bounds by name, or one such object per class."""
    if not isinstance(value, dict):
        return False
    return is_numbers(value) or all(
        isinstance(bounds, dict) and is_numbers(bounds) for bounds in value.values()
    )


def is_gate(value: object) -> bool:
    """`[name, value or null, operator, bound or null, held or null]`."""
    if not isinstance(value, list) or len(value) != len(_GATE):
        return False
    return all(check(part) for check, part in zip(_GATE, value, strict=True))


def is_gates(value: object) -> bool:
    """A list of gates."""
    return isinstance(value, list) and all(map(is_gate, value))


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


_GATE: tuple[Check, ...] = (
    is_text,
    _or_null(is_number),
    lambda op: isinstance(op, str) and op in OPERATORS,
    _or_null(is_number),
    _or_null(is_flag),
)

_ALWAYS: dict[str, Check] = {"run": is_text, "t_us": is_count}

# Per kind: the fields it must have, then those that may be absent or null.
_KINDS: dict[str, tuple[dict[str, Check], dict[str, Check]]] = {
    "run": (
        {"schema": is_count, "policy": is_text},
        {
            "class": is_text,
            "version": is_text,
            "params": is_stated,
            "provenance": is_stated,
            "taxonomy": is_stated,
            "requires": is_texts,
            "slo": is_slo,
            "enforce": is_number,
            "experiment": is_text,
            "name": is_text,
            "notes": is_text,
            "config": is_text,
        },
    ),
    "reading": (
        {"id": is_count, "whole": is_flag, "raw": is_object},
        {"gone": is_texts, "signals": is_found},
    ),
    "decision": (
        {
            "seq": is_count,
            "verdict": lambda word: isinstance(word, str) and word in VERDICTS,
            "admitted": is_flag,
        },
        {
            "id": is_text,
            "reason": is_text,
            "enforced": is_flag,
            "status": is_count,
            "retry_after_ms": is_number,
            "wait": is_text,
            "signals": is_numbers,
            "gates": is_gates,
            "facts": is_stated,
            "reading": is_count,
            "raw": is_object,
            "age_ms": is_number,
            "decide_us": is_number,
            "blind": is_text,
            "why": is_text,
        },
    ),
    "outcome": (
        {"of": is_count, "ok": is_flag},
        {
            "seq": is_count,
            "id": is_text,
            "admitted": is_flag,
            "ttft_ms": is_number,
            "max_gap_ms": is_number,
            "e2e_ms": is_number,
            "finish_reason": is_text,
            "error": is_text,
        },
    ),
    "lost": (
        {},
        {
            "decision": is_count,
            "outcome": is_count,
            "reading": is_count,
            "control": is_count,
            "why": is_text,
        },
    ),
    "control": ({"event": is_text}, {}),
}


def fault(fields: Mapping[str, Any]) -> str | None:
    """Why a JSON object cannot be used as a log line; None when it can."""
    kind = fields.get("k")
    if not isinstance(kind, str):
        return "no kind: not a line of an AdmitPerf log"
    if kind not in _KINDS:
        return "a kind this reader does not know"
    needed, checks = _CHECKS[kind]
    for name in needed:
        if fields.get(name) is None:
            return f"{kind} line without {name}"
    for name, value in fields.items():
        check = checks.get(name)
        if check is not None and value is not None and not check(value):
            return f"{kind} line with an unusable {name}"
    return None


_CHECKS: dict[str, tuple[tuple[str, ...], dict[str, Check]]] = {
    kind: ((*_ALWAYS, *needed), _ALWAYS | needed | optional)
    for kind, (needed, optional) in _KINDS.items()
}
