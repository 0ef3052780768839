"""What the questions are asked of: a run's report, and what it does not hold."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.report import RunReport, reported
from admitperf.reports.runs.callers import Callers, callers
from admitperf.reports.runs.crowd import Crowd, crowds
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
    def missed(self) -> int:
        """Ok answers that missed a bound of the SLO."""
        return sum(self.run.cost.missed.values())

    @property
    def waits_long(self) -> bool:
        """Whether the oldest open request waited longer than without overload."""
        high = self.signal("oldest_wait_s").high
        return high is not None and high > LONG_WAIT_S

    @property
    def overload(self) -> bool | None:
        """Whether requests had to wait or missed their SLO; None = it cannot say."""
        crowd, run = self.crowd, self.run
        if crowd.queued.n or crowd.preempting.n or self.missed:
            return True
        if run.answers.held.n or run.cost.engine_refused.n:
            return True
        if self.waits_long and not self.harmless:
            return True
        judged = run.cost.slo and run.cost.reported.n
        if self.kept_away or not (crowd.queued.of or judged):
            return None
        return False

    @property
    def harmless(self) -> bool:
        """Whether every outcome is in, judged by an SLO, and good."""
        paid = self.run.cost
        good = paid.goodput
        return bool(paid.slo and good is not None and good.of and good.n == good.of)

    @property
    def fills(self) -> bool | None:
        """Whether the KV cache filled; None = `kv_pressure` was never supplied."""
        return bool(self.crowd.full.n) if self.crowd.full.of else None

    @property
    def queues(self) -> bool | None:
        """Whether a queue formed, in the engine or before it; None = not known."""
        if self.crowd.queued.n or self.run.answers.held.n or self.waits_long:
            return True
        return False if self.crowd.queued.of else None

    @property
    def binds(self) -> str | None:
        """What requests in the queue wait for; None = no queue, or it cannot say.

        memory, slots or prefill. Asked in this order: a full cache holds slots free,
        and slots all taken make long prompts wait like short ones.
        """
        crowd = self.crowd
        if not crowd.queued.n:
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
        return who.tenants > 1 and (_mostly(who.largest) or _mostly(who.largest_tokens))

    @property
    def in_sessions(self) -> bool:
        """Whether most sessions ask more than once."""
        return _mostly(self.callers.several)


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
