"""Puts what a decision line refers to onto the line itself.

A large mapping of raw metrics stands once, on a `reading` line, as changes against the
reading before it; a decision names it by its id. Afterwards every decision line reads
alone.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from admitperf.reports.files.lines import Line
from admitperf.reports.files.shape import Fields

# How many readings back a decision may refer. The writer itself counts on no more of
# them, and on none from before its last run line.
KEPT_READINGS = 4096


class Expander:
    """Expands the lines of one file.

    Attributes:
        dangling: decision lines left as they are because their reading is not in the
            file, or stands behind a line that could not be used.
        dropped: lines too long to hold, which are not in the output.
    """

    def __init__(self) -> None:
        self.dangling = 0
        self.dropped = 0
        self._runs: dict[str, _Readings] = {}

    def expand(self, lines: Iterable[Line]) -> Iterator[str]:
        """Yields every line, in order, with the decisions expanded."""
        for line in lines:
            if line.fields is None:
                # It may have been a reading: what is built on it cannot be trusted.
                self._runs.clear()
                self.dropped += not line.text
                if line.text:
                    yield line.text
            else:
                yield self._expanded(line.fields) or line.text

    def _expanded(self, fields: Fields) -> str | None:
        if fields["k"] == "run":
            self._runs.pop(fields["run"], None)
        if fields["k"] not in ("reading", "decision"):
            return None
        readings = self._runs.setdefault(fields["run"], _Readings())
        if fields["k"] == "reading":
            readings.add(fields)
            return None
        if fields.get("reading") is None or "raw" in fields:
            return None
        found = readings.get(fields["reading"])
        self.dangling += found is None
        return None if found is None else _with(fields, found)


def expand(lines: Iterable[Line]) -> Iterator[str]:
    """Yields every line of a file, with raw metrics and sources on each decision."""
    return Expander().expand(lines)


class _Readings:
    """The last readings of one run, rebuilt."""

    def __init__(self) -> None:
        # What the next change of a replica is against.
        self._last: dict[str | None, Fields] = {}
        self._known: OrderedDict[int, Fields] = OrderedDict()

    def add(self, fields: Fields) -> None:
        replica = fields.get("replica")
        last = self._last.get(replica)
        if fields["whole"]:
            raw = dict(fields["raw"])
        elif last is not None:
            gone = set(fields.get("gone") or ())
            raw = {key: old for key, old in last.items() if key not in gone}
            raw |= fields["raw"]
        else:
            return
        self._last[replica] = raw
        self._keep(fields, raw)

    def _keep(self, fields: Fields, raw: Fields) -> None:
        found = (fields.get("signals") or {}).items()
        sources = {name: one["source"] for name, one in found if "source" in one}
        self._known[fields["id"]] = {"raw": raw, "sources": sources}
        if len(self._known) > KEPT_READINGS:
            self._known.popitem(last=False)

    def get(self, reading: int) -> Fields | None:
        return self._known.get(reading)


def _with(fields: Fields, found: Fields) -> str | None:
    """The line with what it refers to; None when that is no strict JSON."""
    own = {name: value for name, value in fields.items() if name != "reading"}
    try:
        return json.dumps(own | found, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return None
