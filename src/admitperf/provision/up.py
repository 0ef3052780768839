"""Brings an engine up: noted down before it is started, so that `down` always can."""

import os
import shlex
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from admitperf.core.clock import SYSTEM
from admitperf.provision import cloud, endpoint, engines, processes, state
from admitperf.provision.fault import ProvisionError
from admitperf.provision.processes import Process
from admitperf.provision.state import State
from admitperf.provision.wish import Wish
from admitperf.reports.wording import printable


@dataclass(frozen=True, slots=True)
class Progress:
    """Who is told what goes on.

    Attributes:
        say: takes a line that is worth keeping.
        wait: takes the seconds waited so far, a few times each second.
    """

    say: Callable[[str], None]
    wait: Callable[[float], None]


HEALTHY_EACH_S = 0.25
_TAIL = 65_536
_HOPELESS = ("token", "tls", "bad_address", "redirect")
"""Faults of a scrape that do not pass by waiting."""

_NOT_UP = (*_HOPELESS, "refused", "unknown_host", "unreachable")
"""The same of an engine that somebody else is said to have up already."""


def planned(wish: Wish) -> str:
    """What would be started: a command line, or SkyPilot's task. Nothing is.

    Raises:
        ProvisionError: something that it needs is missing.
    """
    if wish.kind == "skypilot":
        return cloud.rendered(wish)
    if wish.kind == "url":
        return f"nothing: {_given(wish).url} is somebody else's"
    return shlex.join(engines.start_of(wish, wish.port).command)


def up(wish: Wish, told: Progress) -> State:
    """Starts an engine and waits until it is healthy.

    Args:
        wish: what to start.
        told: who is told what goes on.

    Returns:
        What is up, as the state file has it.

    Raises:
        ProvisionError: it cannot be, or did not become healthy; what was started on
            this machine has been ended, what was rented has not.
    """
    with state.alone(wish.state):
        _refuse_second(wish.state)
        if wish.kind == "url":
            return _adopted(wish, told)
        return _rented(wish, told) if wish.kind == "skypilot" else _started(wish, told)


def _refuse_second(path: Path) -> None:
    """What is up is taken down first, or its file would be lost."""
    before = state.read(path)
    left = state.running(path, before)
    if left:
        pids = ", ".join(str(one.pid) for one in left)
        what = f"still up (pid {pids})"
    elif before is None or (before.cluster is None and not _answers(before)):
        return
    else:
        what = f"cluster {before.cluster}" if before.cluster else f"{before.url} is up"
    raise ProvisionError(f"{path}: {what}; `admitperf infra down` first")


def _answers(before: State) -> bool:
    """Whether somebody else's engine that a file names is still there."""
    adopted = before.provider == "url" and before.url is not None
    return adopted and endpoint.of(before.url or "", None).unhealthy() is None


# ------------------------------------------------------------------- on this machine


def _started(wish: Wish, told: Progress) -> State:
    port = engines.free(wish.port)
    start = engines.start_of(wish, port)
    log = wish.state.with_suffix(".log")
    made = State(
        provider=wish.kind,
        when=state.now(),
        url=f"http://{engines.HOST}:{port}",
        model=start.model,
        command=start.command,
        log=str(log),
    )
    state.write(wish.state, made)  # from here on `down` finds what carries the mark
    try:
        ours = {processes.MARK: state.mark(wish.state)}
        environment = os.environ | start.environment | ours
        one = processes.begin(start.command, environment, log)
        made = replace(made, processes=(one,))
        state.write(wish.state, made)
        told.say(f"{wish.kind} begins as pid {one.pid}; it writes to {log}")
        _wait(wish, made, told, one)
        return _noted(wish.state, made)
    except BaseException:
        left = processes.end(made.processes, state.mark(wish.state))
        if not left:
            state.forget(wish.state)
        raise


def _noted(path: Path, made: State) -> State:
    """With every process of it: one may outlive the first."""
    found = (*made.processes, *state.running(path, made))
    done = replace(made, phase="up", processes=tuple(dict.fromkeys(found)))
    state.write(path, done)
    return done


def _wait(wish: Wish, made: State, told: Progress, one: Process | None) -> None:
    """Until it is healthy.

    Raises:
        ProvisionError: it ended, or time is up.
    """
    at = endpoint.of(made.url or "", wish.token)
    begun_ns, pause = SYSTEM.monotonic_ns(), threading.Event()
    while (fault := at.unhealthy()) is not None:
        if fault.kind in (_HOPELESS if made.provider != "url" else _NOT_UP):
            raise ProvisionError(str(fault))
        waited_s = (SYSTEM.monotonic_ns() - begun_ns) / 1e9
        if one is not None and not processes.family([one], state.mark(wish.state)):
            raise ProvisionError(f"{made.provider} {_how(one)}{_last_words(made)}")
        if waited_s >= wish.wait_s:
            what = f"not healthy after {wish.wait_s:g} s ({fault.what})"
            fix = f"--wait makes it longer{_last_words(made)}"
            raise ProvisionError(f"{made.url}: {what}; {fix}")
        told.wait(waited_s)
        pause.wait(HEALTHY_EACH_S)


def _how(one: Process) -> str:
    code = processes.exit_code(one)
    how = "" if code is None else f" with code {code}"
    return f"ended{how} before it was healthy"


def _last_words(made: State) -> str:
    if made.log is None:
        return ""
    try:
        text = Path(made.log).read_bytes()[-_TAIL:].decode(errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if line.strip()]
    last = printable(" ".join(lines[-1].split())) if lines else "nothing"
    return f"; the last it wrote to {made.log}: {last}"


# ------------------------------------------------------------------ of somebody else


def _given(wish: Wish) -> endpoint.Endpoint:
    if wish.url is None:
        raise ProvisionError("--provider url needs --url HOST:PORT")
    return endpoint.of(wish.url, wish.token)


def _adopted(wish: Wish, told: Progress) -> State:
    at = _given(wish)
    made = State(provider="url", when=state.now(), url=at.url, model=wish.model)
    _wait(wish, made, told, None)
    made = replace(made, phase="up", model=wish.model or at.model())
    state.write(wish.state, made)
    return made


# ------------------------------------------------------------------------- of a cloud


def _rented(wish: Wish, told: Progress) -> State:
    if wish.token is None:
        what = "the port will be open to everyone, so the engine needs a token"
        raise ProvisionError(f"{what}: put one into ADMITPERF_TOKEN")
    task, sky = cloud.rendered(wish), cloud.Sky()
    made = State(
        provider="skypilot",
        when=state.now(),
        model=cloud.served(wish),
        cluster=wish.cluster,
    )
    state.write(wish.state, made)  # before anything costs
    try:
        told.say(f"cluster {wish.cluster} is being launched; from now on it may cost")
        sky.launch(task, wish.cluster, wish.token)
        made = replace(made, url=sky.address(wish.cluster, wish.port))
        state.write(wish.state, made)
        _wait(wish, made, told, None)
    except ProvisionError as error:
        cost = f"cluster {wish.cluster} may exist and cost money"
        raise ProvisionError(f"{error}; {cost}: `admitperf infra down`") from None
    made = replace(made, phase="up")
    state.write(wish.state, made)
    return made
