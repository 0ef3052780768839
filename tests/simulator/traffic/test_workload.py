"""Traffic is drawn once: sizes within bounds, times in order, a hash that tells."""

import json
from dataclasses import astuple, replace
from hashlib import blake2b
from itertools import pairwise

import pytest

from admitperf.simulator import Kind, Phase, plan_hash, poisson, together

KIND = Kind(
    name="k",
    input_tokens=(10, 20),
    output_tokens=(1, 3),
    max_output_tokens=3,
    prefix_tokens=5,
)


def test_sizes_lie_between_their_bounds_and_reach_them():
    """Bounds are included, and the host's facts hold no word of the truth."""
    drawn = list(KIND.at(range(500), 1))
    assert {one.input_tokens for one in drawn} == set(range(10, 21))
    assert {one.output_tokens for one in drawn} == {1, 2, 3}
    assert [one.at_s for one in drawn] == list(range(500))
    assert len({one.id for one in drawn}) == 500
    assert {*drawn[0].facts()} == {
        "input_tokens", "max_output_tokens", "stream", "late_ms",
    }  # fmt: skip


def test_a_host_knows_session_tenant_and_priority_where_there_are_any():
    """As a gateway reads them from a header."""
    (one,) = KIND.at([0.0], 1)
    facts = replace(one, session="s", tenant="t", priority=2).facts()
    assert (facts["session"], facts["tenant"]) == ("s", "t")
    assert facts["priority"] == -2  # an engine takes the lower first, a fact the higher
    assert {*replace(one, session="s").facts()} - {*one.facts()} == {"session"}


def test_a_host_knows_of_a_call_what_its_client_says_and_no_more():
    """Not when the caller will go away: only the simulation knows that."""
    (one,) = KIND.at([0.0], 1)
    said = {
        "logical_id": "l", "attempt": 2, "slo_class": "c", "session_final": True,
        "deadline_s": 1.5, "parent_session": "p",
    }  # fmt: skip
    told = replace(one, **said, hangs_up=True, patience_s=9.0).facts()
    assert {name: told[name] for name in told if name not in one.facts()} == said
    for name, value in said.items():
        assert {*replace(one, **{name: value}).facts()} - {*one.facts()} == {name}


def test_a_kind_shares_a_beginning_and_each_goes_on_alone():
    """One chain of all, and after it one of each; without a beginning there is none."""
    assert [one.prefix for one in KIND.at([0.0, 1.0], 1)] == [
        (("k", 5), ("k-1", 0)),
        (("k", 5), ("k-2", 0)),
    ]
    (alone,) = replace(KIND, prefix_tokens=0).at([0.0], 1)
    assert alone.prefix == ()


def test_another_kind_moves_no_size_of_this_one():
    """Each has a stream of its own, and so has each seed."""
    here = [one.input_tokens for one in KIND.at(range(50), 1)]
    assert here == [one.input_tokens for one in KIND.at(range(50), 1)]
    for other in (replace(KIND, name="o").at(range(50), 1), KIND.at(range(50), 2)):
        assert here != [one.input_tokens for one in other]


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
    ("changed", "value"),
    [("id", "other"), ("at_s", 0.5), ("input_tokens", 21), ("max_output_tokens", 4),
     ("output_tokens", 4), ("prefix", (("k", 6), ("k-1", 0))), ("session", "s"),
     ("tenant", "t"), ("priority", 1), ("logical_id", "l"), ("attempt", 1),
     ("slo_class", "c"), ("session_final", True), ("deadline_s", 1.0),
     ("parent_session", "p"), ("hangs_up", True), ("patience_s", 3.0)],
)  # fmt: skip
def test_the_hash_tells_plans_apart_by_everything(changed, value):
    """Whatever differs, the traffic was not the same."""
    one, *rest = KIND.at(range(3), 1)
    assert plan_hash([one, *rest]) == plan_hash([replace(one), *rest])
    assert plan_hash([replace(one, **{changed: value}), *rest]) != plan_hash(
        [one, *rest]
    )


def test_a_plan_keeps_its_hash():
    """Logs of earlier versions state it: it is that of one JSON list."""
    drawn = list(KIND.at(range(3), 1))
    for some in (drawn, drawn[:1], []):
        text = json.dumps([astuple(one)[:9] for one in some])
        assert (
            plan_hash(iter(some)) == blake2b(text.encode(), digest_size=8).hexdigest()
        )
