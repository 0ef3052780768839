"""What a deployment can carry of a workload, without a policy, and how sure that is."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from admitperf.bench.harness.alone import CalibrationError, driven
from admitperf.bench.harness.executors import Executor
from admitperf.bench.harness.target import Target
from admitperf.bench.harness.virtual import VirtualTarget
from admitperf.bench.workloads.workload import Workload
from admitperf.reports.comparison.statistics import t_interval
from admitperf.simulator.capacity import of_requests, of_sessions, with_agents
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.sessions import Session, Standing, first_calls
from admitperf.simulator.traffic.traffic import Answer, Traffic

SEEDS = 5
"""Measurements of the capacity, each with a draw of its own; the fewest with which an
interval is known well. Plain choice."""

WALL_TRY_S, WALL_MEASURE_S, WALL_SETTLE_S = 12.0, 60.0, 5.0
WALL_BATCHES = 10
WALL_CLIENTS_FIRST, WALL_CLIENTS_MOST = 4, 1024
GAIN = 1.05
"""In wall time clients are doubled as long as that brings so many times the answers,
each try this long; then it is measured, in batches. Plain choices."""

_FIRST, _SECOND = 1_000, 2_000  # seeds of the measurements before and after


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the deployment can carry of a workload, without a policy.

    Attributes:
        unit: "request" or "session".
        per_s: of them, a second.
        low, high: a 95 % interval.
        calls: of a unit, on average.
        clients: who asked meanwhile, on each engine.
        n: measurements, or batches.
        answers: calls that were counted.
    """

    unit: str
    per_s: float
    low: float
    high: float
    calls: float
    clients: int
    n: int
    answers: int

    @property
    def calls_per_s(self) -> float:
        """The same in calls."""
        return self.per_s * self.calls

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def capacity(
    target: Target, workload: Workload, executor: Executor, before: Capacity | None
) -> Capacity:
    """Measures it.

    Args:
        target: the deployment.
        workload: what is asked.
        executor: runs measurements of a simulated engine side by side.
        before: what was measured first; None = this is the first time. The second
            time has other seeds and the same clients.

    Raises:
        CalibrationError: nothing was answered.
    """
    sessions = workload.pool()
    calls = sum(len(one.calls) for one in sessions) / len(sessions)
    clients = before.clients if before else None
    first = _SECOND if before else _FIRST
    if isinstance(target, VirtualTarget):
        measured = _virtual(target, workload, executor, clients, first)
    else:
        measured = _wall(target, sessions, clients, first)
    if not measured.answers or not measured.per_s or min(measured.per_s) <= 0:
        raise CalibrationError("the engine answered nothing while it was measured")
    between = t_interval(measured.per_s)
    return Capacity(
        unit=workload.noun,
        per_s=fmean(measured.per_s) / calls,
        low=max(0.0, between.low) / calls,
        high=between.high / calls,
        calls=calls,
        clients=measured.clients,
        n=len(measured.per_s),
        answers=measured.answers,
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """Calls a second, in several measurements or batches."""

    per_s: list[float]
    clients: int
    answers: int


@dataclass(frozen=True, slots=True)
class _Try:
    """One measurement of a simulated engine, as a process is handed it."""

    model: EngineModel
    sessions: Sequence[Session]
    noun: str
    clients: int | None
    seed: int


def _virtual(
    target: VirtualTarget,
    workload: Workload,
    executor: Executor,
    clients: int | None,
    first: int,
) -> _Measured:
    sessions = tuple(workload.pool())
    tries = [
        _Try(target.model, sessions, workload.noun, clients, first + n)
        for n in range(SEEDS)
    ]
    done = []
    if clients is None and workload.noun == "session":  # how many agents it takes
        done = [_tried(tries.pop(0))]
        tries = [
            _Try(one.model, one.sessions, one.noun, done[0][2], one.seed)
            for one in tries
        ]
    done += list(executor.each(_tried, tries))
    done.sort()  # results come in any order, and sums of floats depend on it
    per_s = [per_s * target.replicas for _, per_s, _, _ in done]
    return _Measured(per_s, done[0][2], sum(answers for *_, answers in done))


def _tried(one: _Try) -> tuple[int, float, int, int]:
    """Seed, calls a second, clients and answers."""
    if one.noun == "request":
        found = of_requests(one.model, first_calls(one.sessions, one.seed))
        return one.seed, found.requests_per_s, found.clients, found.answers
    if one.clients is None:
        found = of_sessions(one.model, one.sessions, one.seed)
        return one.seed, found.requests_per_s, found.clients, found.answers
    per_s, answers = with_agents(one.model, one.sessions, one.clients, one.seed)
    return one.seed, per_s, one.clients, answers


class _Ends:
    """Traffic that notes when good answers ended."""

    def __init__(self, traffic: Traffic) -> None:
        self.at_s: list[float] = []
        self._traffic = traffic

    def first(self) -> Iterable[Arrival]:
        return self._traffic.first()

    def after(self, arrival: Arrival, at_s: float, answer: Answer) -> Iterable[Arrival]:
        if answer.ok:
            self.at_s.append(at_s)
        return self._traffic.after(arrival, at_s, answer)


def _wall(
    target: Target, sessions: Sequence[Session], clients: int | None, seed: int
) -> _Measured:
    """In real time: how many clients it takes, then batches with so many."""
    if clients is None:
        clients = _clients(target, sessions, seed)
    at_s = _asked(target, sessions, clients, seed, WALL_MEASURE_S)
    width_s = WALL_MEASURE_S / WALL_BATCHES
    counts = [0] * WALL_BATCHES
    for one in at_s:
        batch = int((one - WALL_SETTLE_S) / width_s)
        if one >= WALL_SETTLE_S and batch < WALL_BATCHES:
            counts[batch] += 1
    return _Measured([n / width_s for n in counts], clients, sum(counts))


def _clients(target: Target, sessions: Sequence[Session], seed: int) -> int:
    clients, best = WALL_CLIENTS_FIRST, 0.0
    found = clients
    while clients <= WALL_CLIENTS_MOST:
        at_s = _asked(target, sessions, clients, seed, WALL_TRY_S)
        per_s = sum(one >= WALL_SETTLE_S for one in at_s) / WALL_TRY_S
        if per_s < best * GAIN:
            break
        found, best = clients, per_s
        clients *= 2
    return found


def _asked(
    target: Target, sessions: Sequence[Session], clients: int, seed: int, lasts_s: float
) -> list[float]:
    until_s = WALL_SETTLE_S + lasts_s
    traffic = _Ends(Standing(sessions, clients, until_s, seed))
    driven(target, traffic, seed, until_s)
    return traffic.at_s
