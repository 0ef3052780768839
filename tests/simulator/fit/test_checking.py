"""A profile held against a run: the replay, the metrics and the rules."""

from dataclasses import replace

import pytest
from tests.simulator.fit.made import SIZES, run

from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.fit.checking import Spread, checked, quantile
from admitperf.simulator.fit.recorded import Asked, Recorded, Sight
from admitperf.simulator.fit.replay import drained_per_s, engine_of, replay
from admitperf.simulator.profile import Profile, Provenance, profile

MODEL = EngineModel(
    **SIZES,
    front_ms=4.0,
    step_ms=9.0,
    ms_per_resident_token=0.002,
    ms_per_prefill_token=0.3,
    ms_per_sequence=0.8,
)
EXACT = Profile(name="exact", engine=MODEL, provenance=Provenance(source="measured"))


def asked(name, sent_s, **changes):
    """A prompt of 100 tokens and an answer of 10."""
    sizes = {"input_tokens": 100, "output_tokens": 10, "max_output_tokens": 10}
    times = {"ttft_ms": 100.0, "e2e_ms": 500.0}
    return Asked(id=name, sent_s=sent_s, **{**sizes, **times, **changes})


def of(*requests, **changes):
    """A run of these requests."""
    return Recorded(name="r", kind="load", asked=requests, engine=SIZES, **changes)


def line(table, metric):
    """One metric of a table."""
    (found,) = [one for one in table.lines if one.metric == metric]
    return found


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_the_engine_that_made_a_run_predicts_it(clients):
    """Every time to the first token and every end, to a microsecond."""
    made = run(clients=clients, requests=30)
    ends = {end.arrival.id: end for end in replay(made, MODEL, seed=0).ends}
    assert len(ends) == 30
    for one in made.asked:
        assert ends[one.id].ttft_ms == pytest.approx(one.ttft_ms, abs=1e-3)
        assert ends[one.id].e2e_ms == pytest.approx(one.e2e_ms, abs=1e-3)


def test_a_table_of_an_exact_profile_has_no_miss():
    """Medians are the real values where nothing is left to chance."""
    table = checked(EXACT, run(clients=4, requests=30), repeats=3)
    assert table.ok
    assert table.load is None
    for one in table.lines:
        assert one.simulated == pytest.approx(one.real, rel=1e-6)


def test_a_wrong_profile_misses():
    """An engine twice as slow misses throughput and the wide rule alike."""
    slow = replace(EXACT, engine=replace(MODEL, step_ms=27.0))
    table = checked(slow, run(clients=4, requests=30), repeats=3)
    assert not table.ok
    assert not line(table, "req_per_s").ok


def test_the_run_says_what_its_engine_was():
    """Sizes from the run, costs from the profile."""
    model = engine_of(profile("vllm-cpu").engine, run(clients=1, requests=2))
    assert model.kv_blocks == SIZES["kv_blocks"]
    assert model.step_ms == profile("vllm-cpu").engine.step_ms


def test_a_session_waits_for_its_answer_and_its_pause():
    """The second turn comes 2 s after the first one's simulated end."""
    turns = of(asked("a", 1.0), asked("b", 9.0, after="a", think_s=2.0))
    first, second = replay(turns, MODEL, seed=0).ends
    assert second.arrival.at_s == pytest.approx(first.at_s + 2.0)
    assert turns.waits_for_answers


def test_a_client_that_is_refused_asks_the_next_thing():
    """One prompt can never fit: it is counted, and the client goes on."""
    huge = asked("huge", 1.0, input_tokens=100_000)
    played = replay(of(huge, asked("b", 2.0), clients=1), MODEL, seed=0)
    assert played.refused == 1
    assert [end.arrival.id for end in played.ends] == ["b"]


def test_scrapes_see_how_the_last_step_ended():
    """While the first step runs vLLM's page still shows nobody, llama.cpp's does."""
    looks = tuple(Sight(at_s=1.0 + n / 100, running=0.0) for n in (1, 6))
    one = of(asked("a", 1.0), sights=looks)
    seen = [sight.running for sight in replay(one, MODEL, seed=0).sights]
    assert seen == [0, 1]
    now = replace(one, shows_steps=False)
    assert [sight.running for sight in replay(now, MODEL, seed=0).sights] == [1, 1]


