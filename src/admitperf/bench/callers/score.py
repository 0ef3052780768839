"""What a run was worth: over what the plan offered, on the callers' clock.

Every share has the plan's calls, sessions or work below its line, whatever was refused,
given up or never asked: a policy gains nothing by refusing.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from admitperf.bench.callers.metrics import OutcomeMetric
from admitperf.bench.callers.records import CallRecord, Ended
from admitperf.bench.callers.slo import Slo
from admitperf.reports.quantile import FEWEST_FOR_P95, FEWEST_FOR_P99, nearest_rank

Spread = dict[str, int | float | bool | None]
"""`n`, percentiles by nearest rank, None = withheld, and what else is said of them."""

_FEWEST = {"p50": 1, "p95": FEWEST_FOR_P95, "p99": FEWEST_FOR_P99}
_FRACTIONS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

PERCENTILES = tuple(_FRACTIONS)

_FATES = ("completed", "refused_at_start", "killed", "undone", "unfinished")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A run in numbers; None = not known, and `withheld` says why.

    All but `cost_per_good`, `decide_us`, `late_ms` and `outside` are of the scored
    calls.

    Attributes:
        offered: calls of the plan.
        sent: of them, those that were asked at all.
        answered: of them, those that got a whole answer, early or late.
        good: of those offered, those that got what they wanted within the objective.
        goodput: good of offered.
        ended: calls by how they ended.
        by_class: `offered`, `good`, `goodput` and `ttft_ms` of those served, by class.
        sessions: `offered`, `good`, and by their fate `completed` (each call got what
            it wanted), `refused_at_start` (none did, the first was refused), `undone`
            (its caller hung up out of patience), `killed` (refused or failed after it
            had begun), `unfinished` (under way when the run was ended, or not begun).
        session_goodput: good of offered sessions; good is one that was completed within
            `task_factor` times its unloaded duration, from its first call's instant.
        session_completed: completed of offered sessions.
        work: tokens of work, new prompt tokens and answers as planned: `offered`, of
            `good` calls, of `good_sessions`.
        work_goodput: work of good calls of that offered.
        session_work_goodput: work of good sessions of that offered.
        computed_tokens: tokens that the engine computed.
        wasted_tokens: of them, those of calls that were not good, or whose session was
            not completed.
        wasted_share: wasted of computed.
        attempts: at calls.
        refusals: attempts that the policy refused.
        attempts_per_call: attempts of calls that were sent.
        refusals_per_session: refusals of offered sessions.
        refused_share: refused of attempts.
        refusal_ms: from a call's instant to its final refusal.
        ttft_served_ms: of calls that were served; never to be shown alone.
        ttft_offered_ms: over all offered calls, one that was not served being infinite;
            `infinite` says that a percentile is, which is then null.
        jain: Jain's index of the tenants' goodputs; 1 = all alike, 1/n = one has all.
        late_ms: how late the harness sent calls, of each its latest attempt.
        decide_us: wall time of a decision.
        cost_per_good: price of the engines for the whole run by its good calls, those
            that are not scored too, in the currency of the price.
        half: `offered`, `good`, `goodput` of sessions that began in the first half of
            the window: where it differs from the rest, goodput hangs on how long a run
            lasts.
        outside: `attempts` at calls that are not scored, and `refusals` of them: a
            policy that refuses mostly there clears its own way.
        extra: installed outcome metrics by name.
        withheld: why a number is None, by its name.
    """

    offered: int
    sent: int
    answered: int
    good: int
    goodput: float | None
    ended: dict[str, int]
    by_class: dict[str, dict[str, Any]]
    sessions: dict[str, int | None]
    session_goodput: float | None
    session_completed: float | None
    work: dict[str, int | None]
    work_goodput: float | None
    session_work_goodput: float | None
    computed_tokens: int
    wasted_tokens: int
    wasted_share: float | None
    attempts: int
    refusals: int
    attempts_per_call: float | None
    refusals_per_session: float | None
    refused_share: float | None
    refusal_ms: Spread
    ttft_served_ms: Spread
    ttft_offered_ms: Spread
    jain: float | None
    late_ms: Spread
    decide_us: Spread
    cost_per_good: float | None
    half: dict[str, Any] | None
    outside: dict[str, Any]
    extra: dict[str, float | None]
    withheld: dict[str, str]

    def document(self) -> dict[str, Any]:
        """As plain data for strict JSON."""
        return asdict(self)


