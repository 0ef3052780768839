"""What an operator should hear, said by a thread of its own.

Logging handlers write to pipes and sockets, and may wait: never in the request path.
"""

import atexit
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from admitperf.core.clock import SYSTEM

MOST = 100
"""Notices kept while nobody takes them; what comes then is dropped."""

_EXIT_NS = 500_000_000

_waiting: deque[str] = deque()
_wake = threading.Event()
_lock = threading.Lock()
_voice = threading.RLock()  # a handler of logging may speak too
_thread: threading.Thread | None = None


def say(message: str) -> None:
    """Has a warning said through the standard logger `admitperf`; never waits."""
    if len(_waiting) < MOST:
        _waiting.append(message)
        hand_over()


def hand_over() -> None:
    """Wakes the thread that speaks."""
    get_ready()
    _wake.set()


def get_ready() -> None:
    """Starts the thread that speaks: at set-up, so that no request has to."""
    global _thread  # noqa: PLW0603  one voice for a process
    with _lock:
        if _thread is None:
            try:
                thread = threading.Thread(
                    target=_work, name="admitperf-notice", daemon=True
                )
                thread.start()
                _thread = thread
            except RuntimeError:  # a process that is ending starts no thread
                return


def speak() -> None:
    """Says what waits, in this thread; one thread at a time."""
    with _voice:
        while _waiting:
            _tell(_waiting[0])
            _waiting.popleft()


@contextmanager
def hushed() -> Iterator[None]:
    """Nothing is said meanwhile: for policies that are blinded on purpose."""
    import logging  # noqa: PLC0415  a host that never logs is spared it

    logger = logging.getLogger("admitperf")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        speak()
        logger.disabled = before


def in_words(error: BaseException) -> str:
    """An error's type and text, at most 300 characters, whatever its text does."""
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except Exception:  # noqa: BLE001  an error that cannot say what it is
        return type(error).__name__


def _work() -> None:
    while True:
        _wake.wait()
        _wake.clear()
        speak()


def _tell(message: str) -> None:
    """Through `logging` where the process uses it, else on stderr, as it would do."""
    try:
        logging = sys.modules.get("logging")
        if logging is not None:
            logging.getLogger("admitperf").warning(message)
        else:
            sys.stderr.write(f"admitperf: {message}\n")
    except Exception:  # noqa: BLE001  a set-up that fails is not our caller's problem
        return


@atexit.register
def _finish() -> None:
    """Gives the voice a moment to say the last things."""
    until_ns = SYSTEM.monotonic_ns() + _EXIT_NS
    while _waiting and _thread is not None and SYSTEM.monotonic_ns() < until_ns:
        threading.Event().wait(0.01)


def _after_fork() -> None:
    global _thread, _wake, _lock, _voice
    _waiting.clear()
    _thread, _wake = None, threading.Event()
    _lock, _voice = threading.Lock(), threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
