"""Traffic is drawn once: sizes within bounds, times in order, a hash that tells."""

from dataclasses import replace
from itertools import pairwise

import pytest

from admitperf.simulator import Kind, Phase, plan_hash, poisson, together

KIND = Kind(
    name="k",
    input_tokens=(10, 20),
    output_tokens=(1, 3),
    max_output_tokens=3,
    cached_tokens=5,
    jitter=0.25,
)


def test_sizes_lie_between_their_bounds_and_reach_them():
    """Bounds are included, and the host's facts hold no word of the truth."""
    drawn = list(KIND.at(range(500), 1))
    assert {one.input_tokens for one in drawn} == set(range(10, 21))
    assert {one.output_tokens for one in drawn} == {1, 2, 3}
    assert all(0.75 <= one.slowness <= 1.25 for one in drawn)
    assert {one.cached_tokens for one in drawn} == {5}
    assert [one.at_s for one in drawn] == list(range(500))
    assert len({one.id for one in drawn}) == 500
    assert {*drawn[0].facts()} == {
        "input_tokens", "max_output_tokens", "stream", "late_ms",
    }  # fmt: skip


def test_another_number_of_sizes_moves_no_time_in_the_engine():
    """Each thing has a stream of its own."""
    wider = replace(KIND, input_tokens=(10, 10_000))
    one, other = list(KIND.at(range(20), 1)), list(wider.at(range(20), 1))
    assert [a.slowness for a in one] == [a.slowness for a in other]
    assert [a.input_tokens for a in one] != [a.input_tokens for a in other]


def test_every_seed_offers_the_same_load_at_other_times():
    """Rate times time arrivals, in their phase and in order."""
    phases = [
        Phase(lasts_s=10, rate_per_s=5),
        Phase(lasts_s=5, rate_per_s=0),
        Phase(lasts_s=10, rate_per_s=20),
    ]
    first, second = (list(poisson(phases, seed, "k")) for seed in (1, 2))
    for times_s in (first, second):
        assert times_s == sorted(times_s)
        assert len(times_s) == 250
        assert sum(at_s < 10 for at_s in times_s) == 50
        assert not any(10 <= at_s < 15 for at_s in times_s)
        assert max(times_s) < 25
    assert first != second


def test_arrivals_are_as_irregular_as_poisson():
    """Gaps have the standard deviation of their mean, as an exponential's."""
    times_s = list(poisson([Phase(lasts_s=10_000, rate_per_s=1)], 3, "k"))
    gaps = [b - a for a, b in pairwise(times_s)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert spread / mean == pytest.approx(1.0, abs=0.04)


def test_streams_of_requests_are_merged_by_time():
    """Two kinds together are one plan."""
    made = together(KIND.at([0.0, 2.0], 1), replace(KIND, name="o").at([1.0], 1))
    assert [one.id for one in made] == ["k-1", "o-1", "k-2"]


@pytest.mark.parametrize(
    "changed",
    ["id", "at_s", "input_tokens", "max_output_tokens", "output_tokens",
     "cached_tokens", "slowness"],
)  # fmt: skip
def test_the_hash_tells_plans_apart_by_everything(changed):
    """Whatever differs, the traffic was not the same."""
    one, *rest = KIND.at(range(3), 1)
    value = "other" if changed == "id" else getattr(one, changed) + 1
    assert plan_hash([one, *rest]) == plan_hash([replace(one), *rest])
    assert plan_hash([replace(one, **{changed: value}), *rest]) != plan_hash(
        [one, *rest]
    )
