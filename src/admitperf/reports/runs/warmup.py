"""The beginning of a run that is left out of its numbers."""

import re
from dataclasses import dataclass
from typing import Self

from admitperf.core.errors import ConfigError
from admitperf.reports.runs.store import Store

_CUT = re.compile(r"\s*(\d{1,15})\s*(s?)\s*")


@dataclass(frozen=True, slots=True)
class Warmup:
    """What was left out, of what.

    Left out of every number of the run: the decisions and their outcomes.

    Attributes:
        asked: as asked: "10" requests, or "30s".
        left_out: decisions left out.
        kept: decisions that are in the numbers.
    """

    asked: str
    left_out: int
    kept: int


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of the beginning is left out.

    Attributes:
        asked: as asked.
        n: so many requests, or seconds.
        seconds: whether it is seconds.
    """

    asked: str
    n: int
    seconds: bool

    @classmethod
    def parsed(cls, text: str) -> Self:
        """From "10" or "30s".

        Raises:
            ConfigError: it is neither.
        """
        found = _CUT.fullmatch(text)
        if found is None:
            raise ConfigError("warm-up", [f"{text!r} is no 10 (requests) and no 30s"])
        return cls(text.strip(), int(found[1]), bool(found[2]))

    def apply(self, store: Store, runs: int) -> dict[int, Warmup]:
        """Leaves out the first requests of every run by arrival.

        A call is left out or kept as a whole, by its first attempt: a retry of a call
        that began early would else look like a call of its own with a new clock.

        Args:
            store: with the view `decisions`.
            runs: how many there are.

        Returns:
            What it left out, by the number of the run.
        """
        if self.seconds:
            early = f"t_us < min(t_us) OVER run + {self.n}::HUGEINT * 1000000"
        else:
            early = f"row_number() OVER (run ORDER BY t_us, row) <= {self.n}"
        store.rows(
            f"""CREATE OR REPLACE TEMP TABLE early AS
            SELECT run, seq, run_n, row, first_value(cut) OVER (
                PARTITION BY run_n, call ORDER BY t_us, row) AS cut
            FROM (SELECT *, {early} AS cut FROM decisions
                WINDOW run AS (PARTITION BY run_n))"""
        )
        store.rows(
            """DELETE FROM other USING early WHERE cut AND k = 'outcome'
            AND other.run = early.run AND other."of" = early.seq"""
        )
        store.rows(
            "DELETE FROM decision WHERE rowid IN (SELECT row FROM early WHERE cut)"
        )
        nothing = {run: Warmup(self.asked, 0, 0) for run in range(runs)}
        return nothing | {
            run: Warmup(self.asked, cut, n - cut)
            for run, cut, n in store.rows(
                "SELECT run_n, count(*) FILTER (cut), count(*) FROM early"
                " GROUP BY run_n"
            )
        }
