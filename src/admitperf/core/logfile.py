"""A file that lines are appended to, whatever happens to it meanwhile.

Deleted or moved away: opened anew. Truncated in place: noticed. Disk full or folder
read-only: what is not written stays pending and is tried again. Two processes on one
path: whole lines per write, in append mode.
"""

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

from admitperf.core.notice import say

try:
    import fcntl
except ImportError:  # no such module on Windows: rotation there is one process's job
    fcntl = None  # type: ignore[assignment]

_FLAGS = os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
_MODE = 0o644
_MEGABYTE = 1_000_000
_TORN_FOR_S = 0.02


class LogFile:
    """Appends text to a path.

    Args:
        max_mb: size in megabytes at which it becomes `.1`, `.2.gz`, …; None = never.
        keep: rotated files kept.

    Attributes:
        pending: bytes not yet taken by the disk.
        trouble: the last error, in words.
    """

    def __init__(self, path: Path, *, max_mb: float | None, keep: int) -> None:
        self.path = path
        self._max_bytes = None if max_mb is None else int(max_mb * _MEGABYTE)
        self._keep = keep
        self.forget()

    def forget(self) -> None:
        """Lets go of everything, without a word to the file: for a forked child."""
        self._fd: int | None = None
        self._size = 0
        self._fresh = False
        self._packing: threading.Thread | None = None
        self.pending = b""
        self.trouble = ""

    def ready(self) -> bool:
        """Whether the file can be written to now; opens it when needed."""
        try:
            self._watch()
            self._rotate_when_due()
            if self._fd is None:
                self._open()
            return self._send(b"")
        except OSError as error:
            self.trouble = f"{error.strerror or error}"
            return False

    def take_fresh(self) -> bool:
        """Whether the file is new since this was last asked: it needs a header."""
        fresh, self._fresh = self._fresh, False
        return fresh

    def write(self, text: str) -> bool:
        """Appends text; False when a part is left pending."""
        try:
            return self._send(text.encode("utf-8", "replace"))
        except OSError as error:
            self.trouble = f"{error.strerror or error}"
            return False

    def close(self) -> None:
        """Closes the file; a later write opens it again."""
        if self._fd is not None:
            with suppress(OSError):
                os.close(self._fd)
        self._fd = None

    def _watch(self) -> None:
        """Closes what is no longer the file at this path; notices a truncation."""
        if self._fd is None:
            return
        here = os.fstat(self._fd)
        try:
            there = self.path.stat()
        except OSError:
            self.close()
            return
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            self.close()
        elif here.st_size < self._size and stat.S_ISREG(here.st_mode):
            self._fresh, self._size = True, here.st_size

    def _open(self) -> None:
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._fd = os.open(self.path, os.O_RDWR | _FLAGS, _MODE)
        except PermissionError:
            self._fd = os.open(self.path, os.O_WRONLY | _FLAGS, _MODE)
        self._size = os.fstat(self._fd).st_size
        self._fresh = True
        if not self.pending and _ends_torn(self._fd):
            self.pending = b"\n"

    def _send(self, data: bytes) -> bool:
        """Writes what is pending, then `data`; keeps what the disk would not take.

        A half line that another process left behind when it was killed is ended first.
        """
        if self._fd is None:
            self.pending += data
            return not self.pending
        size = os.fstat(self._fd).st_size
        if data and not self.pending and size != self._size and _ends_torn(self._fd):
            self.pending = b"\n"
        self.pending += data
        if not self.pending:
            return True
        try:
            sent = os.write(self._fd, self.pending)
        except BlockingIOError:
            return False
        self._size = size + sent
        if sent == len(self.pending):
            self.pending = b""
            return True
        # The disk is full, or a signal came: trying again at once might spin.
        self.trouble = "short write"
        self._keep_from(self.pending.rfind(b"\n", 0, sent) + 1, sent)
        return False

    def _keep_from(self, whole: int, sent: int) -> None:
        """After a short write: keeps the line it broke, to be written whole again.

        The half line is taken back where no one wrote behind it; else it is ended.
        """
        self.pending = self.pending[whole:]
        if whole == sent or self._fd is None:
            return
        with suppress(OSError):
            if os.fstat(self._fd).st_size == self._size:
                os.ftruncate(self._fd, self._size - (sent - whole))
                self._size -= sent - whole
                return
        self.pending = b"\n" + self.pending

    def _rotate_when_due(self) -> None:
        if self._fd is None or self._max_bytes is None or self.pending:
            return
        if self._packing is not None and self._packing.is_alive():
            return  # what is being packed must keep its name
        if os.fstat(self._fd).st_size < self._max_bytes:
            return
        if fcntl is not None:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
        self._watch()
        if self._fd is None:
            return
        try:
            self._shift()
        except OSError as error:
            say(f"log {self.path} cannot be rotated: {error}; it goes on growing")
            self._max_bytes = None
        self.close()

    def _shift(self) -> None:
        """Renames path to .1, .1 to .2 and so on; .1 stays plain for followers."""
        last = self._numbered(self._keep)
        for path in (last, last.with_name(last.name + ".gz")):
            path.unlink(missing_ok=True)
        for n in range(self._keep - 1, 0, -1):
            old = self._numbered(n)
            for suffix in ("", ".gz"):
                with suppress(FileNotFoundError):
                    Path(f"{old}{suffix}").replace(f"{self._numbered(n + 1)}{suffix}")
        if self._keep > 0:
            self.path.replace(self._numbered(1))
        else:
            self.path.unlink(missing_ok=True)
        plain = [self._numbered(n) for n in range(2, self._keep + 1)]
        self._packing = threading.Thread(
            target=pack, args=(plain,), name="admitperf-gzip", daemon=True
        )
        self._packing.start()

    def _numbered(self, n: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{n}")


def _ends_torn(fd: int) -> bool:
    """Whether the file ends in the middle of a line, as after a kill.

    Another process may be in the middle of a write: its file grows page by page. So a
    torn end counts only when it stays.
    """
    size = -1
    while size != (now := os.fstat(fd).st_size):
        size = now
        try:
            if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
                return False
        except OSError:
            return False
        threading.Event().wait(_TORN_FOR_S)
    return True


def pack(paths: list[Path]) -> None:
    """Replaces finished files by their gzip; leaves one alone when that fails."""
    import gzip  # noqa: PLC0415  only where logs rotate
    import shutil  # noqa: PLC0415

    for path in paths:
        part = Path(f"{path}.gz.{os.getpid()}.part")
        with suppress(OSError), path.open("rb") as plain:
            with gzip.open(part, "wb", compresslevel=1) as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)
            # Another process may have moved it on meanwhile: then its name is not ours.
            if os.path.samestat(os.fstat(plain.fileno()), path.stat()):
                part.replace(f"{path}.gz")
                path.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
