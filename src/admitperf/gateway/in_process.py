"""An engine's metrics, read in the engine's own process, without a page in between."""

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.notice import in_words, say
from admitperf.core.reading import Reading
from admitperf.gateway.setup import Scrape

_SUFFIX = {"gauge": "", "counter": "_total"}
"""The kinds that signals are read from, and what their samples' names end in.
Histograms are most of a page and none of a signal."""

_ENGINE = "engine"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class RegistryPage:
    """What a metrics page would hold, without its histograms.

    With several processes each hears a part of what the engine says, and the newest
    word is in files they share. A gauge that no process has set yet is not in them: so
    the process's own registry comes first, and the files over it.

    Args:
        registry: where the engine's metrics are registered.
        prefix: what their names begin with.
        folder: of those files; None = there is one process.
    """

    def __init__(
        self, registry: CollectorRegistry, prefix: str, folder: Path | None = None
    ) -> None:
        self._registry = registry
        self._prefix = prefix
        self._folder = folder
        self._names: list[str] = []
        self._keys: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}

    def __call__(self) -> dict[str, float]:
        """Every series by its key, read now."""
        if not self._names:
            self._names = [
                one.name + _SUFFIX[one.type]
                for one in self._registry.collect()
                if self._wanted(one)
            ]
        own = self._registry.restricted_registry(self._names)
        page = dict(self._series(own.collect()))
        if self._folder is not None:
            page.update(self._series(self._shared(self._folder)))
        return dict(sorted(page.items()))  # a policy knows the order of a page again

    def _shared(self, folder: Path) -> Iterable[Metric]:
        files = [str(one) for kind in _SUFFIX for one in folder.glob(f"{kind}_*.db")]
        merged: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return merged

    def _wanted(self, one: Metric) -> bool:
        return one.type in _SUFFIX and one.name.startswith(self._prefix)

    def _series(self, metrics: Iterable[Metric]) -> Iterator[tuple[str, float]]:
        for one in metrics:
            if self._wanted(one):
                wanted = one.name + _SUFFIX[one.type]
                for sample in one.samples:
                    if sample.name == wanted:
                        yield self._key(wanted, sample.labels), sample.value

    def _key(self, name: str, labels: dict[str, str]) -> str:
        """As a page has it, labels in the order of their names."""
        known = name, tuple(sorted(labels.items()))
        key = self._keys.get(known)
        if key is None:
            texts = (f'{n}="{value.translate(_ESCAPED)}"' for n, value in known[1])
            key = self._keys[known] = f"{name}{{{','.join(texts)}}}" if labels else name
        return key


class InProcess:
    """The last reading of the engine this process belongs to.

    Args:
        page: reads all series, in a thread of its own.
        scrape: how often.
        slots: requests the engine runs at once; None = not known.
        clock: of the policy.

    Attributes:
        pool: the last reading; empty before the first.
        failed: why the last attempt failed, by what it was read from; empty = it did
            not.
        rounds, failures: attempts, and those that failed.
    """

    def __init__(
        self,
        page: Callable[[], dict[str, float]],
        scrape: Scrape,
        slots: int | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._page = page
        self._every_s = scrape.interval_s
        self._slots = slots
        self._clock = clock
        self._ended = threading.Event()
        self._said = False
        self._thread: threading.Thread | None = None
        self.pool = Reading({}, own_since=True, interval_s=self._every_s)
        self.failed: dict[str, str] = {}
        self.rounds = self.failures = 0

    def replica(self, _name: str) -> Reading:
        """There is one engine."""
        return self.pool

    @property
    def all(self) -> tuple[Reading, ...]:
        """The one."""
        return (self.pool,)

    def first(self) -> dict[str, str]:
        """Reads here and now; why that failed, if it did."""
        self._take()
        return self.failed

    def start(self, on_new: Callable[[], None]) -> None:
        """Begins to read; `on_new` is called in that thread after each reading."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(on_new,), name="admitperf-readings", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _run(self, on_new: Callable[[], None]) -> None:
        while not self._ended.wait(self._every_s):
            self._take()
            try:
                on_new()
            except Exception as error:  # noqa: BLE001  reading goes on, whatever it was
                if not self._said:
                    self._said = True
                    say(f"after a reading: {in_words(error)}")

    def _take(self) -> None:
        """A reading that fails leaves the last one, which is seen to age."""
        self.rounds += 1
        asked_ns = self._clock.monotonic_ns()
        try:
            page = self._page()
        except Exception as error:  # noqa: BLE001  somebody else's metrics
            self.failures += 1
            self.failed = {_ENGINE: in_words(error)}
            return
        self.failed = {}
        self.pool = Reading(
            page,
            taken_ns=asked_ns,
            interval_s=self._every_s,
            own_since=True,
            slots=self._slots,
        )
