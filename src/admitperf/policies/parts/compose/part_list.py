"""The parts of a composition, from a text or from Python."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from admitperf.core.declared import plain
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.core.policy import Policy
from admitperf.core.settings import Settings
from admitperf.policies import load

_OWN = ("clock", "reports_outcomes")
"""Settings of a part that change nothing: it is asked on what the whole one sees."""


def parts_of(told: object) -> list[Policy]:
    """The policies that `policies` names, in order.

    Args:
        told: a text, `tenant_share; kv_threshold:threshold=0.85,action=reject`, where a
            value with one of `;`, `,` or a space in it stands in brackets; or a
            sequence of policies, such texts, (name, parameters) and
            {name: parameters}.

    Raises:
        ConfigError: with every fault of every part, each with the part's name.
    """
    made, faults = list[Policy](), list[str]()
    try:
        listed = _listed(told)
    except ConfigError as error:
        listed, faults = [], error.faults
    for one in listed:
        try:
            made.append(_part(one))
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError("policies", [f"policies: {fault}" for fault in faults])
    return made


def divided(told: object, count: int) -> object:
    """The same parts, each with its share of what it bounds in a process.

    What cannot be read is returned as it is: who makes the policy says what is wrong.

    Args:
        told: as for `parts_of`.
        count: processes that share the work.
    """
    try:
        parts = parts_of(told)
    except ConfigError:
        return told
    return [type(one)(**type(one).divided(_of(one), count)) for one in parts]


def _of(part: Policy) -> dict[str, object]:
    """What it was given, as it was given."""
    return {name: getattr(part, name) for name in part.given}


def spelt(parts: Iterable[Policy]) -> str:
    """The text that makes the same parts, with every parameter."""
    return "; ".join(_spelt(one) for one in parts)


def pieces(text: str, marks: str) -> list[str]:
    """The parts of a text between marks that stand in no brackets.

    Raises:
        ConfigError: the brackets do not match.
    """
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if depth == 0 and letter in marks:
            found.append("")
        else:
            found[-1] += letter
    if depth:
        raise ConfigError("policies", [f"brackets do not match in {text!r}"])
    return [one.strip() for one in found if one.strip()]


def _listed(told: object) -> Sequence[object]:
    if isinstance(told, str):
        return pieces(told, ";")
    if isinstance(told, Mapping):
        return [told]
    if isinstance(told, (list, tuple)):
        return told
    raise ConfigError("policies", [f"{told!r} is no text and no list of policies"])


def _part(one: object) -> Policy:
    if isinstance(one, Policy):
        return _plain(one)
    if isinstance(one, str):
        name, given = _read(one)
    elif isinstance(one, Mapping) and len(one) == 1:
        ((name, given),) = one.items()
    elif isinstance(one, (list, tuple)) and len(one) == 2:  # noqa: PLR2004  name, params
        name, given = one
    else:
        raise ConfigError("policies", [f"{one!r} is no policy and no name of one"])
    return _plain(_made(str(name), {} if given is None else given))


def _made(name: str, given: object) -> Policy:
    if not isinstance(given, Mapping):
        raise ConfigError("policies", [f"{name}: {given!r} are no parameters"])
    try:
        return load(name)(**given)
    except ConfigError as error:
        told = [f"{name}: {fault}" for fault in error.faults]
        raise ConfigError("policies", told) from None
    except (AdmitPerfError, TypeError) as error:
        raise ConfigError("policies", [str(error)]) from None


def _plain(part: Policy) -> Policy:
    """Itself, if it has no settings of its own, which nobody would look at."""
    usual = Settings(**{name: getattr(part.settings, name) for name in _OWN})
    wrong = [
        f"{part.name}: {field.name} is a setting of the whole, not of a part"
        for field in dataclasses.fields(Settings)
        if getattr(part.settings, field.name) != getattr(usual, field.name)
    ]
    if wrong:
        raise ConfigError("policies", wrong)
    return part


def _read(text: str) -> tuple[str, dict[str, object]]:
    """`name:param=value,param=value`."""
    name, _, rest = text.partition(":")
    name, given, faults = name.strip(), dict[str, object](), list[str]()
    for one in pieces(rest, ", \t\n"):
        key, equals, value = (part.strip() for part in one.partition("="))
        if not (key and equals and value):
            faults.append(f"{name}: {one!r} is not PARAM=VALUE")
        elif key in given:
            faults.append(f"{name}: {key} is given twice")
        else:
            given[key] = value
    if faults:
        raise ConfigError("policies", faults)
    return name, dict(_typed(name, given))


def _typed(name: str, given: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Numbers and words as such, but where the policy wants the text, or brackets."""
    try:
        known = load(name).declared()
    except AdmitPerfError as error:
        raise ConfigError("policies", [str(error)]) from None
    for key, value in given.items():
        text = str(value)
        if text.startswith("(") and text.endswith(")"):
            yield key, text[1:-1]
        elif key in known and known[key].type is str:
            yield key, text
        else:
            yield key, plain(text)


def _spelt(part: Policy) -> str:
    given = ",".join(f"{k}={_word(v)}" for k, v in part.parameters.items())
    return type(part).name + (f":{given}" if given else "")


def _word(value: object) -> str:
    if isinstance(value, Mapping):
        value = ",".join(f"{name}={one}" for name, one in value.items())
    text = str(value)
    if value is None or isinstance(value, bool):
        text = text.lower()
    return f"({text})" if any(mark in text for mark in ",; \t\n()") else text
