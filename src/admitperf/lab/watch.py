"""Watches engines: samples into a trace, then every policy over the samples."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from admitperf.core.policy import Policy
from admitperf.lab.fault import LabError
from admitperf.lab.judge import Case, Judged, judge
from admitperf.lab.recorded import Taken, samples
from admitperf.lab.recorder import Counts, Recorder, notes_on
from admitperf.lab.tracefile import TraceFile
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.target import Endpoint
from admitperf.scrape.watch import Watcher


@dataclass(slots=True)
class Moved:
    """How far a signal went.

    Attributes:
        n: samples that had it.
        low, high: its range, in its unit.
    """

    n: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def take(self, value: float) -> None:
        """Counts one value."""
        self.n += 1
        self.low, self.high = min(self.low, value), max(self.high, value)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to watch.

    Attributes:
        endpoints: engines and exporters.
        interval_s: seconds between samples.
        count: samples at most.
        path: where the trace goes.
        replace: an earlier trace there is replaced.
        classes: the policies to run at the end.
    """

    endpoints: Sequence[Endpoint]
    interval_s: float
    count: int
    path: str
    replace: bool
    classes: Sequence[type[Policy]]


class Watch:
    """One watch, from its first scrape to its judgement.

    Raises:
        LabError: the trace cannot be written.
        ScrapeError: an endpoint is named twice.

    Attributes:
        plan: what is watched.
        counts: what became of the scrapes so far.
        moved: range of each signal, once judged.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.counts = Counts()
        self.moved: dict[str, Moved] = {}
        self._watcher = Watcher(list(plan.endpoints), plan.interval_s)
        self._file = TraceFile(plan.path, replace=plan.replace)
        self._recorder: Recorder | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def names(self) -> list[str]:
        """What the replicas are called."""
        return self._watcher.names

    @property
    def fault(self) -> str | None:
        """Why the trace is not written any more; None = all is well."""
        return self._file.fault

    @property
    def simulated(self) -> bool:
        """Whether any engine said that it is simulated."""
        return self._recorder is not None and self._recorder.simulated

    def stop(self) -> None:
        """Ends the sampling at once. May be called from a signal handler."""
        self._watcher.stop()

    def first(self) -> tuple[ScrapeError, ...]:
        """Asks each endpoint once, before the watch begins.

        Returns:
            Why some could not be read; when all could not, there is nothing to watch.
        """
        found = self._watcher.first()
        if found is None:
            return ()
        notes = notes_on(found.pages)
        if found.pages:
            self._recorder = Recorder(
                self._file, self.names, self.plan.interval_s, notes
            )
            self.counts = self._recorder.counts
        return found.failed

    def run(self) -> Iterator[Counts]:
        """Samples, and says after each round what became of the scrapes."""
        recorder = self._recorder
        if recorder is None or self._watcher.stopped:
            return
        shown = [one.shown for one in self.plan.endpoints]
        recorder.say("watch_began", targets=shown, interval_s=self.plan.interval_s)
        for found in self._watcher.rounds(self.plan.count):
            if not recorder.take(found):
                return
            yield recorder.counts
        counts = recorder.counts
        recorder.say(
            "watch_ended",
            why="stopped" if self._watcher.stopped else "time",
            samples=counts.samples,
            rounds=counts.rounds,
            failed=sum(counts.failed.values()),
            skipped=sum(counts.skipped.values()),
            missed=counts.missed,
        )

    def judge(self, tick: Callable[[], None] = lambda: None) -> list[Judged]:
        """Runs the policies over the samples of the file, and writes what they said.

        Raises:
            LabError: the file was moved or deleted meanwhile.
        """
        recorder = self._recorder
        if recorder is None or recorder.run is None:
            return []
        self._file.flush()
        case = Case(self._file.put, recorder.sources, recorder.notes)
        taken = samples(
            self.plan.path, recorder.run, self.plan.interval_s, self._file.bytes
        )
        try:
            found = judge(self.plan.classes, self._ranging(taken), case, tick)
        except OSError as error:
            what = f"{self.plan.path}: cannot be read back: {error.strerror}"
            raise LabError(what) from None
        for one in found:
            if one.why_not is not None:
                recorder.say("not_judged", policy=one.policy, why=one.why_not)
        self._file.flush()
        return found

    def _ranging(self, taken: Iterator[Taken]) -> Iterator[Taken]:
        for one in taken:
            for name, value in one.signals.items():
                self.moved.setdefault(name, Moved()).take(value)
            yield one

    def to_dict(self, judged: Sequence[Judged]) -> dict[str, Any]:
        """The watch as plain values, ready for JSON."""
        counts = self.counts
        return {
            "trace": self.plan.path,
            "interval_s": self.plan.interval_s,
            "replicas": self.names,
            "simulated": self.simulated,
            "samples": counts.samples,
            "rounds": counts.rounds,
            "missed": counts.missed,
            "failed": counts.failed,
            "skipped": counts.skipped,
            "last_fault": counts.last,
            "signals": {
                name: {"n": one.n, "low": one.low, "high": one.high}
                for name, one in self.moved.items()
            },
            "policies": [one.to_dict() for one in judged],
            "governed": False,
        }
