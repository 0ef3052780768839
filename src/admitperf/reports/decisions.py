"""The decisions of a run, held as columns: about 20 bytes and 8 per signal each."""

import math
from array import array
from collections import Counter
from hashlib import blake2b
from typing import NamedTuple

from admitperf.reports.gates import Gates
from admitperf.reports.shape import Fields
from admitperf.reports.times import Period

MOST_SIGNALS = 256  # plain choice: an honest log has a few dozen, a broken one no end
_NAN = math.nan
_ADMITTED, _SIGHTED = 1, 2


class Answer(NamedTuple):
    """What was decided, as counted.

    Attributes:
        verdict: what the policy said: "admit", "defer" or "reject".
        reason: why; "" for a plain admit.
        status: what the caller got: 200 when let in, else the reason's code; 0 when the
            line does not say.
        admitted: whether the caller was let in, which `enforce` can make differ.
        enforced: whether the policy governed this request.
        blind: why it could not see; "" when it could.
    """

    verdict: str
    reason: str
    status: int
    admitted: bool
    enforced: bool
    blind: str


class Kind(NamedTuple):
    """What an SLO may depend on: the class, and whether the answer was streamed."""

    slo_class: str | None
    stream: bool | None


class Decisions:
    """Rows of decisions; every column has `n` entries once `fill` has run.

    Attributes:
        n: how many.
        seqs: each one's number within its run.
        columns: each signal's value, NaN where the line has none.
        answers: how often each answer was given.
        waits: Retry-After per (verdict, reason), in ms.
        wait_kinds: how those waits came about.
        kinds: the distinct kinds; `kind` holds each row's index into them.
        logical: a 64-bit hash of each row's logical id, 0 when it has none.
        facts: how many rows carried each fact.
        whys: the first explanation given for each blind reason.
        when, blind_when: from the first to the last, and the same of the blind ones.
        signals_left_out: values of signals beyond `MOST_SIGNALS` names.
    """

    def __init__(self) -> None:
        self.n = 0
        self.seqs = array("q")
        self.kind = array("L")
        self.logical = array("Q")
        self.decide_us = array("d")
        self.age_ms = array("d")
        self.columns: dict[str, array[float]] = {}
        self.answers: Counter[Answer] = Counter()
        self.waits: dict[tuple[str, str], array[float]] = {}
        self.wait_kinds: Counter[str] = Counter()
        self.kinds: list[Kind] = []
        self.facts: Counter[str] = Counter()
        self.whys: dict[str, str] = {}
        self.gates = Gates()
        self.when = Period()
        self.blind_when = Period()
        self.signals_left_out = 0
        self.flags = bytearray()
        self._kind_of: dict[Kind, int] = {}

    def add(self, fields: Fields) -> None:
        """Takes one decision line."""
        facts = fields.get("facts") or {}
        self._row(fields, facts)
        self._answer(fields)
        for name, value in (fields.get("signals") or {}).items():
            if value is not None:
                self._signal(name, value)
        self._gates(fields)
        self.facts.update(name for name, value in facts.items() if value is not None)
        self.n += 1

    def fill(self) -> None:
        """Pads the columns to `n` rows."""
        for column in self.columns.values():
            _pad(column, self.n)

    def absorb(self, other: "Decisions") -> None:
        """Puts another run's rows below its own."""
        self.fill()
        other.fill()
        for name, column in other.columns.items():
            own = self.columns.setdefault(name, array("d"))
            _pad(own, self.n)
            own.extend(column)
        for key, waits in other.waits.items():
            self.waits.setdefault(key, array("d")).extend(waits)
        self._absorb_rows(other)
        self._absorb_counts(other)
        self.when.absorb(other.when)
        self.blind_when.absorb(other.blind_when)
        self.n += other.n
        self.fill()

    @property
    def sighted(self) -> bytes:
        """Per row: 1 when the policy saw, 0 when it was blind."""
        return bytes(bool(flags & _SIGHTED) for flags in self.flags)

    def admitted(self, row: int) -> bool:
        """Whether the caller of that row was let in."""
        return bool(self.flags[row] & _ADMITTED)

    def _row(self, fields: Fields, facts: Fields) -> None:
        self.seqs.append(fields["seq"])
        self.logical.append(_hashed(facts.get("logical_id")))
        self.kind.append(self._kind_index(Kind(*_kind(facts))))
        self.flags.append(
            _ADMITTED * fields["admitted"] + _SIGHTED * (fields.get("blind") is None)
        )
        self.decide_us.append(_or_nan(fields.get("decide_us")))
        self.age_ms.append(_or_nan(fields.get("age_ms")))
        self.when.widen(fields["t_us"])

    def _answer(self, fields: Fields) -> None:
        admitted = fields["admitted"]
        answer = Answer(
            fields["verdict"],
            fields.get("reason") or "",
            fields.get("status") or 0,
            admitted,
            fields.get("enforced") is not False,
            fields.get("blind") or "",
        )
        self.answers[answer] += 1
        if answer.blind:
            self._blind(answer.blind, fields)
        if fields.get("retry_after_ms") is not None:
            waits = self.waits.setdefault(answer[:2], array("d"))
            waits.append(fields["retry_after_ms"])
            self.wait_kinds[fields.get("wait") or "not said"] += 1

    def _blind(self, reason: str, fields: Fields) -> None:
        self.blind_when.widen(fields["t_us"])
        if fields.get("why"):
            self.whys.setdefault(reason, fields["why"])

    def _signal(self, name: str, value: float) -> None:
        column = self.columns.get(name)
        if column is None:
            if len(self.columns) == MOST_SIGNALS:
                self.signals_left_out += 1
                return
            column = self.columns[name] = array("d")
        _pad(column, self.n)
        column.append(value)

    def _gates(self, fields: Fields) -> None:
        sighted = fields.get("blind") is None
        for gate in fields.get("gates") or ():
            if sighted or gate[1] is None:
                self.gates.add(gate)

    def _kind_index(self, kind: Kind) -> int:
        if kind not in self._kind_of:
            self._kind_of[kind] = len(self.kinds)
            self.kinds.append(kind)
        return self._kind_of[kind]

    def _absorb_rows(self, other: "Decisions") -> None:
        places = [self._kind_index(kind) for kind in other.kinds]
        self.kind.extend(places[index] for index in other.kind)
        self.seqs.extend(other.seqs)
        self.logical.extend(other.logical)
        self.decide_us.extend(other.decide_us)
        self.age_ms.extend(other.age_ms)
        self.flags.extend(other.flags)

    def _absorb_counts(self, other: "Decisions") -> None:
        self.answers.update(other.answers)
        self.wait_kinds.update(other.wait_kinds)
        self.facts.update(other.facts)
        self.whys = other.whys | self.whys
        self.gates.absorb(other.gates)
        self.signals_left_out += other.signals_left_out


def _kind(facts: Fields) -> tuple[str | None, bool | None]:
    slo_class, stream = facts.get("slo_class"), facts.get("stream")
    return (
        slo_class if isinstance(slo_class, str) else None,
        stream if isinstance(stream, bool) else None,
    )


def _hashed(logical_id: object) -> int:
    if logical_id is None:
        return 0
    text = str(logical_id).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") or 1


def _or_nan(value: float | None) -> float:
    return _NAN if value is None else value


def _pad(column: "array[float]", n: int) -> None:
    if len(column) < n:
        column.extend([_NAN] * (n - len(column)))
