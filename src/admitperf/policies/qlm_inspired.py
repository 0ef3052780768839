"""QLM at the ingress: a short engine queue, groups, and an order that is late least."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.errors import AbsentSignal
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.signals import IN_FLIGHT, QUEUE_DEPTH, RUNNING
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.forecast import first_token_s
from admitperf.policies.parts.qlm.group import Kind, key_of, kind_of
from admitperf.policies.parts.qlm.grouping import grouped
from admitperf.policies.parts.qlm.plan import FIRST, Place, Plan
from admitperf.policies.parts.qlm.planner import Planner
from admitperf.policies.parts.qlm.throughput import Throughput
from admitperf.policies.parts.qlm.virtual_queue import PATIENCE, VirtualQueue
from admitperf.policies.parts.qlm.waiting_time import WaitingTime
from admitperf.policies.parts.stuck import Stuck

FULL = 0.8
"""Share of `max_batch` from which on an engine counts as full for its rate: callers
come back with a delay, so that a full one dips. Plain choice."""

_SCALE_S = 1e6
"""Seconds that make half a place. Plain choice: a clock that has run for weeks still
tells microseconds apart."""


class QlmInspired(Policy):
    """Starts requests while the engine's queue is short; ranks who waits by group.

    One whose first token would be late from the first place is refused, unless it has
    nothing ahead of it: what is let in then tells whether the engine is still as slow.

    Nothing is optimized while a request is decided about: the order of the groups is
    made in `policy.background`, has an age, and is not used once it is too old. With a
    host that never calls that there is none, and the nearest deadline goes first.
    """

    name = "qlm_inspired"
    refuses_with = (
        "deadline_unmeetable",
        "slots",
    )
    slo_awareness = "deadline"
    signal_quantity = "wait_estimate"
    signal_structure = "lp-composite"
    metadata_assumed = ("model", "slo_class", "deadline_s")
    requires: tuple[Signal | str, ...] = (
        RUNNING,
        QUEUE_DEPTH,
        IN_FLIGHT,
        "model",
        "slo_class",
        "deadline_s",
        "input_tokens",
        "logical_id",
    )

    max_batch: Annotated[
        int,
        Param(
            "requests running or waiting in what a reading covers, from which on none"
            " is started; right is max_num_seqs + 2 of each engine",
            low=1,
            origin="QLM's released code; there it counts what is swapped out too",
        ),
    ] = 10
    max_plan_age_s: Annotated[
        float,
        Param(
            "seconds after which an order of groups is too old; then nearest deadline"
            " first",
            above=0.0,
            origin="plain choice: twice the 5 s told of QLM's optimizer",
        ),
    ] = 10.0
    solve_s: Annotated[
        float,
        Param(
            "seconds that making an order is taken to need at least, for trying out a"
            " slow optimizer; 5 is told of QLM",
            low=0.0,
            high=3600.0,
            origin="what making it does need shows in its age by itself",
        ),
    ] = 0.0
    slo_s: Annotated[
        float,
        Param(
            "seconds that a request without a deadline may wait for its place; it is"
            " never refused for it",
            above=0.0,
            origin="QLM's evaluation: its longest class, one hour",
        ),
    ] = 3600.0
    z: Annotated[
        float,
        Param(
            "standard deviations over the mean at which a wait is estimated",
            low=0.0,
            high=10.0,
            origin="the upper 95 % of a normal distribution, as in the research notes",
        ),
    ] = 1.64

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._throughput = Throughput()
        self._stuck = Stuck(0.0)
        self._queue = VirtualQueue()
        self._planner = Planner(self.solve_s)

    def decide(self, metrics: Snapshot) -> Decision:
        """Start it if there is room, unless it would be late all the same."""
        place = self._place(metrics)
        load = _load(metrics)
        full = metrics.gate("engine_batch", load, self.max_batch, ">=")
        time = self._time(metrics, load - self.max_batch + 1) if full else None
        slot_s = 0.0 if time is None else time.tokens / time.rate_per_s
        late = _too_late(metrics, slot_s)
        if late and (full or not (_is_next(metrics) or self._probes(metrics))):
            slot_ms = 1000 * slot_s
            return self.reject("deadline_unmeetable", estimate_ms=slot_ms or None)
        if not full:
            return self.admit()
        return self.defer(
            "slots",
            estimate_ms=None if time is None else self._wait_ms(metrics, place, time),
            rank=place[0] + _within(self._due_s(metrics)),
        )

    def decided(self, metrics: Snapshot, d: Decision) -> None:
        """Note who is sent off and may come back, and when one was let in."""
        self._stuck.decided(metrics, d)
        request = metrics.request
        name = request.logical_id or d.request_id
        if d.admitted or d.fault != "capacity" or not d.retry_after_ms:
            self._queue.drop(name)
            return
        until_s = metrics.now_s + PATIENCE * d.retry_after_ms / 1000
        self._queue.note(name, key_of(request), self._due_s(metrics), until_s)
        self._queue.expire(metrics.now_s)

    def _probes(self, metrics: Snapshot) -> bool:
        """Whether one is let in to show that the prompt ahead of it is stuck."""
        left_s = metrics.request.deadline_s or 0.0
        return left_s > 0 and self._stuck.probe_is_due(metrics)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Learn from an end how fast answers come, from a reading what was full."""
        if outcome is not None:
            if outcome.output_tokens is not None:
                self._throughput.ended(outcome.output_tokens, metrics.now_s)
            return
        load = _load_if_known(metrics)
        if load is not None:
            full = load >= FULL * self.max_batch
            self._throughput.reading(metrics.replica, metrics.now_s, full=full)
            self._queue.expire(metrics.now_s)

    def task(self, metrics: Snapshot) -> Callable[[], Plan] | None:
        """Look whether the order still does, and make another if it does not."""
        load = _load_if_known(metrics)
        if load is None:
            return None
        now_s, notes = metrics.now_s, self._queue.notes()
        answers = {kind: _answer(metrics, kind) for kind in self._queue.kinds()}
        time = self._time(metrics, max(0.0, load - self.max_batch + 1))
        return self._planner.work(partial(grouped, notes, answers, now_s), time, now_s)

    def task_done(self, metrics: Snapshot, result: object) -> None:  # noqa: ARG002
        """Use the order that was made, however old it is by now."""
        if isinstance(result, Plan):  # it is nothing else: the work of `task` made it
            self._planner.take(result)

    def _time(self, metrics: Snapshot, ahead: float) -> WaitingTime | None:
        """How long work takes behind so many requests; None = that is not measured."""
        rate_per_s = self._throughput.per_s(metrics.now_s)
        answer = metrics.answer_moments()
        if rate_per_s is None or answer is None:
            return None
        mean, variance = answer
        return WaitingTime(rate_per_s, self.z, ahead * mean, ahead * variance)

    def _place(self, metrics: Snapshot) -> Place:
        """Its place in the plan; the first one when there is none that is fresh."""
        plan = self._planner.at(metrics.now_s)
        if plan is None:
            return FIRST
        age_s = metrics.now_s - plan.made_s
        if metrics.gate("plan_age_s", age_s, self.max_plan_age_s, ">"):
            return FIRST
        return plan.place(key_of(metrics.request), self._due_s(metrics))

    def _due_s(self, metrics: Snapshot) -> float:
        """When it is due, on the policy's clock."""
        left_s = metrics.request.deadline_s
        return metrics.now_s + (self.slo_s if left_s is None else left_s)

    def _wait_ms(self, metrics: Snapshot, place: Place, time: WaitingTime) -> float:
        """The wait of its place; at most until it has to start to be in time.

        Args:
            time: behind the slots that are missing.
        """
        key = key_of(metrics.request)
        count, (mean, variance) = self._queue.count(key), _answer(metrics, kind_of(key))
        _, tokens, spread = place
        wait_s = time.seconds(tokens + count * mean, spread + count * variance)
        deadline_s = metrics.request.deadline_s
        if deadline_s is not None:
            left_s = deadline_s - (first_token_s(metrics) or 0.0)
            wait_s = min(wait_s, max(0.0, left_s))
        return 1000 * wait_s


