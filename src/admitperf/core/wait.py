"""How long to wait before trying again, and how that is spread over callers."""

import math
from dataclasses import dataclass

from admitperf.core.digest import blake2b

DEFAULT_MS = 1000
"""Wait until a drain has been measured. Origin: the product brief, section 6."""

SPREAD = 0.25
"""Callers come back within wait x (1 + 0.25 u). Origin: the product brief, section 6:
neither official SDK adds jitter to Retry-After."""

_WIDEST = 1 << 64


@dataclass(frozen=True, slots=True)
class Wait:
    """An estimate of when there is room.

    Attributes:
        estimate_ms: before spread and cap; None = nothing drains, so not known.
        basis: "measured", "default", "policy" (the policy said so), "fixed" (the
            reason says so) or "none" (trying again is pointless).
    """

    estimate_ms: int | None
    basis: str


NO_WAIT = Wait(None, "none")


def unit_interval(key: str, purpose: bytes = b"") -> float:
    """A number in [0, 1) from a key: the same in every process, host and restart.

    Args:
        key: whose number it is.
        purpose: what it is drawn for, at most 16 bytes; empty for the split: who is
            governed and who waits how long must not hang together.
    """
    text = key.encode(errors="backslashreplace")
    drawn = blake2b(text, digest_size=8, key=b"admitperf", person=purpose).digest()
    return int.from_bytes(drawn) / _WIDEST


def spread_ms(estimate_ms: float, cap_s: float, u: float) -> int:
    """The wait one caller is told, in milliseconds, never above the cap.

    An estimate whose spread would pass the cap is spread from max(0.8 cap, estimate),
    at most 55/60 of the cap, up to the cap, so that the cap does not flatten it.

    Args:
        estimate_ms: the estimate, not negative.
        cap_s: longest wait sent, in seconds.
        u: where in the spread this caller falls, in [0, 1).
    """
    cap_ms = cap_s * 1000
    if estimate_ms * (1 + SPREAD) <= cap_ms:
        return math.ceil(estimate_ms * (1 + SPREAD * u))
    low = min(max(cap_ms / (1 + SPREAD), estimate_ms), cap_ms * 55 / 60)
    return math.floor(low + (cap_ms - low) * u)
