"""How memory, queue and slots of the engines went together."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from admitperf.reports.quantile import Spread, spread_of
from admitperf.reports.ratio import Share
from admitperf.reports.runs.store import Store

FULL = 0.9
"""KV pressure at which the cache counts as full. Origin: the default threshold of the
policies that bound it, so that the question is the one they would ask."""

NEAR_MOST = 0.9
"""Plain choice: so much of the most that ever ran is all slots taken, since a scrape
seldom meets the moment at which all of them are."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """What stood together on the decisions of one run.

    Attributes:
        queued: `queue_depth` above 0, of decisions that have it.
        full: `kv_pressure` at `FULL` or over, of decisions that have it.
        full_queued: both, of decisions that have both.
        queued_known: of the decisions with a queue, those that also have `kv_pressure`.
        slots: `running` at `NEAR_MOST` of its most, of those with a queue that have it.
        preempting: `preemptions` above 0, of decisions that have it.
        hits_full: `prefix_hit_rate` while the cache was full.
    """

    queued: Share
    full: Share
    full_queued: Share
    queued_known: int
    slots: Share
    preempting: Share
    hits_full: Spread

    @property
    def memory(self) -> Share:
        """With a full cache, of the decisions with a queue that know the cache."""
        return Share.part(self.full_queued.n, self.queued_known)


def crowds(store: Store, columns: Mapping[str, str]) -> defaultdict[int, Crowd]:
    """What stood together in every run, by its number.

    Args:
        store: with the view `decisions`.
        columns: its column by signal.
    """
    kv, queue, running, preemptions, hits = (
        columns.get(name, "NULL::DOUBLE") for name in _NAMES
    )
    queued = f"{queue} > 0"
    found = {
        run: _crowd(*counts, Spread.read(spread))
        for run, *counts, spread in store.rows(
            f"""WITH most AS (
                SELECT run_n, max({running}) AS most FROM decisions GROUP BY run_n)
            SELECT run_n,
                count(*) FILTER ({queued}), count({queue}),
                count(*) FILTER ({kv} >= {FULL}), count({kv}),
                count(*) FILTER ({queued} AND {kv} >= {FULL}),
                count(*) FILTER ({kv} IS NOT NULL AND {queue} IS NOT NULL),
                count(*) FILTER ({queued} AND {kv} IS NOT NULL),
                count(*) FILTER ({queued} AND {running} > 0
                    AND {running} >= {NEAR_MOST} * most),
                count(*) FILTER ({queued} AND {running} IS NOT NULL),
                count(*) FILTER ({preemptions} > 0), count({preemptions}),
                {spread_of(hits, f"{kv} >= {FULL}")}
            FROM decisions JOIN most USING (run_n) GROUP BY run_n"""
        )
    }
    return defaultdict(lambda: _crowd(*(0,) * 11, Spread.of(())), found)


_NAMES = ("kv_pressure", "queue_depth", "running", "preemptions", "prefix_hit_rate")


def _crowd(*found: int | Spread) -> Crowd:
    """One run's row: pairs of a count and what it is of, but for one."""
    *counts, hits = found
    n = [int(one) for one in counts if not isinstance(one, Spread)]
    return Crowd(
        queued=Share.part(n[0], n[1]),
        full=Share.part(n[2], n[3]),
        full_queued=Share.part(n[4], n[5]),
        queued_known=n[6],
        slots=Share.part(n[7], n[8]),
        preempting=Share.part(n[9], n[10]),
        hits_full=hits if isinstance(hits, Spread) else Spread.of(()),
    )
