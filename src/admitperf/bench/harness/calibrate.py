"""What is measured before a policy is tried, and the deadlines that follow from it.

All of it without a policy, on the deployment that the policies will stand before.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any, Self

from admitperf.bench.callers.slo import Slo
from admitperf.bench.harness.alone import (
    CalibrationError,
    Classes,
    Unloaded,
    nominal_s,
    unloaded,
)
from admitperf.bench.harness.capacity import Capacity, capacity
from admitperf.bench.harness.config import Config
from admitperf.bench.harness.executors import Executor
from admitperf.bench.harness.target import Arm, Target
from admitperf.bench.workloads.workload import Workload
from admitperf.core.errors import MissingSignal
from admitperf.core.notice import hushed
from admitperf.policies import load
from admitperf.simulator.traffic.sessions import Session

TTFT_FACTOR = 5.0
STALL_FACTOR = 10.0
STALL_LEAST_MS = 500.0
"""Deadlines: five times the unloaded p95 of the first token; ten times the time of a
token, half a second at least. Origin: the product brief, 12."""

SLO_FROM = (
    "per class TTFT 5x unloaded p95, stall max(10x token time, 500 ms), a session 3x"
    " its unloaded duration"
)
GIVEN = "given, not calibrated"

SCORED_LEAST = 0.5
"""Of a run, the least that is scored. Origin: the benchmark's contract."""


TASKS_LEAST = 10.0
"""Median unloaded sessions that a run lasts at least, unless it is told how long: in
less, load has no time to build up. Origin: the method's note, 8.2."""


# ------------------------------------------------------------------------ signals


