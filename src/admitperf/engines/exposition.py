"""Reads a metrics page: Prometheus text, OpenMetrics, TensorRT-LLM JSON.

A page comes from software that is busy, half-started, behind a proxy or cut off in
mid-line, so nothing here raises: a line that cannot be read is counted in
`Page.errors` and left out, and whatever else the page says is kept.
"""

import json
import math
import re
import zlib
from collections.abc import Iterator

MAX_BODY_BYTES = 64 * 2**20
"""Most bytes a compressed body may grow to; nothing of a larger one is read.

A full page of four data-parallel vLLM ranks is about 200 kB; this is room for
hundreds of them, and a bound on what a hostile answer can make us hold."""

MAX_MEMBERS = 1000
"""Most gzip members read from one body. Plain choice: servers send one."""

_PIECE_BYTES = 2**16  # what is copied once for each member, at most
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31
_MILLISECONDS_IN_S = 1000.0

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_LABEL_NAME = r"[a-zA-Z_][a-zA-Z0-9_]*+"
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_FINITE = r"[+-]?[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?"
_NUMBER = rf"(?:{_FINITE}|[+-]?(?:Inf|NaN|Nan|inf|nan))"

# Nearly every line of every engine has this shape: one space, no escapes. Help is
# matched to be skipped; everything else is left to the careful reader.
_PLAIN_LABEL = rf'{_LABEL_NAME}="[^"\\\n]*+"'
_LINE = re.compile(
    rf"^({_NAME}(?:\{{{_PLAIN_LABEL}(?:,{_PLAIN_LABEL})*+\}})?) ({_NUMBER})"
    rf"(?: ({_FINITE}))?$|^# HELP .*$|^(.+)$",
    re.MULTILINE,
)

# The same line with everything the formats allow: blanks round tokens, escapes,
# trailing comma, a quoted metric name (Prometheus 3), quoted label names, exemplar.
_ITEM = rf"(?:{_LABEL_NAME}|{_STRING})[ \t]*+(?:=[ \t]*+{_STRING}[ \t]*+)?"
_ODD_LINE = re.compile(
    rf"({_NAME})?"
    rf"(?:[ \t]*+\{{[ \t]*+((?:{_ITEM}(?:,[ \t]*+{_ITEM})*+(?:,[ \t]*+)?)?)\}}[ \t]*+"
    r"|[ \t]++)"
    rf"({_NUMBER}|[+-]?\.[0-9]++(?:[eE][+-]?[0-9]++)?)"
    rf"(?:[ \t]++({_FINITE}))?(?:[ \t]++\#[ \t]*+\{{.*+)?"
)
_ODD_ITEM = re.compile(
    rf"({_LABEL_NAME}|{_STRING})[ \t]*+(?:=[ \t]*+({_STRING}))?[ \t]*+(?:,[ \t]*+)?"
)
_BARE_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:.\-/]*")
_TYPE = re.compile(rf"\#[ \t]++TYPE[ \t]++({_STRING}|[^ \t\"]++)[ \t]++([a-zA-Z]++)")
_EOF = re.compile(r"^# EOF[ \t]*$", re.MULTILINE)
_ESCAPE = re.compile(r"\\(.)")


class Page(dict[str, float]):
    """The samples of one scrape, by series.

    A key is the series as printed without blanks outside quotes,
    `name{label="value",...}`, the bare name when it has no labels; escapes stay as
    they were. Of a series printed twice the last line counts. NaN and infinities are
    kept: whoever reads a signal judges them.

    Attributes:
        timestamps: Unix seconds by series, only for samples that carry their own.
        types: Metric type by family name, from the TYPE lines.
        eof: The page ended in `# EOF` (OpenMetrics). What follows it was not read.
        truncated: The last line had no end and was dropped, since `1` may be the
            beginning of `14`, or the compressed body broke off.
        oversized: The compressed body grows beyond every bound; none of it was read.
        errors: Lines that could not be read.
    """

    __slots__ = ("eof", "errors", "oversized", "timestamps", "truncated", "types")

    def __init__(self) -> None:
        super().__init__()
        self.timestamps: dict[str, float] = {}
        self.types: dict[str, str] = {}
        self.eof = False
        self.truncated = False
        self.oversized = False
        self.errors = 0

    def fresh(self, now_s: float, max_age_s: float) -> "Page":
        """The page without samples that say themselves that they are too old.

        Args:
            now_s: The present, Unix seconds.
            max_age_s: Oldest age kept, seconds.

        Returns:
            A new page. Samples without a timestamp of their own are kept.
        """
        page = Page()
        page.types = self.types
        page.eof, page.truncated, page.errors = self.eof, self.truncated, self.errors
        page.oversized = self.oversized
        for key, value in self.items():
            stamp_s = self.timestamps.get(key)
            if stamp_s is None:
                page[key] = value
            elif now_s - stamp_s <= max_age_s:
                page[key] = value
                page.timestamps[key] = stamp_s
        return page


