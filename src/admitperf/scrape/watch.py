"""Reads several endpoints over and over, all at once, at times fixed beforehand.

Round k is due at start + k x interval, whatever the one before it took. An endpoint
that has not answered by then is not asked a second time: that round it is skipped.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.resolver import MIN_AGE_LIMIT_S
from admitperf.core.series import Series
from admitperf.core.signals import ENGINE
from admitperf.engines.catalogue import engine_of
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.target import Endpoint, Sample

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Round:
    """What one round brought.

    Attributes:
        number: of its slot, from 0.
        pages: the newest page of each replica that has one, by its name; empty when
            no endpoint answered in this round.
        taken_ns: when the oldest of them was asked for, on the monotonic clock.
        failed: why an endpoint could not be read, one each.
        skipped: endpoints still busy with an earlier round, as messages name them.
        missed: rounds that went by before this one because we were late ourselves.
    """

    number: int
    pages: Mapping[str, Sample]
    taken_ns: int
    failed: tuple[ScrapeError, ...]
    skipped: tuple[str, ...]
    missed: int


class _Lane:
    """One endpoint and what is known of it."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.endpoint = endpoint
        self.busy = False
        self.fresh = False
        self.page: Sample | None = None


_Told = tuple[_Lane, Sample | ScrapeError] | None


