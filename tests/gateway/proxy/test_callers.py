"""Whether a caller is still there, asked of the system."""

import asyncio
import socket

import pytest

from admitperf.gateway.proxy.callers import Callers


@pytest.fixture
def callers():
    """Those of a system that tells; else the test is skipped."""
    made = Callers()
    if not made.watches:
        pytest.skip("this system does not tell of connections")
    yield made
    made.close()


def _pair(address="127.0.0.1", listens=None):
    """Both ends of a connection: a caller's and ours."""
    family = socket.AF_INET6 if ":" in (listens or address) else socket.AF_INET
    with socket.create_server(
        (listens or address, 0), family=family, dualstack_ipv6=listens == "::"
    ) as held:
        port = held.getsockname()[1]
        caller = socket.create_connection((address, port))
        ours, _ = held.accept()
    return caller, ours


@pytest.mark.parametrize(
    ("address", "listens"),
    [
        ("127.0.0.1", None),
        ("127.0.0.1", "0.0.0.0"),
        ("127.0.0.1", "::"),
        ("::1", None),
        ("::1", "::"),
    ],
)
def test_a_caller_is_there_until_it_leaves(callers, address, listens):
    """By whatever address we listen, with bytes of it unread."""
    try:
        caller, ours = _pair(address, listens)
    except OSError:
        pytest.skip("this machine has no such address")
    with ours:
        with caller:
            server = listens or address, str(ours.getsockname()[1])
            line = callers.line(ours.getpeername(), server)
            caller.sendall(b"unread")
            assert callers.there(line)
        assert not callers.there(line)


def test_another_connection_between_the_same_ends_is_another(callers):
    """The system's number of it tells."""
    caller, ours = _pair()
    with caller, ours:
        line = callers.line(ours.getpeername(), ours.getsockname())
        assert callers.there(line)
        assert not callers.there(line._replace(cookie=bytes(8)))


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (("127.0.0.1", 1), ("127.0.0.1", 1)),
        (("testclient", 50000), ("127.0.0.1", 80)),
        (("::1", 5), ("127.0.0.1", 80)),
        (("127.0.0.1", 99999), ("127.0.0.1", 80)),
    ],
)
def test_what_is_no_connection_here_is_not_known(callers, client, server):
    """None, and nothing is raised: a test client, a closed one, odd words."""
    assert callers.line(client, server) is None


def test_a_system_that_stops_telling_takes_nobody_away(callers):
    """Who cannot be asked about is there."""
    caller, ours = _pair()
    with caller, ours:
        line = callers.line(ours.getpeername(), ours.getsockname())
        callers.close()
        caller.close()
        assert callers.there(line)


def test_where_nobody_can_be_asked_the_servers_word_stands(callers):
    """The server's own `receive` is handed on."""

    async def receive():
        raise AssertionError

    assert (
        callers.of({"client": None, "server": ("127.0.0.1", "1")}, receive) is receive
    )
    callers.close()
    scope = {"client": ("127.0.0.1", "1"), "server": ("127.0.0.1", "2")}
    assert callers.of(scope, receive) is receive


def test_a_body_passes_and_then_whichever_comes_first(callers):
    """Every part as it came; then the server's word that the caller left."""
    parts = [
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.request", "body": b"b", "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def test():
        left = list(parts)

        async def receive():
            return left.pop(0)

        caller, ours = _pair()
        with caller, ours:
            scope = {"client": ours.getpeername(), "server": ours.getsockname()}
            watched = callers.of(scope, receive)
            assert [await watched() for _ in parts] == parts

    asyncio.run(test())
