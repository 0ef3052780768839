"""A policy tried on groups of decisions says what it would have said on each."""

import random
from typing import Annotated

import pytest
from tests.lab.advice import logs
from tests.reports.byhand import decision, jsonl

from admitperf import Policy
from admitperf.core.param import Param
from admitperf.core.signals import IN_FLIGHT, KV_PRESSURE, QUEUE_DEPTH
from admitperf.lab.advice.trial import set_up, trial
from admitperf.reports.questions.seen import looked
from admitperf.reports.runs.patterns import Rows


class Chain(Policy):
    """Gates behind gates, so that most decisions show only some of them."""

    name = "chain"
    requires = (KV_PRESSURE, QUEUE_DEPTH)
    low: Annotated[float, Param("a bound")] = 0.3

    def decide(self, metrics):
        """Or, and, not; each gate is reached through others."""
        if metrics.at_least(KV_PRESSURE, 0.8):
            return self.defer("kv_pressure")
        crowded = metrics.above(QUEUE_DEPTH, 4)
        if crowded and metrics.below(KV_PRESSURE, self.low):
            return self.admit()
        if crowded or metrics.at_most(QUEUE_DEPTH, 0):
            return self.reject("queue_depth") if crowded else self.admit()
        return self.admit()


class Derived(Policy):
    """A number of its own."""

    name = "derived"
    requires = (KV_PRESSURE,)

    def decide(self, metrics):
        """Compares twice the pressure."""
        full = metrics.gate("twice", 2 * metrics.read(KV_PRESSURE), 1.0)
        return self.defer("kv_pressure") if full else self.admit()


class Charging(Policy):
    """Counts what it lets in."""

    name = "charging"
    requires = (KV_PRESSURE,)

    def decide(self, metrics):
        """Never refuses."""
        metrics.at_least(KV_PRESSURE, 0.9)
        return self.admit()

    def decided(self, metrics, d):
        """Takes part in the ledger."""


class Counting(Policy):
    """Requires the ledger and compares a signal of the engine only."""

    name = "counting"
    requires = (IN_FLIGHT, KV_PRESSURE)

    def decide(self, metrics):
        """Never refuses."""
        metrics.at_least(KV_PRESSURE, 0.9)
        return self.admit()


class Facts(Policy):
    """Goes by what a request says."""

    name = "facts"
    requires = (KV_PRESSURE, "input_tokens")


class Silent(Policy):
    """Compares nothing."""

    name = "silent"
    requires = (KV_PRESSURE,)

    def decide(self, metrics):
        """Admit."""
        return self.admit()


class Moving(Policy):
    """A bound that follows the value."""

    name = "moving"
    requires = (QUEUE_DEPTH,)

    def decide(self, metrics):
        """Compares with a bit more than there is."""
        metrics.above(QUEUE_DEPTH, metrics.read(QUEUE_DEPTH) + 1)
        return self.admit()


class Dear(Policy):
    """Cannot be set up."""

    name = "dear"

    def __init__(self, **given):
        super().__init__(**given)
        raise RuntimeError("no licence")


def attempt(cls, pairs, folder, unknown=0):
    """Try a policy on a log of such pairs of pressure and queue.

    `unknown` decisions more carry no signal.
    """
    lines = [logs.head(), *(decision(seq) for seq in range(1001, 1001 + unknown))]
    for seq, (pressure, waiting) in enumerate(pairs, 1):
        signals = {"kv_pressure": pressure, "queue_depth": waiting, "in_flight": 3}
        lines += logs.row(seq, **{k: v for k, v in signals.items() if v is not None})
    path = folder / "log.jsonl"
    path.write_text(jsonl(*lines), encoding="utf-8")
    with looked([str(path)]) as found:
        columns = {name: f"s{n}" for n, name in enumerate(found.log.names.signals)}
        return trial(
            set_up(cls), Rows(found.log.store, 0, columns), len(pairs) + unknown
        )


def by_hand(cls, pairs):
    """On how many pairs it refuses, asked about each."""
    made = (
        set_up(cls)({"kv_pressure": kv, "queue_depth": waiting})
        for kv, waiting in pairs
    )
    return sum(d.verdict != "admit" for d in made)


PRESSURES = (None, 0.0, 0.29, 0.3, 0.5, 0.8, 0.97)
QUEUES = (None, 0, 1, 4, 5, 40)


@pytest.mark.parametrize("seed", range(3))
def test_groups_say_what_every_decision_would(seed, tmp_path):
    """Whatever the values, and whichever gates hide others."""
    draw = random.Random(seed)
    pairs = [(draw.choice(PRESSURES), draw.choice(QUEUES)) for _ in range(200)]
    known = [pair for pair in pairs if None not in pair]
    found = attempt(Chain, pairs, tmp_path)
    assert (found.fired.n, found.fired.of) == (by_hand(Chain, known), len(known))
    assert 0 < found.fired.n < len(known)


def test_every_gate_is_found_behind_the_others(tmp_path):
    """Also those that only some decisions reach."""
    pairs = [(0.9, 0), (0.2, 9), (0.5, 9), (0.5, 0)] * 6
    found = attempt(Chain, pairs, tmp_path)
    shown = {(one.signal, one.op, one.bound) for one in found.reaches}
    assert shown == {
        ("kv_pressure", ">=", 0.8),
        ("kv_pressure", "<", 0.3),
        ("queue_depth", ">", 4.0),
        ("queue_depth", "<=", 0.0),
    }
    assert found.fired.n == by_hand(Chain, pairs)


def test_the_distance_of_a_downward_gate_counts_from_above(tmp_path):
    """The smallest value came nearest."""
    found = attempt(Chain, [(0.5, 9)] * 25, tmp_path)
    (below,) = [one for one in found.reaches if one.op == "<"]
    assert (below.nearest, below.true.n) == (0.5, 0)
    assert below.distance == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("cls", "why"),
    [
        (Derived, "a number of its own, twice"),
        (Charging, "it remembers what it let in"),
        (Counting, "it remembers what it let in"),
        (Facts, "it goes by input_tokens of each request"),
        (Silent, "it compares nothing"),
        (Moving, "its bounds move"),
    ],
)
def test_what_a_log_cannot_try_says_why(cls, why, tmp_path):
    """Nothing is claimed of a policy whose answers are not in the signals."""
    pairs = [(0.5, waiting) for waiting in range(40)]
    found = attempt(cls, pairs, tmp_path)
    assert (found.word, found.fired) == ("not tried", None)
    assert why in found.why


def test_a_signal_the_log_lacks_is_named(tmp_path):
    """And so is one that is never there beside the others."""
    assert "no decision" in attempt(Chain, [(0.5, None), (None, 3)], tmp_path).why
    with_none = attempt(Chain, [(None, 3)], tmp_path)
    assert with_none.why == "this log does not carry kv_pressure"


def test_what_cannot_be_set_up_is_put_in_words():
    """A plug-in may do anything."""
    assert "no licence" in set_up(Dear)


def test_it_is_no_proof_below_twenty_decisions(tmp_path):
    """The same finding as a report's."""
    assert attempt(Chain, [(0.5, 1)] * 19, tmp_path).word == "did not fire"
    assert attempt(Chain, [(0.5, 1)] * 20, tmp_path).word == "could not have fired"


def test_it_is_no_proof_when_too_much_is_not_known(tmp_path):
    """More than one decision in a hundred without the signals, or lost."""
    known = [(0.5, 1)] * 99
    assert attempt(Chain, known, tmp_path, 1).word == "could not have fired"
    assert attempt(Chain, known, tmp_path, 2).word == "did not fire"
