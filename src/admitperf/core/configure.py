"""Checks everything a policy is constructed with, and reports every fault at once."""

from collections.abc import Mapping
from typing import Any

from admitperf.core.declared import Declared, bind
from admitperf.core.errors import ConfigError
from admitperf.core.request import FACTS
from admitperf.core.settings import RESERVED, Settings
from admitperf.core.signal import Signal


def configure(
    where: str,
    known: Mapping[str, Declared],
    requires: tuple[object, ...],
    given: Mapping[str, Any],
    taken: frozenset[str],
) -> tuple[Settings, dict[str, object]]:
    """The settings and the parameters.

    Args:
        where: what is being set up, for the message.
        known: declared parameters; when there are none, any keyword is one.
        requires: what the policy says it requires.
        given: all keywords of the constructor.
        taken: names of what every policy has, which no parameter may replace.

    Raises:
        ConfigError: with every fault.
    """
    settings = Settings(**{key: given[key] for key in given if key in RESERVED})
    own = {key: given[key] for key in given if key not in RESERVED}
    faults = [
        *settings.faults(),
        *(
            f"parameter {name} is a reserved keyword"
            for name in known
            if name in RESERVED
        ),
        *(
            f"parameter {name} is the name of something every policy has"
            for name in {**known, **own}
            if name in taken or name.startswith("_")
        ),
        *(
            f"requires {thing!r} is no signal and no fact"
            for thing in requires
            if not (isinstance(thing, Signal) or thing in FACTS)
        ),
    ]
    values: dict[str, object] = own
    if not known:
        faults += [fault for name in own for fault in _misspelt(name)]
    else:
        try:
            values = bind(where, known, own)
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(where, faults)
    return settings, values


def _misspelt(name: str) -> list[str]:
    """Faults of a free keyword that looks reserved: `enforced=0.0` must not go live."""
    from difflib import get_close_matches  # noqa: PLC0415  only at set-up

    meant = get_close_matches(name, RESERVED, 1, 0.8)
    return [
        f"{name} looks like the reserved keyword {word}; to use it as a parameter, "
        f"annotate it on the class"
        for word in meant
    ]
