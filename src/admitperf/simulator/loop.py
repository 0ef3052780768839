"""A policy in front of an engine, in virtual time.

Arrivals ask the policy, the policy sees the scraper's last reading and the facts of the
request, and what it admits goes to the engine. It is told of first tokens and ends as a
host would tell it. What a refusal leads to is the traffic's matter.
"""

import heapq
import math
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from admitperf.core.clock import SYSTEM
from admitperf.core.decision import Decision
from admitperf.core.log import REPEAT_S
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.events import End, Event, FirstToken, Gone
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.fleet import Fleet, Routing
from admitperf.simulator.scraper import Scraper, Scraping
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.traffic import (
    BUSY,
    Answer,
    Coming,
    OpenLoop,
    Traffic,
    answer_to,
)
from admitperf.simulator.virtual_clock import VirtualClock

CLIENT_CLOSED = "client_closed"
"""What an outcome says of a caller that hung up."""

UNFINISHED = "unfinished"
"""What an outcome says of a request that the end of the run cut off."""

_NOTHING_GOT = Gone(0, None, None)


def serve(arrivals: Sequence[Arrival], model: EngineModel, seed: int = 0) -> list[End]:
    """What becomes of requests when nothing stands before the engine.

    Args:
        arrivals: in the order of time.
        model: the engine.
        seed: of its noise.

    Returns:
        The ends of those it did not refuse, in the order of time.

    Raises:
        ValueError: a request can never fit into the engine.
    """
    engine, ends = Engine(model, seed), list[End]()
    for arrival in arrivals:
        if arrival.at_s > engine.now_s:  # those of one instant meet in one step
            ends.extend(e for e in engine.run_to(arrival.at_s) if isinstance(e, End))
        engine.submit(arrival)
    ends.extend(e for e in engine.run_to(math.inf) if isinstance(e, End))
    return ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every policy of a comparison meets alike.

    Attributes:
        model: the engine.
        replicas: how many of it.
        routing: who of them gets a request.
        scraping: how their pages are read.
        cached: what their prefix caches hold at the start: tokens by chain.
        seed: of the engines' noise and the scraper's delays.
        changes: what the engines become, and when in seconds, in the order of time; a
            capacity that is not constant (`Engine.become`).
        oracle: policies are told how long answers will be, as `max_output_tokens`. No
            host can; whatever is made of such a run has to say so.
    """

    model: EngineModel
    replicas: int = 1
    routing: Routing = "least"
    scraping: Scraping = field(default_factory=Scraping)
    cached: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    changes: Sequence[tuple[float, EngineModel]] = ()
    oracle: bool = False

    def fleet(self) -> Fleet:
        """The engines, as they stand at the start."""
        fleet = Fleet(self.model, self.replicas, self.routing, self.seed)
        for engine in fleet.engines:
            for name, tokens in self.cached.items():
                engine.remember(name, tokens)
        return fleet


@dataclass(frozen=True, slots=True)
class Driven:
    """What a run was, beside its log.

    Attributes:
        decide_ns: wall time of each call of the policy, in the order of the calls.
        seconds: virtual time at its end.
    """

    decide_ns: "array[int]"
    seconds: float


def run(
    policy: Policy,
    clock: VirtualClock,
    asked: Sequence[Arrival] | Traffic,
    setting: Setting,
    until_s: float = math.inf,
) -> Driven:
    """Puts a policy in front of engines until the last request has ended.

    What it did stands in its log, the same to the byte each time but for the run's and
    the process's id.

    Args:
        policy: constructed with `clock`, and best with `reports_outcomes=True`.
        clock: at its start.
        asked: requests in the order of time, or who asks.
        setting: the engines and how they are seen.
        until_s: when nothing more is asked and what is still inside is cancelled, in
            seconds from the start.

    Raises:
        ValueError: a request can never fit into an engine; or policies are told what no
            host can know, and the policy's `notes` do not say `{"oracle": True}`, with
            which its log and every report of it are stamped.
    """
    if setting.oracle and not _says_oracle(policy):
        raise ValueError('an oracle\'s log has to say so: notes={"oracle": True}')
    traffic = OpenLoop(asked) if isinstance(asked, Sequence) else asked
    return _Run(policy, clock, traffic, setting).to_the_end(until_s)


def _says_oracle(policy: Policy) -> bool:
    notes = policy.settings.notes
    return isinstance(notes, Mapping) and notes.get("oracle") is True


class _Run:
    def __init__(
        self, policy: Policy, clock: VirtualClock, traffic: Traffic, setting: Setting
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._traffic = traffic
        self._oracle = setting.oracle
        fleet = setting.fleet()
        one = fleet.engines[0] if len(fleet.engines) == 1 else None
        self._fleet: Engine | Fleet = one or fleet  # one engine needs no router
        self._scraper = Scraper(fleet, setting.scraping, setting.seed)
        self._seen: Reading | None = None
        self._changes = deque(setting.changes)
        self._coming = Coming(traffic.first())
        self._inside: dict[str, tuple[str, Arrival]] = {}
        self._patience = list[tuple[float, str]]()  # a heap of when it ends, and whose
        self._waiting = set[str]()  # of those with patience, who has no token yet
        self._header_due_s = 0.0
        self._decide_ns = array("q")

    def to_the_end(self, until_s: float) -> Driven:
        coming, scraper, fleet = self._coming, self._scraper, self._fleet
        patience = self._patience
        while self._inside or coming.next_s < math.inf:
            at_s = min(coming.next_s, scraper.next_s, fleet.ahead_s, self._due_s())
            if at_s > until_s:
                self._cut_off(until_s)
                break
            for event in fleet.run_to(at_s):
                self._move(event.at_s)
                self._tell(event)
            self._move(at_s)
            while self._changes and self._changes[0][0] <= at_s:
                fleet.become(self._changes.popleft()[1])
            if scraper.next_s <= at_s:
                scraper.look(self._clock.monotonic_ns())
            while patience and patience[0][0] <= at_s:
                self._lose_patience(*heapq.heappop(patience))
            while coming.next_s <= at_s:
                self._arrive(coming.take())
        return Driven(self._decide_ns, fleet.now_s)

    def _due_s(self) -> float:
        """When a caller's patience ends or the engines change; inf = neither."""
        patience_s = self._patience[0][0] if self._patience else math.inf
        return min(patience_s, self._changes[0][0]) if self._changes else patience_s

    def _move(self, at_s: float) -> None:
        """Lets time pass; the log's writer reads this clock when a header is due.

        It does so in a thread of its own, so it gets its turn before and after.
        """
        if at_s >= self._header_due_s:
            self._policy.flush()
        self._clock.move_to(at_s)

    def _written(self) -> None:
        """A line was made: when a header is due, it is written now."""
        now_s = self._fleet.now_s
        if now_s >= self._header_due_s:
            self._policy.flush()
            self._header_due_s = now_s + REPEAT_S

    def _arrive(self, arrival: Arrival) -> None:
        decision = self._decision(arrival)
        self._written()
        if not decision.admitted:
            self._told(arrival, arrival.at_s, _refusal(decision))
            return
        self._inside[arrival.id] = decision.request_id, arrival
        if not self._fleet.submit(arrival):
            self._end(arrival, arrival.at_s, BUSY)
        elif arrival.patience_s is not None:
            due_s = arrival.at_s + arrival.patience_s
            heapq.heappush(self._patience, (due_s, arrival.id))
            self._waiting.add(arrival.id)

    def _decision(self, arrival: Arrival) -> Decision:
        facts = arrival.facts()
        if self._oracle:
            facts["max_output_tokens"] = arrival.output_tokens
        reading = self._scraper.newest(arrival.at_s)
        if reading is not self._seen:  # as a host's own thread does, before it is used
            self._seen = reading
            self._policy.look(reading)
            self._policy.background()
        begin_ns = SYSTEM.monotonic_ns()
        decision = self._policy(reading, request_id=arrival.id, **facts)
        self._decide_ns.append(SYSTEM.monotonic_ns() - begin_ns)
        return decision

    def _tell(self, event: Event) -> None:
        arrival = event.arrival
        if isinstance(event, FirstToken):
            self._waiting.discard(arrival.id)
            self._policy.first_token(self._inside[arrival.id][0])
        elif isinstance(event, End):
            self._end(arrival, event.at_s, answer_to(event))
        else:
            self._end(arrival, event.at_s, BUSY)

    def _lose_patience(self, at_s: float, name: str) -> None:
        if name in self._waiting:
            got = self._fleet.cancel(name) or _NOTHING_GOT
            _, arrival = self._inside[name]
            self._end(arrival, at_s, _partial(got, CLIENT_CLOSED, hung_up=True))

    def _cut_off(self, at_s: float) -> None:
        """Nothing more is asked, and nothing is waited for."""
        for _ in self._fleet.run_to(at_s):
            pass  # nothing happens before then
        self._move(at_s)
        for name, (_, arrival) in tuple(self._inside.items()):
            got = self._fleet.cancel(name) or _NOTHING_GOT
            self._end(arrival, at_s, _partial(got, UNFINISHED, hung_up=False))

    def _end(self, arrival: Arrival, at_s: float, answer: Answer) -> None:
        self._waiting.discard(arrival.id)
        _report(self._policy, self._inside.pop(arrival.id)[0], arrival, answer)
        self._written()
        self._told(arrival, at_s, answer)

    def _told(self, arrival: Arrival, at_s: float, answer: Answer) -> None:
        self._coming.add(self._traffic.after(arrival, at_s, answer))


