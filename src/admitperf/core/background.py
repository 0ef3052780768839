"""A thread for the work of a policy that takes long: no reading waits for it."""

from contextlib import suppress
from threading import Thread

from admitperf.core.policy import Policy


class Background:
    """Has `policy.background` called in a thread of its own, one at a time.

    The thread lives for as long as the work and keeps no process from ending. A forked
    child begins one of its own.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._thread: Thread | None = None

    def soon(self) -> None:
        """Begins it, unless one is under way or there is never any. Never waits."""
        if not self._policy.has_tasks:
            return
        if self._thread is not None and self._thread.is_alive():
            return
        thread = Thread(
            target=self._policy.background, name="admitperf-background", daemon=True
        )
        with suppress(RuntimeError):  # none to be had: the next reading tries again
            thread.start()
            self._thread = thread
