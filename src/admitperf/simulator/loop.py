"""A policy in front of an engine, in virtual time.

Arrivals ask the policy, the policy sees the scraper's last reading and the facts of the
request, and what it admits goes to the engine. It is told of first tokens and ends as a
host would tell it. What a refusal leads to is the traffic's matter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from admitperf.core.log import REPEAT_S
from admitperf.core.policy import Policy
from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.events import End, Event, FirstToken
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.fleet import Fleet, Routing
from admitperf.simulator.scraper import Scraper, Scraping
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.traffic import Coming, OpenLoop, Traffic
from admitperf.simulator.virtual_clock import VirtualClock

_BUSY = "503, the engine's own limit"


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
        oracle: policies are told how long answers will be, as `max_output_tokens`. No
            host can; whatever is made of such a run has to say so.
    """

    model: EngineModel
    replicas: int = 1
    routing: Routing = "least"
    scraping: Scraping = field(default_factory=Scraping)
    cached: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    oracle: bool = False

    def fleet(self) -> Fleet:
        """The engines, as they stand at the start."""
        fleet = Fleet(self.model, self.replicas, self.routing, self.seed)
        for engine in fleet.engines:
            for name, tokens in self.cached.items():
                engine.remember(name, tokens)
        return fleet


def run(
    policy: Policy,
    clock: VirtualClock,
    asked: Sequence[Arrival] | Traffic,
    setting: Setting,
) -> None:
    """Puts a policy in front of engines until the last request has ended.

    What it did stands in its log, the same to the byte each time but for the run's and
    the process's id.

    Args:
        policy: constructed with `clock`, and best with `reports_outcomes=True`.
        clock: at its start.
        asked: requests in the order of time, or who asks.
        setting: the engines and how they are seen.

    Raises:
        ValueError: a request can never fit into an engine; or policies are told what no
            host can know, and the policy's `notes` do not say `{"oracle": True}`, with
            which its log and every report of it are stamped.
    """
    if setting.oracle and not _says_oracle(policy):
        raise ValueError('an oracle\'s log has to say so: notes={"oracle": True}')
    traffic = OpenLoop(asked) if isinstance(asked, Sequence) else asked
    _Run(policy, clock, traffic, setting).to_the_end()


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
        self._coming = Coming(traffic.first())
        self._ids: dict[str, str] = {}
        self._header_due_s = 0.0

    def to_the_end(self) -> None:
        coming, scraper, fleet = self._coming, self._scraper, self._fleet
        while self._ids or coming.next_s < math.inf:
            at_s = min(coming.next_s, scraper.next_s, fleet.ahead_s)
            for event in fleet.run_to(at_s):
                self._move(event.at_s)
                self._tell(event)
            self._move(at_s)
            if scraper.next_s <= at_s:
                scraper.look(self._clock.monotonic_ns())
            while coming.next_s <= at_s:
                self._arrive(coming.take())

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
        facts = arrival.facts()
        if self._oracle:
            facts["max_output_tokens"] = arrival.output_tokens
        reading = self._scraper.newest(arrival.at_s)
        decision = self._policy(reading, request_id=arrival.id, **facts)
        self._written()
        if not decision.admitted:
            self._coming.add(self._traffic.after(arrival, arrival.at_s, ok=False))
            return
        self._ids[arrival.id] = decision.request_id
        if not self._fleet.submit(arrival):
            self._fail(arrival, arrival.at_s)

    def _tell(self, event: Event) -> None:
        arrival = event.arrival
        if isinstance(event, FirstToken):
            self._policy.first_token(self._ids[arrival.id])
        elif isinstance(event, End):
            self._finish(event)
        else:
            self._fail(arrival, event.at_s)

    def _finish(self, end: End) -> None:
        arrival = end.arrival
        cut = arrival.output_tokens == arrival.max_output_tokens
        self._policy.outcome(
            self._ids.pop(arrival.id),
            ok=True,
            ttft_ms=round(end.ttft_ms, 3),
            max_gap_ms=None if end.max_gap_ms is None else round(end.max_gap_ms, 3),
            e2e_ms=round(end.e2e_ms, 3),
            output_tokens=arrival.output_tokens,
            cached_tokens=end.cached_tokens,
            finish_reason="length" if cut else "stop",
        )
        self._written()
        self._coming.add(self._traffic.after(arrival, end.at_s, ok=True))

    def _fail(self, arrival: Arrival, at_s: float) -> None:
        """The engine's own limit refused what the policy had let in."""
        self._policy.outcome(self._ids.pop(arrival.id), ok=False, error=_BUSY)
        self._written()
        self._coming.add(self._traffic.after(arrival, at_s, ok=False))