def score(  # noqa: PLR0913  each is named
    records: Iterable[CallRecord],
    slo: Slo,
    *,
    unloaded_s: Mapping[str, float] | None,
    decide_ns: Collection[int] | None = None,
    seconds: float | None = None,
    gpu_cost_per_hour: float | None = None,
    replicas: int = 1,
    metrics: Sequence[OutcomeMetric] = (),
    scored_s: tuple[float, float] | None = None,
) -> Summary:
    """Makes a run's numbers of what came of its calls.

    Args:
        records: every call of the plan.
        slo: what they are held to.
        unloaded_s: how long each session would last with nobody else there, in seconds;
            None = not known, and no session is called good.
        decide_ns: wall time of each decision; None = not measured.
        seconds: how long the engines ran; None = not known.
        gpu_cost_per_hour: price of one engine; None = no cost is asked.
        replicas: engines.
        metrics: installed ones to add.
        scored_s: the window of the plan, for its first half; None = it is not asked.

    Raises:
        ValueError: a call's class has no objective, or a completed session no unloaded
            duration.
    """
    everyone = list(records)
    run = _Run([one for one in everyone if one.scored], slo, unloaded_s)
    run.withhold("decide_us", None if decide_ns else "no decision was timed")
    return Summary(
        **run.calls(),
        **run.tasks(),
        **run.worth(),
        **run.attempts(),
        refusal_ms=run.refusal_ms(),
        ttft_served_ms=_spread(_served_ms(run.records), PERCENTILES),
        ttft_offered_ms=_offered(run.records),
        jain=run.jain(),
        late_ms=_late(everyone, run),
        decide_us=_spread([ns / 1000 for ns in decide_ns or ()], ("p50", "p99")),
        cost_per_good=_cost(everyone, run, seconds, gpu_cost_per_hour, replicas),
        half=run.half(scored_s),
        outside=_outside(everyone),
        extra=run.measured(metrics),
        withheld=run.withheld,
    )


