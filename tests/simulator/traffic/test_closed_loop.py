"""A closed loop keeps as many requests in the engine as it has clients."""

import itertools

import pytest
from tests.simulator.small import arrival, model

from admitperf.simulator import Engine, closed_loop


def asked():
    """Requests without end."""
    return (arrival(n) for n in itertools.count())


def test_one_slot_gives_an_answer_every_service_time():
    """210 ms each, whatever the number of clients."""
    engine = Engine(model(max_num_seqs=1))
    made = closed_loop(engine, [], asked(), 5, (1.0, 22.05))
    assert len(made) == 100
    assert made[0].at_s == pytest.approx(1.21)


def test_one_client_waits_for_nobody():
    """Its next request starts when the last has ended."""
    made = closed_loop(Engine(model()), [], asked(), 1, (0.0, 10.0))
    assert len(made) == 47
    assert [end.ttft_ms for end in made] == pytest.approx([110] * 47)


def test_what_stood_before_is_served_and_not_counted():
    """A standing request takes its room; only the clients' ends come back."""
    standing = [arrival("s", input_tokens=800, output_tokens=150)]
    made = closed_loop(Engine(model()), standing, asked(), 3, (1.0, 5.0))
    assert "rs" not in {end.arrival.id for end in made}
    assert len(made) > 5
    assert len({end.arrival.id for end in made}) == len(made)


def test_it_finds_what_the_engine_remembers():
    """The engine comes as it stands: 90 of 100 tokens are known to it."""
    engine = Engine(model())
    engine.remember("known", 100)
    same = (arrival(n, prefix=(("known", 90), (f"r{n}", 0))) for n in itertools.count())
    made = closed_loop(engine, [], same, 1, (0.0, 1.0))
    assert {end.cached_tokens for end in made} == {90}


@pytest.mark.parametrize("limit", ["max_num_queued_reqs", "max_num_queued_tokens"])
def test_an_engine_that_refuses_its_clients_has_no_closed_loop(limit):
    """In its queue as at its door: who is refused would be missing from then on."""
    for clients, begin_s in ((2, 0.0), (1, 0.05)):
        engine = Engine(model(max_num_seqs=1, **{limit: 1}))
        standing = [arrival("s", output_tokens=200)] if begin_s else []
        with pytest.raises(ValueError, match="the engine refused r"):
            closed_loop(engine, standing, asked(), clients, (begin_s, 5.0))
