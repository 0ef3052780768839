"""What a server does to an engine while it runs."""

import pytest

from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.server.paced import PacedEngine
from admitperf.simulator.traffic.arrival import Arrival

MODEL = EngineModel(max_num_seqs=4, kv_blocks=100, step_ms=10.0, front_ms=1.0)


def asked(name="a", tokens=100, **more):
    """A request of 20 tokens."""
    return Arrival(
        id=name, at_s=0.0, input_tokens=20, max_output_tokens=tokens,
        output_tokens=tokens, **more,
    )  # fmt: skip


def test_left_alone_it_is_the_engine():
    """Same events at the same times."""
    told = []
    for kind in (Engine, PacedEngine):
        engine = kind(MODEL, 3)
        engine.submit(asked())
        told.append(list(engine.run_to(float("inf"))))
    assert told[0] == told[1]
    assert told[0]


def test_steps_are_slower_from_the_next_one_on_and_fast_again_later():
    """A request under way feels it; the step it is in does not."""
    engine = PacedEngine(MODEL)
    engine.submit(asked())
    list(engine.run_to(0.0155))  # in the second step
    before = engine.given("a")
    engine.slow(4.0)
    list(engine.run_to(0.0155 + 0.0055 + 0.0401 * 3))
    assert engine.given("a") == before + 4
    engine.slow(1.0)
    list(engine.run_to(engine.next_s + 0.0501))
    assert engine.given("a") == before + 10
    assert engine.model == MODEL


def test_time_in_which_it_is_held_is_in_the_step_under_way():
    """Nothing moves, then everything goes on as much later; its own clocks know."""
    free, held = PacedEngine(MODEL), PacedEngine(MODEL)
    for engine in (free, held):
        engine.submit(asked(tokens=5))
        list(engine.run_to(0.025))
    held.hold(3.025)
    assert held.given("a") == free.given("a")
    (end,) = list(held.run_to(float("inf")))[-1:]
    (due,) = list(free.run_to(float("inf")))[-1:]
    assert end.at_s == pytest.approx(due.at_s + 3.0)
    assert end.e2e_ms == pytest.approx(due.e2e_ms + 3000)


def test_who_comes_while_it_is_held_starts_when_it_goes_on():
    """An idle engine that is held starts nothing."""
    engine = PacedEngine(MODEL)
    engine.submit(asked(tokens=1))
    engine.hold(2.0)
    (first, end) = list(engine.run_to(float("inf")))
    assert first.at_s == end.at_s == pytest.approx(2.01)


def test_counts_that_are_forgotten_begin_at_nothing_while_requests_go_on():
    """As behind a proxy whose counters were lost."""
    engine = PacedEngine(MODEL)
    engine.submit(asked())
    list(engine.run_to(0.3))
    assert engine.counted_tokens > 10
    engine.forget_counts()
    assert (engine.counted_tokens, engine.tally.started) == (0, 0)
    list(engine.run_to(float("inf")))
    assert engine.tally.ended == 1
    assert 0 < engine.counted_tokens < 100


def test_a_limit_that_holds_is_named_and_counted_once():
    """The server asks before the engine is asked."""
    from dataclasses import replace

    engine = PacedEngine(replace(MODEL, max_num_queued_reqs=1))
    assert engine.busy() is None
    engine.submit(asked())
    list(engine.run_to(0.02))
    assert engine.busy() == "max_num_queued_reqs"
    assert engine.tally.refused["max_num_queued_reqs"] == 1
