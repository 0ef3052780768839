"""An engine that changes while it works: fewer slots, slower steps."""

import math

import pytest
from tests.simulator.small import arrival, model

from admitperf.simulator import End, Engine, FirstToken, Fleet


def until(engine, at_s):
    """What happens up to then."""
    return list(engine.run_to(at_s))


def crowd(engine, count=8, tokens=101):
    """So many at once: prompts of one token, answers of a second."""
    for n in range(count):
        engine.submit(arrival(n, input_tokens=1, output_tokens=tokens))


def test_who_runs_goes_on_and_the_slots_that_come_free_stay_empty():
    """Four run as two slots are left: the four end, and then two run at a time."""
    engine = Engine(model())
    crowd(engine)
    until(engine, 0.5)
    engine.become(model(max_num_seqs=2))
    happened = until(engine, math.inf)
    ends = [e.at_s for e in happened if isinstance(e, End)]
    starts = [e.at_s for e in happened if isinstance(e, FirstToken)]
    assert ends[:4] == pytest.approx([1.014] * 4)
    assert starts[:2] == pytest.approx([1.026] * 2)
    assert starts[2:] == pytest.approx([2.038] * 2)


def test_slots_that_are_added_are_filled_with_the_next_step():
    """It is in the middle of many steps alike, and ends them with the present one."""
    engine = Engine(model(max_num_seqs=2))
    crowd(engine)
    until(engine, 0.5)
    engine.become(model(max_num_seqs=8))
    starts = [e.at_s for e in until(engine, 0.6) if isinstance(e, FirstToken)]
    assert len(starts) == 6
    assert max(starts) == pytest.approx(0.518, abs=0.01)
    assert engine.running == 8


def test_steps_take_the_new_time_from_the_next_one_on():
    """Half an answer at 10 ms a token, and half at 40 ms."""
    engine = Engine(model())
    engine.submit(arrival(1, input_tokens=1, output_tokens=101))
    until(engine, 0.511)
    engine.become(model(step_ms=40.0))
    (end,) = until(engine, math.inf)
    assert end.at_s == pytest.approx(0.511 + 50 * 0.040)


def test_an_engine_that_becomes_what_it_is_is_unchanged():
    """It interrupts nothing that can be seen."""
    times = []
    for change in (False, True):
        engine = Engine(model(noise=0.1), seed=3)
        crowd(engine)
        told = until(engine, 0.777)
        if change:
            engine.become(engine.model)
        told += until(engine, math.inf)
        times.append([(e.arrival.id, round(e.at_s, 9)) for e in told])
    assert times[0] == times[1]


@pytest.mark.parametrize(
    "change",
    [{"kv_blocks": 50}, {"block_size": 20}, {"scheduling": "priority"}, {"noise": 1.0}],
)
def test_nothing_else_changes_while_it_works(change):
    """What is in the cache would have to be somewhere else."""
    engine = Engine(model())
    with pytest.raises(ValueError, match="nothing but max_num_seqs, step_ms"):
        engine.become(model(**change))
    assert engine.model == model()


def test_all_engines_of_a_fleet_change():
    """And what happens meanwhile is told once."""
    fleet = Fleet(model(), replicas=2)
    crowd(fleet)
    told = until(fleet, 0.5)
    fleet.become(model(max_num_seqs=1))
    told += until(fleet, math.inf)
    assert {engine.model.max_num_seqs for engine in fleet.engines} == {1}
    assert sorted(e.arrival.id for e in told if isinstance(e, End)) == [
        f"r{n}" for n in range(8)
    ]
