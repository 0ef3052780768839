"""One streamed answer, event by event, as it comes off the wire."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from admitperf.simulator.traffic.traffic import BUSY

_SHOWN = 200  # characters of an engine's error that are kept

_LONGEST_LINE = 1 << 20  # bytes; an event is far shorter, and one without end is none

_MOST_TOKENS = 1 << 31  # more than any answer has


class Stream:
    """What is seen of one answer.

    Attributes:
        status: HTTP status the caller saw, 503 also when the engine says that it is
            full inside a stream that began with 200; 0 = no answer at all.
        refused: a gateway's policy said no.
        reason: its reason; None = none was said.
        retry_after_ms: when to come back; None = not said.
        should_retry: False = to come again is no use.
        first_ns, last_ns: when the first and the last token came, on the monotonic
            clock; None = none did.
        gap_ns: longest time between two events with tokens; None = fewer than two.
        tokens: received; as the engine counts them once it has.
        ids: of the answer, where the engine says them.
        cached: prompt tokens it found in its cache; None = it did not say.
        finish: why the answer ended, in the engine's words; None = it has not.
        error: what went wrong; None = nothing did.
    """

    def __init__(self) -> None:
        self.status = 0
        self.refused = False
        self.reason: str | None = None
        self.retry_after_ms: float | None = None
        self.should_retry = True
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.gap_ns: int | None = None
        self.tokens = 0
        self.ids: list[int] = []
        self.cached: int | None = None
        self.finish: str | None = None
        self.error: str | None = None
        self._rest = b""

    def take(self, data: bytes, now_ns: int) -> None:
        """Takes what came off the wire, whole events or not.

        Raises:
            ValueError: an event that has no end.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            raise ValueError("an event without end")
        for line in lines:
            said = line.strip()
            if said.startswith(b"data:"):
                self._event(said[5:].lstrip(), now_ns)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Takes the status, and what a refusal says."""
        self.status = status
        self.should_retry = headers.get("x-should-retry", "true") != "false"
        self.retry_after_ms = _wait_ms(headers)
        self.reason = headers.get("x-admitperf-reason") or None
        self.refused = self.reason is not None and status != HTTPStatus.OK

    def fault(self, body: bytes) -> None:
        """Takes the body of an answer that is no stream."""
        told = _object(body)
        error = None if told is None else told.get("error", told)
        self._wrong(self.status, error)

    def end(self) -> None:
        """The connection has ended, as it should or not."""
        if self.finish is None and self.error is None:
            self.error = "the stream ended too early"

    @property
    def ok(self) -> bool:
        """Whether it is a whole answer."""
        return self.finish is not None and self.error is None

    def _event(self, data: bytes, now_ns: int) -> None:
        if data in {b"", b"[DONE]"}:
            return
        event = _object(data)
        if event is None:
            self.error = self.error or "an event that is no JSON object"
        elif event.get("error") is not None:
            self._wrong(HTTPStatus.INTERNAL_SERVER_ERROR, event["error"])
        else:
            self._chunk(event, now_ns)

    def _chunk(self, event: dict[str, Any], now_ns: int) -> None:
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._choice(choice, now_ns)
        usage = _dict(event.get("usage"))
        counted = _count(usage.get("completion_tokens"))
        self.tokens = self.tokens if counted is None else counted
        self._cached(usage, _dict(event.get("timings")))

    def _choice(self, choice: dict[str, Any], now_ns: int) -> None:
        finish = choice.get("finish_reason")
        ids = choice.get("token_ids")
        if isinstance(ids, list):
            self.ids += [one for one in ids if _count(one) is not None]
            count = len(ids)
        else:  # half a character is a token without text; the last event may be empty
            count = int(bool(choice.get("text")) or finish is None)
        if count:
            self._tokens(count, now_ns)
        self.finish = str(finish)[:_SHOWN] if finish else self.finish

    def _tokens(self, count: int, now_ns: int) -> None:
        self.tokens += count
        if self.last_ns is None:
            self.first_ns = now_ns
        else:
            self.gap_ns = max(self.gap_ns or 0, now_ns - self.last_ns)
        self.last_ns = now_ns

    def _cached(self, usage: dict[str, Any], timings: dict[str, Any]) -> None:
        details = _dict(usage.get("prompt_tokens_details"))
        for told in (details.get("cached_tokens"), timings.get("cache_n")):
            found = _count(told)
            if found is not None:
                self.cached = found
                return

    def _wrong(self, status: int, error: object) -> None:
        """An error, of which an engine that is full says so by its code."""
        code = _dict(error).get("code")
        if isinstance(code, int) and code in set(HTTPStatus):
            status = code
        self.status = int(status)
        if status == HTTPStatus.SERVICE_UNAVAILABLE and not self.refused:
            self.error = BUSY.error
            return
        message = error.get("message") if isinstance(error, dict) else error
        said = " ".join(str(message or "no reason given").split())[:_SHOWN]
        self.error = f"{int(status)}, {said}"


def _object(data: bytes) -> dict[str, Any] | None:
    """A JSON object; None = it is none."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _dict(given: object) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}


def _count(given: object) -> int | None:
    """A number of tokens, or a token's; None = it is none."""
    if isinstance(given, bool) or not isinstance(given, int):
        return None
    return given if 0 <= given < _MOST_TOKENS else None


def _wait_ms(headers: Mapping[str, str]) -> float | None:
    """What `retry-after-ms` or `Retry-After` says; a date is not read."""
    for name, unit_ms in (("retry-after-ms", 1.0), ("Retry-After", 1000.0)):
        try:
            wait_ms = float(headers[name]) * unit_ms
        except (KeyError, ValueError):
            continue
        if 0 <= wait_ms < float("inf"):
            return wait_ms
    return None
