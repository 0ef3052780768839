"""Weights by name, from a text or a mapping."""

from collections.abc import Mapping

from admitperf.core.errors import ConfigError
from admitperf.policies.parts.compose.brackets import named, pieces

WEIGHT_LEAST, WEIGHT_MOST = 1e-6, 1e6
"""What a weight may be. Plain choice: shares that lie further apart are no shares, and
tokens divided by a number near 0 are past what adds up: infinite less infinite is no
number, and nobody would be ahead of anybody."""


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
        f"weights: {name!r} has {one!r}, no number from 1e-06 to 1e+06"
        for name, one in given.items()
        if not _is_weight(one)
    ]
    if faults:
        raise ConfigError("weights", faults)
    return {str(name): float(one) for name, one in given.items()}


def _is_weight(one: object) -> bool:
    number = isinstance(one, (int, float)) and not isinstance(one, bool)
    return number and WEIGHT_LEAST <= one <= WEIGHT_MOST  # type: ignore[operator]


def _read(text: str, faults: list[str]) -> dict[str, object]:
    given: dict[str, object] = {}
    for one in pieces(text, ", "):
        name, equals, value = one.rpartition("=")
        if not (name and equals):
            faults.append(f"weights: {one!r} is not TENANT=WEIGHT")
            continue
        try:
            given[named(name)] = float(value)
        except ValueError:
            faults.append(f"weights: {one!r} is not TENANT=WEIGHT")
    return given
