"""What a policy answered, by verdict and reason."""

from collections import Counter
from dataclasses import dataclass
from typing import Self

from admitperf.reports.decisions import Answer, Decisions
from admitperf.reports.quantile import Spread

LET_IN_STATUS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One verdict for one reason.

    Attributes:
        verdict, reason: what the policy said; reason is "" for a plain admit.
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
        refused: deferred or rejected by the policy itself, not by its blind posture.
        refused_enforced: of those, how many were governed.
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
    blind: dict[str, int]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, decisions: Decisions) -> Self:
        """Counts the answers of all decisions."""
        answers = decisions.answers
        verdicts: Counter[str] = Counter()
        blind: Counter[str] = Counter()
        for answer, n in answers.items():
            verdicts[answer.verdict] += n
            if answer.blind:
                blind[answer.blind] += n
        refusals = {answer: n for answer, n in answers.items() if _refused(answer)}
        return cls(
            offered=decisions.n,
            admitted=verdicts["admit"],
            deferred=verdicts["defer"],
            rejected=verdicts["reject"],
            enforced=sum(n for answer, n in answers.items() if answer.enforced),
            turned_away=sum(n for answer, n in answers.items() if not answer.admitted),
            refused=sum(refusals.values()),
            refused_enforced=sum(n for one, n in refusals.items() if one.enforced),
            blind=dict(blind.most_common()),
            rows=_rows(decisions),
        )

    @property
    def blind_total(self) -> int:
        """Decisions made blind, for whatever reason."""
        return sum(self.blind.values())


def _refused(answer: Answer) -> bool:
    return answer.verdict != "admit" and not answer.blind


def _rows(decisions: Decisions) -> tuple[Row, ...]:
    groups: dict[tuple[str, str, bool], dict[Answer, int]] = {}
    for answer, n in decisions.answers.items():
        key = (answer.verdict, answer.reason, bool(answer.blind))
        groups.setdefault(key, {})[answer] = n
    rows = [_row(decisions, key, counts) for key, counts in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.n, row.verdict, row.reason)))


def _row(
    decisions: Decisions, key: tuple[str, str, bool], counts: dict[Answer, int]
) -> Row:
    away = {answer: n for answer, n in counts.items() if not answer.admitted}
    return Row(
        verdict=key[0],
        reason=key[1],
        blind=key[2],
        n=sum(counts.values()),
        turned_away=sum(away.values()),
        statuses=tuple(sorted({answer.status for answer in away if answer.status})),
        retry_after_ms=Spread.of(decisions.waits.get(key[:2], ())),
    )