class _Run:
    """The scored calls of a run, and why some numbers cannot be had of them."""

    def __init__(
        self,
        records: Sequence[CallRecord],
        slo: Slo,
        unloaded_s: Mapping[str, float] | None,
    ) -> None:
        self.records = records
        self.slo = slo
        self.withheld = dict[str, str]()
        self._good = {one.id for one in records if slo.good(one)}
        self._sessions = dict[str, list[CallRecord]]()
        for one in records:
            self._sessions.setdefault(one.session, []).append(one)
        self._fates = {name: _fate(calls) for name, calls in self._sessions.items()}
        several = any(len(calls) > 1 for calls in self._sessions.values())
        self._why_no_session = (
            (None if several else "no session has more than one call")
            if unloaded_s is not None
            else "unloaded durations are not known"
        )
        self._in_time = self._finished_in_time(unloaded_s or {})

    def withhold(self, name: str, why: str | None) -> None:
        """Says why a number is None; None = it is not."""
        if why is not None:
            self.withheld[name] = why

    def part(self, name: str, n: float, of: float, nothing: str) -> float | None:
        """A share by its name; None when there is nothing to divide by."""
        self.withhold(name, None if of else nothing)
        return n / of if of else None

    def goodput(self, records: Sequence[CallRecord]) -> dict[str, Any]:
        """Good of offered."""
        good = sum(one.id in self._good for one in records)
        value = good / len(records) if records else None
        return {"offered": len(records), "good": good, "goodput": value}

    def calls(self) -> dict[str, Any]:
        """Calls by what became of them."""
        records = self.records
        found = Counter(one.ended for one in records)
        self.withhold("goodput", None if records else "no call was offered")
        return {
            **self.goodput(records),
            "sent": sum(one.due_s is not None for one in records),
            "answered": found["answered"],
            "ended": {ended: found[ended] for ended in get_args(Ended)},
            "by_class": self._by_class(),
        }

    def tasks(self) -> dict[str, Any]:
        """Sessions by what became of them."""
        fates = Counter(self._fates.values())
        offered, why = len(self._sessions), self._why_no_session
        self.withhold("session_goodput", why)
        good = None if why else len(self._in_time)
        counts = {"offered": offered, "good": good}
        completed = fates["completed"]
        return {
            "sessions": {**counts, **{fate: fates[fate] for fate in _FATES}},
            "session_goodput": None if good is None else good / offered,
            "session_completed": self.part(
                "session_completed", completed, offered, "no session was offered"
            ),
        }

    def worth(self) -> dict[str, Any]:
        """The same weighted by work, and what was computed for nothing."""
        offered = sum(map(_work, self.records))
        good = sum(_work(one) for one in self.records if one.id in self._good)
        whole, why = self._in_time, self._why_no_session
        in_whole = sum(_work(one) for one in self.records if one.session in whole)
        self.withhold("session_work_goodput", why)
        return {
            "work": {
                "offered": offered,
                "good": good,
                "good_sessions": None if why else in_whole,
            },
            "work_goodput": self.part("work_goodput", good, offered, "no work"),
            "session_work_goodput": in_whole / offered if offered and not why else None,
            **self._waste(),
        }

    def attempts(self) -> dict[str, Any]:
        """What it took."""
        attempts = sum(one.attempts for one in self.records)
        refusals = sum(one.refusals for one in self.records)
        sent, unsent = self._sent(), "no call was sent"
        return {
            "attempts": attempts,
            "refusals": refusals,
            "attempts_per_call": self.part("attempts_per_call", attempts, sent, unsent),
            "refusals_per_session": self.part(
                "refusals_per_session",
                refusals,
                len(self._sessions),
                "no session was offered",
            ),
            "refused_share": self.part("refused_share", refusals, attempts, unsent),
        }

    def refusal_ms(self) -> Spread:
        """When final refusals came."""
        refused = [one.refused_ms for one in self.records if one.refused_ms is not None]
        return _spread(refused, PERCENTILES)

    def jain(self) -> float | None:
        """How evenly goodput falls to tenants."""
        tenants = dict[str, list[CallRecord]]()
        for one in self.records:
            if one.tenant is not None:
                tenants.setdefault(one.tenant, []).append(one)
        shares = [self.goodput(calls)["goodput"] for calls in tenants.values()]
        if len(shares) < 2:  # noqa: PLR2004  nobody to compare with
            self.withhold("jain", "fewer than two tenants: nobody to compare with")
            return None
        squares = sum(share**2 for share in shares)
        self.withhold("jain", None if squares else "nothing was good")
        return float(sum(shares) ** 2 / len(shares) / squares) if squares else None

    def half(self, scored_s: tuple[float, float] | None) -> dict[str, Any] | None:
        """Sessions that began in the first half of the window."""
        if scored_s is None:
            self.withhold("half", "the window is not known")
            return None
        middle_s = sum(scored_s) / 2
        return self.goodput([one for one in self.records if one.begun_s < middle_s])

    def measured(self, metrics: Sequence[OutcomeMetric]) -> dict[str, float | None]:
        """Somebody's own numbers; one that is not finite is none."""
        found = dict[str, float | None]()
        for metric in metrics:
            value, why = _asked(metric, self.records, self.slo)
            found[metric.name] = value
            self.withhold(f"extra.{metric.name}", why)
        return found

    def good_of(self, records: Iterable[CallRecord]) -> int:
        """How many of these are good, scored or not."""
        return sum(map(self.slo.good, records))

    def _sent(self) -> int:
        return sum(one.due_s is not None for one in self.records)

    def _by_class(self) -> dict[str, dict[str, Any]]:
        classes = dict[str, list[CallRecord]]()
        for one in self.records:
            classes.setdefault(one.slo_class, []).append(one)
        return {
            name: {
                **self.goodput(calls),
                "ttft_ms": _spread(_served_ms(calls), ("p50", "p95")),
            }
            for name, calls in sorted(classes.items())
        }

    def _finished_in_time(self, unloaded_s: Mapping[str, float]) -> set[str]:
        if self._why_no_session:
            return set()
        return {
            name
            for name, calls in self._sessions.items()
            if self._fates[name] == "completed"
            and _lasted_s(calls) <= self.slo.task_factor * _unloaded(name, unloaded_s)
        }

    def _waste(self) -> dict[str, Any]:
        computed = sum(one.computed_tokens for one in self.records)
        wasted = sum(one.computed_tokens for one in self.records if self._wasted(one))
        nothing = "nothing was computed"
        return {
            "computed_tokens": computed,
            "wasted_tokens": wasted,
            "wasted_share": self.part("wasted_share", wasted, computed, nothing),
        }

    def _wasted(self, record: CallRecord) -> bool:
        killed = self._fates[record.session] != "completed"
        return killed or record.id not in self._good


