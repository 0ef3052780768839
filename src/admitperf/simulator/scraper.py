"""How a policy comes to know the engine: by looking, now and then, and late."""

from collections import deque
from dataclasses import dataclass

from admitperf.core.reading import Reading
from admitperf.simulator.engine.page import page
from admitperf.simulator.fleet import Fleet
from admitperf.simulator.streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Scraping:
    """How a scraper goes about it.

    The defaults of the delays are what was seen of vLLM 0.32 on a CPU at twice its
    capacity: half of 312 answers took 11 ms, one in twenty 26 ms, the slowest 532 ms.

    Attributes:
        interval_s: seconds between two looks.
        delay_s: seconds an answer takes at least.
        spread_s: mean of what is added to that, exponentially distributed.
        slow_share: of the looks at an engine with a queue, how many take longer yet.
        slow_s: the most they take longer, in seconds.
    """

    interval_s: float = 1.0
    delay_s: float = 0.008
    spread_s: float = 0.006
    slow_share: float = 0.02
    slow_s: float = 0.5


class Scraper:
    """Looks at engines on a fixed schedule, from the start on.

    Args:
        fleet: what it looks at; all of it is one reading.
        how: its schedule and its delays.
        seed: of the delays.
    """

    def __init__(self, fleet: Fleet, how: Scraping, seed: int) -> None:
        self._fleet = fleet
        self._how = how
        self._chance = stream(seed, "scraper")
        self._looks = 0
        self._coming: deque[tuple[float, Reading]] = deque()
        self._newest = Reading({}, taken_ns=0)

    @property
    def next_s(self) -> float:
        """When it looks next, in seconds from the start."""
        return self._looks * self._how.interval_s

    def look(self, now_ns: int) -> None:
        """Takes the engine's page as it stands; it can be used when it has come.

        Args:
            now_ns: the same moment on the policy's monotonic clock.
        """
        taken = Reading(
            page(*self._fleet.engines), taken_ns=now_ns, interval_s=self._how.interval_s
        )
        at_s = self.next_s + self._took_s()
        self._coming.append((at_s, taken))  # none is used before the one before it
        self._looks += 1

    def newest(self, at_s: float) -> Reading:
        """The last reading that had come by then; an empty one before the first."""
        while self._coming and self._coming[0][0] <= at_s:
            self._newest = self._coming.popleft()[1]
        return self._newest

    def _took_s(self) -> float:
        how, chance = self._how, self._chance
        took_s = how.delay_s + chance.expovariate(1.0) * how.spread_s
        unlucky, longer = chance.random() < how.slow_share, chance.random()
        if unlucky and any(engine.waiting for engine in self._fleet.engines):
            took_s += longer * how.slow_s
        return took_s
