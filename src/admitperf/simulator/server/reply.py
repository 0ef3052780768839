"""A request while it is being answered."""

import asyncio
from collections.abc import Iterable
from enum import Enum

from admitperf.simulator.engine.events import End
from admitperf.simulator.server.part import Part
from admitperf.simulator.server.served import Served
from admitperf.simulator.server.wire.form import Form


class Outcome(Enum):
    """What became of a request."""

    ENDED = "all was given"
    REFUSED = "the engine refused it"
    DIED = "the engine is gone"
    CUT = "a fault broke it off"


class Reply:
    """An answer in one piece; it waits until all is there.

    Args:
        form: how it looks.
        served: where its end is counted.

    Attributes:
        form: as given.
        outcome: known when it is over.
    """

    def __init__(self, form: Form, served: Served) -> None:
        self.form = form
        self.outcome: asyncio.Future[Outcome] = (
            asyncio.get_running_loop().create_future()
        )
        self._served = served
        self._open = len(form.parts)

    def listener(self, part: Part) -> "Listening":
        """Who hears of one of its parts."""
        return Listening(self, part)

    def begun(self, part: Part) -> None:
        """A part is about to have its first token."""

    def up_to(self, part: Part, tokens: int) -> None:
        """A part has so many tokens."""
        part.given = tokens

    def over(self, part: Part, end: End) -> None:
        """A part has its last token."""
        self._served.ended(part, end, stream=self.form.ask.stream)
        self._open -= 1
        if not self._open:
            self.finish()

    def finish(self) -> None:
        """All parts have all their tokens."""
        self.settle(Outcome.ENDED)

    def settle(self, outcome: Outcome) -> None:
        """It is over; only the first word counts."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class Streaming(Reply):
    """An answer token by token, written straight to its connection.

    The driver of the engine writes for all streams in one go. A task for each that had
    to be woken for each token would cost several times as much.

    Args:
        form: how it looks.
        served: where its end is counted.
        transport: the connection; the headers are out.
        chunked: whether each event is a chunk of its own, as the real one's.
        cut_after: tokens after which a fault breaks it off; None = none does.
    """

    def __init__(
        self,
        form: Form,
        served: Served,
        transport: asyncio.WriteTransport,
        *,
        chunked: bool,
        cut_after: int | None = None,
    ) -> None:
        super().__init__(form, served)
        self._transport = transport
        self._chunked = chunked
        self._cut_after = cut_after

    def begun(self, part: Part) -> None:
        """Says what comes before a first token."""
        if not self.outcome.done():
            self.write(self.form.begun(part))

    def up_to(self, part: Part, tokens: int) -> None:
        """Writes the tokens that are new."""
        if tokens == part.given or self.outcome.done():
            return
        most = self._cut_after
        events = list[bytes]()
        for place in range(part.given, tokens):
            if place == most:
                self.write(events)
                self.settle(Outcome.CUT)
                return
            part.given = place + 1
            events.append(self.form.token(part, place))
        self.write(events)

    def finish(self) -> None:
        """Says what comes after the last token."""
        if not self.outcome.done():
            self.write(self.form.closing())
        super().finish()

    def write(self, events: Iterable[bytes]) -> None:
        """Writes events, unless nobody is there."""
        if self._transport.is_closing():
            return
        if self._chunked:
            events = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
        written = b"".join(events)
        if written:
            self._transport.write(written)


class Listening:
    """Hears what becomes of one part.

    Args:
        reply: whose part it is.
        part: the part.
    """

    __slots__ = ("_part", "_reply")

    def __init__(self, reply: Reply, part: Part) -> None:
        self._reply = reply
        self._part = part

    def started(self) -> None:
        """It has its first token."""
        self._reply.begun(self._part)

    def given(self, tokens: int) -> None:
        """It has given so many tokens by now."""
        self._reply.up_to(self._part, tokens)

    def ended(self, end: End) -> None:
        """It has its last token."""
        self._part.cached = end.cached_tokens
        self._reply.up_to(self._part, self._part.length)
        self._reply.over(self._part, end)

    def refused(self) -> None:
        """The engine's own limit held."""
        self._reply.settle(Outcome.REFUSED)

    def died(self) -> None:
        """The engine is gone."""
        self._reply.settle(Outcome.DIED)
