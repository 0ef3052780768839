"""Processes that outlive the command which began them, and are ended by a later one.

A process is known by its pid and by when it began, so that whoever got that pid since
is left alone. What we begin has a session of its own and carries a mark, the path of
its state file: so what it began itself is found, and what no file names any more.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from admitperf.core.clock import SYSTEM
from admitperf.provision.fault import ProvisionError

MARK = "ADMITPERF_INFRA"
"""The environment variable that holds the mark."""

GRACE_S = 10.0
"""From SIGTERM to SIGKILL. Plain choice: vLLM needs two or three seconds."""

_PROC = Path("/proc")
_LOOK_S = 0.05
_KILLED_S = 5.0
_STAT_GROUP, _STAT_BEGAN = 2, 19  # behind the name: fields 5 and 22 of proc(5)
_RESET = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


@dataclass(frozen=True, slots=True)
class Process:
    """One process.

    Attributes:
        pid: its number.
        began: when it began, as the system says it; of use for comparing only.
    """

    pid: int
    began: str


@dataclass(frozen=True, slots=True)
class _Row:
    """What the system says of a process: one that has ended unseen is a zombie."""

    began: str
    group: int
    zombie: bool


def begin(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Starts a program in a session of its own; both its outputs go to a file.

    Args:
        command: the program and its arguments.
        environment: all of it, the mark included.
        log: replaced.

    Raises:
        ProvisionError: there is no such program, or the log cannot be written.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
    except OSError as error:
        raise ProvisionError(f"{log}: {(error.strerror or '').lower()}") from None
    actions = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_APPEND, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    )
    try:
        pid = os.posix_spawnp(  # no object that would want to wait for it
            command[0], tuple(command), environment,
            file_actions=actions, setsid=True, setsigdef=_RESET,
        )  # fmt: skip
    except OSError as error:
        why = (error.strerror or "cannot be started").lower()
        raise ProvisionError(f"{command[0]}: {why}") from None
    row = _rows([pid]).get(pid)  # None where children that end are not kept
    return Process(pid, row.began if row is not None else "")


def exit_code(process: Process) -> int | None:
    """How a child of this process ended, negative for a signal; None = not known."""
    with suppress(ChildProcessError):
        pid, status = os.waitpid(process.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
    return None


def family(known: Iterable[Process], mark: str) -> list[Process]:
    """What still runs of some processes, of what they began, and of what has the mark.

    Args:
        known: as they were when they were noted down.
        mark: path of the state file.

    Returns:
        By pid; this process is never among them.
    """
    rows = {pid: row for pid, row in _rows().items() if not row.zombie}
    noted = {one.pid for one in known}
    ours = {
        one.pid for one in known if one.pid in rows and rows[one.pid].began == one.began
    }
    # A number is not given out again while a group has it, so a group with one of ours
    # in it is still the group that was begun under that number.
    groups = {rows[pid].group for pid in ours} & noted
    found = (
        pid
        for pid, row in rows.items()
        if pid in ours or row.group in groups or _marked(pid, mark)
    )
    ours_now = sorted({*found} - {os.getpid()})
    return [Process(pid, rows[pid].began) for pid in ours_now]


def end(known: Sequence[Process], mark: str, grace_s: float = GRACE_S) -> list[Process]:
    """Ends a family: asks first, and does not ask those that are left after a while.

    Returns:
        Those that run on, since they are not ours to signal.
    """
    left = family(known, mark)
    for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILLED_S)):
        told: set[Process] = set()
        until_ns = SYSTEM.monotonic_ns() + int(wait_s * 1e9)
        while left and SYSTEM.monotonic_ns() < until_ns:
            for one in left:
                if one not in told:
                    _signal(one, number)
            told.update(left)
            threading.Event().wait(_LOOK_S)
            left = family(known, mark)
    for one in known:
        exit_code(one)
    return left


def _signal(process: Process, number: signal.Signals) -> None:
    """Sends a signal, to this process and no later one of its number."""
    with suppress(OSError):
        if not hasattr(os, "pidfd_open"):
            os.kill(process.pid, number)
            return
        handle = os.pidfd_open(process.pid)
        try:
            row = _rows([process.pid]).get(process.pid)
            if row is not None and row.began == process.began:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def _marked(pid: int, mark: str) -> bool:
    """Whether a process was begun for that state file, in this container."""
    with suppress(OSError):
        words = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        if os.fsencode(f"{MARK}={mark}") in words:
            here, there = (_PROC / str(one) / "ns/pid" for one in (os.getpid(), pid))
            return here.readlink() == there.readlink()
    return False


def _rows(pids: Iterable[int] | None = None) -> dict[int, _Row]:
    """What the system says of some processes, or of all."""
    if not (_PROC / "self/stat").exists():
        return _from_ps(pids)
    if pids is None:
        pids = (int(one.name) for one in _PROC.iterdir() if one.name.isdecimal())
    boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii")[:8]
    found = {}
    for pid in pids:
        with suppress(OSError):  # it has gone meanwhile
            text = (_PROC / str(pid) / "stat").read_text("latin-1")
            fields = text.rpartition(")")[2].split()
            began = f"{boot}/{fields[_STAT_BEGAN]}"
            zombie = fields[0] in ("Z", "X")
            found[pid] = _Row(began, int(fields[_STAT_GROUP]), zombie)
    return found


def _from_ps(pids: Iterable[int] | None) -> dict[int, _Row]:
    """The same where there is no /proc, such as on a Mac."""
    asked = ["-p", ",".join(map(str, pids))] if pids is not None else ["-ax"]
    told = subprocess.run(  # noqa: S603  fixed words and numbers
        ["ps", *asked, "-o", "pid=,pgid=,stat=,lstart="],  # noqa: S607  the system's
        env={**os.environ, "LC_ALL": "C"}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    rows = (line.split(maxsplit=3) for line in told.stdout.splitlines())
    return {
        int(pid): _Row(began, int(group), state.startswith("Z"))
        for pid, group, state, began in rows
    }
