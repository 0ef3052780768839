"""Starts the dashboard in this process: no prompt, no browser, nothing phoned home."""

import errno
import http.client
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

FIRST_PORT = 8501
"""Streamlit's own."""

MOST_PORTS = 100
"""Plain choice: how many are tried from the first on."""

_APP = Path(__file__).with_name("app.py")
_LOOK_EVERY_S = 0.1
SETTINGS = {
    "browser.gatherUsageStats": "false",
    "client.showErrorDetails": "none",
    "client.toolbarMode": "minimal",
    "global.developmentMode": "false",
    "logger.hideWelcomeMessage": "true",
    "logger.level": "error",
    "server.fileWatcherType": "none",
    "server.headless": "true",
    "server.showEmailPrompt": "false",
}
"""Each is Streamlit's name: headless opens no browser and asks for no address."""


def free_port(host: str, first: int = FIRST_PORT, most: int = MOST_PORTS) -> int | None:
    """The first port from `first` on that nothing listens on; None = none of them.

    Args:
        host: an address of this machine.
        first: where to begin.
        most: how many to try.

    Raises:
        OSError: it is no address of this machine.
    """
    for port in range(first, min(first + most, 1 << 16)):
        if _is_free(host, port):
            return port
    return None


def run(host: str, port: int, given: list[str], serving: Callable[[], None]) -> None:
    """Serves until it is interrupted or told to end.

    Args:
        host: the address to listen on.
        port: a free one.
        given: the fields of `reading.Asked`.
        serving: called once it answers.
    """
    from streamlit.web import cli  # noqa: PLC0415  half a second, after the checks

    where = {"server.address": host, "server.port": str(port)}
    flags = [f"--{name}={value}" for name, value in (SETTINGS | where).items()]
    flags += [f"--server.allowedHosts={name}" for name in _names(host)]
    ended = threading.Event()
    waits = threading.Thread(
        target=_wait, args=(host, port, ended, serving), daemon=True
    )
    waits.start()
    try:
        cli.main(["run", str(_APP), *flags, "--", *given], standalone_mode=False)
    except KeyboardInterrupt:
        return
    finally:
        ended.set()


def _names(host: str) -> list[str]:
    """By which names it may be asked.

    A page from elsewhere that has its own name resolved to this address asks by that.
    """
    return ["*"] if host in _EVERY else ["localhost", "127.0.0.1", "[::1]", "::1", host]


_EVERY = ("0.0.0.0", "::")  # noqa: S104  compared with, not bound to


def _wait(
    host: str, port: int, ended: threading.Event, serving: Callable[[], None]
) -> None:
    """Calls `serving` once the server answers, unless it ended before."""
    while not ended.wait(_LOOK_EVERY_S):
        if _answers(host, port):
            serving()
            return


def _answers(host: str, port: int) -> bool:
    with closing(http.client.HTTPConnection(host, port, timeout=1)) as connection:
        try:
            connection.request("GET", "/_stcore/health")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except PermissionError:
            return False
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True
