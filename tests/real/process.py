"""Child processes of tests: started, waited for, and ended by their own id."""

import subprocess
import threading
from contextlib import contextmanager

from admitperf.core.clock import SYSTEM


def until(true, seconds):
    """Ask every 50 ms whether something is true, for so many seconds at most."""
    pause, end_ns = threading.Event(), SYSTEM.monotonic_ns() + seconds * 1e9
    while not true():
        if SYSTEM.monotonic_ns() > end_ns:
            return False
        pause.wait(0.05)
    return True


@contextmanager
def running(command, **options):
    """A child process that is gone afterwards, whatever happens."""
    child = subprocess.Popen(command, **options)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
