"""The decision log: bounded buffers and one writer thread.

It stands in a request path, so it never blocks and never raises; what it could not
keep it counts, and writes the count down. Callers hand over finished text, because
text costs the garbage collector nothing; readings and the run header are written by
the thread, which knows what this file already holds.
"""

import atexit
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from admitperf.core.archive import Archive
from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.logfile import LogFile
from admitperf.core.notice import in_words, say
from admitperf.core.record import dumps
from admitperf.core.view import View

FLUSH_S = 0.05
"""Seconds between writes. Origin: `benchmarks/run.py` loses no line at 50,000/s with
it, and a killed process loses at most this."""

LINES_MOST = 100_000
"""Decision lines held in memory."""

_WAKE_AT = LINES_MOST // 4

BYTES_MOST = 64 << 20
"""Bytes of lines held in memory, per buffer."""

SLICE = 64
"""Lines written before other threads get a turn."""

REPEAT_S = 60.0
"""Seconds after which the header and a whole reading are written again."""

_LAST_WORDS_S = 0.5

EXIT_S = 3.0
"""Longest an exiting process waits for the disk, in seconds."""

_READING = '"reading":'
_NOTHING = '"reading":,'
_HEAD = 120
"""Characters within which a line names its kind, run, number, time and reading."""

_LOOK_NS = 50_000_000
_KINDS = ("decision", "outcome", "control", "reading")

Header = Callable[[int, int], str]


class _Buffer:
    """Lines on their way to the writer: one producer at a time, one consumer."""

    __slots__ = ("_in", "_out", "lines")

    def __init__(self) -> None:
        self.lines: deque[str] = deque()
        self._in = 0
        self._out = 0

    def put(self, line: str) -> bool:
        if len(self.lines) < LINES_MOST and self._in - self._out < BYTES_MOST:
            self._in += len(line)
            self.lines.append(line)
            return True
        return False

    def first(self) -> int | None:
        return _number(self.lines[0]) if self.lines else None

    def take(self) -> str:
        line = self.lines.popleft()
        self._out += len(line)
        return line


