"""Where a signal comes from: ordered sources, under any spelling, never guessed."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from tests.core.rules import admits, reading, rule, sees, wall

from admitperf import Signal, Source
from admitperf.core.signals import (
    ALL,
    GPU_UTIL,
    KV_PRESSURE,
    POOL_LOAD,
    QUEUE_DEPTH,
    RUNNING,
)

NAMES = [
    "KV_PRESSURE", "QUEUE_DEPTH", "RUNNING", "OLDEST_WAIT_S", "PREFIX_HIT_RATE",
    "POOL_LOAD", "PREEMPTIONS", "GPU_UTIL", "KV_CAPACITY_TOKENS", "INPUT_TOKENS",
    "UNCACHED_TOKENS", "MAX_OUTPUT_TOKENS", "TENANT_SHARE", "SESSION_IN_FLIGHT",
    "DEADLINE_SLACK_S", "ATTEMPT",
]  # fmt: skip


@pytest.fixture
def add():
    """Adds process-wide sources for the length of a test."""
    added = []

    def add(signal, source):
        made = signal.add_source(source)
        added.append((signal, made))
        return made

    yield add
    for signal, made in added:
        signal.remove_source(made)


@pytest.mark.parametrize("name", NAMES)
def test_each_constant_is_a_signal_named_like_it(name):
    """The string is the constant in lower case."""
    from admitperf.core import signals

    signal = getattr(signals, name)
    assert signal.name == name.lower()
    assert signal in ALL


@pytest.mark.parametrize("signal", ALL, ids=lambda signal: signal.name)
def test_each_signal_says_what_it_serves_and_when_it_fails(signal):
    """A name, a unit, a range, and the two sentences a reader needs."""
    assert all((signal.unit, signal.serves, signal.fails_when))
    assert signal.low < signal.high


@pytest.mark.parametrize(
    "key",
    [
        "kv_cache_usage_perc",
        "vllm:kv_cache_usage_perc",
        "vllm_kv_cache_usage_perc",
        "ray_vllm_kv_cache_usage_perc",
        "ray_vllm:kv_cache_usage_perc",
        'vllm:kv_cache_usage_perc{engine="0"}',
        'kv_cache_usage_perc{engine="1",model_name="a,b\\"c"}',
        "kv_pressure",
    ],
)
def test_a_key_matches_bare_prefixed_and_as_a_full_series(key):
    """Exporters disagree about colons, prefixes and labels, not about the quantity."""
    assert KV_PRESSURE.read({key: 0.4}) == 0.4


@pytest.mark.parametrize(
    "key",
    [
        "kv_cache", "kv_cache_usage_perc_max", "xvllm:kv_cache_usage_perc",
        "acme:kv_cache_usage_perc", "KV_CACHE_USAGE_PERC", "", "{}", '{engine="0"}', 7,
    ],
)  # fmt: skip
def test_a_key_that_only_looks_alike_is_not_taken(key):
    """Nothing is guessed from a similar name."""
    assert KV_PRESSURE.read({key: 0.4}) is None


def test_fractions_of_several_engines_take_the_largest_and_counts_are_summed():
    """A request may land on the fullest engine; a queue is the whole queue."""
    raw = {
        'vllm:kv_cache_usage_perc{engine="0"}': 0.2,
        'vllm:kv_cache_usage_perc{engine="1"}': 0.7,
        'vllm:num_requests_waiting{engine="0"}': 3,
        'vllm:num_requests_waiting{engine="1"}': 4,
    }
    assert KV_PRESSURE.read(raw) == 0.7
    assert QUEUE_DEPTH.read(raw) == 7


def test_known_percent_metrics_are_converted_by_name():
    """DCGM says 0 to 100, and a fraction is 0 to 1; vLLM's `_perc` already is one."""
    assert GPU_UTIL.read({'DCGM_FI_DEV_GPU_UTIL{gpu="0"}': 45}) == pytest.approx(0.45)
    assert KV_PRESSURE.read({"vllm:kv_cache_usage_perc": 1}) == 1.0


@pytest.mark.parametrize(
    "value",
    [-0.0001, 1.0001, 43.0, -1, 1 << 63, math.nan, math.inf, -math.inf, 10**400],
)
def test_a_value_out_of_range_reads_none(value):
    """It is skipped, never clamped: 43 is no full cache, and -1 no idle one."""
    assert KV_PRESSURE.read({"kv_cache_usage_perc": value}) is None


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (0, 0.0),
        (1, 1.0),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        ("0.5", None),
        (b"0.5", None),
        (True, None),
        (None, None),
        ([0.5], None),
        (1j, None),
        (object(), None),
    ],
)
def test_what_is_a_number_is_read_and_what_is_not_is_absent(value, read):
    """Text and flags are no measurements."""
    assert KV_PRESSURE.read({"kv_cache_usage_perc": value}) == read


