"""Turns the neutral rows of the field cases into logs of our own format.

What makes a row file a case is damage, and damage survives: a cut end is cut by as many
bytes, and marks, NULs, line ends, blank lines, odd bytes and odd types stay where they
were. A run line is added where our own writer would have written one: in front, and
each 60 s.
"""

import gzip
import json
import math
import re

from tests.reports.byhand import RUN, START_US, decision, header, outcome

HEADER_EVERY_S = 60
CUT_BYTES = 17
"""How much the torn row of s-lg-01 lacks."""

EPOCH_S = START_US / 1e6
_FIRST_MONO_S = 100.0
_NAMES = {
    "request_id": "id",
    "action": "verdict",
    "reason": "reason",
    "status": "status",
    "signals": "signals",
    "raw": "raw",
}
_GAP_S = 0.1
"""Between rows that do not say when they arrived."""


# ------------------------------------------------------------- rows of decisions


def log_of(data, *, run_line_first=True, run=RUN, **changes):
    """The bytes of a log that has a decision for each row, and the same damage.

    `run_line_first=False` puts the run line behind the first row, so that what stands
    before the first row stands before a record.
    """
    lines, due_s = [], -math.inf
    prefix, body = _prefixed(data)
    end = b"\r\n" if b"\r\n" in body else b"\n"
    for line in body.splitlines(keepends=True):
        row = _row(line)
        if row is not None and row["mono"] >= due_s:
            due_s = row["mono"] + HEADER_EVERY_S
            head = _run_line(row, run=run, **changes) + end
            at_front = run_line_first or lines
            lines += [head, _line(line, run)] if at_front else [_line(line, run), head]
        else:
            lines.append(_line(line, run))
    return prefix + b"".join(lines)


def packed_log_of(data, **changes):
    """The same for a gzipped file."""
    return gzip.compress(log_of(gzip.decompress(data), **changes))


def _prefixed(data):
    """What stands before the first row, and the rows."""
    rest = data.lstrip(b"\0")
    rest = rest.removeprefix(b"\xef\xbb\xbf")
    return data[: len(data) - len(rest)], rest


def _row(line):
    """A line as a row; None when it is none of the kind our writer would write."""
    try:
        row = json.loads(line.decode("utf-8", "surrogateescape"))
        return row if row["mono"] > 0 and row["action"] in ("admit", "reject") else None
    except (ValueError, TypeError, KeyError):
        return None


def _line(line, run):
    """One line with its own end: as a decision, or as the damage it is."""
    body = line.rstrip(b"\r\n")
    end = line[len(body) :]
    row = _row(line)
    if row is None and body.startswith(b'{"ts": '):
        return _decided(_mended(body), run)[: 1 - CUT_BYTES]
    if row is None and body.startswith(b'{"ts"'):
        return _odd(json.loads(body), run) + end
    return (body if row is None else _decided(row, run)) + end


def _mended(body):
    """The row that a torn line was."""
    row = json.loads(re.sub(rb', "raw".*', b"}", body))
    waiting = row["signals"]["queue_depth"]
    return {**row, "raw": {"vllm:num_requests_waiting": waiting}}


def _decided(row, run):
    """A row as a decision line."""
    since_s = row["mono"] - _FIRST_MONO_S
    fields = {ours: row[name] for name, ours in _NAMES.items() if name in row}
    fields["signals"] = {n: v for n, v in row["signals"].items() if v is not None}
    line = decision(
        int(since_s) + 1,
        run=run,
        t_us=START_US + round(since_s * 1e6),
        sources={},
        **{**fields, "admitted": row["action"] == "admit"},
    )
    return _bytes(line)


def _odd(row, run):
    """A row whose values are of the wrong kind: the same values under our names."""
    fields = {ours: row[name] for name, ours in _NAMES.items() if name in row}
    line = decision(101, **{**fields, "run": run, "t_us": row["ts"]})
    return _bytes(line).replace(b"Infinity", b"1e999")


def _run_line(row, **changes):
    """A run line as it would have been written just before a row."""
    t_us = START_US + round((row["mono"] - _FIRST_MONO_S) * 1e6)
    return _bytes(
        header(**{"t_us": t_us, "wall_us": round(row["ts"] * 1e6), **changes})
    )


def _bytes(line):
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogateescape")


# -------------------------------------------------------------- rows of requests


def rows_of(path):
    """The rows of a file of requests."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def requests(rows, **changes):
    """A log's lines: a run line, then a decision per row and an outcome if let in.

    Rows that say when they started and do not know it (0) keep a time of 0.
    """
    lines = [header(**changes)]
    run = lines[0]["run"]
    for n, row in enumerate(rows):
        at_us = _arrival_us(row, n)
        lines.append(_asked(row, n, run, at_us))
        if lines[-1]["admitted"]:
            lines.append(_ended(row, n, run, at_us))
    return lines


def _arrival_us(row, number):
    """When a row's request arrived, in microseconds since 1970."""
    if row.get("start_s") == 0:
        return 0
    since_s = row.get("arrival_s", row.get("sent_s", row.get("start_s")))
    return START_US + round((number * _GAP_S if since_s is None else since_s) * 1e6)


def _asked(row, number, run, at_us):
    verdict = row.get("decision", "admit")
    facts = {}
    if "max_tokens" in row:
        facts["max_output_tokens"] = row["max_tokens"]
    if "due_s" in row:
        facts["late_ms"] = _ms(row["sent_s"] - row["due_s"])
    given = {"run": run, "t_us": at_us, "id": row["request_id"]}
    if facts:
        given["facts"] = facts
    status = row.get("status", 200)
    reason = None if verdict == "admit" else "pool_saturated"
    return decision(_seq(number), verdict, reason, status=status, **given)


def _ended(row, number, run, at_us):
    """The outcome of a row, with what the row knows and nothing else."""
    known = {name: row.get(name) for name in ("ttft_ms", "max_gap_ms", "e2e_ms")}
    if "first_token_s" in row:
        known["ttft_ms"] = _ms(row["first_token_s"] - row["sent_s"])
    if row.get("end_s"):
        known["e2e_ms"] = _ms(row["end_s"] - row["start_s"])
    known["output_tokens"] = row.get("completion_tokens")
    known["finish_reason"] = row.get("finish_reason")
    known["error"] = row.get("stream_error") or row.get("error")
    took_ms = known["e2e_ms"] or known["ttft_ms"] or 0
    line = outcome(
        _seq(number),
        seq=_seq(number) + 1,
        run=run,
        t_us=at_us and at_us + round(took_ms * 1000),
        id=row["request_id"],
        ok=row["ok"],
        open_ms=round(took_ms),
    )
    line |= known
    return {name: value for name, value in line.items() if value is not None}


def _seq(number):
    return 2 * number + 1


def _ms(seconds):
    return round(seconds * 1000, 3)
