"""Policies and their parameters as somebody writes them: `name:param=value`.

The one reader of that form, for the command line, files and compositions alike.
"""

from collections.abc import Callable, Mapping

from admitperf.core.declared import Declared, plain
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.core.settings import RESERVED
from admitperf.policies import load
from admitperf.policies.parts.compose.brackets import (
    bracketed,
    enclosed,
    pieces,
    quoted,
    shown,
)
from admitperf.policies.parts.compose.shape import PARTS, SPACE, check, listed, pair

FORM = (
    "write name:param=value,param=value; a value with a comma, a semicolon or a space"
    " in it stands in brackets, as in tenant_share:weights=(a=2,b=1)"
)
"""What is said to who wrote it wrongly."""

LEFT_OUT = object()
"""Stands for a parameter that is left at its default."""


def read(text: str, marks: str = SPACE) -> tuple[str, dict[str, object]]:
    """The name and the parameters of one policy.

    Args:
        text: `name:param=value,param=value`.
        marks: what stands between two parameters.

    Raises:
        ConfigError: with every fragment that is no parameter, and the form.
    """
    name, _, rest = text.partition(":")
    name = name.strip()
    known = _known(name)
    given, faults = dict[str, object](), list[str]()
    for one in pieces(rest, marks):
        key, equals, value = (part.strip() for part in one.partition("="))
        if not (key and equals and value):
            faults.append(f"{name}: {shown(one)} is not PARAM=VALUE; {FORM}")
        elif key in given:
            faults.append(f"{name}: {shown(one)}: {key} is given twice; {FORM}")
        else:
            given[key] = typed(known.get(key), value)
    if faults:
        raise ConfigError("policies", faults)
    return name, given


def _known(name: str) -> Mapping[str, Declared]:
    try:
        return load(name).declared()
    except AdmitPerfError as error:
        raise ConfigError("policies", [str(error)]) from None


def strange(name: str, given: Mapping[str, object]) -> list[str]:
    """What a policy that declares parameters does not know, with the form.

    A comma in a value without brackets makes parameters of its rest.

    Raises:
        ConfigError: there is no such policy.
    """
    known = _known(name)
    others = [key for key in given if known and key not in {*known, *RESERVED}]
    return [
        f"{name}: {key}={given[key]}: {key} is no parameter"
        f" (known: {', '.join(known)}); {FORM}"
        for key in others
    ]


def typed(known: Declared | None, text: str) -> object:
    """What a text stands for: a number or a word, but where the policy wants the text.

    Brackets or quotes around the whole of it are taken off.

    Args:
        known: the parameter, as its policy declares it; None = it does not.
    """
    inside = enclosed(text)
    if inside is not None:
        return inside
    value = plain(text)
    if known is None or value == text:
        return value
    wants = known.type is str or (known.fault(value) and not known.fault(text))
    return text if wants else value


def with_none(policy: str, told: Mapping[str, object]) -> dict[str, object]:
    """A file's parameters, `none` read as on the command line where None may stand.

    A file's own word for it is null. Nothing else is converted.
    """
    try:
        known = load(policy).declared()
    except AdmitPerfError:  # said when the policy is made
        known = {}
    return {
        name: None if _is_none(known.get(name), value) else value
        for name, value in told.items()
    }


def _is_none(known: Declared | None, value: object) -> bool:
    if known is None or not isinstance(value, str) or plain(value) is not None:
        return False
    return known.fault(value) is not None and known.fault(None) is None


def part(told: object) -> tuple[str, dict[str, object]]:
    """The name and the parameters of one part, in any form it may have.

    Args:
        told: `name:param=value`, (name, parameters), {name: parameters},
            {"name": name, "params": parameters} as a pool of a gateway has it, or
            {"policy": name, "parameters": parameters} as an arm of a benchmark.

    Raises:
        ConfigError: it is none of these.
    """
    if isinstance(told, str):
        return read(told)
    name, given = pair(told)
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError("policies", [f"{name}: {shown(given)} are no parameters"])
    return name, with_none(name, {} if given is None else given)


def replaced(told: object, change: Callable[[str, object], object]) -> str:
    """The text of the same parts with other values, those of nested ones too.

    Args:
        told: the parts, without any that are made already.
        change: takes a parameter's name and value; returns its value, or `LEFT_OUT`.

    Raises:
        ConfigError: they cannot be read, or are too many.
    """
    check(told)
    made = (_replaced(part(one), change) for one in listed(told))
    return "; ".join(spelt(name, given, _known(name)) for name, given in made)


def _replaced(
    one: tuple[str, dict[str, object]], change: Callable[[str, object], object]
) -> tuple[str, dict[str, object]]:
    name, given = one
    made = {
        key: replaced(value, change) if key == PARTS else change(key, value)
        for key, value in given.items()
    }
    return name, {key: value for key, value in made.items() if value is not LEFT_OUT}


def spelt(
    name: str,
    given: Mapping[str, object],
    known: Mapping[str, Declared] | None = None,
) -> str:
    """The text that `read` reads so: numbers, words, texts, and those by name.

    Args:
        known: the parameters as the policy declares them.
    """
    known = known or {}
    told = ",".join(
        f"{key}={_word(value, known.get(key))}" for key, value in given.items()
    )
    return name + (f":{told}" if told else "")


def _word(value: object, known: Declared | None) -> str:
    """A value, in brackets or quotes if it would be read as another without."""
    if isinstance(value, str):
        same = _is_bare(value) and typed(known, value) == value
        return value if same else bracketed(value)
    if isinstance(value, Mapping):
        value = ",".join(f"{quoted(str(name))}={one}" for name, one in value.items())
    elif isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    text = str(value)
    if value is None or isinstance(value, bool):
        text = text.lower()
    return text if _is_bare(text) else bracketed(text)


def _is_bare(text: str) -> bool:
    """Whether it has no mark in it that means something."""
    marked = any(mark in text for mark in ',; \t\n()"')
    return bool(text) and text == text.strip() and not marked
