"""What the conformance kit puts a policy through."""

import math
from collections.abc import Callable, Iterable, Mapping

from admitperf.core.signal import Signal
from admitperf.core.signals import (
    ATTEMPT,
    DEADLINE_SLACK_S,
    ENGINE,
    INPUT_TOKENS,
    MAX_OUTPUT_TOKENS,
    SESSION_IN_FLIGHT,
    TENANT_IN_FLIGHT,
    TENANT_SHARE,
    UNCACHED_TOKENS,
)

Raw = Mapping[str, object]
Wanted = Iterable[Signal]

_MANY = 1_000_000.0
"""As full as a count gets: beyond any bound a policy would set."""

_SOME = 4.0
"""A count in ordinary use."""

FACTS: Mapping[str, object] = {
    "logical_id": "call",
    "attempt": 1,
    "tenant": "tenant",
    "session": "session",
    "parent_session": "parent",
    "session_final": False,
    "model": "model",
    "slo_class": "chat",
    "input_tokens": 512,
    "cached_tokens": 128,
    "max_output_tokens": 64,
    "n": 1,
    "deadline_s": 30.0,
    "priority": 1,
    "stream": True,
    "late_ms": 2.0,
}
"""Every fact, with an ordinary value."""

FACT_OF: Mapping[Signal, str] = {
    INPUT_TOKENS: "input_tokens",
    UNCACHED_TOKENS: "cached_tokens",
    MAX_OUTPUT_TOKENS: "max_output_tokens",
    DEADLINE_SLACK_S: "deadline_s",
    ATTEMPT: "attempt",
    TENANT_SHARE: "tenant",
    TENANT_IN_FLIGHT: "tenant",
    SESSION_IN_FLIGHT: "session",
}
"""The fact without which a signal is not known."""

_ABSURD: tuple[Mapping[str, object], ...] = (
    dict.fromkeys(FACTS, object()),
    dict.fromkeys(FACTS, -(10**30)),
    dict.fromkeys(FACTS, math.nan),
    dict.fromkeys(FACTS, "x" * 100_000),
    dict.fromkeys(FACTS, b"\xff\x00"),
    {"tenant": "\udc80\n", "session": "", "nobodys_fact": 1, "input_tokens": 0},
)


def raw_for(wanted: Wanted, level: str) -> Raw:
    """Raw metrics that supply these signals under their own names.

    Args:
        wanted: only those of the engine: facts and the ledger supply the others.
        level: "quiet", "middle" or "full".
    """
    return {s.name: _value(s, level) for s in wanted if s.origin == "engine"}


def facts_for(wanted: Iterable[Signal | str]) -> dict[str, object]:
    """The facts that these signals and facts are known from, and no others."""
    named = {FACT_OF.get(t, "") if isinstance(t, Signal) else t for t in wanted}
    if UNCACHED_TOKENS in wanted:
        named.add("input_tokens")
    return {name: value for name, value in FACTS.items() if name in named}


def _value(signal: Signal, level: str) -> float:
    high = signal.high if math.isfinite(signal.high) else _MANY
    if level == "full":
        return high
    if level == "quiet":
        return signal.low if math.isfinite(signal.low) else 0.0
    middle = signal.low + (high - signal.low) / 2
    return middle if math.isfinite(signal.high) else max(signal.low, _SOME)


def _all_at(level: str) -> Callable[[Wanted], Raw]:
    return lambda wanted: raw_for({*ENGINE, *wanted}, level)


def _all_being(value: object) -> Callable[[Wanted], Raw]:
    return lambda wanted: dict.fromkeys((s.name for s in {*ENGINE, *wanted}), value)


def _odd(_: Wanted) -> Raw:
    return {"": 1.0, "{": 1.0, "é": 2.0, "kv_pressure": "0.5", "queue_depth": None}


DAY: tuple[tuple[str, Callable[[Wanted], Raw], Mapping[str, object]], ...] = (
    ("nothing known", lambda _: {}, {}),
    ("a quiet engine", _all_at("quiet"), {}),
    ("a quiet engine, all facts", _all_at("quiet"), FACTS),
    ("an engine in ordinary use", _all_at("middle"), FACTS),
    ("a full engine", _all_at("full"), {}),
    ("a full engine, all facts", _all_at("full"), FACTS),
    ("a deadline that has passed", _all_at("middle"), {**FACTS, "deadline_s": -1.0}),
    ("a full engine, too late", _all_at("full"), {**FACTS, "deadline_s": 0.0}),
    ("an enormous request", _all_at("middle"), {**FACTS, "input_tokens": 10**9}),
    ("NaN everywhere", _all_being(math.nan), FACTS),
    ("infinities", _all_being(math.inf), FACTS),
    ("negative values", _all_being(-1.0), FACTS),
    ("huge integers", _all_being(10**400), FACTS),
    ("text for numbers", _all_being("1"), FACTS),
    ("odd names", _odd, FACTS),
    *(
        (f"absurd facts {n}", _all_at("middle"), facts)
        for n, facts in enumerate(_ABSURD)
    ),
    ("a quiet engine again", _all_at("quiet"), FACTS),
)
"""(label, raw metrics for the signals a policy requires, facts)."""
