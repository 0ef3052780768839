"""Arrivals like those of a trace, from what was measured of it, without end.

`Swells` are steady within a minute and different from minute to minute; `Bursts` are
different from second to second, with pauses between.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from admitperf.bench.workloads.tables import Table, drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Swells:
    """Poisson arrivals at a rate that is another one each minute.

    Attributes:
        rate_per_s: on average.
        minutes: the rate of each minute over the average, in the order recorded; a
            stretch enters them at a drawn place, and goes round.
    """

    rate_per_s: float
    minutes: Sequence[float]

    def times_s(self, lasts_s: float, chance: Random) -> Iterator[float]:
        """Times in order, from 0."""
        most = self.rate_per_s * max(self.minutes)
        begun_s = chance.random() * 60.0 * len(self.minutes)
        at_s = chance.expovariate(most)
        while at_s < lasts_s:  # thinned down from the highest rate
            minute = int((begun_s + at_s) / 60.0) % len(self.minutes)
            if chance.random() * max(self.minutes) < self.minutes[minute]:
                yield at_s
            at_s += chance.expovariate(most)


LEVELS = (1, 2, 4, 7, 11, 17, 26, 41)
"""Where the levels of a busy second begin, in requests. Plain choice: each about half
as much again as the one before, or more where there are few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """Seconds with requests, whose number depends on the second before, and pauses.

    Attributes:
        rate_per_s: on average.
        counts: of each level (`LEVELS`) the requests of a second.
        moves: of each level the shares of the levels that follow it, busy seconds; the
            rest is the share after which a pause begins.
        first: the shares of the levels that follow a pause.
        pauses_s: seconds without a request in a row.
    """

    rate_per_s: float
    counts: Sequence[Table]
    moves: Sequence[Sequence[float]]
    first: Sequence[float]
    pauses_s: Table

    def times_s(self, lasts_s: float, chance: Random) -> Iterator[float]:
        """Times in order, from 0; the beginning is in a busy second."""
        second, level = 0, _level(self.first, chance)
        while second < lasts_s:
            if level is None:
                second += max(1, round(drawn(self.pauses_s, chance)))
                level = _level(self.first, chance)
                continue
            count = round(drawn(self.counts[level], chance))
            times_s = sorted(second + chance.random() for _ in range(count))
            yield from (at_s for at_s in times_s if at_s < lasts_s)
            second, level = second + 1, _level(self.moves[level], chance)


def _level(shares: Sequence[float], chance: Random) -> int | None:
    """A level; None = what is over of the shares was drawn."""
    place = bisect_right(list(accumulate(shares)), chance.random())
    return place if place < len(shares) else None
