"""Who runs the runs: this process, processes of this machine, or Ray.

A task is a function of a module and one argument, both of which can be pickled; what
comes back is the same whoever ran it, only the order may differ.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from admitperf.core.errors import AdmitPerfError, MissingExtra

_T = TypeVar("_T")
_R = TypeVar("_R")


class ExecutorError(AdmitPerfError, RuntimeError):
    """Runs cannot be run elsewhere."""


class Executor(Protocol):
    """Runs tasks."""

    def each(self, run: Callable[[_T], _R], tasks: Sequence[_T]) -> Iterator[_R]:
        """The results as they come, in any order; what a task raises is raised."""
        ...

    def close(self) -> None:
        """Ends what is running."""
        ...


class Here:
    """One after the other, in this process."""

    def each(self, run: Callable[[_T], _R], tasks: Sequence[_T]) -> Iterator[_R]:
        """In order."""
        for task in tasks:
            yield run(task)

    def close(self) -> None:
        """Nothing is running."""


class Processes:
    """Processes of this machine, which stay for the whole experiment.

    Args:
        jobs: how many.
    """

    def __init__(self, jobs: int) -> None:
        # spawned: a fork would copy the threads' locks of this process
        self._pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("spawn"), initializer=_deaf
        )

    def each(self, run: Callable[[_T], _R], tasks: Sequence[_T]) -> Iterator[_R]:
        """As they are ready.

        Raises:
            ExecutorError: a process was ended from outside, as for want of memory.
        """
        try:
            for done in as_completed([self._pool.submit(run, task) for task in tasks]):
                yield done.result()
        except BrokenProcessPool:
            said = "a process was ended in the midst of a run: try fewer --jobs"
            raise ExecutorError(said) from None

    def close(self) -> None:
        """Lets what is running end, and takes nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _deaf() -> None:
    """Ctrl-C is the parent's: it says what becomes of what is running."""
    signal = import_module("signal")
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class OnRay:
    """A Ray of this machine, started for the experiment unless one is there.

    Args:
        jobs: CPUs it may use.

    Raises:
        MissingExtra: Ray is not installed.
    """

    def __init__(self, jobs: int) -> None:
        try:
            self._ray: Any = import_module("ray")
        except ImportError:
            said = "--executor ray needs ray: pip install ray"
            raise MissingExtra(said) from None
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False)

    def each(self, run: Callable[[_T], _R], tasks: Sequence[_T]) -> Iterator[_R]:
        """As they are ready."""
        remote = self._ray.remote(run)
        waiting = [remote.remote(task) for task in tasks]
        while waiting:
            done, waiting = self._ray.wait(waiting, num_returns=1)
            for one in done:
                yield self._ray.get(one)

    def close(self) -> None:
        """Ends the Ray that was started for this."""
        if self._ours:
            with suppress(Exception):
                self._ray.shutdown()


def executor(name: str, jobs: int | None) -> Executor:
    """An executor by its name.

    Args:
        name: "local" or "ray".
        jobs: processes; None = one a core.

    Raises:
        MissingExtra: Ray was asked for and is not installed.
    """
    wanted = jobs or cores()
    if name == "ray":
        return OnRay(wanted)
    return Here() if wanted == 1 else Processes(wanted)


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
