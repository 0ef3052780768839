"""Which replica of a pool a request goes to.

Routing is a router's job. What knows of prefix caches, of lengths or of other front
doors belongs behind this one; here requests are only spread evenly, a session stays
where its cache is, and a replica that takes no connection is left alone for a while.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Self
from urllib.parse import urlsplit

from admitperf.core.clock import SYSTEM, Clock
from admitperf.gateway.setup import PoolSetup, Upstream

KEPT_FACTOR = 1.25
KEPT_MORE = 2
"""A session moves once its replica has over 1.25 times the requests of the least busy
one, and 2 more. Plain choice: a quarter more load costs less than a cold cache."""

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
"""How long a replica that took no connection is left alone; doubles each time. Plain
choice: a restarted engine is found within half a minute."""

TRIAL_S = 5.0
"""One request at a time tries a replica that was down. Origin: the default time to
connect of `setup.Timeouts`."""

PROBED_S = 10.0
"""A replica whose page cannot be read, or stands still while it works, gets one request
in so long: neither idle nor full for ever. Plain choice: as `pool.PROBE_S`."""

MOST_ORDERED = 8
"""Replicas that one request is judged for before it is refused. Plain choice."""

_NS = 1_000_000_000
_PORTS = {"http": 80, "https": 443}


class Replica:
    """One upstream; a `with` block on it is one request that it has.

    Attributes:
        name: as logs have it.
        url: where its connections go.
        host: value of the `host` header.
        prefix: path before every request's own; mostly empty.
        in_flight: requests of this process that it has.
    """

    __slots__ = (
        "_down_ns",
        "_faults",
        "_picked_ns",
        "_trial",
        "host",
        "in_flight",
        "name",
        "prefix",
        "url",
    )

    def __init__(self, upstream: Upstream) -> None:
        parts = urlsplit(upstream.url)
        name = parts.hostname or ""
        host = f"[{name}]" if ":" in name else name
        port = (
            "" if parts.port in {None, _PORTS.get(parts.scheme)} else f":{parts.port}"
        )
        self.name = upstream.name
        self.url = f"{parts.scheme}://{host}{port}"
        self.host = f"{host}{port}".encode("ascii")
        self.prefix = parts.path.rstrip("/").encode("ascii")
        self.in_flight = 0
        self._down_ns = 0
        self._faults = 0
        self._picked_ns = 0
        self._trial = False

    def __enter__(self) -> Self:
        self.in_flight += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.in_flight -= 1

    def down(self, now_ns: int) -> bool:
        """Whether it is left alone at this time."""
        return now_ns < self._down_ns

    def due(self, now_ns: int) -> bool:
        """Whether it had no request for so long that it is given one to see."""
        return now_ns - self._picked_ns >= PROBED_S * _NS

    def tried(self, now_ns: int) -> None:
        """A request goes to it; if it was down, the only one for a while."""
        self._picked_ns = now_ns
        if self._faults:
            self._trial = True
            self._down_ns = now_ns + int(TRIAL_S * _NS)

    def failed(self, now_ns: int) -> None:
        """It took no connection."""
        if self.down(now_ns) and not self._trial:
            return  # one of many that met the same fault
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._faults, 8))
        self._faults += 1
        self._trial = False
        self._down_ns = now_ns + int(pause_s * _NS)

    def worked(self) -> None:
        """It took a connection."""
        if self._faults:
            self._faults = 0
            self._trial = False
            self._down_ns = 0


class Balancer:
    """Spreads the requests of one pool over its replicas.

    Args:
        pool: names at least one upstream.
        most_sessions: sessions whose replica is remembered; the oldest go first.
        clock: source of time.

    Attributes:
        setup: the pool as given.
        replicas: all of them, in the order given.
        unseen: names those of which nothing is known at the moment.
    """

    def __init__(
        self, pool: PoolSetup, most_sessions: int = 10_000, clock: Clock = SYSTEM
    ) -> None:
        self.setup = pool
        self.replicas = tuple(Replica(one) for one in pool.upstreams)
        self.unseen: Callable[[], Collection[str]] = frozenset
        self._most = most_sessions
        self._clock = clock
        self._homes: OrderedDict[str, Replica] = OrderedDict()
        self._turn = 0

    def order(self, session: str | None) -> list[str]:
        """The replicas a request may go to now, the one it would go to first."""
        up = self._up(list(self.replicas), self._clock.monotonic_ns())
        first = self._settled(session, up)
        rest = sorted((one for one in up if one is not first), key=_in_flight)
        return [one.name for one in (first, *rest[: MOST_ORDERED - 1])]

    def pick(
        self,
        session: str | None = None,
        *,
        named: str | None = None,
        without: Collection[Replica] = (),
    ) -> Replica | None:
        """The replica a request goes to.

        Args:
            session: it stays where it was, if that replica is not much busier.
            named: the replica it was judged for; taken if it is still to be had.
            without: those already tried in vain.

        Returns:
            None if all were tried.
        """
        if len(self.replicas) == 1:
            return None if without else self.replicas[0]
        left = [one for one in self.replicas if one not in without]
        if not left:
            return None
        now_ns = self._clock.monotonic_ns()
        if named is not None and not without:
            found = next((one for one in left if one.name == named), None)
        else:
            found = None
        if found is None:
            found = self._settled(session, self._up(left, now_ns))
        found.tried(now_ns)
        return found

    def failed(self, replica: Replica) -> None:
        """A replica took no connection."""
        replica.failed(self._clock.monotonic_ns())

    def _up(self, left: list[Replica], now_ns: int) -> list[Replica]:
        """Those that take connections and are seen, or due to be tried; else all."""
        takes = [one for one in left if not one.down(now_ns)] or left
        unseen = self.unseen()
        if not unseen:
            return takes
        seen = [one for one in takes if one.name not in unseen or one.due(now_ns)]
        return seen or takes

    def _settled(self, session: str | None, up: list[Replica]) -> Replica:
        least = self._least(up)
        if session is None:
            return least
        home = self._homes.get(session)
        most = KEPT_FACTOR * least.in_flight + KEPT_MORE
        if home not in up or home.in_flight > most:
            home = least
        self._homes[session] = home
        self._homes.move_to_end(session)
        if len(self._homes) > self._most:
            self._homes.popitem(last=False)
        return home

    def _least(self, up: list[Replica]) -> Replica:
        """The least busy; equals in turn, or the first has all quiet hours."""
        self._turn += 1
        first = self._turn % len(up)
        return min(up[first:] + up[:first], key=_in_flight)


def _in_flight(replica: Replica) -> int:
    return replica.in_flight
