"""All that a gateway was told, as plain values."""

from dataclasses import dataclass, field

from admitperf.gateway.setup import KIB, EdgeSetup

HOST = "127.0.0.1"
PORT = 8080


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The side that callers see.

    Attributes:
        host: to listen on.
        port: likewise; 0 = any that is free.
        keep_alive_s: longest a connection stands idle between two requests, and
            longest a caller may take over the head of one: the server has one clock for
            both. Plain choice: load balancers reuse connections for 60 s.
        header_bytes: largest head of a request; a larger one gets 431.
        backlog: connections the system holds until they are accepted.
        grace_s: how long everything is still served after the first signal to end,
            while `/ready` says 503. Plain choice: none, since what asks `/ready` (and
            how often) is known to the operator only.
        drain_s: how long open requests may go on after that.
    """

    host: str = HOST
    port: int = PORT
    keep_alive_s: float = 75.0
    header_bytes: int = 64 * KIB
    backlog: int = 2048
    grace_s: float = 0.0
    drain_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A gateway before it is started.

    Attributes:
        server: where it listens, and how.
        edge: what it decides with, and what it forwards to.
    """

    server: Server = field(default_factory=Server)
    edge: EdgeSetup
