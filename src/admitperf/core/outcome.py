"""How a request ended."""

from dataclasses import dataclass, replace
from typing import Self

from admitperf.core.request import Request

_MOST = 1 << 53
"""Largest number that survives a reader with 64-bit floats, digit by digit."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the host reported about one request. None = not known.

    Attributes:
        request_id: the id the decision carried.
        ok: whether the answer ended properly.
        ttft_ms: time to first token, from arrival, in milliseconds.
        max_gap_ms: longest gap between tokens, in milliseconds.
        e2e_ms: arrival to end, in milliseconds.
        output_tokens, cached_tokens: tokens.
        finish_reason, error: the engine's words.
        request: the facts it was decided on.
        admitted: False when the host served it although it was refused.
        seq: number of the decision it belongs to.
    """

    request_id: str
    ok: bool
    ttft_ms: float | None = None
    max_gap_ms: float | None = None
    e2e_ms: float | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    error: str | None = None
    request: Request | None = None
    admitted: bool = True
    seq: int = -1

    def of(self, request: Request, *, admitted: bool, seq: int) -> Self:
        """The same, with what the ledger knows about the request."""
        return replace(self, request=request, admitted=admitted, seq=seq)


def milliseconds(value: object) -> float | None:
    """A duration somebody reported; None when it is no number from 0 to 2^53."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _MOST else None
