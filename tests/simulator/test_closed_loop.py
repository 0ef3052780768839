"""A closed loop keeps as many requests in the engine as it has clients."""

import itertools

import pytest
from tests.simulator.small import arrival, model

from admitperf.simulator import closed_loop


def asked():
    """Requests without end."""
    return (arrival(n) for n in itertools.count())


def test_one_slot_gives_an_answer_every_service_time():
    """300 ms each, whatever the number of clients."""
    made = closed_loop(model(max_num_seqs=1), [], asked(), 5, (1.0, 31.1))
    assert len(made) == 100
    assert made[0].at_s == pytest.approx(1.3)


def test_one_client_waits_for_nobody():
    """Its next request starts when the last has ended."""
    made = closed_loop(model(), [], asked(), 1, (0.0, 10.0))
    assert [end.ttft_ms for end in made] == pytest.approx([200] * len(made))


def test_what_stood_before_is_served_and_not_counted():
    """A standing request takes its room; only the clients' ends come back."""
    standing = [arrival("s", input_tokens=800, output_tokens=150)]
    made = closed_loop(model(), standing, asked(), 3, (1.0, 5.0))
    assert "rs" not in {end.arrival.id for end in made}
    assert len(made) > 5
    assert len({end.arrival.id for end in made}) == len(made)
