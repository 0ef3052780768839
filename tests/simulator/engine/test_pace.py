"""Many steps at once take as long as one after the other."""

from itertools import accumulate
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.small import model

from admitperf.simulator.engine.pace import Leap, Noise, Slowest

LEAPS = st.builds(
    Leap,
    st.sampled_from([0.0, 17.3]),
    st.integers(1, 400),
    st.floats(0.001, 0.5),
    st.sampled_from([0.0, 1e-9, 1e-6, 0.01]),
)


def test_steps_grow_by_the_same_time():
    """10, 12, 14 ms from 1 s on: over at 1.010, 1.022 and 1.036 s."""
    leap = Leap(1.0, 3, 0.010, 0.002)
    assert [leap.after_s(n) for n in range(4)] == pytest.approx([1, 1.01, 1.022, 1.036])
    assert leap.end_s == pytest.approx(1.036)
    assert leap.longest_s == pytest.approx(0.014)


@given(leap=LEAPS, step=st.integers(0, 400), part=st.floats(0.01, 0.99))
def test_how_many_are_over_is_known_at_any_time(leap, step, part):
    """Just when one is over, and in the middle of the next."""
    step = min(step, leap.steps)
    at_s = leap.after_s(step)
    assert leap.done(at_s) == step
    if step < leap.steps:
        assert leap.done(at_s + part * (leap.after_s(step + 1) - at_s)) == step
    assert leap.done(leap.end_s + 1.0) == leap.steps


@pytest.mark.parametrize(
    ("now_s", "steps"),
    [(1.0, 1), (1.005, 1), (1.01, 1), (1.011, 2), (1.03, 3), (1.036, 3)],
)
def test_a_leap_that_is_cut_ends_with_the_step_under_way(now_s, steps):
    """With the first at least; one that ends just now is the last."""
    leap = Leap(1.0, 3, 0.010, 0.002)
    whole = leap.after_s(steps)
    leap.cut(now_s)
    assert (leap.steps, leap.end_s) == (steps, whole)


def test_a_group_of_steps_shares_one_factor():
    """16 each; asking back and forth changes nothing."""
    noise = Noise(model(noise=0.3), 1)
    later = noise.at(40)
    factors = [noise.at(step) for step in range(48)]
    assert later == factors[40]
    assert [len({*factors[n : n + 16]}) for n in (0, 16, 32)] == [1, 1, 1]
    assert len({*factors}) == 3
    assert [noise.lasts(step) for step in (0, 1, 15, 16)] == [16, 15, 1, 16]
    assert [Noise(model(noise=0.3), 1).at(step) for step in range(48)] == factors
    assert Noise(model(noise=0.3), 2).at(0) != factors[0]


def test_factors_have_the_mean_1_and_the_spread_of_their_name():
    """20,000 of sigma 0.3: the mean within 1 %, one in six above e^(sigma - sigma^2/2).

    Four standard errors of the mean are 0.9 %.
    """
    noise = Noise(model(noise=0.3, noise_steps=1), 1)
    factors = [noise.at(step) for step in range(20_000)]
    assert sum(factors) / len(factors) == pytest.approx(1.0, abs=0.01)
    above = sum(factor > 1.2904 for factor in factors) / len(factors)
    assert above == pytest.approx(0.1587, abs=0.011)


def test_without_noise_every_step_is_as_the_model_says():
    """And all of them are alike."""
    noise = Noise(model(), 1)
    assert (noise.at(0), noise.at(1_000), noise.lasts(5)) == (1.0, 1.0, inf)


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([1.0, 2.0, 3.0])),
                min_size=1, max_size=20))  # fmt: skip
def test_the_slowest_since_any_step_is_known(added):
    """As if all had been kept."""
    slowest, lasts = Slowest(), list(accumulate(steps for steps, _ in added))
    for last, (_, took_s) in zip(lasts, added, strict=True):
        slowest.add(last, took_s)
    for place in range(len(added)):
        since = lasts[place] - added[place][0]
        assert slowest.since(since) == max(took_s for _, took_s in added[place:])
