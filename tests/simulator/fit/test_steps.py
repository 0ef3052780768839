"""The engine's steps, found again in what clients saw."""

from dataclasses import replace
from itertools import pairwise

from tests.simulator.fit.made import run

from admitperf.simulator.fit.recorded import Asked
from admitperf.simulator.fit.steps import Kind, steps


def asked(name, sent_s, times, tokens=None):
    """A request whose tokens came at these times, one each."""
    tokens = tokens or [1] * len(times)
    return Asked(
        id=name,
        sent_s=sent_s,
        input_tokens=100,
        output_tokens=sum(tokens),
        max_output_tokens=sum(tokens),
        ttft_ms=(times[0] - sent_s) * 1e3,
        e2e_ms=(times[-1] - sent_s) * 1e3,
        chunks=tuple(zip(times, tokens, strict=True)),
    )


def sizes(found):
    """How many tokens each step gave."""
    return [len(step.tokens) for step in found]


def kinds(found, place):
    """Why one request got its tokens, step by step."""
    return [t.kind for step in found for t in step.tokens if t.asked == place]


def test_tokens_that_come_together_are_of_one_step():
    """Two streams, five steps, deliveries up to 1 ms apart."""
    one = asked("a", 0.0, [0.10, 0.11, 0.12, 0.13, 0.14])
    two = asked("b", 0.0, [0.101, 0.1105, 0.1211, 0.1304, 0.1402])
    found = steps([one, two])
    assert sizes(found) == [2] * 5
    assert [step.end_s for step in found] == [0.10, 0.11, 0.12, 0.13, 0.14]


def test_a_first_token_joins_the_step_it_ends_with():
    """Its prompt was computed in that step, so the step took longer."""
    one = asked("a", 0.0, [0.10, 0.11, 0.16, 0.17])
    two = asked("b", 0.105, [0.1601, 0.1702])
    found = steps([one, two])
    assert sizes(found) == [1, 1, 2, 2]
    assert kinds(found, 1) == [Kind.FIRST, Kind.DECODE]


def test_a_held_up_delivery_makes_no_steps_of_its_own():
    """Five tokens of b come at once; the engine made one step for each."""
    one = asked("a", 0.0, [0.10 + 0.01 * n for n in range(12)])
    held = [0.1600, 0.1601, 0.1602, 0.1603, 0.1604]
    late = [0.10, 0.11, *held, *(0.16 + 0.01 * n for n in range(1, 6))]
    two = asked("b", 0.0, late)
    found = steps([one, two])
    assert len(found) == 12
    assert Kind.RESUMED not in kinds(found, 1)


def test_a_stream_that_lags_for_good_was_preempted():
    """Five steps without it, then it goes on at its usual pace."""
    one = asked("a", 0.0, [0.10 + 0.01 * n for n in range(20)])
    gap = [0.10, 0.11, *(0.17 + 0.01 * n for n in range(8))]
    found = steps([one, asked("b", 0.0, gap)])
    assert len(found) == 20
    assert kinds(found, 1).count(Kind.RESUMED) == 1


def test_a_chunk_of_two_tokens_is_two_steps():
    """Under pressure a stream carries several tokens in one message."""
    one = asked("a", 0.0, [0.10, 0.11, 0.12, 0.13])
    two = asked("b", 0.0, [0.10, 0.12, 0.13], tokens=[1, 2, 1])
    assert sizes(steps([one, two])) == [2, 2, 2, 2]


def test_made_steps_are_found_one_by_one():
    """4 clients: every step's time and size is what it was."""
    made = run(clients=4, requests=24)
    found = steps(made.asked)
    times = sorted({t for one in made.asked for t, _ in one.chunks})
    assert [step.end_s for step in found] == times
    assert sum(sizes(found)) == sum(one.output_tokens for one in made.asked)
    assert all(a.end_s < b.end_s for a, b in pairwise(found))


def test_a_run_without_token_times_has_no_steps():
    """A log knows first tokens and ends only."""
    made = run(clients=1, requests=2)
    assert steps([replace(one, chunks=()) for one in made.asked]) == []
