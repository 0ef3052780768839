"""What the questions are asked of: a run's report, and what it does not hold."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.report import RunReport, reported
from admitperf.reports.runs.callers import Callers, callers
from admitperf.reports.runs.crowd import Crowd, crowds
from admitperf.reports.runs.finding import FEWEST_FOR_NEVER, MOST_BLIND
from admitperf.reports.runs.log import Files, Log
from admitperf.reports.runs.prefill import Prefill, prefills
from admitperf.reports.runs.slo import Slo

FACTS = (
    "deadline_s",
    "slo_class",
    "priority",
    "tenant",
    "session",
    "parent_session",
    "input_tokens",
    "cached_tokens",
    "max_output_tokens",
)
"""The facts that policies make use of, in the order they are asked about."""

MOST_OF = 0.5
"""Plain choice: what holds on at least half is what usually holds."""

OFTEN = 0.05
"""Plain choice: what holds on at least one of twenty decisions counts. That is just
what p95 on the same page shows; on fewer it is chance, and no load."""

SELDOM_MISSED = MOST_BLIND
"""Share of answers that may miss an SLO, or that the engine may refuse, before it is
overload. Origin: the bound for a blind run, so that one per cent means one thing."""

FEWEST = FEWEST_FOR_NEVER
"""Decisions below which nothing is answered. Origin: that for a policy that could not
have fired; below it p95 is the largest value too."""

LONG_WAIT_S = 1.0
"""Plain choice, for logs without an SLO: a first token that takes longer had to wait,
since prefill of a usual prompt takes less."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One run, as the questions see it.

    Attributes:
        run: its report.
        crowd: how memory, queue and slots went together.
        callers: tenants and sessions.
        prefill: TTFT of short and long prompts; None without outcomes that say both.
    """

    run: RunReport
    crowd: Crowd
    callers: Callers
    prefill: Prefill | None

    @property
    def samples(self) -> bool:
        """Whether a policy only watched an engine, with no request behind it."""
        return self.run.basis == "samples"

    @property
    def offered(self) -> int:
        """Decisions, or samples."""
        return self.run.answers.offered

    @property
    def made(self) -> int:
        """Decisions, those lost from the log too."""
        return self.offered + self.run.faults.lost_decisions.n

    def fact(self, name: str) -> Share:
        """How many decisions carried a fact."""
        return Share.part(self.run.facts.get(name, 0), self.offered)

    def signal(self, name: str) -> Spread:
        """How a signal was spread; n is 0 for one that nothing supplied."""
        known = (one.spread for one in self.run.signals if one.name == name)
        return next(known, Spread.of(()))

    @property
    def kept_away(self) -> int:
        """Callers turned away: how the engine would have fared is not in the log."""
        return self.run.answers.turned_away

    @property
    def shielded(self) -> bool:
        """Whether the log's own policy kept signals low: it refused, or it held."""
        acted = self.kept_away + self.run.answers.held.n
        return acted > MOST_BLIND * self.offered

    @property
    def missed(self) -> Share:
        """Ok answers that missed a bound of the SLO, of all of them."""
        paid = self.run.cost
        return Share.part(sum(paid.missed.values()), paid.ok.n)

    @property
    def few(self) -> bool:
        """Whether there are too few decisions to answer from."""
        return self.offered < FEWEST

    @property
    def waits_long(self) -> bool:
        """Whether the oldest open request often waited longer than without overload."""
        p95 = self.signal("oldest_wait_s").p95
        return p95 is not None and p95 > LONG_WAIT_S

    @property
    def overload(self) -> bool | None:
        """Whether requests had to wait or missed their SLO; None = it cannot say."""
        if self.few or self.too_tight:
            return None
        if self.harmless:
            return False
        if self._suffers():
            return True
        high = self.signal("oldest_wait_s").high or 0.0
        if self.kept_away or high > LONG_WAIT_S:
            return None
        run = self.run
        judged = run.cost.slo and run.cost.reported.n >= FEWEST
        return False if enough(self.crowd.queued) or judged else None

    def _suffers(self) -> bool:
        crowd, run = self.crowd, self.run
        held = Share.part(run.answers.held.n, self.offered)
        waited = any(map(often, (crowd.queued, crowd.preempting, held)))
        harmed = (self.missed, run.cost.engine_refused)
        return (
            waited
            or self.waits_long
            or any(often(one, SELDOM_MISSED) for one in harmed)
        )

    @property
    def harmless(self) -> bool:
        """Whether almost all that was offered met its SLO, and nobody was held."""
        paid = self.run.cost
        good = paid.goodput
        if not paid.slo or good is None or self.run.answers.held.n:
            return False
        return good.of >= FEWEST and good.n >= (1 - SELDOM_MISSED) * good.of

    @property
    def too_tight(self) -> bool:
        """Whether the log's own policy turned many away while the engine idled.

        That is, nothing waited, nobody who was let in missed the SLO, and memory was
        known to be less than half full.
        """
        away = Share.part(self.kept_away, self.offered)
        memory = self.signal("kv_pressure")
        if self.samples or not often(away) or not enough(self.crowd.queued):
            return False
        empty = memory.high is not None and memory.high < MOST_OF
        late = self.missed.n > SELDOM_MISSED * self.missed.of
        return empty and not late and not self._suffers()

    @property
    def fills(self) -> bool | None:
        """Whether the KV cache filled often enough to count; None = not known."""
        return often(self.crowd.full) if enough(self.crowd.full) else None

    @property
    def queues(self) -> bool | None:
        """Whether a queue often stood, in the engine or before it; None = not known."""
        held = Share.part(self.run.answers.held.n, self.offered)
        if often(self.crowd.queued) or often(held) or self.waits_long:
            return True
        return False if enough(self.crowd.queued) else None

    @property
    def binds(self) -> str | None:
        """What requests in the queue wait for; None = no queue, or it cannot say.

        memory, slots or prefill. Asked in this order: a full cache holds slots free,
        and slots all taken make long prompts wait like short ones.
        """
        crowd = self.crowd
        if crowd.queued.n < FEWEST:
            return None
        if _mostly(crowd.memory):
            return "memory"
        if _mostly(crowd.slots):
            return "slots"
        grows = self.prefill is not None and self.prefill.grows
        return "prefill" if grows else None

    @property
    def one_tenant(self) -> bool:
        """Whether one tenant of several makes most of the requests or of the tokens."""
        who = self.callers
        if who.tenants <= 1 or not enough(who.largest):
            return False
        return _mostly(who.largest) or _mostly(who.largest_tokens)

    @property
    def in_sessions(self) -> bool:
        """Whether most sessions ask more than once."""
        return enough(self.fact("session")) and _mostly(self.callers.several)

    @property
    def reuses(self) -> bool:
        """Whether the full cache was mostly one of prefixes that are used again."""
        half = self.crowd.hits_full.p50
        return half is not None and half >= MOST_OF