def test_a_number_that_fails_to_be_one_is_absent():
    """An object whose conversion raises does not reach the caller."""

    class Tensor:
        def __float__(self):
            raise RuntimeError("on another device")

    raw = {"kv_cache_usage_perc": Tensor(), "queue_depth": 3}
    assert KV_PRESSURE.read(raw) is None
    assert QUEUE_DEPTH.read(raw) == 3.0
    assert rule(admits, requires=(KV_PRESSURE,))(raw).reason == "signal_absent"


def test_one_engine_out_of_range_is_skipped_and_noted(clock, log):
    """The others are combined, and the record says which one was left out."""
    raw = {
        'vllm:kv_cache_usage_perc{engine="0"}': 0.4,
        'vllm:kv_cache_usage_perc{engine="1"}': -1.0,
    }
    seen = []
    policy = rule(sees(seen, KV_PRESSURE), clock=clock, log=log)
    for _ in range(50):
        policy(reading(clock, raw))
        clock.advance(0.25)
    assert {s["kv_pressure"] for s in seen} == {0.4}
    notes = [line for line in log.controls if line["event"] == "out_of_range"]
    assert len(notes) == 1
    assert notes[0]["signal"] == "kv_pressure"
    assert "engine=1" in notes[0]["series"]
    assert "-1" in notes[0]["series"]


def test_a_signal_with_nothing_usable_is_none_and_noted_once(clock, log):
    """A gauge stuck at NaN is an absent signal."""
    policy = rule(admits, requires=(KV_PRESSURE,), clock=clock, log=log)
    for _ in range(5):
        assert policy({"kv_cache_usage_perc": math.nan}).reason == "signal_absent"
    events = [line["event"] for line in log.controls]
    assert events.count("out_of_range") == 1


def test_a_users_source_goes_first(add):
    """What the user maps is asked before everything that was known."""
    raw = {"acme.cache.used_frac": 0.7, "vllm:kv_cache_usage_perc": 0.1}
    assert KV_PRESSURE.read(raw) == 0.1
    add(KV_PRESSURE, "acme.cache.used_frac")
    assert KV_PRESSURE.read(raw) == 0.7
    assert KV_PRESSURE.read({"vllm:kv_cache_usage_perc": 0.1}) == 0.1


def test_the_newest_source_goes_first_of_all(add):
    """The last word counts."""
    add(KV_PRESSURE, "one")
    add(KV_PRESSURE, "two")
    assert KV_PRESSURE.read({"one": 0.1, "two": 0.2}) == 0.2


def test_a_source_may_be_a_function_of_the_mapping(add):
    """It sees the raw metrics and returns the value in the signal's unit."""
    add(KV_PRESSURE, lambda m: m["blocks_used"] / m["blocks_total"])
    assert KV_PRESSURE.read({"blocks_used": 30, "blocks_total": 40}) == 0.75


@pytest.mark.parametrize(
    "broken",
    [
        lambda m: m["not_there"],
        lambda m: 1 / 0,
        lambda m: None,
        lambda m: "0.5",
        lambda m: True,
        lambda m: [0.5],
        lambda m: 43,
        lambda m: -1,
        lambda m: math.nan,
        lambda m: 10**400,
        lambda: 0.5,
    ],
)
def test_a_source_that_raises_or_returns_nonsense_is_not_supplied(broken, add):
    """The next one in order is asked, and alone it makes the signal None."""
    add(KV_PRESSURE, broken)
    assert KV_PRESSURE.read({"vllm:kv_cache_usage_perc": 0.3}) == 0.3
    assert KV_PRESSURE.read({}) is None


@pytest.mark.parametrize("nonsense", [7, None, 0.5, ["x"]])
def test_what_is_no_source_is_told_at_once(nonsense):
    """A number is neither a name nor a function."""
    with pytest.raises(TypeError, match="source"):
        KV_PRESSURE.add_source(nonsense)


def test_a_source_on_a_constant_is_taken_up_by_policies_that_run(add, clock):
    """It is process-wide: also for a policy that was made before."""
    policy = wall(clock=clock)
    raw = {"acme.cache.used_frac": 0.95, "queue_depth": 0}
    assert policy(reading(clock, raw)).reason == "signal_absent"
    add(KV_PRESSURE, "acme.cache.used_frac")
    assert policy(reading(clock, raw)).reason == "kv_pressure"


def test_sources_of_a_policy_are_its_own():
    """`sources=` leaves every other policy and the constant alone."""
    raw = {"acme": 0.95, "vllm:kv_cache_usage_perc": 0.1, "queue_depth": 0}
    own = wall(sources={KV_PRESSURE: ["acme"]})
    assert own(raw).reason == "kv_pressure"
    assert wall()(raw).admitted
    assert KV_PRESSURE.read(raw) == 0.1


