"""As many of each class at once as the fluid model of an engine can carry."""

from itertools import pairwise
from typing import Annotated

from admitperf.core.charge import Charge, charges
from admitperf.core.decision import Decision
from admitperf.core.errors import AbsentSignal
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.request import Request
from admitperf.core.signals import (
    IN_FLIGHT,
    INPUT_TOKENS,
    KV_CAPACITY_TOKENS,
    KV_PRESSURE,
)
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.fluid_wait.mix import MEASURED_AFTER, Mix
from admitperf.policies.parts.fluid_wait.model import (
    balanced_step_s,
    demand,
    in_flight,
    step_s,
)
from admitperf.policies.parts.fluid_wait.pace import Pace
from admitperf.policies.parts.fluid_wait.stages import Stages
from admitperf.policies.parts.forecast import held_tokens
from admitperf.policies.parts.replicas import REPLICAS_MOST
from admitperf.policies.parts.settled import prompt_tokens

SEGMENTS = (0.5, 0.8, 0.95)
"""Quantiles of the answer's length at which a segment ends: the first is held at once,
each next one when the answer should have outlived the one before. Plain choice: the
paper's segments end at the lengths of its types, which an ingress does not know."""

LEAST_WAIT_S = 0.2
"""Shortest wait told. Origin: research notes, 1.1."""

_SIZES = 7
"""Buckets of a length: below 64, then by powers of 4, the last from 65,536."""

_Class = tuple[int | None, int | None]


class _Engine:
    """What is known of one replica."""

    __slots__ = ("mix", "pace", "stages")

    def __init__(self, owner: str, replica: str | None, window_s: float) -> None:
        self.mix = Mix(window_s)
        self.pace = Pace()
        self.stages = Stages(owner, replica)


class FluidWaitInspired(Policy):
    """Refuses a class over its number in balance, and what memory will not hold.

    A request's class is the size of its prompt and of the answer it will likely have,
    by powers of 4: at most 64 classes. Rates are of what is offered, sizes of what
    finished, the step's time of both answers and readings. Until all that is measured
    only memory is watched. What was learnt belongs to one process, by replica; a
    forked child goes on with a copy.
    """

    name = "fluid_wait_inspired"
    slo_awareness = "throughput"
    signal_quantity = "kv_pressure"
    signal_structure = "scalar"
    metadata_assumed = ("input_tokens",)
    refuses_with = (
        "too_large",
        "in_flight_cap",
        "kv_headroom",
    )
    requires = (
        KV_CAPACITY_TOKENS,
        KV_PRESSURE,
        IN_FLIGHT,
        "input_tokens",
        "max_output_tokens",
        "attempt",
    )

    buffer: Annotated[
        float,
        Param(
            "part of the KV cache kept free, as a fraction",
            low=0.0,
            high=0.9,
            origin="plain choice: raise it until the engine preempts nothing",
        ),
    ] = 0.10
    window_s: Annotated[
        float,
        Param(
            "seconds after which an arrival counts 1/e in its class's rate",
            above=0.0,
            high=3600.0,
            origin="plain choice: longer is steadier and follows a change later",
        ),
    ] = 30.0
    thresholds: Annotated[
        str,
        Param(
            "largest: the most that the paper's conditions allow; least: what balances",
            choices=("largest", "least"),
            origin="at the least, chance refuses 8 % (100 open) to half (one open), by "
            "Erlang's loss formula",
        ),
    ] = "largest"
    kv_share: Annotated[
        float,
        Param(
            "part of an engine's KV cache that this process may fill, as a fraction",
            low=1e-6,
            high=1.0,
            per_process=True,
            origin="one process before the engine has all of it",
        ),
    ] = 1.0

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._engines: dict[str | None, _Engine] = {}

    def decide(self, metrics: Snapshot) -> Decision:
        """Ask whether it can ever fit, then its class's number, then memory."""
        cache = _cache(metrics)
        if cache is None:
            raise AbsentSignal(KV_CAPACITY_TOKENS.name)
        known = metrics.request.input_tokens is not None
        if known and metrics.above(INPUT_TOKENS, cache[0]):
            return self.reject("too_large")
        engine, likely = self._known(metrics.replica), metrics.output_tokens()
        crowded = self._crowded(metrics, engine, likely, cache[0])
        full = self._full(metrics, engine, likely, cache)
        if crowded is not None:
            return crowded
        return self.admit() if full is None else full

    def decided(self, metrics: Snapshot, d: Decision) -> tuple[Charge, ...] | None:
        """Count the offer; charge its class, and the room it takes by and by."""
        engine, likely = self._engine(metrics.replica), metrics.output_tokens()
        cls = _class(metrics.request, likely)
        if not metrics.request.attempt:
            engine.mix.offered(metrics.now_s, cls)
        if d.verdict is not Verdict.ADMIT:
            return None
        first = _first(metrics, likely, engine)
        room = engine.stages.charge(metrics.now_s, first, _raises(metrics, engine))
        return Charge(self._account(metrics, cls)), *room

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Learn from what ended; with a reading, fit the step and raise what is due."""
        if outcome is not None:
            self._learn(metrics.now_s, outcome)
            return
        engine = self._engine(metrics.replica)
        engine.stages.look(metrics)
        cache = _cache(metrics)
        if cache is not None:
            engine.pace.read(metrics.now_s, cache[1])

    def _crowded(
        self,
        metrics: Snapshot,
        engine: _Engine,
        likely: float | None,
        capacity: float,
    ) -> Decision | None:
        """What the class's number says; None = room, or not measured."""
        cls, now_s = _class(metrics.request, likely), metrics.now_s
        output, line = engine.mix.output(cls), engine.pace.line
        load = engine.mix.load(now_s)
        if output is None or line is None or load <= 0.0:
            return None
        room = capacity * (1 - self.buffer) * self.kv_share
        offered = demand(load, room, *line)
        metrics.gate("fluid_demand", offered, 1.0, ">")
        let_in = min(1.0, 1.0 / offered)
        tau_s = balanced_step_s(let_in * load, *line) or line[0]
        most = in_flight(let_in * engine.mix.rate(now_s, cls), output, tau_s)
        if self.thresholds == "largest":
            most *= room / (tau_s * let_in * load)
        most = max(1.0, most)
        open_now = metrics.charges(self._account(metrics, cls))
        if not metrics.gate("class_in_flight", open_now, most):
            return None
        wait_s = max(LEAST_WAIT_S, tau_s * (output + 1) / most)
        return self.defer("in_flight_cap", estimate_ms=1000 * wait_s)

    def _full(
        self,
        metrics: Snapshot,
        engine: _Engine,
        likely: float | None,
        cache: tuple[float, float],
    ) -> Decision | None:
        """What memory says; an engine that holds no more than the buffer takes it."""
        capacity, resident = cache
        held = max(resident, engine.stages.held(metrics) / self.kv_share)
        own = _first(metrics, likely, engine)
        room = capacity * (1 - self.buffer)
        over = metrics.gate("projected_kv", held + own, room, ">")
        if not over or held <= capacity * self.buffer:
            return None
        return self.defer("kv_headroom", estimate_ms=_turn_ms(metrics, engine))

    def _learn(self, now_s: float, outcome: Outcome) -> None:
        request, tokens = outcome.request, outcome.output_tokens
        charge = next(charges(outcome.charge), None)
        account = charge.account if charge is not None else None
        if not outcome.ok or request is None or tokens is None:
            return
        if not isinstance(account, tuple):  # refused on paper and served all the same
            return
        _, replica, _, cls = account
        engine = self._engine(replica)
        length = prompt_tokens(outcome, cached=True)
        if length is not None:
            engine.mix.ended(now_s, cls, length, tokens / request.n)
        whole, first = outcome.e2e_ms, outcome.ttft_ms
        if request.n == 1 and whole is not None and first is not None:
            engine.pace.ended(now_s, tokens, (whole - first) / 1000)

    def _account(self, metrics: Snapshot, cls: _Class) -> tuple[object, ...]:
        return self.name, metrics.replica, "class", cls

    def _engine(self, replica: str | None) -> _Engine:
        """The model of a replica; those met past the bound share one."""
        if replica not in self._engines and len(self._engines) >= REPLICAS_MOST:
            replica = None
        return self._engines.setdefault(replica, self._known(replica))

    def _known(self, replica: str | None) -> _Engine:
        """The same for `decide`: a new one is not kept."""
        if replica not in self._engines and len(self._engines) >= REPLICAS_MOST:
            replica = None
        known = self._engines.get(replica)
        return known or _Engine(self.name, replica, self.window_s)


