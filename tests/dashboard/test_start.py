"""It starts without a terminal, on loopback, on a port that is free, and ends clean."""

import signal
import socket
import urllib.request

import pytest
from tests.real.process import until

from admitperf.dashboard.start import free_port


def listening(host="127.0.0.1", port=0):
    """A server of somebody else's."""
    taken = socket.socket()
    taken.bind((host, port))
    taken.listen()
    return taken


def test_the_next_free_port_is_taken():
    """One that somebody listens on is passed over."""
    with listening() as taken:
        port = taken.getsockname()[1]
        assert free_port("127.0.0.1", port, most=1) is None
        assert free_port("127.0.0.1", port, most=20) != port


def test_an_address_of_another_machine_is_no_port_in_use():
    """It is said, not searched for."""
    with pytest.raises(OSError, match=r"."):
        free_port("192.0.2.1", 8501)


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_what_it_says_and_ends_when_told(start, demo, ends):
    """The printed address answers; after a signal there is no trace and code 0."""
    served = start(demo)
    assert served.url, served.lines
    with urllib.request.urlopen(f"{served.url}/_stcore/health", timeout=10) as answer:
        assert answer.status == 200
    served.child.send_signal(ends)
    assert served.child.wait(timeout=30) == 0
    assert not [line for line in served.lines if "Traceback" in line]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["a\0b"], "no such file or folder"),
        ([".", "--host", "192.0.2.1"], "192.0.2.1: cannot listen there"),
        ([".", "--host", "no such host"], "cannot listen there"),
    ],
)
def test_what_cannot_be_shown_is_one_line(run, words, said):
    """Exit code 2, and no server."""
    ran = run("dashboard", *words)
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_port_that_was_chosen_is_not_exchanged(run):
    """Who names a port gets it or is told."""
    with listening() as taken:
        port = taken.getsockname()[1]
        ran = run("dashboard", ".", "--port", str(port))
    assert ran.exit_code == 2
    assert f"port {port} is in use" in ran.stderr


def test_others_are_warned_of(start, demo):
    """An address beyond loopback is served, with a line that says who can read it."""
    served = start(demo, "--host", "0.0.0.0")
    until(lambda: served.url, 30)
    assert "no login" in served.lines[0]


def test_a_warm_up_that_makes_no_sense_is_wrong_use(run):
    """Before anything is served."""
    ran = run("dashboard", ".", "--warmup", "banana")
    assert ran.exit_code == 2
    assert "banana" in ran.stderr


def asked(url, host):
    """The status of a WebSocket's handshake by another name of the same address."""
    where = url.removeprefix("http://")
    address, _, port = where.partition(":")
    lines = (
        "GET /_stcore/stream HTTP/1.1",
        f"Host: {host}",
        f"Origin: http://{host}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==",
        "",
        "",
    )
    with socket.create_connection((address, int(port)), timeout=10) as line:
        line.sendall("\r\n".join(lines).encode())
        return int(line.recv(64).split()[1])


def test_a_page_from_elsewhere_reads_no_logs(start, demo):
    """Whose own name was made to lead to this address (DNS rebinding)."""
    served = start(demo)
    port = served.url.rpartition(":")[2]
    assert asked(served.url, f"127.0.0.1:{port}") == 101
    assert asked(served.url, f"localhost:{port}") == 101
    assert asked(served.url, f"evil.example:{port}") == 403
