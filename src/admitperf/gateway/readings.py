"""What engines say of themselves, read in a thread of its own.

The request path takes the last reading; nothing in it waits for a page.
"""

import threading
from collections.abc import Callable, Sequence

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.reading import Reading
from admitperf.gateway.setup import Scrape, Upstream
from admitperf.scrape.address import Address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.pool import merged
from admitperf.scrape.target import Endpoint
from admitperf.scrape.watch import Round, Watcher

_FOREVER = 1 << 62


class Readings:
    """The last reading of a pool and of each of its replicas.

    Args:
        upstreams: replicas, each with a metrics page of its own.
        scrape: how they are read.
        clock: of the policy.

    Attributes:
        pool: all replicas in one reading; empty and old before the first page.
        failed: why a replica could not be read in the last round, by its name.
        rounds, failures: how often all were read, and how often one could not be.
    """

    def __init__(
        self, upstreams: Sequence[Upstream], scrape: Scrape, clock: Clock = SYSTEM
    ) -> None:
        self._scrape = scrape
        self._clock = clock
        self._watcher = Watcher(
            [_endpoint(one, scrape) for one in upstreams], scrape.interval_s, clock
        )
        names = [one.name for one in upstreams]
        self._name_of = dict(zip(self._watcher.names, names, strict=True))
        self._slots = {one.name: one.slots for one in upstreams}
        self._thread: threading.Thread | None = None
        self._told: Callable[[], None] = _nobody
        self.pool = Reading({}, own_since=True, interval_s=scrape.interval_s)
        self._replicas: dict[str, Reading] = {}
        self._older: tuple[Reading, ...] = ()
        self.failed: dict[str, str] = {}
        self.rounds = self.failures = 0

    def replica(self, name: str) -> Reading:
        """The last reading of one; the pool's while it has none of its own."""
        return self._replicas.get(name, self.pool)

    @property
    def all(self) -> tuple[Reading, ...]:
        """Those that decisions are made on."""
        return tuple(self._replicas.values()) or (self.pool,)

    def first(self) -> dict[str, str]:
        """Reads every replica once, here and now; why some could not be, by name."""
        begun = self._watcher.first()
        if begun is not None:
            self._take(begun)
        return self.failed

    def start(self, on_new: Callable[[], None] | None = None) -> None:
        """Begins to read, if it has not begun; `on_new` is called in that thread."""
        if self._thread is None:
            self._told = on_new or _nobody
            self._thread = threading.Thread(
                target=self._run, name="admitperf-readings", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._watcher.stop()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        for one in self._watcher.rounds(_FOREVER):
            self._take(one)
            self._told()

    def _take(self, one: Round) -> None:
        self.rounds += 1
        self.failures += len(one.failed)
        self.failed = {self._named(fault): fault.what for fault in one.failed}
        if not one.pages:
            return
        self._let_go()
        pages = {self._name_of[name]: sample.page for name, sample in one.pages.items()}
        every = self._scrape.interval_s
        slots = [self._slots[name] for name in pages]
        self.pool = Reading(
            merged(pages),
            taken_ns=one.taken_ns,
            interval_s=every,
            own_since=True,
            slots=None if None in slots else sum(filter(None, slots)),
        )
        if self._scrape.view == "replica":
            for name, sample in one.pages.items():
                mine = self._name_of[name]
                self._replicas[mine] = Reading(
                    sample.page,
                    taken_ns=sample.asked_ns,
                    interval_s=every,
                    replica=mine,
                    own_since=True,
                    slots=self._slots[mine],
                )

    def _let_go(self) -> None:
        """Undoes the cycle of a reading and its views, once nobody decides on it.

        The one being replaced keeps them: a decision may be looking at it.
        """
        for old in self._older:
            old.views.clear()
        self._older = (self.pool, *self._replicas.values())

    def _named(self, fault: ScrapeError) -> str:
        """The replica a fault is about: messages name its page."""
        for seen, name in self._name_of.items():
            if seen in fault.target:
                return name
        return fault.target


def _endpoint(one: Upstream, scrape: Scrape) -> Endpoint:
    return Endpoint(Address.of(one.metrics_url), one.metrics_token, scrape.timeout_s)


def _nobody() -> None:
    """Nobody wants to know."""
