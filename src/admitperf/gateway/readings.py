"""What engines say of themselves, read in a thread of its own.

The request path takes the last reading; nothing in it waits for a page.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.notice import in_words, say
from admitperf.core.reading import Reading
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH, RUNNING
from admitperf.gateway.setup import Scrape, Upstream
from admitperf.gateway.voice import tell
from admitperf.scrape.address import Address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.pool import merged
from admitperf.scrape.target import Endpoint
from admitperf.scrape.watch import Round, Watcher

STUCK_S = 10.0
"""A page that says an engine works, and has not moved for so long, says nothing any
more. Plain choice: any engine that works ends a step in that time."""

_FOREVER = 1 << 62
_PROCESS = ("process_", "python_", "http_")  # these move while nothing else does
_WORKS = (RUNNING, QUEUE_DEPTH, KV_PRESSURE)


class Readings:
    """The last reading of a pool and of each of its replicas.

    Args:
        upstreams: replicas, each with a metrics page of its own.
        scrape: how they are read.
        clock: of the policy.

    Attributes:
        pool: all replicas in one reading; empty and old before the first page.
        failed: why a replica cannot be read, by its name, until it is read again.
        unseen: replicas without a page, or with one that stands still while it says
            that its engine works, by name; empty when that is so of all.
        rounds, failures: how often all were read, and how often one could not be.
    """

    def __init__(
        self, upstreams: Sequence[Upstream], scrape: Scrape, clock: Clock = SYSTEM
    ) -> None:
        self._scrape = scrape
        self._clock = clock
        endpoints = [_endpoint(one, scrape) for one in upstreams]
        self._watcher = Watcher(endpoints, scrape.interval_s, clock)
        names = [one.name for one in upstreams]
        self._name_of = dict(zip(self._watcher.names, names, strict=True))
        shown = (one.shown for one in endpoints)
        self._name_in_faults = dict(zip(shown, names, strict=True))
        self._slots = {one.name: one.slots for one in upstreams}
        self._thread: threading.Thread | None = None
        self._told: Callable[[], None] = _nobody
        self._ended = threading.Event()
        self._owner: str | None = None
        self._stumbled = False
        self.pool = Reading({}, own_since=True, interval_s=scrape.interval_s)
        self._replicas: dict[str, Reading] = {}
        self._older: tuple[Reading, ...] = ()
        self._moved: dict[str, tuple[dict[str, float], int]] = {}
        self.unseen: frozenset[str] = frozenset()
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

    def speak_for(self, pool: str) -> None:
        """Has a line said from now on, with the pool's name, when a replica changes.

        That is when it cannot be read any longer, and when it is read again.
        """
        self._owner = pool

    def start(self, on_new: Callable[[], None]) -> None:
        """Begins to read, if it has not begun; `on_new` is called in that thread."""
        if self._thread is None:
            self._told = on_new
            self._thread = threading.Thread(
                target=self._run, name="admitperf-readings", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._watcher.stop()
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while not self._watcher.stopped:
            try:
                for one in self._watcher.rounds(_FOREVER):
                    self._took(one)
            except Exception as error:  # noqa: BLE001  no thread to be had, for one
                self._stumble(error)
            self._ended.wait(self._scrape.interval_s)

    def _took(self, one: Round) -> None:
        """A round, and whoever waits for it; reading goes on, whatever comes of it."""
        try:
            self._take(one)
            self._told()
        except Exception as error:  # noqa: BLE001  the next round may do better
            self._stumble(error)

    def _stumble(self, error: Exception) -> None:
        """Says a fault of ours, once: it may come with every round."""
        if not self._stumbled:
            self._stumbled = True
            say(f"a round of readings failed: {in_words(error)}")

    def _take(self, one: Round) -> None:
        self.rounds += 1
        self.failures += len(one.failed)
        self._note(one)
        if not one.pages:
            return
        self._let_go()
        pages = {self._name_of[name]: sample.page for name, sample in one.pages.items()}
        if len(pages) > 1:  # of one engine alone, what it says is all there is
            stuck = {name for name, page in pages.items() if self._stuck(name, page)}
            pages = {n: page for n, page in pages.items() if n not in stuck} or pages
        self.unseen = frozenset(self._slots) - pages.keys()
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

    def _note(self, one: Round) -> None:
        """Keeps who cannot be read. One that is still busy stays what it was."""
        read = {self._name_of[name] for name in one.pages}
        told = {self._named(fault): fault.what for fault in one.failed}
        before = self.failed
        stays = {name: why for name, why in before.items() if name in self._slots}
        failed = {**stays, **told}
        self.failed = {name: failed[name] for name in failed if name not in read}
        if self._owner is not None:
            self._say_changes(self._owner, before)

    def _say_changes(self, pool: str, before: Mapping[str, str]) -> None:
        for name in before:
            if name not in self.failed:
                tell(f"pool {pool}: replica {name} is read again", self._clock)
        left = len(self._slots) - len(self.failed)
        for name, why in self.failed.items():
            if name not in before:
                said = f"pool {pool}: replica {name} cannot be read: {why}"
                more = "" if left else "; none of the pool's can be"
                tell(said + more, self._clock)

    def _stuck(self, name: str, page: Mapping[str, float]) -> bool:
        """Whether an engine says that it works, and nothing it says has moved."""
        now_ns = self._clock.monotonic_ns()
        told = {k: v for k, v in page.items() if not k.startswith(_PROCESS)}
        before = self._moved.get(name)
        if before is None or before[0] != told:
            self._moved[name] = told, now_ns
            return False
        works = any(signal.read(page) for signal in _WORKS)
        return works and now_ns - before[1] >= STUCK_S * 1e9

    def _let_go(self) -> None:
        """Undoes the cycle of a reading and its views, once nobody decides on it.

        The one being replaced keeps them: a decision may be looking at it.
        """
        for old in self._older:
            old.views.clear()
        self._older = (self.pool, *self._replicas.values())

    def _named(self, fault: ScrapeError) -> str:
        """The replica a fault is about: messages name its page."""
        exact = self._name_in_faults.get(fault.target)
        if exact is not None:
            return exact
        host = urlsplit(fault.target).netloc  # a page may lead to another of its host
        hosts = {urlsplit(s).netloc: name for s, name in self._name_in_faults.items()}
        return hosts.get(host, fault.target)


def _endpoint(one: Upstream, scrape: Scrape) -> Endpoint:
    return Endpoint(Address.of(one.metrics_url), one.metrics_token, scrape.timeout_s)


def _nobody() -> None:
    """Nobody wants to know."""