def parse(body: str | bytes, content_type: str = "") -> Page:
    """Reads a metrics page of any engine.

    Args:
        body: What the endpoint answered; gzip is recognised by its first bytes.
        content_type: The response header, if known. It settles whether timestamps
            are milliseconds (text) or seconds (OpenMetrics); without it `# EOF` does.

    Returns:
        The page. A body that is no metrics page (empty, HTML, binary) gives one
        without samples, never an exception. TensorRT-LLM's JSON list gives its
        newest element, flattened (`kvCacheStats.usedNumBlocks`); an empty list gives
        an empty page, which means "unknown", not "idle".
    """
    page = Page()
    text = _text(body, page)
    if _looks_like_json(text, content_type) and _read_json(text, page):
        return page
    text = _whole_lines(text, page)
    stamp_unit = _MILLISECONDS_IN_S
    content_type = content_type.lower()
    if "openmetrics" in content_type or (page.eof and "text/plain" not in content_type):
        stamp_unit = 1.0
    _read_lines(text, page, stamp_unit)
    return page


def _text(body: str | bytes, page: Page) -> str:
    if not isinstance(body, str):
        body = inflated(body, page)
        body = body.decode("utf-8", "replace")
    if body[:1] == "\ufeff":
        body = body[1:]
    return body.replace("\r\n", "\n") if "\r" in body else body


def inflated(body: bytes, page: Page) -> bytes:
    """What a gzip body holds; any other body as it is.

    Takes time and memory in proportion to the body and to `MAX_BODY_BYTES`, whatever
    the body says.

    Args:
        body: As it came.
        page: Is told what is wrong with it.
    """
    if body[:2] != _GZIP_MAGIC:
        return body
    whole, at = bytearray(), 0
    try:
        for _ in range(MAX_MEMBERS):
            at, ended = _inflate_member(body, at, whole)
            page.truncated |= not ended
            if not ended or body[at : at + 2] != _GZIP_MAGIC:
                return bytes(whole)
    except zlib.error:
        page.errors += 1
        page.truncated = True
        return bytes(whole)
    except _OversizedError:
        pass
    page.oversized = page.truncated = True
    return b""


class _OversizedError(Exception):
    """A body that grows beyond the bound."""


def _inflate_member(body: bytes, at: int, whole: bytearray) -> tuple[int, bool]:
    """Adds one member to the whole; where it ended, and whether it had an end."""
    member, view = zlib.decompressobj(_GZIP_WINDOW_BITS), memoryview(body)
    while not member.eof and at < len(body):
        piece = view[at : at + _PIECE_BYTES]
        # One byte beyond the bound is room enough to see that it does not hold; no
        # room at all would mean no bound. With room left all of the piece is used up.
        whole += member.decompress(piece, MAX_BODY_BYTES + 1 - len(whole))
        if len(whole) > MAX_BODY_BYTES:
            raise _OversizedError
        at += len(piece)
    return at - len(member.unused_data), member.eof


def _looks_like_json(text: str, content_type: str) -> bool:
    return text.lstrip()[:1] == "[" or "json" in content_type.lower()


def _read_json(text: str, page: Page) -> bool:
    try:
        statistics = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(statistics, list) and not statistics:
        return True
    if isinstance(statistics, list) and isinstance(statistics[-1], dict):
        page.update(_flat(statistics[-1]))
    else:
        page.errors += 1
    return True


def _flat(element: dict[str, object]) -> Iterator[tuple[str, float]]:
    pending: list[tuple[str, object]] = list(element.items())
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending.extend((f"{name}.{key}", inner) for key, inner in value.items())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            try:
                yield name, float(value)
            except OverflowError:
                yield name, math.inf


def _whole_lines(text: str, page: Page) -> str:
    end = _EOF.search(text) if "# EOF" in text else None
    if end:
        page.eof = True
        return text[: end.start()]
    cut = text.rfind("\n") + 1
    if text[cut:].strip():
        page.truncated = True
    return text[:cut]


def _read_lines(text: str, page: Page, stamp_unit: float) -> None:
    stamps = page.timestamps
    for key, number, stamp, odd in _LINE.findall(text):
        if number:
            page[key] = float(number)
            if stamp:
                stamps[key] = float(stamp) / stamp_unit
            elif stamps:
                stamps.pop(key, None)
        elif odd:
            _read_odd_line(odd, page, stamp_unit)


def _read_odd_line(line: str, page: Page, stamp_unit: float) -> None:
    line = line.strip(" \t\r")
    if not line:
        return
    if line[0] == "#":
        _read_comment(line, page)
        return
    found = _ODD_LINE.fullmatch(line)
    key = _key(found[1], found[2]) if found else None
    if found is None or key is None:
        page.errors += 1
        return
    page[key] = float(found[3])
    page.timestamps.pop(key, None)
    if found[4]:
        page.timestamps[key] = float(found[4]) / stamp_unit


def _read_comment(comment: str, page: Page) -> None:
    found = _TYPE.match(comment)
    if found:
        name = found[1]
        page.types[_unquoted(name) if name[0] == '"' else name] = found[2]


def _key(name: str | None, items: str | None) -> str | None:
    """The series as a key, None when it has no name or a label has no value."""
    labels = []
    for label, value in _ODD_ITEM.findall(items or ""):
        if value:
            labels.append(f"{label}={value}")
        elif name is None and label[0] == '"' and not labels:
            name = label
        else:
            return None
    if name is None:
        return None
    if name[0] == '"':
        bare = _unquoted(name)
        if not _BARE_NAME.fullmatch(bare):
            return f"{{{','.join([name, *labels])}}}"
        name = bare
    return f"{name}{{{','.join(labels)}}}" if labels else name


def _unquoted(quoted: str) -> str:
    text = quoted[1:-1]
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda it: "\n" if it[1] == "n" else it[1], text)
