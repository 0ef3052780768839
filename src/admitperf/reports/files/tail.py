"""The end of a log that is still being written, as a log of its own."""

from pathlib import Path

MOST_BYTES = 4 << 20
"""Plain choice: some ten thousand lines, read in half a second."""

_HEAD_BYTES = 1 << 20
"""The writer puts a run's header where a file begins, and again after rotation."""

_HEADER = (b'{"k":"run"', b'{"k": "run"')
"""How lines of ours begin, and of those who write JSON with blanks."""


def tail(path: Path, copy: Path, most_bytes: int = MOST_BYTES) -> tuple[int, int]:
    """Copies the last whole lines of a log, behind the headers from its beginning.

    Args:
        path: a plain log.
        copy: gets the lines.
        most_bytes: of its end.

    Returns:
        How many bytes of the end were copied, and how many the log has.

    Raises:
        OSError: one of them cannot be opened.
    """
    with path.open("rb") as log:
        size = log.seek(0, 2)
        begin = max(size - most_bytes, 0)
        log.seek(begin)
        end = log.read(size - begin)
        log.seek(0)
        head = log.read(min(_HEAD_BYTES, begin))
    if begin:
        end = end[end.find(b"\n") + 1 :]
    end = end[: end.rfind(b"\n") + 1]
    headers = [line for line in head.splitlines(keepends=True) if _is_header(line)]
    copy.write_bytes(b"".join(headers) + end)
    return len(end), size


def _is_header(line: bytes) -> bool:
    return line.startswith(_HEADER) and line.endswith(b"\n")