def _cache(metrics: Snapshot) -> tuple[float, float] | None:
    """The KV cache's capacity and what is resident, in tokens; None = not known."""
    capacity, pressure = metrics.read(KV_CAPACITY_TOKENS), metrics.read(KV_PRESSURE)
    if capacity is None or pressure is None:
        return None
    return float(capacity), pressure * capacity


def _class(request: Request, likely: float | None) -> _Class:
    """The buckets of its prompt and of its likely answer; None = not known."""
    return _bucket(request.input_tokens), _bucket(likely)


def _bucket(tokens: float | None) -> int | None:
    if tokens is None:
        return None
    return min(_SIZES - 1, max(0, (int(tokens).bit_length() - 5) // 2))


def _first(metrics: Snapshot, likely: float | None, engine: _Engine) -> float:
    """Tokens held from the start: the prompt, and the answer's first segment.

    Before answers were measured the prompt alone: a caller's limit is no length.
    """
    prompt = float(held_tokens(metrics) or 0)
    if likely is None or engine.mix.finished < MEASURED_AFTER:
        return prompt
    return prompt + likely


def _raises(metrics: Snapshot, engine: _Engine) -> list[tuple[float, float]]:
    """(seconds from now, tokens more) at the end of each segment but the last."""
    step_now_s = _step_now_s(metrics, engine)
    if step_now_s is None or engine.mix.finished < MEASURED_AFTER:
        return []
    ends = [metrics.output_tokens(q) or 0.0 for q in SEGMENTS]
    each_s = step_now_s / metrics.request.n
    return [(end * each_s, then - end) for end, then in pairwise(ends)]


def _step_now_s(metrics: Snapshot, engine: _Engine) -> float | None:
    """Seconds of a step with what is resident now; None = not measured."""
    line, cache = engine.pace.line, _cache(metrics)
    return None if line is None or cache is None else step_s(cache[1], *line)


def _turn_ms(metrics: Snapshot, engine: _Engine) -> float | None:
    """Until one such answer is through, in ms; None = not measured.

    The cache is let go of once in about that time, whatever its size.
    """
    step_now_s, output = _step_now_s(metrics, engine), metrics.output_tokens()
    if step_now_s is None or output is None:
        return None
    return 1000 * max(LEAST_WAIT_S, step_now_s * output / metrics.request.n)
