"""How a request ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from admitperf.core.entry import Entry
from admitperf.core.request import Request, bounded

_MOST = 1 << 53
"""Largest number that survives a reader with 64-bit floats, digit by digit."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the host reported about one request. None = not known.

    Attributes:
        request_id: the id the decision carried.
        ok: whether the answer ended properly.
        ttft_ms: time to first token, from arrival, in milliseconds.
        first_text_ms: arrival to the first token of the answer's text, in
            milliseconds; later than `ttft_ms` when reasoning or a tool call came first.
        max_gap_ms: longest gap between tokens, in milliseconds.
        e2e_ms: arrival to end, in milliseconds.
        output_tokens, cached_tokens: tokens.
        input_tokens: tokens of the prompt as the engine counted them.
        finish_reason, error: the engine's words.
        request: the facts it was decided on.
        admitted: False when the host served it although it was refused.
        seq: number of the decision it belongs to.
        charge: what its policy's `decided` returned for it.
    """

    request_id: str
    ok: bool
    ttft_ms: float | None = None
    first_text_ms: float | None = None
    max_gap_ms: float | None = None
    e2e_ms: float | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    input_tokens: int | None = None
    finish_reason: str | None = None
    error: str | None = None
    request: Request | None = None
    admitted: bool = True
    seq: int = -1
    charge: object = None

    @classmethod
    def told(
        cls, request_id: str, ok: object, told: Mapping[str, object], entry: Entry
    ) -> Self:
        """What a host told, made safe: what is unusable is not known.

        An `ok` that cannot be read as true or false is False.
        """
        return cls(
            request_id=request_id,
            ok=_flag(ok),
            ttft_ms=_safe(milliseconds, told["ttft_ms"]),
            first_text_ms=_safe(milliseconds, told["first_text_ms"]),
            max_gap_ms=_safe(milliseconds, told["max_gap_ms"]),
            e2e_ms=_safe(milliseconds, told["e2e_ms"]),
            output_tokens=_safe(_count, told["output_tokens"]),
            cached_tokens=_safe(_count, told["cached_tokens"]),
            input_tokens=_safe(_count, told["input_tokens"]),
            finish_reason=_safe(bounded, told["finish_reason"]),
            error=_safe(bounded, told["error"]),
            request=entry.request,
            admitted=entry.admitted,
            seq=entry.seq,
            charge=entry.charge,
        )


def milliseconds(value: object) -> float | None:
    """A duration somebody reported; None when it is no number from 0 to 2^53."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _MOST else None


_V = TypeVar("_V")


def _safe(read: Callable[[object], _V | None], value: object) -> _V | None:
    try:
        return read(value)
    except Exception:  # noqa: BLE001  a value that breaks its reader is not known
        return None


def _flag(value: object) -> bool:
    return bool(_safe(bool, value))


def _count(value: object) -> int | None:
    number = milliseconds(value)
    return None if number is None else int(number)
