"""Server-sent events, found in whatever pieces a stream comes in."""

from typing import NamedTuple

LONGEST_BYTES = 1 << 20
"""Longest event that is kept. Plain choice: thousands of times a token's event."""

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event.

    Attributes:
        name: its `event` field; empty = none.
        data: its `data` fields, joined by line ends.
    """

    name: bytes
    data: bytes


class Events:
    """Finds the events of one stream.

    Attributes:
        broken: an event was longer than `LONGEST_BYTES` and was left out.
    """

    __slots__ = ("_after_cr", "_begun", "_clean", "_overlong", "_rest", "broken")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._begun = False
        self._clean = False
        self._after_cr = False
        self._overlong = False
        self.broken = False

    @property
    def mid_event(self) -> bool:
        """Whether the stream stands inside an event that has not ended."""
        return self._overlong or bool(self._rest.strip(b"\n"))

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this piece ends; comments and empty events are none."""
        if not (self._clean and chunk.endswith(b"\n\n") and b"\r" not in chunk):
            chunk = self._whole(self._plain(chunk))
            self._clean = not (self._rest or self._after_cr or self._overlong)
        elif chunk.startswith(b"data: ") and chunk.find(b"\n") == len(chunk) - 2:
            return [Event(b"", chunk[6:-2])]
        return [
            event
            for block in chunk.split(b"\n\n")
            if block and (event := _event(block)) is not None
        ]

    def _plain(self, chunk: bytes) -> bytes:
        """The piece with every line end as one LF, and without a byte order mark."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
            if not self._begun:
                self._begun = True
                chunk = chunk.removeprefix(_BOM)
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _whole(self, chunk: bytes) -> bytes:
        """What can be taken apart now; the rest stays for the next piece."""
        rest = self._rest
        # Only the seam and the new piece can hold the end of what was waiting.
        seam = max(0, len(rest) - 1)
        rest += chunk
        end = rest.rfind(b"\n\n", seam)
        if end < 0:
            self._bound()
            return b""
        begin = 0
        if self._overlong:
            begin = rest.find(b"\n\n", seam) + 1
            self._overlong = False
        whole = bytes(rest[begin:end])
        del rest[: end + 2]
        self._bound()
        return whole

    def _bound(self) -> None:
        if len(self._rest) > LONGEST_BYTES:
            self.broken = self._overlong = True
        if self._overlong:
            # The last byte may be the first half of the blank line that ends it.
            del self._rest[:-1]


def _event(block: bytes) -> Event | None:
    """One event; None = it holds comments only."""
    head, _, rest = block.partition(b"\n")
    if not rest and head.startswith(b"data: "):
        return Event(b"", head[6:])
    if rest.startswith(b"data: ") and head.startswith(b"event: ") and b"\n" not in rest:
        return Event(head[7:], rest[6:])
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return Event(name, b"\n".join(data)) if data or name else None
