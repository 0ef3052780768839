"""What one writer put into a log, counted line by line."""

from collections import Counter
from collections.abc import Callable

from admitperf.reports.decisions import Decisions
from admitperf.reports.outcomes import Outcomes
from admitperf.reports.repair import RawNames
from admitperf.reports.shape import Fields

SCHEMA = 1  # the newest this reader knows
LOSABLE = ("decision", "outcome", "reading", "control")
_PAGE = 1 << 13  # numbers per page of a NumberSet


class NumberSet:
    """Whole numbers seen so far, one bit each when they lie close together."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}

    def add(self, number: int) -> bool:
        """Takes a number; whether it is new."""
        page, at = divmod(number, _PAGE)
        bits = self._pages.setdefault(page, bytearray(_PAGE // 8))
        byte, mask = at // 8, 1 << at % 8
        new = not bits[byte] & mask
        bits[byte] |= mask
        return new

    def __contains__(self, number: int) -> bool:
        page, at = divmod(number, _PAGE)
        bits = self._pages.get(page)
        return bits is not None and bool(bits[at // 8] & 1 << at % 8)


class Tally:
    """The lines of one `run` id: one policy object in one process.

    Attributes:
        run: the id.
        header: its newest header line; None when the log holds none.
        lost: records the writer could not write, by kind.
        lost_why: how many of them for which reason.
        events: control lines by event.
        absent: per signal, why a reading did not supply it.
        raw: the names of the raw metrics, on readings and on decisions.
        repeated: decisions and outcomes that were in the log already.
        dangling: decisions whose reading is not in the log.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.header: Fields | None = None
        self.decisions = Decisions()
        self.outcomes = Outcomes()
        self.lost: Counter[str] = Counter()
        self.lost_why: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.absent: dict[str, str] = {}
        self.raw = RawNames()
        self.repeated: Counter[str] = Counter()
        self.dangling = 0
        self._seen = {kind: NumberSet() for kind in ("decision", "outcome", "reading")}
        self._take: dict[str, Callable[[Fields], None]] = {
            "run": self._header,
            "reading": self._reading,
            "decision": self._decision,
            "outcome": self._outcome,
            "lost": self._lost,
            "control": self._control,
        }

    def add(self, fields: Fields) -> None:
        """Takes one line in the shape of its kind."""
        self._take[fields["k"]](fields)

    def close(self) -> None:
        """Joins outcomes to decisions, when every line has been taken."""
        self.decisions.fill()
        self.outcomes.match(self.decisions)

    def absorb(self, other: "Tally") -> None:
        """Adds a closed tally of the same run, from another process, to this one."""
        self.outcomes.absorb(other.outcomes, self.decisions.n)
        self.decisions.absorb(other.decisions)
        self.lost.update(other.lost)
        self.lost_why.update(other.lost_why)
        self.events.update(other.events)
        self.repeated.update(other.repeated)
        self.absent = other.absent | self.absent
        self.raw.add(other.raw.keys)
        self.dangling += other.dangling

    def _header(self, fields: Fields) -> None:
        if self.header is None or fields["t_us"] >= self.header["t_us"]:
            self.header = fields

    def _reading(self, fields: Fields) -> None:
        self._seen["reading"].add(fields["id"])
        self.raw.add(fields["raw"])
        for name, found in (fields.get("signals") or {}).items():
            if "absent" in found:
                self.absent.setdefault(name, found["absent"])

    def _decision(self, fields: Fields) -> None:
        if not self._seen["decision"].add(fields["seq"]):
            self.repeated["decision"] += 1
            return
        self.decisions.add(fields)
        self.raw.add(fields.get("raw") or {})
        reading = fields.get("reading")
        self.dangling += reading is not None and reading not in self._seen["reading"]

    def _outcome(self, fields: Fields) -> None:
        if not self._seen["outcome"].add(fields["of"]):
            self.repeated["outcome"] += 1
            return
        self.outcomes.add(fields)

    def _lost(self, fields: Fields) -> None:
        counts = {kind: fields[kind] for kind in LOSABLE if fields.get(kind)}
        self.lost.update(counts)
        self.lost_why[fields.get("why") or "not said"] += sum(counts.values())

    def _control(self, fields: Fields) -> None:
        self.events[fields["event"]] += 1
