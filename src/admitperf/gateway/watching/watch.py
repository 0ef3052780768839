"""Watches one answer on its way to the caller, and says how it ended."""

import zlib
from collections.abc import Iterable

from admitperf.core.clock import SYSTEM, Clock
from admitperf.gateway.answers import Dialect
from admitperf.gateway.watching.events import Events
from admitperf.gateway.watching.read import (
    NONE,
    TEXT,
    Answer,
    body_reader,
    event_reader,
)
from admitperf.gateway.watching.said import REFUSALS, Said

BODY_BYTES = 1 << 22
"""Longest body that is read for its usage. Plain choice: an answer of a million
tokens."""

REFUSED = "upstream_refused"
ENDED_EARLY = "upstream_ended_early"

_BAD = 400
_NS_PER_MS = 1e6
_EITHER_ZLIB = 47
"""`wbits` by which zlib finds out whether a body is gzip or deflate."""


class Watch:
    """One answer. Never raises, and changes nothing of what passes.

    Args:
        dialect: whose events these are.
        began_ns: when the request arrived, on the clock that does not go back.
        clock: asked where a caller does not say what time it is.

    Attributes:
        streaming: whether it is an event stream; False also before its head.
        events: whole events seen.
        first_output_ns: when the first generated output of a stream came, of any kind:
            text, reasoning, a tool's name or arguments, a refusal, audio. None = none.
        refused_in_band: the first event of the stream, when that was an error.
    """

    def __init__(self, dialect: Dialect, began_ns: int, clock: Clock = SYSTEM) -> None:
        self.streaming = False
        self.events = 0
        self.first_output_ns: int | None = None
        self.refused_in_band: bytes | None = None
        self._dialect = dialect
        self._began_ns = began_ns
        self._clock = clock
        self._status: int | None = None
        self._unzip: _Unzip | None = None
        self._answer = Answer()
        self._read = event_reader(dialect)
        self._framing = Events()
        self._body = bytearray()
        self._body_read = 0
        self._body_output = NONE
        self._reads = False
        self._blind = False
        self._first_text_ns: int | None = None
        self._last_output_ns: int | None = None
        self._gap_ns: int | None = None

    def started(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The head of the answer passed.

        Args:
            status: its HTTP status.
            headers: names and values, names in any case.
        """
        told = {name.lower(): value.strip().lower() for name, value in headers}
        kind = told.get(b"content-type", b"").partition(b";")[0].rstrip()
        encoding = told.get(b"content-encoding", b"identity")
        self._status = status
        self.streaming = kind == b"text/event-stream"
        self._reads = status < _BAD
        if encoding in {b"gzip", b"x-gzip", b"deflate"}:
            self._unzip = _Unzip()
        elif encoding != b"identity":
            self._give_up()

    def took(self, chunk: bytes, now_ns: int | None = None) -> None:
        """A piece of the body passed.

        Args:
            chunk: as it was sent.
            now_ns: when; None = now.
        """
        if not self._reads:
            return
        if self._unzip is not None:
            plain = self._unzip.more(chunk)
            if plain is None:
                self._give_up()
                return
            chunk = plain
        if self.streaming:
            self._take(chunk, self._clock.monotonic_ns() if now_ns is None else now_ns)
        elif len(self._body) + len(chunk) <= BODY_BYTES:
            self._body += chunk
        else:
            self._give_up()

    def _take(self, chunk: bytes, now_ns: int) -> None:
        for event in self._framing.feed(chunk):
            self.events += 1
            output = self._read(event, self._answer)
            if output:
                self._output(output, now_ns)
            elif self.events == 1:
                self.refused_in_band = self._answer.error
        if self._framing.broken:
            self._give_up()

    def _give_up(self) -> None:
        """It cannot be read, from here on."""
        self._blind = True
        self._reads = False
        self._body.clear()

    def _output(self, output: int, now_ns: int) -> None:
        last_ns = self._last_output_ns
        self._last_output_ns = now_ns
        if last_ns is None:
            self.first_output_ns = now_ns
        elif self._gap_ns is None or now_ns - last_ns > self._gap_ns:
            self._gap_ns = now_ns - last_ns
        if self._first_text_ns is None and output == TEXT:
            self._first_text_ns = now_ns

    @property
    def mid_event(self) -> bool:
        """Whether a stream stands inside an event that has not ended."""
        return self._framing.mid_event

    @property
    def done(self) -> bool:
        """Whether the answer may end here as it is.

        Its end was seen, or an error event, which is one. Nothing is asked of what
        cannot be read (an unknown encoding, an event or a body without measure), nor of
        a packed stream, to which nobody could add anything.
        """
        answer = self._seen()
        ended = answer.ended or answer.finished or answer.error is not None
        packed = self.streaming and self._unzip is not None
        return self._blind or ended or packed or (self._status or 0) >= _BAD

    @property
    def error(self) -> str | None:
        """The engine's own words about what went wrong; None = it said nothing.

        They may quote the request: for the caller, not for logs.
        """
        data = self._seen().error
        return None if data is None else Said.of(data).message

    def outcome(
        self, now_ns: int | None = None, why: str | None = None
    ) -> dict[str, object]:
        """How it ended, as keywords of `Policy.outcome`.

        Args:
            now_ns: when it ended; None = now.
            why: what ended it from outside, such as "client_closed" or "timeout_gap";
                None = nothing did. It counts unless the answer was complete by then.

        Returns:
            `ok`; `ttft_ms`, `first_text_ms`, `max_gap_ms` (streams only) and `e2e_ms`,
            from arrival; `output_tokens`, `cached_tokens`, `input_tokens` as the engine
            counted them; `finish_reason`; `error`, one word, None when ok:
            "upstream_refused" (full: 429, 503 or 529 before any output, in the head or
            in the stream, or an abort), "upstream_<status>", "upstream_error" (no
            status said), "upstream_no_output", "upstream_ended_early" (no end seen),
            "upstream_unreadable" (no JSON), "handler_error" (no head), or `why`.
        """
        now_ns = self._clock.monotonic_ns() if now_ns is None else now_ns
        answer = self._seen()
        error = self._fault(answer) or self._break(answer, why)
        return {
            "ok": error is None,
            "ttft_ms": self._since_ms(self.first_output_ns),
            "first_text_ms": self._since_ms(self._first_text_ns),
            "max_gap_ms": None if self._gap_ns is None else self._gap_ns / _NS_PER_MS,
            "e2e_ms": self._since_ms(now_ns),
            "output_tokens": answer.output_tokens,
            "cached_tokens": answer.cached_tokens,
            "input_tokens": answer.input_tokens,
            "finish_reason": answer.finish_reason,
            "error": error,
        }

    def _since_ms(self, at_ns: int | None) -> float | None:
        return None if at_ns is None else (at_ns - self._began_ns) / _NS_PER_MS

    def _fault(self, answer: Answer) -> str | None:
        """What the engine itself said went wrong."""
        if answer.error is not None:
            return _word(Said.of(answer.error).status, before=not self._generated)
        if answer.finish_reason == "abort":
            return REFUSED
        return "upstream_error" if answer.finish_reason == "error" else None

    def _break(self, answer: Answer, why: str | None) -> str | None:
        """Why this is no complete answer; None = it is one."""
        if self._status is None:
            return why or "handler_error"
        if self._status >= _BAD:
            return why or _word(self._status, before=True)
        if self._blind:
            return why
        if answer.ended or answer.finished:
            return None if self._generated else why or "upstream_no_output"
        return why or (ENDED_EARLY if self.streaming else "upstream_unreadable")

    @property
    def _generated(self) -> bool:
        """Whether anything was generated."""
        seen = self.first_output_ns is not None or self._body_output > NONE
        return seen or bool(self._answer.output_tokens)

    def _seen(self) -> Answer:
        """What the answer said; a body is read when asked for, if it has grown."""
        if len(self._body) > self._body_read:
            self._body_read = len(self._body)
            body = bytes(self._body)
            self._body_output = body_reader(self._dialect)(body, self._answer)
        return self._answer


class _Unzip:
    """Unpacks a copy of a body."""

    def __init__(self) -> None:
        self._unzip = zlib.decompressobj(_EITHER_ZLIB)

    def more(self, chunk: bytes) -> bytes | None:
        """What this piece holds; None = too much, or it is not packed so."""
        try:
            plain = self._unzip.decompress(chunk, BODY_BYTES)
        except zlib.error:
            return None
        return None if self._unzip.unconsumed_tail else plain


def _word(status: int | None, *, before: bool) -> str:
    """The word for a status; `before` anything was generated, it may be a refusal."""
    if before and status in REFUSALS:
        return REFUSED
    return "upstream_error" if status is None else f"upstream_{status}"
