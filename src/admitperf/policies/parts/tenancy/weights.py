"""Weights by name, from a text or a mapping."""

import math
from collections.abc import Mapping

from admitperf.core.errors import ConfigError
from admitperf.policies.parts.compose.part_list import pieces


def weights_of(told: object) -> dict[str, float]:
    """The weights.

    Args:
        told: `a=2,b=1`, a mapping, or None for none.

    Raises:
        ConfigError: with everything that is wrong.
    """
    faults = list[str]()
    if told is None:
        return {}
    given = _read(told, faults) if isinstance(told, str) else told
    if not isinstance(given, Mapping):
        raise ConfigError(
            "weights", [f"weights = {told!r} is no mapping and no a=2,b=1"]
        )
    faults += [
        f"weights: {name!r} has {one!r}, no number above 0"
        for name, one in given.items()
        if not _is_weight(one)
    ]
    if faults:
        raise ConfigError("weights", faults)
    return {str(name): float(one) for name, one in given.items()}


def _is_weight(one: object) -> bool:
    number = isinstance(one, (int, float)) and not isinstance(one, bool)
    return number and 0 < one < math.inf  # type: ignore[operator]


def _read(text: str, faults: list[str]) -> dict[str, object]:
    given: dict[str, object] = {}
    for one in pieces(text, ", "):
        name, equals, value = one.rpartition("=")
        if not (name and equals):
            faults.append(f"weights: {one!r} is not TENANT=WEIGHT")
            continue
        try:
            given[name] = float(value)
        except ValueError:
            faults.append(f"weights: {one!r} is not TENANT=WEIGHT")
    return given
