"""What each kind of log line must look like to be used.

The schemas in `docs/reference/log/` are the published form; this is the part of them
that the readers rely on, and they take older and newer lines that keep to it. Fields
that are not named here are left alone.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from admitperf.reports.files.forms import (
    COUNT,
    DURATION,
    FLAG,
    FOUND,
    GATES,
    NOTES,
    NUMBER,
    NUMBERS,
    OBJECT,
    SLO,
    STATED,
    TEXT,
    TEXTS,
    WHOLE,
    Check,
    Form,
    is_text,
    object_with,
    word,
)

Fields = dict[str, Any]

VERDICTS = ("admit", "defer", "reject")

ENDS = ("answered", "cancelled", "refused", "failed", "never_sent", "unfinished")
"""How a planned call ended; cancelled: its caller closed it."""

FACTS: Mapping[str, Form] = {
    "logical_id": TEXT,
    "attempt": COUNT,
    "tenant": TEXT,
    "session": TEXT,
    "parent_session": TEXT,
    "session_final": FLAG,
    "model": TEXT,
    "slo_class": TEXT,
    "input_tokens": COUNT,
    "cached_tokens": COUNT,
    "max_output_tokens": COUNT,
    "n": COUNT,
    "deadline_s": NUMBER,
    "priority": WHOLE,
    "stream": FLAG,
    "late_ms": DURATION,
}
"""The facts of a request that have a form; each may be null."""


class Kind(NamedTuple):
    """The fields of one kind of line that have a form.

    Attributes:
        needed: those it must have.
        optional: those that may be absent or null.
    """

    needed: Mapping[str, Form]
    optional: Mapping[str, Form]


_ALWAYS = {"run": TEXT, "t_us": COUNT}

KINDS: Mapping[str, Kind] = {
    "run": Kind(
        {**_ALWAYS, "schema": COUNT, "policy": TEXT},
        {
            "wall_us": COUNT,
            "pid": COUNT,
            "class": TEXT,
            "version": TEXT,
            "python": TEXT,
            "params": STATED,
            "provenance": STATED,
            "taxonomy": STATED,
            "requires": TEXTS,
            "slo": SLO,
            "enforce": NUMBER,
            "on_blind": TEXT,
            "preset": TEXT,
            "raw": TEXT,
            "reports_outcomes": FLAG,
            "experiment": TEXT,
            "name": TEXT,
            "notes": NOTES,
            "basis": word("requests", "samples"),
            "config": TEXT,
        },
    ),
    "reading": Kind(
        {**_ALWAYS, "id": COUNT, "whole": FLAG, "raw": OBJECT},
        {"taken_us": COUNT, "replica": TEXT, "gone": TEXTS, "signals": FOUND},
    ),
    "decision": Kind(
        {**_ALWAYS, "seq": COUNT, "verdict": word(*VERDICTS), "admitted": FLAG},
        {
            "id": TEXT,
            "reason": TEXT,
            "enforced": FLAG,
            "status": COUNT,
            "retry_after_ms": NUMBER,
            "estimate_ms": NUMBER,
            "wait": TEXT,
            "signals": NUMBERS,
            "gates": GATES,
            "facts": object_with(FACTS),
            "replica": TEXT,
            "reading": COUNT,
            "raw": OBJECT,
            "sources": OBJECT,
            "age_ms": NUMBER,
            "decide_us": NUMBER,
            "blind": TEXT,
            "why": TEXT,
            "by": TEXT,
            "probe": FLAG,
            "held_ms": DURATION,
            "added": NUMBERS,
        },
    ),
    "outcome": Kind(
        {**_ALWAYS, "of": COUNT, "ok": FLAG},
        {
            "seq": COUNT,
            "id": TEXT,
            "admitted": FLAG,
            "ttft_ms": DURATION,
            "first_text_ms": DURATION,
            "max_gap_ms": DURATION,
            "e2e_ms": DURATION,
            "open_ms": DURATION,
            "output_tokens": COUNT,
            "cached_tokens": COUNT,
            "input_tokens": COUNT,
            "finish_reason": TEXT,
            "error": TEXT,
        },
    ),
    "lost": Kind(
        _ALWAYS,
        {
            "decision": COUNT,
            "outcome": COUNT,
            "reading": COUNT,
            "control": COUNT,
            "why": TEXT,
        },
    ),
    "control": Kind({**_ALWAYS, "event": TEXT}, {"seq": COUNT}),
    "call": Kind(
        {"id": TEXT, "session": TEXT, "ended": word(*ENDS)},
        {
            "run": TEXT,
            "t_us": COUNT,
            "tenant": TEXT,
            "slo_class": TEXT,
            "kind": TEXT,
            "place": COUNT,
            "due_s": NUMBER,
            "input_tokens": COUNT,
            "output_tokens": COUNT,
            "new_tokens": COUNT,
            "begun_s": NUMBER,
            "attempts": COUNT,
            "refusals": COUNT,
            "status": COUNT,
            "reason": TEXT,
            "error": TEXT,
            "ttft_ms": DURATION,
            "last_ttft_ms": DURATION,
            "max_gap_ms": DURATION,
            "e2e_ms": DURATION,
            "refused_ms": DURATION,
            "got_tokens": COUNT,
            "computed_tokens": COUNT,
            "late_ms": DURATION,
            "scored": FLAG,
        },
    ),
}


def fault(fields: Mapping[str, Any]) -> str | None:
    """Why a JSON object cannot be used as a log line; None when it can."""
    kind = fields.get("k")
    if not isinstance(kind, str):
        return "no kind: not a line of an AdmitPerf log"
    if kind not in KINDS:
        return "a kind this reader does not know"
    needed, checks = _CHECKS[kind]
    for name in needed:
        if fields.get(name) is None:
            return f"{kind} line without {name}"
    for name, value in fields.items():
        # Every line of every log comes here: the commonest case makes no call.
        check = checks.get(name)
        if check is None or value is None or (check is is_text and type(value) is str):
            continue
        if not check(value):
            return f"{kind} line with an unusable {name}"
    return None


_CHECKS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Check]]] = {
    name: (
        tuple(kind.needed),
        {
            field: form.check
            for field, form in (*kind.needed.items(), *kind.optional.items())
        },
    )
    for name, kind in KINDS.items()
}
