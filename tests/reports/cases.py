"""Turns the neutral rows of the field cases into lines of our own log.

What makes a case (torn ends, odd bytes, marks, NULs, blank and odd lines) stays as it
is; rows that are decisions become decision lines.
"""

import json

from tests.reports.byhand import START_US, decision, header

MARK = "\ufeff"


def log_of(raw):
    """The bytes of a case's file as the bytes of a log, with a run line in front."""
    text = raw.decode("utf-8", "surrogateescape")
    nuls = text[: len(text) - len(text.lstrip("\0"))]
    text = text.lstrip("\0")
    mark = MARK if text.startswith(MARK) else ""
    end = "\r\n" if "\r\n" in text else "\n"
    body = text.removeprefix(mark)
    rows = [_line(row.rstrip("\r")) for row in body.split("\n")]
    lines = [json.dumps(header()), *rows]
    return (nuls + mark + end.join(lines)).encode("utf-8", "surrogateescape")


def _line(row):
    try:
        fields = json.loads(row)
        made = decision(
            int(fields["mono"]),
            fields["action"],
            fields["reason"],
            t_us=START_US + int(fields["mono"] * 1e6),
            id=fields["request_id"],
            status=fields["status"],
            signals={k: v for k, v in fields["signals"].items() if v is not None},
            raw=fields["raw"],
            sources={},
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        # What is no row stays what it was. A row cut short is ours cut short.
        return row if not row.startswith('{"ts": 1') else json.dumps(decision(1))[:-17]
    return json.dumps(made, ensure_ascii=False)
