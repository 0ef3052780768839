"""Where the engine is a queue that books have a formula for, it has their waits.

Each test makes the engine such a queue, takes the mean wait of tens of thousands of
requests with a fixed seed, and holds the formula against its 99.9 % confidence
interval, from the means of 20 runs of requests in a row (Student's t, 19 degrees of
freedom). That the interval is narrow is part of the test.
"""

import math
from statistics import mean, stdev

import pytest

from admitperf.simulator import Arrival, End, Engine, EngineModel, stream

BATCHES = 20
T_999 = 3.883
"""99.9 % of Student's t with 19 degrees of freedom, both sides."""

ONE_SERVER = EngineModel(max_num_seqs=1, kv_blocks=10_000, step_ms=100.0)


def interval(waits):
    """Mean wait, and how far the truth may be from it. The first batch is warm-up."""
    size = len(waits) // (BATCHES + 1)
    starts = range(size, size * (BATCHES + 1), size)
    means = [mean(waits[start : start + size]) for start in starts]
    return mean(means), T_999 * stdev(means) / math.sqrt(BATCHES)


def asked(rate, count, seed, *, prompt=lambda: 1, answer=lambda: 1, priority=lambda: 0):
    """Requests at random times, so many a second; sizes are asked for each."""
    chance, at_s, arrivals = stream(seed, "arrivals"), 0.0, []
    for number in range(count):
        at_s += chance.expovariate(rate)
        tokens = answer()
        arrivals.append(
            Arrival(
                id=f"r{number}", at_s=at_s, input_tokens=prompt(), priority=priority(),
                max_output_tokens=tokens, output_tokens=tokens,
            )
        )  # fmt: skip
    return arrivals


def waits(model, arrivals, service_s):
    """How long each waited, in the order of arrival, and how many it found waiting.

    Args:
        service_s: of an arrival, from its start to its first token.
    """
    engine, waited, found = Engine(model), {}, []
    for arrival in arrivals:
        _note(engine.run_to(arrival.at_s), waited, service_s)
        found.append(engine.waiting)
        engine.submit(arrival)
    _note(engine.run_to(math.inf), waited, service_s)
    return [waited[arrival.id] for arrival in arrivals], found


def _note(events, waited, service_s):
    for event in events:
        if isinstance(event, End):
            arrival = event.arrival
            waited[arrival.id] = event.ttft_ms / 1e3 - service_s(arrival)


def geometric(seed, average):
    """Whole numbers from 1 without memory: the exponential distribution of steps."""
    chance, base = stream(seed, "sizes"), math.log(1 - 1 / average)
    return lambda: 1 + int(math.log(1 - chance.random()) / base)


def pollaczek_khinchine(rate, service_s, square_s2):
    """Mean wait of M/G/1 by the first two moments of the time of service."""
    return rate * square_s2 / (2 * (1 - rate * service_s))


def erlang_c(servers, load):
    """Chance that all servers are busy; load = arrivals in a time of service."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    full = load**servers / math.factorial(servers) * servers / (servers - load)
    return full / (sum(terms) + full)


@pytest.mark.parametrize("busy", [0.5, 0.7])
def test_equal_requests_one_at_a_time_wait_as_in_m_d_1(busy):
    """One slot, one token each, every step 100 ms: a server of constant time.

    Counted by arrivals, the queue is as long as Little's law has it.
    """
    rate = busy / 0.1
    waited, found = waits(ONE_SERVER, asked(rate, 63_000, 1), lambda _: 0.1)
    theory = pollaczek_khinchine(rate, 0.1, 0.01)
    average, error = interval(waited)
    assert error < 0.1 * theory
    assert abs(average - theory) <= error
    queued, error = interval(found)
    assert abs(queued - rate * theory) <= error


@pytest.mark.parametrize("busy", [0.5, 0.7])
def test_prompts_of_random_length_wait_as_in_m_m_1(busy):
    """One slot, one token each, time by the prompt's length: an exponential server.

    Lengths are whole tokens, 500 on average, so the moments are the geometric ones;
    M/M/1's own formula differs from that by a thousandth.
    """
    model = EngineModel(
        max_num_seqs=1, kv_blocks=10_000, step_ms=1e-6, ms_per_prefill_token=0.2,
        max_num_batched_tokens=100_000,
    )  # fmt: skip
    rate = busy / 0.1
    arrivals = asked(rate, 63_000, 2, prompt=geometric(2, 500))
    waited, _ = waits(model, arrivals, lambda one: one.input_tokens * 0.2e-3)
    theory = pollaczek_khinchine(rate, 0.1, (2 - 1 / 500) * 0.01)
    assert theory == pytest.approx(busy * 0.1 / (1 - busy), rel=2e-3)
    average, error = interval(waited)
    assert error < 0.15 * theory
    assert abs(average - theory) <= error


def test_one_at_a_time_each_wait_is_the_one_of_lindley():
    """Wait = what is left of the one before it, or nothing; exact for each of 5,000."""
    model = EngineModel(
        max_num_seqs=1, kv_blocks=10_000, step_ms=3.0, ms_per_prefill_token=0.2,
        max_num_batched_tokens=100_000,
    )  # fmt: skip
    arrivals = asked(7.0, 5_000, 5, prompt=geometric(5, 500))
    waited, _ = waits(model, arrivals, lambda one: 0.003 + one.input_tokens * 0.2e-3)
    free_s = 0.0
    for wait, arrival in zip(waited, arrivals, strict=True):
        start_s = max(free_s, arrival.at_s)
        assert wait == pytest.approx(start_s - arrival.at_s, abs=1e-9)
        free_s = start_s + 0.003 + arrival.input_tokens * 0.2e-3


@pytest.mark.parametrize(("slots", "busy"), [(2, 0.7), (4, 0.7)])
def test_answers_of_random_length_wait_as_in_m_m_c(slots, busy):
    """Slots that do not slow each other, 200 steps of 1 ms an answer: M/M/c.

    Time is in steps here: who finds a slot free begins with the next step, half a step
    later on average, and everybody's wait is out by less than one.
    """
    model = EngineModel(max_num_seqs=slots, kv_blocks=100_000, step_ms=1.0)
    rate = busy * slots / 0.2
    arrivals = asked(rate, 63_000, 3, answer=geometric(3, 200))
    waited, _ = waits(model, arrivals, lambda _: 0.001)
    theory = erlang_c(slots, busy * slots) * 0.2 / (slots * (1 - busy))
    average, error = interval(waited)
    assert error < 0.25 * theory
    assert abs(average - theory) <= error + 0.001


def test_priorities_wait_as_in_a_queue_that_does_not_interrupt():
    """M/D/1 with three priorities: Cobham's waits, each from its own requests."""
    rate, chance = 8.0, stream(4, "priorities")
    arrivals = asked(rate, 63_000, 4, priority=lambda: chance.randrange(3))
    model = EngineModel(
        max_num_seqs=1, kv_blocks=10_000, step_ms=100.0, scheduling="priority"
    )
    waited, _ = waits(model, arrivals, lambda _: 0.1)
    rest, share = rate * 0.01 / 2, rate / 3 * 0.1
    for priority in range(3):
        own = [
            wait
            for wait, arrival in zip(waited, arrivals, strict=True)
            if arrival.priority == priority
        ]
        before, with_it = 1 - priority * share, 1 - (priority + 1) * share
        theory = rest / (before * with_it)
        average, error = interval(own)
        assert error < 0.2 * theory
        assert abs(average - theory) <= error
