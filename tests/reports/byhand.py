"""Builds small logs by hand, line by line, in the published format."""

import json

KINDS = ("run", "reading", "decision", "outcome", "lost", "control", "call")
RUN = "k3f9x2ab"
START_US = 1_790_000_000_000_000


def header(**changes):
    """A run line of a KV threshold."""
    line = {
        "k": "run",
        "schema": 1,
        "run": RUN,
        "t_us": START_US,
        "wall_us": START_US,
        "pid": 4242,
        "policy": "kv_threshold",
        "class": "admitperf.policies.kv_threshold:KvThreshold",
        "version": "0.1.0",
        "python": "3.11.7",
        "params": {"threshold": 0.9},
        "provenance": {"threshold": "default"},
        "taxonomy": {
            "unit": "request",
            "setting": "online",
            "slo_awareness": "none",
            "signal_quantity": "kv_pressure",
            "signal_structure": "scalar",
            "metadata_assumed": [],
            "baseline": False,
        },
        "requires": ["kv_pressure"],
        "slo": None,
        "enforce": 1.0,
        "on_blind": "degrade",
        "preset": "default",
        "raw": "auto",
        "experiment": None,
        "name": None,
        "notes": None,
        "config": "0a1b2c3d4e5f6071",
        "reports_outcomes": None,
    }
    return {**line, **changes}


def reading(number, raw, **changes):
    """A whole reading."""
    line = {
        "k": "reading",
        "run": RUN,
        "id": number,
        "t_us": START_US + number,
        "whole": True,
        "raw": raw,
        "signals": {},
    }
    return {**line, **changes}


def decision(seq, verdict="admit", reason=None, **changes):
    """A decision: admitted, or turned away with 503 after 1 s."""
    admitted = verdict == "admit"
    line = {
        "k": "decision",
        "run": RUN,
        "seq": seq,
        "t_us": START_US + seq * 100_000,
        "id": f"req-{seq}",
        "verdict": verdict,
        "reason": reason,
        "admitted": admitted,
        "enforced": True,
        "status": 200 if admitted else 503,
        "signals": {},
        "gates": [],
        "decide_us": 3,
    }
    if not admitted:
        line |= {"retry_after_ms": 1000, "estimate_ms": 1000, "wait": "default"}
    return {**line, **changes}


def kv(seq, pressure, bound=0.9, **changes):
    """A decision of a KV threshold at one pressure."""
    full = pressure >= bound
    signals = {"kv_pressure": pressure, **changes.pop("signals", {})}
    gates = [["kv_pressure", pressure, ">=", bound, full]]
    answer = ("defer", "kv_pressure") if full else ("admit", None)
    return {**decision(seq, *answer), "signals": signals, "gates": gates, **changes}


def outcome(of, **changes):
    """An outcome that ended well, first token after 400 ms."""
    line = {
        "k": "outcome",
        "run": RUN,
        "seq": 1_000_000 + of,
        "of": of,
        "t_us": START_US + of * 100_000 + 5_000_000,
        "id": f"req-{of}",
        "ok": True,
        "admitted": True,
        "ttft_ms": 400,
        "max_gap_ms": 30,
        "e2e_ms": 5000,
        "open_ms": 5000,
    }
    return {**line, **changes}


def lost(**counts):
    """A line that says what the writer could not write."""
    return {
        "k": "lost",
        "run": RUN,
        "t_us": START_US,
        "decision": 0,
        "outcome": 0,
        "reading": 0,
        "control": 0,
        "why": "buffer full",
        **counts,
    }


def control(event, **details):
    """A notice of the instrument about itself."""
    return {"k": "control", "run": RUN, "t_us": START_US, "event": event, **details}


def call(number, ended="answered", **changes):
    """A planned call, its first token after 400 ms."""
    line = {
        "k": "call",
        "id": f"s{number}/0",
        "session": f"s{number}",
        "slo_class": "new<=512",
        "place": 0,
        "due_s": number * 0.1,
        "input_tokens": 900,
        "output_tokens": 40,
        "new_tokens": 300,
        "attempts": 1,
        "refusals": 0,
        "ended": ended,
        "status": 200,
        "scored": True,
    }
    if ended in ("answered", "cancelled"):
        line |= {"ttft_ms": 400, "max_gap_ms": 30, "e2e_ms": 5000, "got_tokens": 40}
    if ended == "never_sent":
        del line["due_s"]
        line |= {"attempts": 0, "status": 0}
    return {**line, **changes}


def jsonl(*lines):
    """The lines as a log's text; a string stands for itself."""
    return "".join(
        (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines
    )
