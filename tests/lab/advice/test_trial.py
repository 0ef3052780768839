"""A policy tried on groups of decisions says what it would have said on each."""

import random
from typing import Annotated

import pytest
from tests.lab.advice import logs
from tests.reports.byhand import decision, jsonl

from admitperf import Policy
from admitperf.core.param import Param
from admitperf.core.signals import IN_FLIGHT, KV_PRESSURE, QUEUE_DEPTH
from admitperf.lab.advice.trial import Setting, set_up, trial
from admitperf.policies import load
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


def attempt(cls, pairs, folder, unknown=0, **setting):
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
        rows = Rows(found.log.store, 0, columns)
        return trial(set_up(cls), rows, Setting(len(pairs) + unknown, **setting))


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


def ranged(name, folder, waits, pressure=0.44, **setting):
    """Try a policy that remembers on a log of such oldest waits."""
    lines = [logs.head()]
    for seq, wait_s in enumerate(waits, 1):
        lines += logs.row(seq, oldest_wait_s=wait_s, kv_pressure=pressure)
    path = folder / "log.jsonl"
    path.write_text(jsonl(*lines), encoding="utf-8")
    with looked([str(path)]) as found:
        columns = {name: f"s{n}" for n, name in enumerate(found.log.names.signals)}
        rows = Rows(found.log.store, 0, columns)
        return trial(set_up(load(name)), rows, Setting(len(waits), **setting))


@pytest.mark.parametrize("name", ["kv_headroom", "aimd", "gradient"])
def test_a_gate_among_several_grounds_is_told_by_its_range(name, tmp_path):
    """How far the signal went, and never that it could not have fired."""
    found = ranged(name, tmp_path, [0.1] * 40)
    assert found.word == "by range"
    (reach,) = found.reaches
    assert (reach.true.n, reach.true.of) == (0, 40)
    assert reach.nearest in (0.1, 0.44)


@pytest.mark.parametrize("name", ["front_door", "queue_age"])
def test_a_gate_that_is_needed_and_never_held_is_proof(name, tmp_path):
    """Exact: no memory of theirs refuses while it does not hold."""
    assert ranged(name, tmp_path, [0.9] * 40).word == "could not have fired"
    assert ranged(name, tmp_path, [0.9] * 19).word == "did not fire"
    assert ranged(name, tmp_path, [1.1] * 40).word == "by range"
    shielded = ranged(name, tmp_path, [0.9] * 40, shielded=True)
    assert shielded.word == "kept low by this log's policy"


@pytest.mark.parametrize("name", ["front_door", "queue_age"])
def test_the_policy_itself_agrees_with_that_proof(name):
    """Asked on every such value in turn, it lets in."""
    policy = set_up(load(name))
    for wait_s in (0.0, 0.5, 0.9) * 20:
        d = policy({"oldest_wait_s": wait_s, "kv_pressure": 0.44})
        assert (d.admitted, d.blind) == (True, None)


def test_what_this_log_s_policy_kept_low_is_no_proof(tmp_path):
    """Without it the signals may have gone higher; what did fire, could."""
    calm = attempt(Chain, [(0.5, 1)] * 40, tmp_path, shielded=True)
    assert calm.word == "kept low by this log's policy"
    full = attempt(Chain, [(0.9, 1)] * 40, tmp_path, shielded=True)
    assert (full.word, full.fired.n) == ("could have fired", 40)


class Open(Policy):
    """A bound on what is open."""

    name = "open"
    requires = (IN_FLIGHT,)

    def decide(self, metrics):
        """Over two."""
        full = metrics.above(IN_FLIGHT, 2)
        return self.defer("in_flight_cap") if full else self.admit()


def test_what_another_policy_let_in_is_not_counted_as_its_own(tmp_path):
    """That it would have fired is known, how often is not."""
    found = attempt(Open, [(0.5, 1)] * 40, tmp_path)
    assert (found.word, found.fired) == ("could have fired", None)
    assert "let in by this log's policy" in found.why
    assert found.reaches[0].true.n == 40


def test_a_sample_has_no_request_to_ask_about(tmp_path):
    """Said of what goes by requests; what reads the engine alone is tried."""
    pairs = [(0.5, waiting) for waiting in range(40)]
    for cls in (Facts, Charging, Counting, Open):
        why = attempt(cls, pairs, tmp_path, samples=True).why
        assert why == "a sample has no request behind it", cls
    assert attempt(Chain, pairs, tmp_path, samples=True).fired.n == 35
