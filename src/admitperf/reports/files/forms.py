"""What a field of a log line may hold: each form said for a value and for its text."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from admitperf.reports.files import pattern

Check = Callable[[Any], bool]

LARGEST = 1.7e308  # the finite range of a float, written so that huge ints compare
LARGEST_COUNT = 2**63 - 1  # what a 64-bit integer holds
DEEPEST = 20  # plain choice: how far parameters may be nested
_OPERATORS = (">=", ">", "<=", "<")
_DEEP_PARAMETERS = 2  # plain choice: deeper ones are rare and left to the check


class Form(NamedTuple):
    """One form.

    Attributes:
        check: whether a value that was read from JSON has it.
        pattern: matches its text, in RE2's language. It may leave some of it out, and
            in well-formed JSON matches nothing else.
    """

    check: Check
    pattern: str


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


def is_duration(value: object) -> bool:
    """A finite number from 0."""
    return is_number(value) and value >= 0  # type: ignore[operator]


def is_whole(value: object) -> bool:
    """A whole number that 64 bits hold."""
    return type(value) is int and -LARGEST_COUNT <= value <= LARGEST_COUNT


def is_count(value: object) -> bool:
    """A whole number from 0 up to what 64 bits hold."""
    return type(value) is int and 0 <= value <= LARGEST_COUNT


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


def _is_inner(value: object) -> bool:
    return is_plain(value, DEEPEST - 1)


def is_stated(value: object) -> bool:
    """An object that a report may print as it stands."""
    return isinstance(value, dict) and is_plain(value)


def is_texts(value: object) -> bool:
    """A list of strings."""
    return isinstance(value, list) and all(map(is_text, value))


def is_numbers(value: object) -> bool:
    """An object whose values are numbers or null."""
    if not isinstance(value, dict):
        return False
    for number in value.values():  # noqa: SIM110  a loop costs half of a generator
        if not (number is None or is_number(number)):
            return False
    return True


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
    return is_numbers(value) or all(map(is_numbers, value.values()))


def is_gate(value: object) -> bool:
    """`[name, value or null, operator, bound or null, held or null]`."""
    if not isinstance(value, list) or len(value) != len(_GATE):
        return False
    for check, part in zip(_GATE_CHECKS, value, strict=True):  # noqa: SIM110  as above
        if not check(part):
            return False
    return True


def is_gates(value: object) -> bool:
    """A list of gates."""
    return isinstance(value, list) and all(map(is_gate, value))


def is_notes(value: object) -> bool:
    """Text, or an object of texts, numbers, flags and nulls."""
    return isinstance(value, str) or (isinstance(value, dict) and is_plain(value, 1))


def or_null(form: Form) -> Form:
    """The form, or null."""
    return Form(
        lambda value: value is None or form.check(value), pattern.or_null(form.pattern)
    )


def word(*words: str) -> Form:
    """One of some strings."""
    return Form(
        lambda value: isinstance(value, str) and value in words,
        f'"{pattern.either(*words)}"',
    )


def object_with(fields: Mapping[str, Form]) -> Form:
    """An object whose fields of these names have a form or are null."""
    checks = {name: form.check for name, form in fields.items()}

    def check(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        for name, inner in value.items():
            if inner is not None and not checks.get(name, _is_inner)(inner):
                return False
        return True

    patterns = {name: or_null(form).pattern for name, form in fields.items()}
    return Form(check, pattern.object_with(patterns, pattern.anything(0)))


TEXT = Form(is_text, pattern.TEXT)
FLAG = Form(is_flag, pattern.FLAG)
NUMBER = Form(is_number, pattern.NUMBER)
DURATION = Form(is_duration, pattern.NUMBER.removeprefix("-?"))
WHOLE = Form(is_whole, f"-?{pattern.COUNT}")
COUNT = Form(is_count, pattern.COUNT)
TEXTS = Form(is_texts, pattern.list_of(pattern.TEXT))
OBJECT = Form(is_object, pattern.object_of(pattern.anything(0)))
STATED = Form(is_stated, pattern.object_of(pattern.anything(_DEEP_PARAMETERS)))
NUMBERS = Form(is_numbers, pattern.object_of(or_null(NUMBER).pattern))
SLO = Form(
    is_slo,
    pattern.either(NUMBERS.pattern, pattern.object_of(NUMBERS.pattern)),
)
FOUND = Form(
    is_found,
    pattern.object_of(
        pattern.object_with(
            dict.fromkeys(("source", "absent"), pattern.TEXT), pattern.anything(1)
        )
    ),
)
NOTES = Form(is_notes, pattern.either(TEXT.pattern, OBJECT.pattern))
_GATE: tuple[Form, ...] = (
    TEXT,
    or_null(NUMBER),
    word(*_OPERATORS),
    or_null(NUMBER),
    or_null(FLAG),
)
_GATE_CHECKS = tuple(form.check for form in _GATE)
GATES = Form(is_gates, pattern.list_of(pattern.tuple_of(one.pattern for one in _GATE)))