def _refusal(decision: Decision) -> Answer:
    return Answer(
        ok=False,
        refused=True,
        status=decision.status,
        reason=decision.reason,
        retry_after_ms=decision.retry_after_ms,
        should_retry=decision.should_retry,
    )


def _partial(got: Gone, error: str, *, hung_up: bool) -> Answer:
    """What a caller had when its request was cancelled."""
    return Answer(
        ok=False,
        status=0 if got.ttft_ms is None else 200,
        ttft_ms=None if got.ttft_ms is None else round(got.ttft_ms, 3),
        output_tokens=got.given,
        cached_tokens=got.cached_tokens,
        error=error,
        hung_up=hung_up,
    )


def _report(policy: Policy, key: str, arrival: Arrival, answer: Answer) -> None:
    """Tells a policy what its host saw; a host that lost its caller saw no end."""
    whole = answer.ok and not answer.hung_up
    cut = arrival.output_tokens == arrival.max_output_tokens
    policy.outcome(
        key,
        ok=whole,
        ttft_ms=answer.ttft_ms,
        max_gap_ms=answer.max_gap_ms,
        e2e_ms=answer.e2e_ms if whole else None,
        output_tokens=answer.output_tokens if whole else answer.output_tokens or None,
        cached_tokens=answer.cached_tokens if whole else None,
        finish_reason=("length" if cut else "stop") if whole else None,
        error=CLIENT_CLOSED if answer.hung_up else answer.error,
    )