def test_sources_of_a_policy_are_asked_in_order_and_before_the_constants_own(clock):
    """The first that supplies wins; the known ones still stand behind them."""
    seen = []
    policy = rule(
        sees(seen, KV_PRESSURE), clock=clock,
        sources={KV_PRESSURE: ["a", lambda m: m["b"]]},
    )  # fmt: skip
    for raw in ({"a": 0.1, "b": 0.2}, {"b": 0.2}, {"kv_pressure": 0.3}, {}):
        policy(raw)
        clock.advance(10.0)
    assert [s["kv_pressure"] for s in seen] == [0.1, 0.2, 0.3, None]


def test_a_source_may_scale_and_combine():
    """A percentage of one's own is declared, and several series are folded as asked."""
    own = {
        KV_PRESSURE: [Source("used_percent", scale=0.01)],
        RUNNING: [Source("busy", combine="max")],
    }
    seen = []
    rule(sees(seen, KV_PRESSURE, RUNNING), sources=own)(
        {"used_percent": 45.0, 'busy{gpu="0"}': 2, 'busy{gpu="1"}': 5}
    )
    assert seen == [{"kv_pressure": pytest.approx(0.45), "running": 5.0}]


def test_source_order_decides_and_not_arrival_order(clock, log):
    """The preferred fresh value stands; when its source falls silent, that is noted."""
    seen = []
    policy = rule(
        sees(seen, KV_PRESSURE), sources={KV_PRESSURE: ["worker", "frontend"]},
        clock=clock, log=log,
    )  # fmt: skip
    for n in range(10):
        raw = {"worker": 0.9} if n % 2 == 0 else {"frontend": 0.1}
        policy(reading(clock, raw))
        clock.advance(0.1)
    assert {s["kv_pressure"] for s in seen} == {0.9}
    for _ in range(20):
        policy(reading(clock, {"frontend": 0.1}))
        clock.advance(0.1)
    assert seen[-1]["kv_pressure"] == 0.1
    (switch,) = [line for line in log.controls if line["event"] == "source_changed"]
    assert (switch["from"], switch["to"]) == ("worker", "frontend")


def test_two_replicas_do_not_lend_each_other_their_sources(clock):
    """A preferred source of one engine says nothing about another."""
    seen = []
    policy = rule(
        sees(seen, KV_PRESSURE), sources={KV_PRESSURE: ["good", "other"]}, clock=clock
    )
    policy(reading(clock, {"good": 0.9}, replica="a"))
    policy(reading(clock, {"other": 0.1}, replica="b"))
    assert [s["kv_pressure"] for s in seen] == [0.9, 0.1]


def test_a_signal_of_ones_own_is_read_and_recorded_as_a_gate(log):
    """A user's quantity is used like one of ours."""
    fever = Signal(
        "fever", unit="celsius", low=30.0, high=45.0, combine="max", origin="engine",
        serves="too hot: wait", fails_when="nobody measures",
    )  # fmt: skip
    policy = rule(
        lambda p, m: p.defer("slots") if fever.read(m) > 39 else p.admit(),
        sources={fever: ["fever"]}, log=log,
    )  # fmt: skip
    assert [policy({"fever": f}).admitted for f in (37.0, 40.0)] == [True, False]
    assert log.decisions[1]["gates"] == [["fever", 40.0, ">", 39.0, True]]
    assert policy({"fever": 50.0}).reason == "signal_absent"


def test_every_signal_stands_on_the_line_whether_the_rule_read_it_or_not(log):
    """A report can say: your signal never moved, but the queue hit 61."""
    rule(admits, log=log, reports_outcomes=True)(
        {"kv_pressure": 0.1, "queue_depth": 61, "gpu_util": 0.5, "pool_load": 1.5},
        tenant="t", session="s", input_tokens=9, deadline_s=3.0, attempt=1,
    )  # fmt: skip
    (line,) = log.decisions
    assert line["signals"] == {
        "kv_pressure": 0.1, "queue_depth": 61.0, "pool_load": 1.5, "gpu_util": 0.5,
        "input_tokens": 9, "deadline_slack_s": 3.0, "attempt": 1, "tenant_share": 1.0,
        "tenant_in_flight": 0, "session_in_flight": 0, "in_flight": 0,
        "oldest_wait_s": 0.0,
    }  # fmt: skip


def test_an_unknown_signal_is_not_on_the_line(log):
    """Absence is never zero, in the log as in the rule."""
    rule(admits, log=log)({"queue_depth": 0})
    assert log.decisions[0]["signals"] == {"queue_depth": 0.0}


def test_a_signal_is_read_once_for_all_who_ask(clock):
    """However often a rule and a log ask, a source is called once per reading."""
    calls = []
    policy = rule(
        lambda p, m: p.admit() if POOL_LOAD.read(m) == POOL_LOAD.read(m) else None,
        sources={POOL_LOAD: [lambda m: calls.append(1) or m["x"]]}, clock=clock,
    )  # fmt: skip
    once = reading(clock, {"x": 1.0})
    for _ in range(20):
        policy(once)
    assert len(calls) == 1
