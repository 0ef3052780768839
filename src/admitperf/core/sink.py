"""Who takes the lines of a log."""

from typing import Protocol, runtime_checkable

from admitperf.core.view import View


@runtime_checkable
class Sink(Protocol):
    """What `log=` may be besides a path. None of it may block or raise."""

    def decision(self, view: View | None, line: str) -> None:
        """Takes a decision line, and the reading it refers to if it refers to one."""

    def event(self, kind: str, line: str) -> None:
        """Takes an outcome or control line."""

    def flush(self, timeout_s: float = ...) -> bool:
        """Writes what is buffered; False when that was not possible in time."""

    def close(self, timeout_s: float = ...) -> None:
        """Writes what is left and lets go."""

    def after_fork(self, run: str) -> None:
        """Starts anew in a forked child, under a new run id."""
