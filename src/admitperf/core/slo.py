"""What a service-level objective may look like. Judging by it is the report's work."""

from collections.abc import Mapping

LIMITS = ("ttft_ms", "stall_ms", "e2e_ms")
"""First token, longest gap between tokens, whole answer: milliseconds each."""


def faults(slo: Mapping[str, object] | None) -> list[str]:
    """Everything that is wrong with an objective, in words.

    Args:
        slo: limits for every request, or one mapping of limits per class; None = no
            objective, then `ok` alone counts.
    """
    if not slo:
        return []
    if not isinstance(slo, Mapping):
        return [f"slo = {slo!r} is no mapping"]
    nested = all(isinstance(value, Mapping) for value in slo.values())
    classes: Mapping[object, object] = slo if nested else {"": slo}  # type: ignore[assignment]
    return [
        f"slo: {'class ' + str(name) + ': ' if name else ''}{fault}"
        for name, limits in classes.items()
        if isinstance(limits, Mapping)
        for key, value in limits.items()
        for fault in _fault(key, value)
    ]


def _fault(key: object, value: object) -> list[str]:
    if key not in LIMITS:
        return [f"{key} is not one of {', '.join(LIMITS)}"]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and 0 < value < float("inf"):  # type: ignore[operator]
        return []
    return [f"{key} = {value!r} is no positive number of milliseconds"]
