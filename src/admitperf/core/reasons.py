"""The one table from reason to status. The verdict never changes a status.

Presets turn the table for deployments whose proxies or clients need other codes; the
reason stays the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from admitperf.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Reason:
    """What follows from a reason.

    Attributes:
        status: HTTP status as an int (529 has no member in `http.HTTPStatus`).
        fault: whose limit was met: "capacity", "caller", "deadline", "size" or
            "instrument" (we could not see).
        retry: whether trying again can succeed.
        least_s, most_s: bounds of the wait before the spread, in seconds; None = none.
    """

    status: int
    fault: str = "capacity"
    retry: bool = True
    least_s: float | None = None
    most_s: float | None = None


_CAPACITY = Reason(503)
_CALLER = Reason(429, fault="caller")
_BLIND = Reason(503, fault="instrument", least_s=1.0, most_s=5.0)

DEFAULT: Mapping[str, Reason] = {
    "kv_pressure": _CAPACITY,
    "kv_headroom": _CAPACITY,
    "queue_depth": _CAPACITY,
    "queue_age": _CAPACITY,
    "prefill_backlog": _CAPACITY,
    "slots": _CAPACITY,
    "in_flight_cap": _CAPACITY,
    "session_in_flight": _CAPACITY,
    "tenant_share": _CALLER,
    "rate_limit": _CALLER,
    "caller_in_flight": _CALLER,
    "session_quota": _CALLER,
    "pool_saturated": Reason(529, least_s=15.0, most_s=60.0),
    "deadline_unmeetable": Reason(503, fault="deadline", retry=False),
    "too_large": Reason(413, fault="size", retry=False),
    "signal_absent": _BLIND,
    "signal_stale": _BLIND,
    "policy_error": _BLIND,
}
"""Reason to what follows. Origin: the product brief, section 6."""

SIGNAL_OF: Mapping[str, str] = {
    "kv_pressure": "kv_pressure",
    "kv_headroom": "kv_pressure",
    "queue_depth": "queue_depth",
    "queue_age": "oldest_wait_s",
    "in_flight_cap": "in_flight",
    "caller_in_flight": "tenant_in_flight",
    "session_in_flight": "session_in_flight",
    "tenant_share": "tenant_share",
    "slots": "running",
    "pool_saturated": "pool_load",
}
"""The signal whose gate a reason speaks of."""

PRESETS = ("default", "openai", "anthropic", "mesh-safe")

_OVERLOADED = 529
_SERVER_FAULT = 500


def table(preset: str, own: Mapping[str, Reason]) -> dict[str, Reason]:
    """The table a policy answers from: the defaults, its own reasons, then the preset.

    Args:
        preset: "default"; "openai" (529 as 503); "anthropic" (capacity 503 as 529);
            "mesh-safe" (every 5xx as 429, for meshes that eject backends on 5xx).

    Raises:
        ConfigError: unknown preset, or an own reason that is no `Reason` or has no
            status from 400 to 599.
    """
    faults = (
        []
        if preset in PRESETS
        else [f"preset {preset!r} is not one of {', '.join(PRESETS)}"]
    )
    faults += [
        f"reason {name!r} needs Reason(status 400-599), got {reason!r}"
        for name, reason in own.items()
        if not (isinstance(reason, Reason) and _refuses(reason.status))
    ]
    if faults:
        raise ConfigError("reasons", faults)
    merged = {**DEFAULT, **own}
    return {
        name: replace(r, status=int(_status(preset, r))) for name, r in merged.items()
    }


def _refuses(status: object) -> bool:
    return isinstance(status, int) and 400 <= status <= 599  # noqa: PLR2004


def _status(preset: str, reason: Reason) -> int:
    if preset == "openai" and reason.status == _OVERLOADED:
        return 503
    if preset == "anthropic" and reason.status == 503 and reason.fault == "capacity":  # noqa: PLR2004
        return _OVERLOADED
    if preset == "mesh-safe" and reason.status >= _SERVER_FAULT:
        return 429
    return reason.status