def _too_late(metrics: Snapshot, slot_s: float) -> bool:
    """Whether its first token would miss the deadline from the first place.

    Args:
        slot_s: until a slot should be free, in the middle; 0.0 = one is, or no rate is
            known.
    """
    deadline_s = metrics.request.deadline_s
    if deadline_s is None:
        return False
    best_s = slot_s + (first_token_s(metrics) or 0.0)
    return metrics.gate("first_token_s", best_s, deadline_s, ">=")


def _is_next(metrics: Snapshot) -> bool:
    """Whether its deadline lies ahead, and no prompt of this host does."""
    deadline_s = metrics.request.deadline_s
    return not metrics.prefill_tokens and deadline_s is not None and deadline_s > 0


def _load(metrics: Snapshot) -> float:
    """Requests in the engine, running and waiting. What is absent is not zero."""
    load = _load_if_known(metrics)
    if load is None:
        absent = RUNNING if metrics.read(RUNNING) is None else QUEUE_DEPTH
        raise AbsentSignal(absent.name)
    return load


def _load_if_known(metrics: Snapshot) -> float | None:
    running, waiting = metrics.read(RUNNING), metrics.read(QUEUE_DEPTH)
    return None if running is None or waiting is None else running + waiting


def _answer(metrics: Snapshot, kind: Kind) -> tuple[float, float]:
    """Mean in tokens and variance in tokens squared; zeros before any answer."""
    return metrics.answer_moments(*kind) or (0.0, 0.0)


def _within(due_s: float) -> float:
    """A due time as a part of one place: the earlier, the lower; from 0 to under 1."""
    return max(0.0, due_s) / (max(0.0, due_s) + _SCALE_S)