def check_signals(target: Target, arms: Iterable[Arm]) -> None:
    """Whether the engine supplies what every arm's policy requires.

    Raises:
        CalibrationError: a signal is missing; names the arm and the signal.
        AdmitPerfError: a policy cannot be had with these parameters.
    """
    reading = target.reading()
    for arm in arms:
        given: dict[str, Any] = dict(arm.parameters)
        with hushed():
            policy = load(arm.policy)(reports_outcomes=True, **given)
        try:
            policy.check(reading)
        except MissingSignal as error:
            raise CalibrationError(f"arm {arm.name}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What every run of an experiment goes by.

    Attributes:
        classes: of calls.
        alone: each class without load.
        slo: the deadlines.
        slo_from: "unloaded" or "given".
        capacity: without a policy.
        lasts_s: how long calls or sessions begin in a run.
        warmup_s: what begins before it is not scored.
        scored_s: what begins between these two is.
        until_s: when a run is ended at the latest.
    """

    classes: Classes
    alone: Mapping[str, Unloaded] = field(default_factory=dict)
    slo: Slo
    slo_from: str
    capacity: Capacity
    lasts_s: float
    warmup_s: float
    scored_s: tuple[float, float]
    until_s: float

    @property
    def deadlines_s(self) -> dict[str, float]:
        """Of the first token, by class."""
        return {
            name: limits["ttft_ms"] / 1e3
            for name, limits in self.slo.classes.items()
            if "ttft_ms" in limits
        }

    @property
    def log_slo(self) -> dict[str, Any]:
        """As a policy's keyword: one class for all is told without its name."""
        by_class = {name: dict(limits) for name, limits in self.slo.classes.items()}
        return by_class.get("", by_class)

    def said(self) -> str:
        """How the deadlines were set."""
        return SLO_FROM if self.slo_from == "unloaded" else GIVEN

    def document(self) -> dict[str, Any]:
        """As plain data, from which it can be read back."""
        return {
            "edges": list(self.classes.edges),
            "alone": {name: asdict(one) for name, one in self.alone.items()},
            "slo": {name: dict(one) for name, one in self.slo.classes.items()},
            "task_factor": self.slo.task_factor,
            "slo_from": self.slo_from,
            "capacity": self.capacity.document(),
            "lasts_s": self.lasts_s,
            "warmup_s": self.warmup_s,
            "scored_s": list(self.scored_s),
            "until_s": self.until_s,
        }

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Self:
        """From its document.

        Raises:
            CalibrationError: it is none.
        """
        try:
            return cls(
                classes=Classes(tuple(told["edges"])),
                alone={name: Unloaded(**one) for name, one in told["alone"].items()},
                slo=Slo(classes=told["slo"], task_factor=told["task_factor"]),
                slo_from=told["slo_from"],
                capacity=Capacity(**told["capacity"]),
                lasts_s=told["lasts_s"],
                warmup_s=told["warmup_s"],
                scored_s=(told["scored_s"][0], told["scored_s"][1]),
                until_s=told["until_s"],
            )
        except (KeyError, TypeError, ValueError, IndexError):
            raise CalibrationError("the calibration on disk is none") from None


def objective(
    alone: Mapping[str, Unloaded], given: Mapping[str, Mapping[str, float]] | None
) -> Slo:
    """The deadlines: as given, else from the latency without load.

    Raises:
        ValueError: a given one makes no sense.
    """
    if given is not None:
        return Slo(classes=given)
    return Slo(
        classes={
            name: {
                "ttft_ms": _rounded(TTFT_FACTOR * one.p95_ms),
                "stall_ms": _rounded(max(STALL_FACTOR * one.token_ms, STALL_LEAST_MS)),
            }
            for name, one in alone.items()
        }
    )


def _rounded(ms: float) -> float:
    return float(max(1, round(ms)))


def calibrated(
    config: Config,
    engine: Target,
    offered: Workload,
    runs: Executor,
    stage: Callable[[str], None],
) -> Calibration:
    """Everything that is measured before a policy is tried.

    Raises:
        CalibrationError: the engine cannot be measured, or the deadlines that were
            given are not those of its classes.
    """
    sessions = offered.pool()
    flat = config.slo is not None and set(config.slo) == {""}
    classes = Classes() if flat else Classes.of(sessions)
    stage("measuring latency without load")
    alone = unloaded(engine, sessions, classes, config.seed)
    slo = objective(alone, config.slo)
    if missing := [name for name in classes.names if not _has(slo.classes, name)]:
        known = ", ".join(classes.names)
        raise CalibrationError(f"slo: no deadlines for {missing[0]}; classes: {known}")
    stage("measuring capacity")
    measured = capacity(engine, offered, runs, None)
    tasks = offered.noun == "session"
    lasts_s = config.lasts_s or config.calls / measured.calls_per_s
    if tasks and config.lasts_s is None:
        took_s = median(nominal_s(one, classes, alone) for one in sessions)
        lasts_s = max(lasts_s, TASKS_LEAST * took_s)
    first = Calibration(
        classes=classes,
        alone=alone,
        slo=slo,
        slo_from="unloaded" if config.slo is None else "given",
        capacity=measured,
        lasts_s=lasts_s,
        warmup_s=0.0,
        scored_s=(0.0, lasts_s),
        until_s=lasts_s,
    )
    return _until(first, sessions, tasks=tasks)


def _has(classes: Mapping[str, object], name: str) -> bool:
    return name in classes or "" in classes


def _until(
    told: Calibration, sessions: Sequence[Session], *, tasks: bool
) -> Calibration:
    """Says when a run ends, and what of it is scored but for the warm-up."""
    took_s = [nominal_s(one, told.classes, told.alone) for one in sessions]
    deadline_s = max(told.deadlines_s.values(), default=0.0)
    factor = told.slo.task_factor
    until_s = told.lasts_s + deadline_s + factor * max(took_s)
    left_s = factor * median(took_s) if tasks else deadline_s
    return scoring(replace(told, until_s=until_s), 0.0, left_s)


def scoring(told: Calibration, warmup_s: float, left_s: float) -> Calibration:
    """Cuts the beginning, and the end in which not everything has its time."""
    least_s = warmup_s + SCORED_LEAST * told.lasts_s
    end_s = min(told.lasts_s, max(told.lasts_s - left_s, least_s))
    return replace(told, warmup_s=warmup_s, scored_s=(warmup_s, end_s))


# ---------------------------------------------------------------------- parameters


def fitted(
    calibration: Calibration, seqs: int | None, age_s: float, replicas: int = 1
) -> dict[str, float]:
    """What parameters follow from a calibration, by name.

    The bound on the queue is what the engine takes from it in the time that the
    tightest deadline leaves, less the request's own time and the age of what is known.
    As many more may be in flight as clients asked while the capacity was measured, at
    most as many as run at once, and as many come in one burst. The rate is the
    capacity.

    Args:
        calibration: the deployment's.
        seqs: requests that run at once on all engines; None = not known.
        age_s: of what a policy knows of the engine.
        replicas: engines.
    """
    per_s = calibration.capacity.calls_per_s
    waiting = math.floor(max(0.0, _left_s(calibration, age_s)) * per_s)
    found = {"max_waiting": waiting, "rate_per_s": round(per_s, 3)}
    if seqs is not None:
        asking = calibration.capacity.clients * replicas
        full = max(1, min(seqs, asking) + waiting)
        found |= {"max_in_flight": full, "burst": full}
    return found


def _left_s(calibration: Calibration, age_s: float) -> float:
    """The least that a class's deadline leaves for waiting."""
    return min(
        calibration.slo.limits(name).get("ttft_ms", math.inf) / 1e3
        - one.p95_ms / 1e3
        - age_s
        for name, one in calibration.alone.items()
    )
