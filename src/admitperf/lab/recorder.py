"""Writes rounds of scrapes into a trace, as they come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.reading import Reading
from admitperf.engines.catalogue import ENGINES, engine_of
from admitperf.lab.runlines import RunLines
from admitperf.lab.tracefile import TraceFile
from admitperf.lab.virtual import LineOfTime
from admitperf.policies.no_admission import NoAdmission
from admitperf.scrape.pool import merged, pool_sources
from admitperf.scrape.simulated import simulated_by
from admitperf.scrape.target import Sample
from admitperf.scrape.watch import Round

Notes = dict[str, str | float | bool | None]


@dataclass(slots=True)
class Counts:
    """What became of the scrapes.

    Attributes:
        samples: rounds that gave a sample.
        rounds: those that were held.
        missed: those that went by because this process was late.
        failed: scrapes that failed, by endpoint.
        skipped: rounds an endpoint was not asked in, since it was still busy.
        last: the newest fault of each endpoint, in words.
    """

    samples: int = 0
    rounds: int = 0
    missed: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)


class Recorder:
    """Puts the baseline over each sample: it admits, and its lines hold every signal.

    Args:
        file: the trace.
        names: the replicas.
        interval_s: seconds between samples.
        notes: about the engines, for each run header; a simulated engine that answers
            later only is added.
        clock: source of time.
    """

    def __init__(
        self,
        file: TraceFile,
        names: Sequence[str],
        interval_s: float,
        notes: Notes,
        clock: Clock = SYSTEM,
    ) -> None:
        self.counts = Counts()
        self.notes = notes
        self.interval_s = interval_s
        self.sources = pool_sources() if len(names) > 1 else {}
        self._file = file
        self._names = list(names)
        self._time = LineOfTime(clock)
        self._lines = RunLines(
            file.put,
            self._time.epoch_us,
            lambda: clock.wall_ns() // 1000,
            readings=True,
        )
        self._policy = self._lines.policy = NoAdmission(
            log=self._lines,
            clock=self._time,
            enforce=0.0,
            raw="reference",
            sources=self.sources,
            notes=notes,
        )

    @property
    def run(self) -> str | None:
        """The run id of the samples; None before the first one."""
        return self._lines.run

    @property
    def simulated(self) -> bool:
        """Whether any engine said that it is simulated."""
        return self.notes.get("simulated") is True

    def take(self, found: Round) -> bool:
        """Writes one round; False when the disk did not take it."""
        self._count(found)
        if found.pages:
            self._stamp(found.pages)
            raw = merged({name: one.page for name, one in found.pages.items()})
            self._policy(
                Reading(raw, taken_ns=found.taken_ns, interval_s=self.interval_s)
            )
        if not self._file.flush():
            return False
        self.counts.samples += bool(found.pages)
        return True

    def say(self, event: str, **details: object) -> None:
        """Writes a notice about the instrument."""
        t_us = self._time.wall_ns() // 1000
        self._lines.control(t_us, event, details)

    def _stamp(self, pages: Mapping[str, Sample]) -> None:
        """What has a simulated engine in it is simulated, from then on."""
        if not self.simulated and _any_simulated(pages):
            self.notes["simulated"] = True
            self._lines.restate()

    def _count(self, found: Round) -> None:
        counts = self.counts
        counts.rounds += 1
        counts.missed += found.missed
        if found.missed:
            self.say("slots_missed", slots=found.missed)
        for target in found.skipped:
            counts.skipped[target] = counts.skipped.get(target, 0) + 1
            self.say("scrape_skipped", target=target)
        for fault in found.failed:
            target = fault.target
            counts.failed[target] = counts.failed.get(target, 0) + 1
            counts.last[target] = str(fault)
            self.say("scrape_failed", target=target, kind=fault.kind, what=fault.what)


def notes_on(pages: Mapping[str, Sample]) -> Notes:
    """What the pages say about who serves.

    Returns:
        `engine` when all are of one, exporters of GPUs aside; `simulated` = True when
        any page says so.
    """
    names = {engine_of(one.page) for one in pages.values()} - {"dcgm", "amd", None}
    titles = [engine.title for engine in ENGINES if engine.name in names]
    notes: Notes = {"engine": titles[0]} if len(titles) == 1 else {}
    if _any_simulated(pages):
        notes["simulated"] = True
    return notes


def _any_simulated(pages: Mapping[str, Sample]) -> bool:
    return any(simulated_by(one.page) is not None for one in pages.values())
