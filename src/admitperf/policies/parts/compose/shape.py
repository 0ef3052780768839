"""How many parts a composition is told, and how deep, before any of them is made."""

from collections.abc import Iterator, Mapping, Sequence

from admitperf.core.errors import ConfigError
from admitperf.policies.parts.compose.brackets import enclosed, pieces, shown

PARTS = "policies"
"""The parameter of a composition that holds its parts."""

PARTS_MOST = 16
"""Policies in one composition, nested ones too. Plain choice: each costs a few
microseconds a decision."""

DEPTH_MOST = 4
"""Compositions within each other. Plain choice: a deeper one nobody reads."""

TEXT_MOST = 20_000
"""Letters of a text. Plain choice: the weights of a thousand tenants, read in a tenth
of a second."""

SPACE = ", \t\n"
"""What stands between two parameters."""


def check(told: object) -> None:
    """Whether it is small enough to be made.

    Args:
        told: what `listed` takes. What cannot be read is passed over: who makes the
            parts says what is wrong.

    Raises:
        ConfigError: it is too long, too many or too deep.
    """
    inner, count = [told], 0
    for _ in range(DEPTH_MOST):
        parts = [part for one in inner for part in _short(one)]
        count += len(parts)
        if count > PARTS_MOST:
            raise ConfigError("policies", [f"{count} are more than {PARTS_MOST}"])
        inner = [found for part in parts for found in _within(part)]
    if inner:
        fault = f"they are nested more than {DEPTH_MOST} deep"
        raise ConfigError("policies", [fault])


def listed(told: object) -> Sequence[object]:
    """The parts of a composition, each as it is written.

    Raises:
        ConfigError: it is no text and no list.
    """
    if isinstance(told, str):
        return pieces(told, ";")
    if isinstance(told, Mapping):
        return [told]
    if isinstance(told, (list, tuple)):
        return told
    said = f"{shown(told)} is no text and no list of policies"
    raise ConfigError("policies", [said])


def pair(told: object) -> tuple[str, object]:
    """The name of one part and what it is given, of one that is no text.

    Raises:
        ConfigError: it is no part.
    """
    if isinstance(told, (list, tuple)) and len(told) == 2:  # noqa: PLR2004  name, params
        name, given = told
        if isinstance(name, str):
            return name, given
    if isinstance(told, Mapping):
        for key, params in (("name", "params"), ("policy", "parameters")):
            if isinstance(told.get(key), str) and told.keys() <= {key, params}:
                return told[key], told.get(params)
        if len(told) == 1:
            ((name, given),) = told.items()
            if isinstance(name, str):
                return name, given
    said = f"{shown(told)} is no policy and no name of one; write {{name: parameters}}"
    raise ConfigError("policies", [said])


def _short(told: object) -> Sequence[object]:
    """Its parts, if each text is short enough to be read."""
    _measure(told)
    try:
        parts = listed(told)
    except ConfigError:
        return ()
    if len(parts) <= PARTS_MOST:
        for one in parts:
            _measure(one)
    return parts


def _measure(told: object) -> None:
    if isinstance(told, str) and len(told) > TEXT_MOST:
        raise ConfigError(
            "policies", [f"{len(told)} letters are more than {TEXT_MOST}"]
        )


def _within(part: object) -> Iterator[object]:
    """What it is told for parts of its own, if it is anything."""
    try:
        if isinstance(part, str):
            yield from _within_text(part)
            return
        _, given = pair(part)
    except ConfigError:
        return
    if isinstance(given, Mapping) and PARTS in given:
        yield given[PARTS]


def _within_text(part: str) -> Iterator[str]:
    _, _, rest = part.partition(":")
    for one in pieces(rest, SPACE):
        key, _, value = (word.strip() for word in one.partition("="))
        if key == PARTS:
            inside = enclosed(value)
            yield value if inside is None else inside
