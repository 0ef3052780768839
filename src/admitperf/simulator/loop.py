"""A policy in front of an engine, in virtual time.

Arrivals ask the policy, the policy sees the scraper's last reading and the facts of the
request, and what it admits goes to the engine. It is told of first tokens and ends as a
host would tell it. Who is refused does not come again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from admitperf.core.log import REPEAT_S
from admitperf.core.policy import Policy
from admitperf.simulator.arrival import Arrival
from admitperf.simulator.engine import End, Engine, Event
from admitperf.simulator.model import EngineModel
from admitperf.simulator.scraper import Scraper, Scraping
from admitperf.simulator.virtual_clock import VirtualClock


def serve(arrivals: Sequence[Arrival], model: EngineModel) -> list[End]:
    """What becomes of requests when nothing stands before the engine.

    Args:
        arrivals: in the order of time.
        model: the engine.

    Returns:
        Every request's end, in the order of time.

    Raises:
        ValueError: a request can never fit into the engine.
    """
    engine, ends = Engine(model), list[End]()
    for arrival in arrivals:
        ends.extend(e for e in engine.run_to(arrival.at_s) if isinstance(e, End))
        engine.submit(arrival)
    ends.extend(e for e in engine.run_to(math.inf) if isinstance(e, End))
    return ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every policy of a comparison meets alike.

    Attributes:
        model: the engine.
        scraping: how its page is read.
        seed: of the scraper's delays.
    """

    model: EngineModel
    scraping: Scraping = field(default_factory=Scraping)
    seed: int = 0


def run(
    policy: Policy, clock: VirtualClock, arrivals: Sequence[Arrival], setting: Setting
) -> None:
    """Puts a policy in front of an engine until the last request has ended.

    What it did stands in its log, the same to the byte each time but for the run's and
    the process's id.

    Args:
        policy: constructed with `clock`, and best with `reports_outcomes=True`.
        clock: at its start.
        arrivals: in the order of time.
        setting: the engine and how it is seen.

    Raises:
        ValueError: a request can never fit into the engine.
    """
    _Run(policy, clock, setting).all_of(arrivals)


class _Run:
    def __init__(self, policy: Policy, clock: VirtualClock, setting: Setting) -> None:
        self._policy = policy
        self._clock = clock
        self._engine = Engine(setting.model)
        self._scraper = Scraper(self._engine, setting.scraping, setting.seed)
        self._ids: dict[str, str] = {}
        self._header_due_s = 0.0

    def all_of(self, arrivals: Sequence[Arrival]) -> None:
        for arrival in arrivals:
            while self._scraper.next_s <= arrival.at_s:
                self._pass(self._scraper.next_s)
                self._move(self._scraper.next_s)
                self._scraper.look(self._clock.monotonic_ns())
            self._pass(arrival.at_s)
            self._move(arrival.at_s)
            self._arrive(arrival)
        self._pass(math.inf)

    def _pass(self, until_s: float) -> None:
        for event in self._engine.run_to(until_s):
            self._move(event.at_s)
            self._tell(event)

    def _move(self, at_s: float) -> None:
        """Lets time pass; the log's writer reads this clock when a header is due.

        It does so in a thread of its own, so it gets its turn before and after.
        """
        if at_s >= self._header_due_s:
            self._policy.flush()
        self._clock.move_to(at_s)

    def _written(self) -> None:
        """A line was made: when a header is due, it is written now."""
        now_s = self._engine.now_s
        if now_s >= self._header_due_s:
            self._policy.flush()
            self._header_due_s = now_s + REPEAT_S

    def _arrive(self, arrival: Arrival) -> None:
        decision = self._policy(
            self._scraper.newest(arrival.at_s),
            request_id=arrival.id,
            **arrival.facts(),
        )
        self._written()
        if decision.admitted:
            self._ids[arrival.id] = decision.request_id
            self._engine.submit(arrival)

    def _tell(self, event: Event) -> None:
        arrival = event.arrival
        if not isinstance(event, End):
            self._policy.first_token(self._ids[arrival.id])
            return
        cut = arrival.output_tokens == arrival.max_output_tokens
        self._policy.outcome(
            self._ids.pop(arrival.id),
            ok=True,
            ttft_ms=round(event.ttft_ms, 3),
            max_gap_ms=None if event.max_gap_ms is None else round(event.max_gap_ms, 3),
            e2e_ms=round(event.e2e_ms, 3),
            output_tokens=arrival.output_tokens,
            finish_reason="length" if cut else "stop",
        )
        self._written()
