"""Refuse a request that would miss its deadline anyway."""

from typing import Annotated

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import DEADLINE_SLACK_S, IN_FLIGHT
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.forecast import Forecast, first_token_s
from admitperf.policies.parts.stuck import Stuck


class DeadlineSlack(Policy):
    """Refuses a request whose first token is foretold after its deadline.

    A passed deadline is refused at once. Otherwise the prompts ahead and its own take
    their time at the measured rate. With `deadline_is="end"` its answer takes its time
    too, as long as a share `quantile` of answers stays within. Before that is measured
    only passed deadlines are refused, and a request without a deadline never is.

    A request that would be late with nothing ahead of it is refused too, and then
    nothing that is refused tells whether the engine is still that slow. So one of
    these is let in at a time, `probe_s` after the last one was; at once, when that one
    was in time after all. And while one that waits keeps out everybody, one is let in
    now and then: the prompt that is ahead may be stuck.
    """

    name = "deadline_slack"
    slo_awareness = "deadline"
    signal_quantity = "deadline_slack"
    metadata_assumed = (
        "deadline_s",
        "input_tokens",
        "cached_tokens",
        "max_output_tokens",
    )
    refuses_with = ("deadline_unmeetable",)
    requires = (IN_FLIGHT, *metadata_assumed)

    deadline_is: Annotated[
        str,
        Param(
            "first_token: the deadline is for the answer's first token; end: for the"
            " whole of it",
            choices=("first_token", "end"),
            origin="the fact is seconds until the first token; end for a host whose"
            " callers mean the whole answer",
        ),
    ] = "first_token"
    quantile: Annotated[
        float,
        Param(
            "share of answers that stay within the length foretold, with"
            " deadline_is=end",
            above=0.0,
            high=1.0,
            origin="research notes, 7.1: 0.8 for what must hold",
        ),
    ] = 0.8
    probe_s: Annotated[
        float,
        Param(
            "seconds after which one that would be late by itself is let in, to see",
            above=0.0,
            high=3600.0,
            origin="plain choice: as long as the drain is looked at",
        ),
    ] = 10.0

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._forecast = Forecast()
        self._probed_ns: int | None = None
        self._stuck = Stuck(0.0)

    def decide(self, metrics: Snapshot) -> Decision:
        """Compare the time that is left with the time that it needs."""
        left_s = metrics.request.deadline_s
        if left_s is None:
            return self.admit()
        if metrics.at_most(DEADLINE_SLACK_S, 0.0):
            return self.reject("deadline_unmeetable")
        return self._foretold(metrics, left_s) or self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """Note a probe: it was let in although it would be late by itself."""
        self._stuck.decided(metrics, d)
        left_s = metrics.request.deadline_s
        if d.verdict is not Verdict.ADMIT or left_s is None:
            return None
        if self._alone_s(metrics) <= left_s:
            return None
        self._probed_ns = metrics.now_ns
        return Charge((self.name, "probe"))

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Learn what a token takes, and whether a probe was in time after all."""
        self._forecast.observe(metrics, outcome)
        if outcome is not None and outcome.charge is not None and self._met(outcome):
            self._probed_ns = None

    def _met(self, outcome: Outcome) -> bool:
        """Whether a request was in time; False when it did not tell."""
        at_end = self.deadline_is == "end"
        took_ms = outcome.e2e_ms if at_end else outcome.ttft_ms
        left_s = outcome.request.deadline_s if outcome.request else None
        if not outcome.ok or took_ms is None or left_s is None:
            return False
        return took_ms <= 1000 * left_s

    def _foretold(self, metrics: Snapshot, left_s: float) -> Decision | None:
        """The refusal of one that would be late; None = in time, or not measured."""
        first_s = first_token_s(metrics)
        if first_s is None:
            return None
        needed_s = first_s + self._answer_s(metrics)
        if not metrics.below(DEADLINE_SLACK_S, needed_s):
            return None
        if self._alone_s(metrics) <= left_s:
            if self._stuck.probe_is_due(metrics):
                return None
            wait_ms = 1000 * (needed_s - left_s)
            return self.reject("deadline_unmeetable", estimate_ms=wait_ms)
        probes = self._probe_is_due(metrics)
        return None if probes else self.reject("deadline_unmeetable")

    def _answer_s(self, metrics: Snapshot) -> float:
        """Seconds of its answer that must fit too; 0.0 where nobody knows them."""
        if self.deadline_is == "first_token":
            return 0.0
        return self._forecast.answer_s(metrics, self.quantile) or 0.0

    def _alone_s(self, metrics: Snapshot) -> float:
        """Seconds it would need with nothing ahead of it; 0.0 while not measured."""
        own, rate = metrics.request.own_prefill_tokens, metrics.prefill_rate
        if own is None or not rate:
            return 0.0
        return own / rate + self._answer_s(metrics)

    def _probe_is_due(self, metrics: Snapshot) -> bool:
        """Whether none is open and the last one was let in long enough ago."""
        since_s = self.probe_s
        if self._probed_ns is not None:
            since_s = (metrics.now_ns - self._probed_ns) / 1e9
        waits = metrics.gate("since_probe_s", since_s, self.probe_s, "<")
        return not waits and not metrics.charges((self.name, "probe"))
