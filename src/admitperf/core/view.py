"""What one policy makes of one reading."""

from collections.abc import Mapping

from admitperf.core.gate import Gate, number
from admitperf.core.reading import Reading
from admitperf.core.signal import Signal
from admitperf.core.supply import Supply
from admitperf.core.value import SignalValue

FOREVER_NS = 1 << 63
_GATES_MOST = 32
_TOLD_KEPT = 64


class View:
    """Every signal of a reading, resolved once.

    Attributes:
        number: the reading's id in this policy's log.
        supplies: what each supplied signal is made of.
        absent: why a signal is not supplied although something was there.
        values: signal to the value `decide` sees.
        text: the known values as JSON members, ready for a log line.
        timed: whether it is known when the engine was read.
        raw_text, reference, inline: the log's own note of how it writes the raw
            metrics.
        stale: signals dropped because their time ran out, with the reason.
        base: the view without what this host added to it; None = nothing was added.
    """

    __slots__ = (
        "_told",
        "absent",
        "added",
        "base",
        "good_until_ns",
        "inline",
        "key",
        "number",
        "raw_text",
        "reading",
        "reference",
        "stale",
        "supplies",
        "taken_ns",
        "text",
        "timed",
        "values",
    )

    def __init__(  # noqa: PLR0913  made in one place
        self,
        number_: int,
        reading: Reading,
        supplies: Mapping[Signal, Supply],
        values: Mapping[Signal, SignalValue],
        absent: Mapping[Signal, str],
        stale: Mapping[Signal, str],
        *,
        timed: bool,
    ) -> None:
        self.number = number_
        self.key = str(number_)
        self.timed = timed
        self.reading = reading
        self.taken_ns = reading.taken_ns
        self.supplies = supplies
        self.values = values
        self.absent = absent
        self.stale = stale
        self.text = "".join(
            f',"{signal.name}":{number(float(value))}'
            for signal, value in values.items()
        )
        self.good_until_ns = min(
            (supplies[signal].good_until_ns for signal in values if signal in supplies),
            default=FOREVER_NS,
        )
        self.raw_text: str | None = None
        self.reference = ""
        self.inline = False
        self.base: View | None = None
        self.added = ""
        self._told: dict[tuple[Gate, ...], str] = {}

    def at(self, now_ns: int) -> "View":
        """This view as it is at `now_ns`: without the signals whose time ran out."""
        if now_ns <= self.good_until_ns:
            return self
        old = {
            signal: self.supplies[signal].why_then
            for signal in self.values
            if self.supplies[signal].good_until_ns < now_ns
        }
        values = {s: value for s, value in self.values.items() if s not in old}
        stale = {**self.stale, **old}
        return View(
            self.number,
            self.reading,
            self.supplies,
            values,
            self.absent,
            stale,
            timed=self.timed,
        )

    def plus(self, added: Mapping[Signal, float], gates: list[Gate]) -> "View":
        """This view with something added to signals that it has.

        Args:
            added: amount by signal, in its unit; bounded by the signal's range.
            gates: where the new values record their comparisons.
        """
        room = {
            signal: min(amount, signal.high - float(self.values[signal]))
            for signal, amount in added.items()
        }
        more = {
            signal: SignalValue(float(self.values[signal]) + amount, signal.name, gates)
            for signal, amount in room.items()
        }
        view = View(
            self.number,
            self.reading,
            self.supplies,
            {**self.values, **more},
            self.absent,
            self.stale,
            timed=self.timed,
        )
        view.base = self
        told = ",".join(f'"{s.name}":{number(amount)}' for s, amount in room.items())
        view.added = f'"added":{{{told}}},'
        return view

    def told(self, gates: tuple[Gate, ...], derived: str) -> str:
        """Signals and gates as JSON members.

        Args:
            gates: the same ones come again and again on one reading.
            derived: signals that are not the view's, as JSON members.
        """
        text = self._told.get(gates)
        if text is None:
            if len(self._told) >= _TOLD_KEPT:
                self._told.clear()
            texts = ",".join([gate.text for gate in gates[-_GATES_MOST:]])
            text = self._told[gates] = f'}},{self.added}"gates":[{texts}],'
        return f'"signals":{{{(self.text + derived)[1:]}{text}'