class Watcher:
    """Reads endpoints in rounds.

    Args:
        endpoints: what to read.
        interval_s: seconds from one round to the next.
        clock: source of time.

    Attributes:
        names: what each replica is called, in order: host and port, with the path
            where several share them.
    """

    def __init__(
        self, endpoints: list[Endpoint], interval_s: float, clock: Clock = SYSTEM
    ) -> None:
        self.names = names_of(endpoints)
        self._interval_ns = round(interval_s * _NS)
        self._clock = clock
        self._lanes = [
            _Lane(name, one) for name, one in zip(self.names, endpoints, strict=True)
        ]
        self._limit_s = max(MIN_AGE_LIMIT_S, 3 * interval_s)
        self._told: SimpleQueue[_Told] = SimpleQueue()
        self._failed: list[ScrapeError] = []
        self._stopped = False

    def stop(self) -> None:
        """Ends the rounds at once. May be called from a signal handler."""
        self._stopped = True
        self._told.put(None)  # reentrant, unlike a lock

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def first(self) -> Round | None:
        """Reads every endpoint once, as long as each may take, before any round.

        Returns:
            What it brought; None when it was stopped meanwhile.
        """
        self._begin()
        if not self._gather(None):
            return None
        return self._round(0, (), 0)

    def rounds(self, count: int) -> Iterator[Round]:
        """So many rounds, the first one now.

        A round ends when every endpoint has answered or failed, at the latest when the
        next one is due. None begins after `stop`, and one that it cuts is dropped.
        """
        start_ns, slot, missed = self._clock.monotonic_ns(), 0, 0
        while slot < count and self._wait(start_ns + slot * self._interval_ns):
            skipped = self._begin()
            if not self._gather(start_ns + (slot + 1) * self._interval_ns):
                return
            yield self._round(slot, skipped, missed)
            gone_ns = self._clock.monotonic_ns() - start_ns
            now = max(slot + 1, gone_ns // self._interval_ns)
            missed, slot = now - slot - 1, now

    def _begin(self) -> tuple[str, ...]:
        """Asks every endpoint that is not busy; those that are, by name."""
        skipped = tuple(lane.endpoint.shown for lane in self._lanes if lane.busy)
        for lane in self._lanes:
            if not lane.busy:
                asking = threading.Thread(
                    target=self._ask, args=(lane,), name="admitperf-scrape", daemon=True
                )
                asking.start()  # where no thread is to be had, it is not busy either
                lane.busy = True
        return skipped

    def _ask(self, lane: _Lane) -> None:
        found: Sample | ScrapeError
        try:
            found = usable(lane.endpoint, self._limit_s)
        except ScrapeError as error:
            found = error
        except Exception as error:  # noqa: BLE001  a scrape that fails in a new way failed
            what = f"cannot be read: {type(error).__name__}"
            found = ScrapeError("unreadable", lane.endpoint.shown, what)
        self._told.put((lane, found))

    def _wait(self, until_ns: int) -> bool:
        """Lets time pass, and takes what comes; False when stopped meanwhile."""
        while not self._stopped:
            left_ns = until_ns - self._clock.monotonic_ns()
            if left_ns <= 0:
                return True
            self._take(left_ns / _NS)
        return False

    def _gather(self, until_ns: int | None) -> bool:
        """Waits until no endpoint is busy, at most until then; False when stopped."""
        while not self._stopped and any(lane.busy for lane in self._lanes):
            left_s = None
            if until_ns is not None:
                left_s = (until_ns - self._clock.monotonic_ns()) / _NS
                if left_s <= 0:
                    break
            self._take(left_s)
        return not self._stopped

    def _take(self, timeout_s: float | None) -> None:
        try:
            told = self._told.get(timeout=timeout_s)
        except Empty:
            return
        if told is None:
            return
        lane, found = told
        lane.busy = False
        if isinstance(found, ScrapeError):
            lane.page, lane.fresh = None, False
            self._failed.append(found)
        else:
            lane.page, lane.fresh = found, True

    def _round(self, number: int, skipped: tuple[str, ...], missed: int) -> Round:
        failed, self._failed = tuple(self._failed), []
        any_fresh = any(lane.fresh for lane in self._lanes)
        now_ns = self._clock.monotonic_ns()
        pages = {
            lane.name: lane.page
            for lane in self._lanes
            if any_fresh and lane.page and (lane.fresh or self._young(lane.page))
        }
        for lane in self._lanes:
            lane.fresh = False
        asked_ns = (page.asked_ns for page in pages.values())
        taken_ns = min((one for one in asked_ns if one is not None), default=now_ns)
        return Round(number, pages, taken_ns, failed, skipped, missed)

    def _young(self, page: Sample) -> bool:
        """Whether a page of an endpoint that is busy still says something."""
        age_ns = self._clock.monotonic_ns() - (page.asked_ns or 0)
        return age_ns <= self._limit_s * _NS


def usable(endpoint: Endpoint, max_age_s: float) -> Sample:
    """A page of an engine or exporter, whole and not too old.

    Args:
        endpoint: what to read.
        max_age_s: oldest sample kept, by the time some pages give for each.

    Raises:
        ScrapeError: there is none.
    """
    sample = endpoint.read()
    if sample.cut:
        what = "ends too early, so that engines or signals may be missing"
        raise ScrapeError("cut", endpoint.shown, what)
    page = sample.page
    if page.timestamps:
        page = page.fresh(sample.wall_s, max_age_s)
        if not page:
            what = f"every sample on it is older than {max_age_s:g} s"
            raise ScrapeError("stale", endpoint.shown, what)
    if engine_of(page) is None and not _says_something(page):
        what = f"none of its {len(page)} series is of a known engine"
        fix = "is it the engine's port and path, with metrics switched on?"
        raise ScrapeError("no_known_series", endpoint.shown, what, fix)
    return replace(sample, page=page)


def names_of(endpoints: list[Endpoint]) -> list[str]:
    """Host and port of each, with the path where several share them.

    Raises:
        ScrapeError: one is named twice, which would count it twice.
    """
    asked = [(*one.address.origin, one.address.resource) for one in endpoints]
    for place, one in enumerate(endpoints):
        if asked[place] in asked[:place]:
            what = "given twice, so it would count twice"
            raise ScrapeError("bad_address", one.shown, what)
    places = [urlsplit(one.shown).netloc for one in endpoints]
    whole = [one.shown.partition("://")[2] for one in endpoints]
    return [
        _told_apart(places, n) or _told_apart(whole, n) or f"{whole[n]} ({n + 1})"
        for n in range(len(endpoints))
    ]


def _told_apart(names: list[str], place: int) -> str | None:
    return names[place] if names.count(names[place]) == 1 else None


def _says_something(page: Mapping[str, float]) -> bool:
    """Whether a signal can be read all the same: a user may have mapped one."""
    series = Series(page)
    return any(signal.find(series)[1] is not None for signal in ENGINE)
