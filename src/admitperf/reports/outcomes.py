"""The outcomes of a run, held as columns, and their decisions."""

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from admitperf.reports.decisions import Decisions
from admitperf.reports.shape import Fields

NO_ROW = -1
MOST_ERRORS = 200  # distinct texts kept apart; an id inside the text makes each its own
OTHER_ERRORS = "other errors"


class Served(NamedTuple):
    """One outcome next to its decision.

    Attributes:
        row: its decision's row; -1 when the log has no decision for it.
        ok: whether the answer ended properly.
        let_in: what the outcome line says about the request: False when the host
            served one that was refused.
        ttft_ms, max_gap_ms, e2e_ms: NaN when not given.
    """

    row: int
    ok: bool
    let_in: bool
    ttft_ms: float
    max_gap_ms: float
    e2e_ms: float


class Outcomes:
    """Rows of outcomes; `match` finds each one's decision.

    Attributes:
        n: how many.
        errors: what ended the ones that are not ok.
    """

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self.of = array("q")
        self.row = array("q")
        self.ok = bytearray()
        self.let_in = bytearray()
        self.ttft_ms = array("d")
        self.gap_ms = array("d")
        self.e2e_ms = array("d")

    @property
    def n(self) -> int:
        """How many outcomes there are."""
        return len(self.of)

    def add(self, fields: Fields) -> None:
        """Takes one outcome line."""
        self.of.append(fields["of"])
        self.row.append(NO_ROW)
        self.ok.append(fields["ok"])
        self.let_in.append(fields.get("admitted") is not False)
        self.ttft_ms.append(_or_nan(fields.get("ttft_ms")))
        self.gap_ms.append(_or_nan(fields.get("max_gap_ms")))
        self.e2e_ms.append(_or_nan(fields.get("e2e_ms")))
        if not fields["ok"]:
            why = fields.get("error") or fields.get("finish_reason") or "no error given"
            full = len(self.errors) >= MOST_ERRORS and why not in self.errors
            self.errors[OTHER_ERRORS if full else why] += 1

    def match(self, decisions: Decisions) -> None:
        """Finds each outcome's decision by its number, whatever order they came in."""
        seqs = decisions.seqs
        order = sorted(range(len(seqs)), key=seqs.__getitem__)
        ordered = array("q", [seqs[row] for row in order])
        for index, of in enumerate(self.of):
            at = bisect_left(ordered, of)
            found = at < len(ordered) and ordered[at] == of
            self.row[index] = order[at] if found else NO_ROW

    def absorb(self, other: "Outcomes", rows_above: int) -> None:
        """Adds another run's, whose decisions now stand `rows_above` rows lower."""
        self.row.extend(
            NO_ROW if row == NO_ROW else row + rows_above for row in other.row
        )
        self.of.extend(other.of)
        self.ok.extend(other.ok)
        self.let_in.extend(other.let_in)
        self.ttft_ms.extend(other.ttft_ms)
        self.gap_ms.extend(other.gap_ms)
        self.e2e_ms.extend(other.e2e_ms)
        self.errors.update(other.errors)

    def __iter__(self) -> Iterator[Served]:
        """Yields every outcome, matched or not."""
        columns = zip(
            self.row,
            self.ok,
            self.let_in,
            self.ttft_ms,
            self.gap_ms,
            self.e2e_ms,
            strict=True,
        )
        for row, ok, let_in, ttft_ms, gap_ms, e2e_ms in columns:
            yield Served(row, bool(ok), bool(let_in), ttft_ms, gap_ms, e2e_ms)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
