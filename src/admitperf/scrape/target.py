"""Where pages come from: an endpoint, a file, standard input."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from admitperf.core.clock import SYSTEM, Clock
from admitperf.engines.exposition import MAX_BODY_BYTES, Page, parse
from admitperf.scrape.address import Address, is_address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.fetch import MAX_BYTES, fetch, too_large
from admitperf.scrape.limits import TIMEOUT_S

STDIN = "-"
_HTML = (b"<!doctype", b"<html", b"<head", b"<body", b"<h1")
_GZIP = b"\x1f\x8b"
_SCHEMA_END = "openmetrics"


@dataclass(frozen=True, slots=True)
class Sample:
    """One page, read.

    Attributes:
        page: its series.
        asked_ns: when it was asked for, on the monotonic clock; None = not known,
            since a file does not say when it was scraped.
        took_s: how long the engine took; None for a file.
        wall_s: when it was read, Unix seconds.
        drains: asking took the numbers away from other readers (TensorRT-LLM).
        cut: it ends before it should.
    """

    page: Page
    asked_ns: int | None
    took_s: float | None
    wall_s: float
    drains: bool
    cut: bool


class Target(Protocol):
    """Something to read pages from."""

    @property
    def shown(self) -> str:
        """How messages name it, without credentials."""

    @property
    def again(self) -> bool:
        """Whether reading it a second time gives a newer page."""

    def read(self) -> Sample:
        """Reads a page.

        Raises:
            ScrapeError: it cannot be read, or holds no metrics.
        """


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A page behind an address."""

    address: Address
    token: str | None = field(default=None, repr=False)
    timeout_s: float = TIMEOUT_S
    clock: Clock = SYSTEM
    again: bool = True

    @property
    def shown(self) -> str:
        """The address without credentials."""
        return self.address.shown

    def read(self) -> Sample:
        """Fetches the page; see `Target.read`."""
        got = fetch(
            self.address, token=self.token, timeout_s=self.timeout_s, clock=self.clock
        )
        page, drains = read_page(self.shown, got.body, got.content_type)
        unfinished = _SCHEMA_END in got.content_type.lower() and not page.eof
        cut = got.cut or page.truncated or unfinished
        wall_s = self.clock.wall_ns() / 1e9
        return Sample(page, got.asked_ns, got.took_s, wall_s, drains, cut)


@dataclass(frozen=True, slots=True)
class File:
    """A page in a file, plain or gzip; `-` is standard input."""

    path: str
    clock: Clock = SYSTEM
    again: bool = False

    @property
    def shown(self) -> str:
        """The path."""
        return "standard input" if self.path == STDIN else self.path or "''"

    def read(self) -> Sample:
        """Reads the file; see `Target.read`."""
        try:
            body = self._bytes()
        except (OSError, ValueError) as error:
            why = (getattr(error, "strerror", None) or "not a path").lower()
            missing = isinstance(error, FileNotFoundError)
            fix = "for an engine write http://HOST:PORT" if missing else ""
            raise ScrapeError("unreadable", self.shown, why, fix) from None
        if len(body) > MAX_BYTES:
            raise too_large(self.shown, MAX_BYTES)
        page, _ = read_page(self.shown, body)
        wall_s = self.clock.wall_ns() / 1e9
        return Sample(page, None, None, wall_s, drains=False, cut=page.truncated)

    def _bytes(self) -> bytes:
        if self.path != STDIN:
            with Path(self.path).open("rb") as file:
                return file.read(MAX_BYTES + 1)
        if sys.stdin is None:
            raise ScrapeError("unreadable", self.shown, "is closed")
        return sys.stdin.buffer.read(MAX_BYTES + 1)


@dataclass(frozen=True, slots=True)
class Nowhere:
    """What reads as an address, and is none."""

    fault: ScrapeError
    again: bool = False

    @property
    def shown(self) -> str:
        """What was typed, without what may be a password."""
        return self.fault.target

    def read(self) -> Sample:
        """Raises the fault; see `Target.read`."""
        raise self.fault


def target_of(
    word: str, token: str | None = None, timeout_s: float = TIMEOUT_S
) -> Target:
    """What a word on the command line means: a file that exists, else an address."""
    if word == STDIN or not is_address(word) or _exists(word):
        return File(word)
    try:
        return Endpoint(Address.of(word), token, timeout_s)
    except ScrapeError as error:
        return Nowhere(error)


def read_page(shown: str, body: bytes, content_type: str = "") -> tuple[Page, bool]:
    """Parses a body and refuses what is no metrics page.

    Args:
        shown: what it came from, for messages.
        body: as it came.
        content_type: the header, if there was one.

    Returns:
        The page, and whether it is one that reading drains.

    Raises:
        ScrapeError: nothing in it, HTML, binary data, or no sample.
    """
    start = body[:512].lstrip().lower()
    if not start:
        what = "empty: a page without samples says nothing, also not that it is idle"
        raise ScrapeError("empty", shown, what)
    if "html" in content_type.lower() or start.startswith(_HTML):
        fix = "is a proxy or a login page in between?"
        raise ScrapeError("html", shown, "an HTML page, no metrics", fix)
    if body[:2] != _GZIP and b"\0" in body[:4096]:
        raise ScrapeError("binary", shown, "binary data, no metrics page")
    page = parse(body, content_type)
    if page.oversized:
        raise too_large(shown, MAX_BODY_BYTES)
    if not page:
        raise _without_samples(shown, start, page)
    return page, start[:1] == b"["


def _without_samples(shown: str, start: bytes, page: Page) -> ScrapeError:
    if start.replace(b" ", b"").startswith(b"[]"):
        what = (
            "an empty list: TensorRT-LLM is idle, has enable_iter_perf_stats off, or"
            " another reader took the numbers"
        )
        fix = "use /prometheus/metrics where there is one"
        return ScrapeError("drained", shown, what, fix)
    cut = ", cut off in mid-line" if page.truncated else ""
    bad = f", {counted_lines(page.errors)} that cannot be read" if page.errors else ""
    return ScrapeError("no_samples", shown, f"no sample in it{bad}{cut}")


def counted_lines(count: int) -> str:
    """`1 line`, `2 lines`."""
    return "1 line" if count == 1 else f"{count} lines"


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        return False
