"""The file of a trace: whole lines, each batch in one write.

A process that is killed leaves whole lines behind. A disk that is full ends the writing
with one fault, and what is there stays.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from admitperf.lab.fault import LabError

BATCH_BYTES = 1 << 16
"""Text held before it is written. Plain choice: a write a hundred lines."""


class TraceFile:
    """Opens a path for a new trace.

    Args:
        path: folders are made.
        replace: an earlier file is emptied with the first write.

    Raises:
        LabError: it cannot be written, or is there and not empty.

    Attributes:
        path: as given.
        fault: why nothing more is written; None = all is well.
    """

    def __init__(self, path: str, *, replace: bool = False) -> None:
        self.path = path
        self.fault: str | None = None
        self._held: list[str] = []
        self._held_bytes = 0
        self._replace = replace
        try:
            self._fd = self._open(replace)
        except LabError:
            raise
        except (OSError, ValueError) as error:
            raise LabError(f"{path}: {_why(error)}") from None

    def _open(self, replace: bool) -> int:  # noqa: FBT001
        place = Path(self.path)
        self._is_new = not place.exists()
        if not self._is_new and not stat.S_ISREG(place.stat().st_mode):
            raise LabError(f"{self.path}: is no regular file")
        if not replace and not self._is_new and place.stat().st_size:
            what = "is there and not empty"
            raise LabError(
                f"{self.path}: {what}; name another file with -o, or add --force"
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        return os.open(place, flags, 0o644)

    def put(self, line: str) -> None:
        """Takes a line; it is written with the next batch."""
        self._held.append(line)
        self._held_bytes += len(line)
        if self._held_bytes > BATCH_BYTES:
            self.flush()

    def flush(self) -> bool:
        """Writes what is held; False, and `fault`, when the disk did not take it."""
        data = "".join(f"{line}\n" for line in self._held).encode("ascii", "replace")
        self._held, self._held_bytes = [], 0
        if self.fault is None and data:
            try:
                self._write(data)
            except OSError as error:
                self.fault = f"{self.path}: {_why(error)}"
        return self.fault is None

    def _write(self, data: bytes) -> None:
        if self._replace:
            os.ftruncate(self._fd, 0)
            self._replace = False
        size = os.fstat(self._fd).st_size
        sent = 0
        try:
            while sent < len(data):
                sent += os.write(self._fd, data[sent:])
        except OSError:
            whole = data.rfind(b"\n", 0, sent) + 1
            with suppress(OSError):  # no half line stays
                os.ftruncate(self._fd, size + whole)
            raise

    @property
    def bytes(self) -> int:
        """How long the file is now."""
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        """Writes what is left; a file that we made and that holds nothing goes away."""
        self.flush()
        empty = self._is_new and not self.bytes
        with suppress(OSError):
            os.close(self._fd)
            if empty:
                Path(self.path).unlink()


def _why(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or "not a path").lower()