class Log:
    """Writes one run's lines to one path.

    Args:
        path: file to append to; folders are made.
        header: (t_us, wall_us) -> the run line.
        run: the run's id, for the lines this class makes itself.
        epoch_us: wall clock microseconds at monotonic zero; see `t_us` in the docs.
        max_mb: rotate at this size in megabytes; None = never.
        keep: rotated files kept.
        clock: source of time.
    """

    def __init__(  # noqa: PLR0913  set up once, by keyword
        self,
        path: str | os.PathLike[str],
        *,
        header: Header,
        run: str,
        epoch_us: int,
        max_mb: float | None = None,
        keep: int = 5,
        clock: Clock = SYSTEM,
    ) -> None:
        self.path = Path(path).absolute()  # the host may change its folder
        self._header = header
        self._run = run
        self._epoch_us = epoch_us
        self._clock = clock
        self._file = LogFile(self.path, max_mb=max_mb, keep=keep)
        self._reset()
        _logs.add(self)

    def _reset(self) -> None:
        self._decisions = _Buffer()
        self._others = _Buffer()
        self._archive = Archive()
        self._seen: View | None = None
        self._lost = dict.fromkeys(_KINDS, 0)
        self._told = dict.fromkeys(_KINDS, 0)
        self._why = "buffer full"
        self._turn = threading.Condition()
        self._asked = self._served = 0
        self._clean = True
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._repeat_at_ns = 0
        self._t_us = "0"
        self._reference = _NOTHING

    def decision(self, view: View | None, line: str) -> None:
        """Takes a decision line.

        `view` is the reading it refers to, None when the line carries its own.
        """
        if view is not None and view is not self._seen:
            self._seen = view
            self._archive.remember(view)
        if not self._decisions.put(line):
            self._lose("decision")
        if self._thread is None or len(self._decisions.lines) == _WAKE_AT:
            self._rouse()

    def event(self, kind: str, line: str) -> None:
        """Takes an outcome or control line."""
        if not self._others.put(line):
            self._lose(kind)
        if self._thread is None or len(self._others.lines) == _WAKE_AT:
            self._rouse()

    def flush(self, timeout_s: float = EXIT_S) -> bool:
        """Has the writer write what is buffered.

        The caller never touches the disk: it waits for the writer, no longer than
        `timeout_s`.

        Returns:
            False when that was not possible in time.
        """
        with self._turn:
            self._asked += 1
            asked = self._asked
            self._start()
            if self._thread is None:  # a process that is ending starts no thread
                return self._drain()
            in_time = self._turn.wait_for(lambda: self._served >= asked, timeout_s)
            return in_time and self._clean

    def close(self, timeout_s: float = EXIT_S) -> None:
        """Writes what is left and lets go of the file. Later lines start it again."""
        if self._thread is not None or self._backlog():
            self._closed = True
            self.flush(timeout_s)

    @property
    def lost_records(self) -> int:
        """Records that could not be written so far, of every kind."""
        return sum(self._lost.values())

    @property
    def waiting_records(self) -> int:
        """Records not written yet: more than a second's work while a disk fails."""
        return self._backlog()

    def last_words(self) -> None:
        """Says on stderr what a process that ends could not write."""
        if self._backlog():
            told = f"{self._backlog()} lines of {self.path} could not be written"
            with suppress(Exception):
                sys.stderr.write(f"admitperf: {told}: {self._why}\n")

    def after_fork(self, run: str) -> None:
        """In a forked child: forgets the parent's lines and file; a new run id."""
        self._run = run
        self._file.forget()
        self._reset()

    def _lose(self, kind: str) -> None:
        self._lost[kind] += 1

    def _rouse(self) -> None:
        self._start()
        if _ending.is_set():  # no flush comes after this one
            self.flush(_LAST_WORDS_S)

    def _start(self) -> None:
        with self._turn:
            if self._thread is None:
                thread = threading.Thread(
                    target=self._work, name="admitperf-log", daemon=True
                )
                # An interpreter that is shutting down starts no thread.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread
                    _flush_with_multiprocessing()
        self._wake.set()

    def _work(self) -> None:
        closed = False
        while not closed:
            self._wake.wait(FLUSH_S)
            self._wake.clear()
            closed, asked = self._closed, self._asked
            clean = self._drain()
            if closed:
                self._end(clean)
            with self._turn:
                self._served, self._clean = asked, clean
                self._turn.notify_all()

    def _end(self, clean: bool) -> None:  # noqa: FBT001
        """The writer lets go; a line that came meanwhile starts another one."""
        if clean:
            self._file.close()
        with self._turn:
            self._thread, self._closed = None, False
            if self._backlog():
                self._start()

    def _drain(self) -> bool:
        """Writes everything buffered; False when the disk would not take it."""
        try:
            if (self._backlog() or self._file.pending) and not self._look():
                return False
            look_at_ns = self._clock.monotonic_ns() + _LOOK_NS
            slices = 1 + self._backlog() // SLICE  # what comes meanwhile waits its turn
            while slices and self._backlog() and self._write_slice():
                slices -= 1
                if self._clock.monotonic_ns() >= look_at_ns:
                    self._look()
                    look_at_ns += _LOOK_NS
            self._write_lost()
        except Exception as error:  # noqa: BLE001  a log never raises; it counts
            self._why = in_words(error)
        return not (self._backlog() or self._file.pending)

    def _look(self) -> bool:
        """Whether the file is still the one at this path, and takes lines."""
        if self._file.ready():
            return True
        self._complain()
        return False

    def _write_slice(self) -> bool:
        now_ns = self._clock.monotonic_ns()
        lines = self._take(self._slice())
        out: list[str] = []
        if self._file.take_fresh() or now_ns >= self._repeat_at_ns:
            self._repeat_at_ns = now_ns + int(REPEAT_S * 1e9)
            self._begin(_t_us(lines[0]), out)
        for line in lines:
            if line.find(self._reference, 0, _HEAD) >= 0:
                out.append(line)
                continue
            try:
                self._place(line, out)
            except Exception as error:  # noqa: BLE001  a line that fails is a line lost
                self._lose(_kind(line))
                self._why = in_words(error)
        self._t_us = _t_us(lines[-1])
        if self._file.write("\n".join(out) + "\n"):
            return True
        self._complain()
        return False

    def _slice(self) -> int:
        """Lines to write at once.

        Each write costs the writer its turn at the interpreter, and each line it holds
        on to costs the callers theirs: few lines, unless the buffer runs full.
        """
        return SLICE if self._backlog() < LINES_MOST // 2 else SLICE * 8

    def _backlog(self) -> int:
        return len(self._decisions.lines) + len(self._others.lines)

    def _take(self, most: int) -> list[str]:
        """The buffered lines with the smallest numbers, in order.

        A line seen in one buffer proves that every smaller number has been put, but
        only for looks into the other one made after it: hence the second look.
        """
        decisions, others = self._decisions, self._others
        taken: list[str] = []
        first = other = None
        while len(taken) < most:
            first = decisions.first() if first is None else first
            other = others.first() if other is None else other
            first = decisions.first() if first is None else first
            if first is None and other is None:
                break
            if other is None or (first is not None and first < other):
                taken.append(decisions.take())
                first = None
            else:
                taken.append(others.take())
                other = None
        return taken

    def _complain(self) -> None:
        trouble = self._file.trouble
        if trouble and trouble != self._why:
            self._why = trouble
            say(
                f"log {self.path} cannot be written: {trouble}; what is lost is counted"
            )

    def _begin(self, t_us: str, out: list[str]) -> None:
        """The header, at the time of the line that follows: time never goes back.

        Its wall clock is that of the same moment, not of this one: a writer that was
        held up would look like a clock that was stepped.
        """
        clock = self._clock
        log_us = clock.monotonic_ns() // 1000 + self._epoch_us
        ahead_us = clock.wall_ns() // 1000 - log_us
        try:
            out.append(self._header(int(t_us), int(t_us) + ahead_us))
        except Exception as error:  # noqa: BLE001  the lines must be written all the same
            say(f"log {self.path} has no run line: {in_words(error)}")
        self._archive.begin()
        self._reference = _NOTHING

    def _place(self, line: str, out: list[str]) -> None:
        """Puts a line out, behind the reading it refers to."""
        key = _reading(line)
        if key and not self._archive.holds(key):
            reading = self._archive.line(key, self._run, _t_us(line), self._epoch_us)
            if reading is None:
                self._lose("reading")
                line = line.replace(f"{_READING}{key},", f"{_READING}null,", 1)
                key = ""
            else:
                out.append(reading)
        if key:
            self._reference = f"{_READING}{key},"
        out.append(line)

    def _write_lost(self) -> None:
        lost = {kind: self._lost[kind] - self._told[kind] for kind in _KINDS}
        if not any(lost.values()) or self._file.pending or not self._file.ready():
            return
        counts = "".join(f',"{kind}":{count}' for kind, count in lost.items())
        out: list[str] = []
        if self._file.take_fresh():
            self._begin(self._t_us, out)
        out.append(
            f'{{"k":"lost","run":"{self._run}","t_us":{self._t_us}{counts},'
            f'"why":{dumps(self._why)}}}'
        )
        self._file.write("\n".join(out) + "\n")
        self._told = {kind: self._told[kind] + lost[kind] for kind in _KINDS}
        self._why = "buffer full"