def test_the_queue_is_shown_as_the_last_step_left_it():
    """One slot, two callers: who waits is seen once a step has left one waiting."""
    looks = tuple(Sight(at_s=1.0 + n / 100, waiting=0.0) for n in (1, 5))
    two = of(asked("a", 1.0), asked("b", 1.0), sights=looks)
    one_slot = replace(two, engine={**SIZES, "max_num_seqs": 1})
    model = engine_of(MODEL, one_slot)
    assert [sight.waiting for sight in replay(one_slot, model, seed=0).sights] == [0, 1]
    now = replace(one_slot, shows_steps=False)
    assert [sight.waiting for sight in replay(now, model, seed=0).sights] == [1, 1]


def test_chance_repeats_and_differs_by_seed():
    """The same seed gives the same run, another one another."""
    noisy, made = replace(MODEL, noise=0.3), run(clients=4, requests=20)
    one, same, other = (replay(made, noisy, seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_load_is_offered_over_capacity():
    """The capacity is what is given, else what the model drains."""
    many = of(*(asked(f"r{n}", n / 10) for n in range(50)), rate_per_s=10.0)
    assert checked(EXACT, many, repeats=1, capacity_per_s=5.0).load == 2.0
    table = checked(EXACT, many, repeats=1)
    assert table.capacity_per_s == pytest.approx(drained_per_s(many.asked, MODEL))


@pytest.mark.parametrize(
    ("capacity", "rule"),
    [(20.0, "20%"), (10.0, "35%"), (7.0, "35%"), (20 / 3, "20%"), (5.0, "20%")],
)
def test_the_wide_rule_is_for_loads_near_capacity(capacity, rule):
    """From 1.0x and below 1.5x."""
    many = of(*(asked(f"r{n}", n / 10) for n in range(5)), rate_per_s=10.0)
    table = checked(EXACT, many, repeats=1, capacity_per_s=capacity)
    assert line(table, "ttft_p50_ms").rule.startswith(rule)


def test_rules_hold_at_their_bounds_and_not_past_them():
    """Queue: 20 % or 3; KV: 0.05; the middle 90 % counts for the wide rule only."""
    from admitperf.simulator.fit import checking

    def holds(rule, real, middle, low=None, high=None):
        spread = Spread(middle, middle if low is None else low, high or middle)
        return rule(real, spread)[1]

    waiting, kv = checking._within(0.20, 3), checking._absolute(0.05)
    assert holds(waiting, 10, 13)
    assert not holds(waiting, 10, 13.1)
    assert holds(waiting, 100, 120)
    assert not holds(waiting, 100, 121)
    assert holds(kv, 0.95, 1.0)
    assert not holds(kv, 0.94, 1.0)
    assert holds(checking._wide, 100, 200, low=99, high=300)
    assert not holds(checking._wide, 100, 200, low=101, high=300)
    assert not holds(checking._tight, 100, 121, low=0, high=300)


def test_a_metric_the_run_does_not_show_is_not_judged():
    """llama.cpp has no KV gauge and no preemptions."""
    looks = (Sight(at_s=1.2, running=1.0, waiting=0.0),)
    table = checked(EXACT, of(asked("a", 1.0), sights=looks), repeats=1)
    metrics = {one.metric for one in table.lines}
    assert "max_kv_fraction" not in metrics
    assert "preemptions" not in metrics
    assert "max_waiting" in metrics


def test_a_prefix_that_was_cached_is_found_again():
    """The second prompt repeats 96 tokens of the first: 3 blocks of 32."""
    shared = (("text", 96), ("a", 4)), (("text", 96), ("b", 4))
    two = [
        asked(name, at_s, prefix=prefix, cached_tokens=cached)
        for name, at_s, prefix, cached in (
            ("a", 1.0, shared[0], 0), ("b", 5.0, shared[1], 96),
        )
    ]  # fmt: skip
    caching = {**SIZES, "prefix_caching": True}
    table = checked(EXACT, replace(of(*two), engine=caching), repeats=1)
    assert line(table, "cached_fraction").simulated == pytest.approx(0.48)
    assert line(table, "cached_fraction").real == pytest.approx(0.48)


def test_repeats_are_as_fast_as_the_machine_is_on_other_days():
    """What runs differ by spreads the repeats, though no step has noise."""
    made = run(clients=4, requests=30)
    fitted = profile("vllm-cpu").residuals
    spread = replace(EXACT, residuals=replace(fitted, run_to_run=0.10))
    found = line(checked(spread, made, repeats=20), "req_per_s")
    assert found.low < 0.9 * found.real
    assert found.high > 1.1 * found.real


def test_a_quantile_is_one_of_the_values():
    """As the real runs were summed up."""
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([3.0, 1.0, 2.0], 0.95) == 3.0
    assert Spread.of([float(n) for n in range(20)]) == Spread(9.5, 1.0, 18.0)