def enough(part: Share) -> bool:
    """Whether a share is of enough decisions to answer from."""
    return part.of >= FEWEST


def often(part: Share, least: float = OFTEN) -> bool:
    """Whether it holds on more than chance, of enough decisions to tell."""
    return enough(part) and part.n > 0 and part.n >= least * part.of


def _mostly(part: Share) -> bool:
    return part.value is not None and part.value >= MOST_OF


@dataclass(frozen=True, slots=True)
class Looked:
    """The runs of some logs, while their tables are there.

    Attributes:
        log: the tables.
        files: what was read.
        seen: each run; run n is `run_n` n of the tables.
    """

    log: Log
    files: Files
    seen: tuple[Seen, ...]


@contextmanager
def looked(
    paths: Iterable[str],
    slo: Slo | None = None,
    *,
    warmup: str | None = None,
    memory_limit: str | None = None,
) -> Iterator[Looked]:
    """Reads logs once, for the questions; takes and raises what `report` does."""
    with reported(paths, slo, warmup=warmup, memory_limit=memory_limit) as (log, made):
        columns = {name: f"s{n}" for n, name in enumerate(log.names.signals)}
        crowd, who = crowds(log.store, columns), callers(log)
        prefill = prefills(log.store, columns)
        seen = (
            Seen(run, crowd[number], who[number], prefill.get(number))
            for number, run in enumerate(made.runs)
        )
        yield Looked(log, made.files, tuple(seen))
