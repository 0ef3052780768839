"""What a policy answered, by verdict and reason."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
class Held:
    """Requests that the policy deferred at first, and the host held until an answer.

    The line of one has only its last answer: not how often it was asked about, nor
    why it was deferred.

    Attributes:
        n: how many; together `let_in`, `refused` and `left`.
        let_in: those that were let in afterwards.
        refused: those that were turned away afterwards.
        left: those whose caller left meanwhile.
        held_ms: how long they were held.
    """

    n: int
    let_in: int
    refused: int
    left: int
    held_ms: Spread


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of one run.

    Attributes:
        offered: how many decisions.
        admitted, deferred, rejected: by verdict; together they are `offered`.
        enforced: decisions the policy governed.
        turned_away: callers who got a refusal; one who left while held got none.
        refused: deferred or rejected by the policy itself, not by its blind posture
            and not by the host.
        refused_enforced: of those, how many were governed, and not let in as a probe.
        acted: requests that the policy refused, or deferred at first so that they were
            held; not those that its blind posture answered in the end.
        acted_enforced: of those, how many were governed; one let in as a probe only if
            it had been held.
        held: requests that the host held before it answered them.
        probes: refusals that the host let in all the same, to learn whether they are
            still right.
        host: refusals of the host's own, which the policy was not asked about, by the
            host's word for them. One that was held is not among them.
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
    acted: int
    acted_enforced: int
    held: Held
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
            f"""SELECT run_n, verdict, {REASON} AS reason, {BY_POSTURE},
                count(*), count(*) FILTER ({_AWAY}),
                list_sort(list(DISTINCT status) FILTER ({_AWAY} AND status > 0)),
                {spread_of("retry_after_ms", "NOT gone")}
            FROM decisions GROUP BY ALL"""
        )
    )
    counts = by_run(
        store.rows(
            f"""SELECT run_n, count(*), count(*) FILTER (enforced),
                count(*) FILTER ({_AWAY}),
                count(*) FILTER ({_REFUSED}),
                count(*) FILTER ({_REFUSED} AND enforced AND NOT probe),
                count(*) FILTER ({_ACTED}),
                count(*) FILTER ({_ACTED} AND enforced
                    AND (NOT probe OR held_ms IS NOT NULL)),
                count(*) FILTER (probe)
            FROM decisions GROUP BY run_n"""
        )
    )
    held = _held(store)
    blind = counted_by(store, "blind", "blind <> ''")
    host = counted_by(store, _WORD, "host AND held_ms IS NULL")
    return {
        run: replace(
            _answers([row for (row,) in rows[run]], counts[run], held.get(run, _NONE)),
            blind=blind[run],
            host=host[run],
        )
        for run in runs
    }


_SEES = "coalesce(blind, '') = ''"
_REFUSED = f"verdict <> 'admit' AND {_SEES} AND NOT host"
_ACTED = f"({_REFUSED} OR {_SEES} AND held_ms IS NOT NULL)"
_WORD = "coalesce(nullif(why, ''), reason)"
REASON = f"CASE WHEN host THEN 'host: ' || {_WORD} ELSE reason END"
"""What `Row.reason` is, as an expression over `decisions`."""
BY_POSTURE = "coalesce(blind <> '', false)"
"""What `Row.blind` is."""
_AWAY = "NOT admitted AND NOT gone"
_NONE = Held(0, 0, 0, 0, Spread.of(()))


def _held(store: Store) -> dict[int, Held]:
    """What became of held requests, by the number of the run; absent without any."""
    return {
        run: Held(n, let_in, refused, left, Spread.read(held_ms))
        for run, n, let_in, refused, left, held_ms in store.rows(
            f"""SELECT run_n, count(*), count(*) FILTER (admitted),
                count(*) FILTER ({_AWAY}), count(*) FILTER (gone),
                {spread_of("held_ms")}
            FROM decisions WHERE held_ms IS NOT NULL GROUP BY run_n"""
        )
    }


def _answers(rows: list[Row], counts: list[tuple[int, ...]], held: Held) -> Answers:
    said: Counter[str] = Counter()
    for row in rows:
        said[row.verdict] += row.n
    all_counts = counts[0] if counts else (0,) * 8
    offered, enforced, away, refused, governed, acted, ours, probes = all_counts
    return Answers(
        offered=offered,
        admitted=said["admit"],
        deferred=said["defer"],
        rejected=said["reject"],
        enforced=enforced,
        turned_away=away,
        refused=refused,
        refused_enforced=governed,
        acted=acted,
        acted_enforced=ours,
        held=held,
        probes=probes,
        host={},
        blind={},
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