def _number(line: str, name: str = '"seq":') -> int:
    """A number near the start of a line: each starts with k, run, seq and t_us."""
    start = line.index(name) + len(name)
    return int(line[start : line.index(",", start)])


def _t_us(line: str) -> str:
    return str(_number(line, '"t_us":'))


def _reading(line: str) -> str:
    """The reading a line refers to; empty when to none."""
    start = line.find(_READING, 0, _HEAD)
    if start < 0 or not line.startswith('{"k":"decision"'):
        return ""
    start += len(_READING)
    return line[start : line.index(",", start)]


def _kind(line: str) -> str:
    """The kind of a line that could not be written."""
    return next((kind for kind in _KINDS if f'"k":"{kind}"' in line[:24]), "control")


_logs: "weakref.WeakSet[Log]" = weakref.WeakSet()


_ending = threading.Event()
_registered: set[int] = set()  # processes that flush at their end


@atexit.register
def _flush_all() -> None:
    _ending.set()
    until_ns = SYSTEM.monotonic_ns() + int(EXIT_S * 1e9)
    for log in list(_logs):
        log.close(max(0.1, (until_ns - SYSTEM.monotonic_ns()) / 1e9))
        log.last_words()


def _flush_with_multiprocessing() -> None:
    """A multiprocessing child ends through `os._exit`, which runs no atexit hook."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and os.getpid() not in _registered:
        _registered.add(os.getpid())
        util.Finalize(None, _flush_all, exitpriority=0)
