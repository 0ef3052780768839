"""Whether the first token takes longer the longer the prompt is."""

from collections.abc import Mapping
from dataclasses import dataclass

from admitperf.reports.runs.store import Store

FEWEST = 80
"""Plain choice: 20 for each quarter, below which a percentile says little."""

GROWS = 2.0
"""Plain choice: twice the time is more than a queue of mixed prompts makes by
chance."""


@dataclass(frozen=True, slots=True)
class Prefill:
    """TTFT of short and of long prompts, over ok outcomes that say both.

    Attributes:
        n: how many.
        short_tokens, long_tokens: the longest prompt of the shortest quarter, and the
            shortest of the longest one.
        short_ms, long_ms: the quarters' median TTFT.
    """

    n: int
    short_tokens: float
    long_tokens: float
    short_ms: float
    long_ms: float

    @property
    def grows(self) -> bool | None:
        """Whether long prompts wait longer; None = too few, or all are alike."""
        if self.n < FEWEST or self.long_tokens <= self.short_tokens:
            return None
        return self.long_ms >= GROWS * self.short_ms


def prefills(store: Store, columns: Mapping[str, str]) -> dict[int, Prefill]:
    """The quarters of every run that has outcomes with both, by its number.

    Args:
        store: with the views `decisions` and `outcomes`.
        columns: its column by signal.
    """
    if "input_tokens" not in columns:
        return {}
    return {
        run: Prefill(*found)
        for run, *found in store.rows(
            f"""WITH pairs AS (
                SELECT d.run_n, d.{columns["input_tokens"]} AS tokens, o.ttft_ms
                FROM decisions d JOIN outcomes o
                    ON o.process_n = d.process_n AND o."of" = d.seq
                WHERE o.ok AND tokens IS NOT NULL AND o.ttft_ms IS NOT NULL),
            quarters AS (
                SELECT *, ntile(4) OVER (
                    PARTITION BY run_n ORDER BY tokens, ttft_ms) AS quarter FROM pairs)
            SELECT run_n, count(*), max(tokens) FILTER (quarter = 1),
                min(tokens) FILTER (quarter = 4),
                quantile_disc(ttft_ms, 0.5) FILTER (quarter = 1),
                quantile_disc(ttft_ms, 0.5) FILTER (quarter = 4)
            FROM quarters GROUP BY run_n HAVING count(*) >= 4"""
        )
    }
