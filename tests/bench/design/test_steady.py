"""Warm-up cuts, trends and drift."""

import math
from random import Random

import pytest

from admitperf.bench.design.steady import (
    drift,
    mann_kendall,
    mser5,
    theil_sen,
    trend,
)


def noise(n, seed=1, sd=1.0):
    """White noise."""
    chance = Random(seed)
    return [chance.gauss(0, sd) for _ in range(n)]


def test_mser_cuts_a_transient_and_little_else():
    """A decaying start of 40 goes, of 200 steady ones few."""
    start = [20 * math.exp(-i / 12) for i in range(40)]
    series = [a + b for a, b in zip(start + [0.0] * 160, noise(200), strict=True)]
    assert 20 <= mser5(series) <= 60
    assert mser5(series) % 5 == 0
    assert all(mser5(noise(200, seed)) <= 100 for seed in range(20))


def test_mser_of_a_series_that_never_settles_is_half_of_it():
    """A ramp has no steady part."""
    assert mser5([float(i) for i in range(100)]) == 50


@pytest.mark.parametrize("n", range(10))
def test_mser_of_a_short_series_cuts_nothing(n):
    """Fewer than two batches show no spread."""
    assert mser5(list(range(n))) == 0


def test_mser_by_hand():
    """Two batches off, then four that are equal: cutting those two leaves no spread."""
    assert mser5([9.0] * 5 + [5.0] * 5 + [1.0] * 20) == 10


def test_theil_sen_is_the_median_of_slopes():
    """By hand, and unmoved by an outlier."""
    assert theil_sen([0, 1, 3], [0, 2, 3]) == 1.0  # slopes 2, 1, 0.5
    assert theil_sen([0, 1, 2, 3, 4], [0, 1, 2, 3, 400]) == 1.0
    assert theil_sen([1, 1], [5, 9]) == 0.0


def test_mann_kendall_by_hand():
    """S = 45 of ten rising values: z = 44 / sqrt(125)."""
    expected = math.erfc(44 / math.sqrt(125) / math.sqrt(2))
    assert mann_kendall(list(range(10))) == pytest.approx(expected)
    assert mann_kendall(list(range(10))[::-1]) == pytest.approx(expected)
    assert mann_kendall([1, 1, 1, 1, 1]) == 1.0
    assert mann_kendall([1, 2, 3]) == 1.0


def test_mann_kendall_counts_ties():
    """Pairs of equal values lower the variance by 18 each, over 18."""
    series = [1, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    expected = math.erfc(43 / math.sqrt(125 - 1) / math.sqrt(2))
    assert mann_kendall(series) == pytest.approx(expected)


def test_mann_kendall_gives_few_false_alarms():
    """Of noise about 5 % have p < 0.05."""
    alarms = sum(mann_kendall(noise(30, seed)) < 0.05 for seed in range(400))
    assert 5 <= alarms <= 36


def test_a_trend_is_that_of_the_means():
    """Values that grow by 2 a second, scattered within each bin."""
    at_s = [i / 4 for i in range(400)]
    values = [2 * at + spread for at, spread in zip(at_s, noise(400), strict=True)]
    found = trend(at_s, values)
    assert found.bins == 10
    assert found.slope == pytest.approx(2, abs=0.1)
    assert found.p < 0.001
    assert trend(at_s, noise(400)).p > 0.05
    assert trend([], []).p == 1.0


def probes(n, change, sd=0.005, seed=3):
    """Probes of 100 ms that change by so much over all of them."""
    scatter = noise(n, seed, sd)
    return {i: 100 * (1 + change * i / n + scatter[i]) for i in range(n)}


def test_a_drift_is_found_and_noise_is_not():
    """6 % over 16 runs, and none; a wide scatter alone is no drift."""
    found = drift(probes(16, 0.06))
    assert found.drifts
    assert found.change == pytest.approx(0.06, abs=0.02)
    assert not drift(probes(16, 0.0)).drifts
    assert not drift(probes(16, 0.02)).drifts
    assert sum(drift(probes(16, 0.0, 0.05, seed)).drifts for seed in range(100)) <= 16


def test_a_step_is_a_drift():
    """Half of the probes 5 % slower, in either direction."""
    for size in (0.05, -0.05):
        series = {i: v * (1 + size * (i >= 12)) for i, v in probes(24, 0.0).items()}
        found = drift(series)
        assert found.drifts
        assert found.shift == pytest.approx(size, abs=0.02)


def test_too_few_probes_say_nothing():
    """Three have no order that could not be chance."""
    assert drift({1: 1.0, 2: 2.0, 3: 3.0}) is None