def _asked(
    metric: OutcomeMetric, records: Sequence[CallRecord], slo: Slo
) -> tuple[float | None, str | None]:
    """Somebody's number, or why there is none."""
    try:
        value = metric(records, slo)
        finite = value is not None and math.isfinite(value)
    except Exception as error:  # noqa: BLE001  whatever a package does
        return None, " ".join(f"{type(error).__name__}: {error}".split())
    if finite:
        return value, None
    return None, "it cannot be told" if value is None else f"it came out as {value}"


def _outside(records: Iterable[CallRecord]) -> dict[str, Any]:
    """Attempts at calls that are not scored, and those refused."""
    others = [one for one in records if not one.scored]
    attempts = sum(one.attempts for one in others)
    return {"attempts": attempts, "refusals": sum(one.refusals for one in others)}


def _fate(calls: Sequence[CallRecord]) -> str:
    if all(one.served for one in calls):
        return "completed"
    if any(one.ended == "cancelled" and not one.served for one in calls):
        return "undone"
    ends = {one.ended for one in calls}
    if not ends & {"refused", "failed"}:
        return "unfinished"
    served = any(one.served for one in calls)
    return "refused_at_start" if "refused" in ends and not served else "killed"


def _lasted_s(calls: Sequence[CallRecord]) -> float:
    """From the instant of the first call to the last end of an answer."""
    begun = min(one.due_s for one in calls if one.due_s is not None)
    return max(one.ended_s for one in calls if one.ended_s is not None) - begun


def _unloaded(name: str, unloaded_s: Mapping[str, float]) -> float:
    if name not in unloaded_s:
        raise ValueError(f"the unloaded duration of session {name!r} is not known")
    return unloaded_s[name]


def _work(record: CallRecord) -> int:
    return record.new_tokens + record.output_tokens


def _served_ms(records: Iterable[CallRecord]) -> list[float]:
    return [one.ttft_ms for one in records if one.served and one.ttft_ms is not None]


def _spread(values: Collection[float], names: Iterable[str]) -> Spread:
    """Percentiles by nearest rank; None = too few values."""
    ordered = sorted(values)
    told: Spread = {"n": len(ordered)}
    for name in names:
        enough = len(ordered) >= _FEWEST[name]
        told[name] = nearest_rank(ordered, _FRACTIONS[name]) if enough else None
    return told


def _offered(records: Sequence[CallRecord]) -> Spread:
    served = _served_ms(records)
    told = _spread(
        [*served, *[math.inf] * (len(records) - len(served))], ("p50", "p95")
    )
    infinite = math.inf in told.values()
    finite = {
        name: None if value == math.inf else value for name, value in told.items()
    }
    return {**finite, "infinite": infinite}


def _late(records: Iterable[CallRecord], run: _Run) -> Spread:
    late = [one.late_ms for one in records if one.due_s is not None]
    run.withhold("late_ms", None if late else "no call was sent")
    return {**_spread(late, ("p50", "p99")), "max": max(late, default=None)}


def _cost(
    records: Sequence[CallRecord],
    run: _Run,
    seconds: float | None,
    gpu_cost_per_hour: float | None,
    replicas: int,
) -> float | None:
    if gpu_cost_per_hour is None or seconds is None:
        run.withhold("cost_per_good", "no price is given")
        return None
    good = run.good_of(records)
    spent = gpu_cost_per_hour * replicas * seconds / 3600
    return run.part("cost_per_good", spent, good, "nothing was good")
