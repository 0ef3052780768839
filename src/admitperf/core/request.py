"""Facts about one request. All optional; None = not known."""

import math
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii as quoted

from admitperf.core.digest import blake2b

_LONGEST_ID = 256
_TOKENS_MOST = 1 << 53
"""Largest count that survives a reader with 64-bit floats."""


class Request:
    """The facts of one request, made safe: a fact of the wrong type or size is unknown.

    Attributes:
        logical_id: the call this is an attempt at.
        attempt: 0 for the first try.
        tenant, session, parent_session, model, slo_class: names; long ones are cut
            to 256 characters, the last 32 being a digest.
        session_final: the session says this is its last call.
        input_tokens, cached_tokens, max_output_tokens: tokens.
        n: answers asked for.
        deadline_s: seconds from now until the first token must have come.
        priority: higher matters more.
        stream: whether the answer is streamed.
        late_ms: how much later than its due time a load generator sent it, in ms;
            nobody else knows it. Latency from the due time is this plus `ttft_ms`.
        given: the facts that were supplied, by name.
        faults: what was wrong with the others.
    """

    logical_id: str | None = None
    attempt: int = 0
    tenant: str | None = None
    session: str | None = None
    parent_session: str | None = None
    session_final: bool = False
    model: str | None = None
    slo_class: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    max_output_tokens: int | None = None
    n: int = 1
    deadline_s: float | None = None
    priority: int = 0
    stream: bool | None = None
    late_ms: float | None = None

    def __init__(self, facts: Mapping[str, object] | None = None) -> None:
        given: dict[str, object] = {}
        self.faults: list[str] = []
        for name, value in (facts or {}).items():
            if value is None:
                continue
            read = _READERS.get(name)
            taken = read(value) if read else None
            if taken is not None:
                given[name] = taken
                continue
            what = "has a value that is not usable" if read else "is not a known fact"
            self.faults.append(f"{name[:64]} {what}")
        self.given = given
        self.__dict__.update(given)  # at once: this is done for every request

    @property
    def uncached_tokens(self) -> int | None:
        """Input tokens prefill has to compute; None unless both counts are known."""
        if self.input_tokens is None or self.cached_tokens is None:
            return None
        return max(0, self.input_tokens - self.cached_tokens)

    @property
    def own_prefill_tokens(self) -> int | None:
        """Input tokens that it adds to the work of prefill.

        All of them unless some are known cached; None when there is no count.
        """
        known = self.uncached_tokens
        return self.input_tokens if known is None else known

    def text(self) -> str:
        """The given facts as JSON members."""
        return ",".join(
            f'"{name}":{_json(value)}' for name, value in self.given.items()
        )


def bounded(value: object) -> str | None:
    """A name of at most 256 characters that any JSON reader takes; None = not usable.

    A longer one is cut and ends in a digest, so that two long names stay two names.
    """
    if type(value) is str and value.isascii() and len(value) <= _LONGEST_ID:
        return value
    if isinstance(value, bytes):
        value = bytes.decode(value, "utf-8", "backslashreplace")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if not isinstance(value, str):
        return str(value) if abs(value) < _TOKENS_MOST else None
    text = str.encode(value, "utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= _LONGEST_ID:
        return text
    digest = blake2b(text.encode(), digest_size=16).hexdigest()
    return text[: _LONGEST_ID - len(digest)] + digest


def _count(value: object, least: int = 0) -> int | None:
    if type(value) is int:
        return value if least <= value <= _TOKENS_MOST else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float):
        if not math.isfinite(value) or value != int(value):
            return None
        value = int(value)
    return int(value) if least <= value <= _TOKENS_MOST else None


def _whole(value: object) -> int | None:
    return _count(value, -_TOKENS_MOST)


def _at_least_one(value: object) -> int | None:
    return _count(value, 1)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < _TOKENS_MOST else None


def _from_zero(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and number >= 0 else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _json(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


_READERS: dict[str, Callable[[object], object]] = {
    "logical_id": bounded,
    "attempt": _count,
    "tenant": bounded,
    "session": bounded,
    "parent_session": bounded,
    "session_final": _flag,
    "model": bounded,
    "slo_class": bounded,
    "input_tokens": _count,
    "cached_tokens": _count,
    "max_output_tokens": _count,
    "n": _at_least_one,
    "deadline_s": _number,
    "priority": _whole,
    "stream": _flag,
    "late_ms": _from_zero,
}
FACTS: frozenset[str] = frozenset(_READERS)
"""Names of all facts."""

NOTHING_KNOWN = Request()
