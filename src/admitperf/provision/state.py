"""What is up, in a file: all that `smoke` and `down` know of an earlier `up`."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from admitperf.core.clock import SYSTEM
from admitperf.provision.fault import ProvisionError, TornStateError
from admitperf.provision.processes import Process, family

SCHEMA = 1
DEFAULT = Path(".admitperf/infra.json")
_KEY = "admitperf_infra"
_START = b'{\n  "' + _KEY.encode() + b'":'
_TEXTS = ("provider", "phase", "when", "model", "url", "log", "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One `up`.

    Attributes:
        provider: what was asked for.
        phase: "starting" from before anything is started, "up" once it was healthy.
        when: when it began, UTC.
        url: where it serves; None = not known yet.
        model: the name it serves under; None = as the engine says.
        processes: those of this machine that were started; empty before that, and
            where none is.
        command: what was started.
        log: path of what it wrote; None = there is no process.
        cluster: SkyPilot's name of what was rented; None = nothing was.
    """

    provider: str
    phase: Literal["starting", "up"] = "starting"
    when: str
    url: str | None = None
    model: str | None = None
    processes: tuple[Process, ...] = ()
    command: tuple[str, ...] = ()
    log: str | None = None
    cluster: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {_KEY: SCHEMA, **asdict(self)}


def now() -> str:
    """The time, as people read it, UTC."""
    return datetime.fromtimestamp(SYSTEM.wall_ns() // 10**9, UTC).isoformat()


def mark(path: Path) -> str:
    """What the processes of a state file carry."""
    return str(path.resolve())


def running(path: Path, state: State | None) -> list[Process]:
    """What still runs of an `up` on this machine, also when its file is gone."""
    return family(state.processes if state else (), mark(path))


def read(path: Path) -> State | None:
    """What the file says; None = there is none.

    Raises:
        TornStateError: it is ours and ends too early.
        ProvisionError: it cannot be read, or is not ours.
    """
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or "not a path").lower()
        raise ProvisionError(f"{path}: {why}") from None
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        if body.startswith(_START) or _START.startswith(body):
            what = "ends too early, so what it named is not known"
            fix = "`admitperf infra down` ends what is left"
            raise TornStateError(f"{path}: {what}; {fix}") from None
        told = None
    if not isinstance(told, dict) or told.get(_KEY) != SCHEMA:
        raise ProvisionError(f"{path}: no state file of this release; name another")
    return _state(path, told)


def _state(path: Path, told: dict[str, Any]) -> State:
    try:
        texts: dict[str, Any] = {
            name: told[name] and str(told[name]) for name in _TEXTS
        }
        return State(
            **texts,
            processes=tuple(
                Process(int(one["pid"]), str(one["began"])) for one in told["processes"]
            ),
            command=tuple(map(str, told["command"])),
        )
    except (KeyError, TypeError, ValueError):
        what = "a state file with something in it that none has"
        raise ProvisionError(f"{path}: {what}; name another") from None


def write(path: Path, state: State) -> None:
    """Puts a state in the place of what is there, whole or not at all.

    Raises:
        ProvisionError: it cannot be written.
    """
    text = json.dumps(state.to_dict(), indent=2) + "\n"
    new = path.with_name(f".{path.name}-{secrets.token_hex(8)}.tmp")
    with _telling(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with new.open("x", encoding="utf-8") as file:
                new.chmod(0o600)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)


def forget(path: Path) -> None:
    """Removes the file; none is no fault.

    Raises:
        ProvisionError: it cannot be removed.
    """
    with _telling(path):
        path.unlink(missing_ok=True)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keeps a second `up` with the same file out, until this process has ended.

    Raises:
        ProvisionError: another one is at it.
    """
    lock = path.with_name(f"{path.name}.lock")
    with _telling(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            what = "another `admitperf infra up` is at work on it"
            raise ProvisionError(f"{path}: {what}; wait, or name another") from None
        yield


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or "not a path").lower()
        raise ProvisionError(f"{path}: {why}") from None
