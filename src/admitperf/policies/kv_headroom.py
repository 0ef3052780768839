"""Refuse what would not fit the KV cache once everything open has grown."""

from collections.abc import Hashable
from typing import Annotated

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import IN_FLIGHT, KV_CAPACITY_TOKENS, KV_PRESSURE
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.forecast import held_tokens


class KvHeadroom(Policy):
    """Refuses a request when the KV cache, with what is still to come, would be full.

    In use is what the engine shows, or what the prompts of this host's open requests
    take where that is more: a burst between two readings is not shown yet. To come is
    a part of the answers predicted for them. The newcomer adds its prompt and its
    whole predicted answer.

    With nothing in use any request passes that the cache can hold at all.
    """

    name = "kv_headroom"
    signal_quantity = "kv_pressure"
    metadata_assumed = ("input_tokens", "max_output_tokens")
    refuses_with = (
        "kv_headroom",
        "too_large",
    )
    requires = (
        KV_PRESSURE,
        KV_CAPACITY_TOKENS,
        IN_FLIGHT,
        "input_tokens",
        "max_output_tokens",
    )

    high_water: Annotated[
        float,
        Param(
            "projected KV cache in use over which requests are refused, as a fraction",
            above=0.0,
            high=1.0,
            origin="plain choice: the tenth that is left covers a wrong prediction",
        ),
    ] = 0.90
    quantile: Annotated[
        float,
        Param(
            "share of answers that stay within the predicted length",
            above=0.0,
            high=1.0,
            origin="research notes, 7.1: 0.8 for what must hold",
        ),
    ] = 0.8
    to_come: Annotated[
        float,
        Param(
            "part of the predicted answers of open requests that is not in use yet",
            low=0.0,
            high=1.0,
            origin="requests of every age have had half of their answers",
        ),
    ] = 0.5

    def decide(self, metrics: Snapshot) -> Decision:
        """Ask whether it fits at all, and then whether it fits now."""
        capacity = float(metrics.read(KV_CAPACITY_TOKENS) or 1.0)
        if metrics.gate("kv_needed_tokens", _asked(metrics), capacity, ">"):
            return self.reject("too_large")
        shown = float(metrics.read(KV_PRESSURE) or 0.0)
        booked = metrics.charged(self._account(metrics, "prompts")) / capacity
        answers = metrics.charged(self._account(metrics, "answers")) / capacity
        own = sum(self._newcomer(metrics)) / capacity
        projected = max(shown, booked) + self.to_come * answers + own
        bound = max(self.high_water, own)
        if shown >= booked:  # what the engine works off is then what is waited for
            metrics.above(KV_PRESSURE, shown - (projected - bound))
        if metrics.gate("projected_kv", projected, bound, ">"):
            return self.defer("kv_headroom")
        return self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> object:
        """What it takes until it ends: its prompt, and its predicted answer."""
        if d.verdict is not Verdict.ADMIT:
            return None
        prompt, answer = self._newcomer(metrics)
        return (
            Charge(self._account(metrics, "prompts"), prompt),
            Charge(self._account(metrics, "answers"), answer),
        )

    def _newcomer(self, metrics: Snapshot) -> tuple[float, float]:
        """Tokens of its prompt, cached or not, and of its predicted answer."""
        prompt = held_tokens(metrics) or 0
        return float(prompt), metrics.output_tokens(self.quantile) or 0.0

    def _account(self, metrics: Snapshot, what: str) -> Hashable:
        """Of the replica that the reading describes."""
        return self.name, what, metrics.replica


def _asked(metrics: Snapshot) -> float:
    """Tokens it holds at its end if it makes use of all that it may."""
    request = metrics.request
    answer = (request.max_output_tokens or 0) * request.n
    return float((request.input_tokens or 0) + answer)
