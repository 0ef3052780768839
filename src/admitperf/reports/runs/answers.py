"""What a policy answered, by verdict and reason."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from admitperf.reports.quantile import Spread, spread_of
from admitperf.reports.runs.store import Store, by_run


@dataclass(frozen=True, slots=True)
class Row:
    """One verdict for one reason.

    Attributes:
        verdict, reason: what the policy said; reason is "" for a plain admit, and
            "host: " with the host's own word where the host refused by itself.
        blind: whether the blind posture said it, not the policy.
        n: how often.
        turned_away: of those, how often the caller was really turned away.
        statuses: the codes those callers got.
        retry_after_ms: the waits they were told.
    """

    verdict: str
    reason: str
    blind: bool
    n: int
    turned_away: int
    statuses: tuple[int, ...]
    retry_after_ms: Spread


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of one run.

    Attributes:
        offered: how many decisions.
        admitted, deferred, rejected: by verdict; together they are `offered`.
        enforced: decisions the policy governed.
        turned_away: callers who got a refusal.
        refused: deferred or rejected by the policy itself, not by its blind posture
            and not by the host.
        refused_enforced: of those, how many were governed, and not let in as a probe.
        probes: refusals that the host let in all the same, to learn whether they are
            still right.
        host: refusals of the host's own, which the policy was not asked about, by the
            host's word for them.
        blind: decisions made blind, by reason.
        rows: by verdict and reason, the most frequent first.
    """

    offered: int
    admitted: int
    deferred: int
    rejected: int
    enforced: int
    turned_away: int
    refused: int
    refused_enforced: int
    probes: int
    host: dict[str, int]
    blind: dict[str, int]
    rows: tuple[Row, ...]

    @property
    def blind_total(self) -> int:
        """Decisions made blind, for whatever reason."""
        return sum(self.blind.values())

    @property
    def host_total(self) -> int:
        """Refusals of the host's own."""
        return sum(self.host.values())

    @property
    def decided(self) -> int:
        """Decisions that were the policy's to make."""
        return self.offered - self.host_total


def answers(store: Store, runs: Iterable[int]) -> dict[int, Answers]:
    """Counts the answers of every run.

    Args:
        store: with the view `decisions`.
        runs: their numbers.
    """
    rows = by_run(
        (run, _row(verdict, rest))
        for run, verdict, *rest in store.rows(
            f"""SELECT run_n, verdict,
                CASE WHEN host THEN 'host: ' || {_WORD} ELSE reason END AS reason,
                blind IS NOT NULL AND blind <> '',
                count(*), count(*) FILTER (NOT admitted),
                list_sort(list(DISTINCT status) FILTER (NOT admitted AND status > 0)),
                {spread_of("retry_after_ms")}
            FROM decisions GROUP BY ALL"""
        )
    )
    counts = by_run(
        store.rows(
            f"""SELECT run_n, count(*), count(*) FILTER (enforced),
                count(*) FILTER (NOT admitted),
                count(*) FILTER ({_REFUSED}),
                count(*) FILTER ({_REFUSED} AND enforced AND NOT probe),
                count(*) FILTER (probe)
            FROM decisions GROUP BY run_n"""
        )
    )
    blind = counted_by(store, "blind", "blind <> ''")
    host = counted_by(store, _WORD, "host")
    return {
        run: _answers([row for (row,) in rows[run]], counts[run], blind[run], host[run])
        for run in runs
    }


_REFUSED = "verdict <> 'admit' AND coalesce(blind, '') = '' AND NOT host"
_WORD = "coalesce(nullif(why, ''), reason)"


def _answers(
    rows: list[Row],
    counts: list[tuple[int, ...]],
    blind: dict[str, int],
    host: dict[str, int],
) -> Answers:
    said: Counter[str] = Counter()
    for row in rows:
        said[row.verdict] += row.n
    all_counts = counts[0] if counts else (0,) * 6
    offered, enforced, away, refused, governed, probes = all_counts
    return Answers(
        offered=offered,
        admitted=said["admit"],
        deferred=said["defer"],
        rejected=said["reject"],
        enforced=enforced,
        turned_away=away,
        refused=refused,
        refused_enforced=governed,
        probes=probes,
        host=host,
        blind=blind,
        rows=tuple(sorted(rows, key=_order)),
    )


def _row(verdict: str, rest: Sequence[Any]) -> Row:
    reason, blind, n, away, statuses, waits = rest
    return Row(
        verdict, reason, blind, n, away, tuple(statuses or ()), Spread.read(waits)
    )


def _order(row: Row) -> tuple[int, str, str, bool]:
    return -row.n, row.verdict, row.reason, row.blind


def counted_by(store: Store, column: str, where: str) -> dict[int, dict[str, int]]:
    """How often each value of a column stands on a run's decisions.

    Returns:
        By the number of the run, the most frequent first; empty for one without any.
    """
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for run, value, n in store.rows(
        f"""SELECT run_n, {column} AS value, count(*) AS n FROM decisions
        WHERE {where} GROUP BY run_n, value ORDER BY n DESC, min(row)"""
    ):
        found[run][value] = n
    return found
