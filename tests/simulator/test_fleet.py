"""Several engines: who gets a request, and one order of what happens."""

import math
from itertools import pairwise

import pytest
from tests.simulator.small import arrival, events, model

from admitperf.simulator import End, FirstToken, Fleet, Refused
from admitperf.simulator.engine.events import Gone


def sent(fleet, *arrivals):
    """Which engine each of them is in, all at once."""
    for one in arrivals:
        assert fleet.submit(one)
    return [place(fleet, one.id) for one in arrivals]


def place(fleet, request_id):
    """The engine it is in."""
    (found,) = (n for n, one in enumerate(fleet.engines) if request_id in one._inside)
    return found


def test_by_default_the_one_with_the_fewest_requests_gets_the_next():
    """Those that wait count; among equals the first."""
    fleet = Fleet(model(), replicas=3)
    long = arrival(0, output_tokens=100)
    assert sent(fleet, long, arrival(1), arrival(2)) == [0, 1, 2]
    list(fleet.run_to(0.5))  # r1 and r2 are over
    assert sent(fleet, arrival(3), arrival(4), arrival(5), arrival(6)) == [1, 2, 0, 1]


def test_in_turns_it_does_not_matter_how_busy_they_are():
    """One after the other."""
    fleet = Fleet(model(), replicas=3, routing="turns")
    sizes = (100, 1, 1, 100, 1, 1, 100)
    some = [arrival(n, output_tokens=size) for n, size in enumerate(sizes)]
    assert sent(fleet, *some) == [0, 1, 2, 0, 1, 2, 0]


def test_a_session_stays_where_it_is_and_sessions_are_spread():
    """By its name alone, so that its prefix is there; without one, the least busy."""
    fleet = Fleet(model(), replicas=3, routing="session")
    some = [arrival(n, session=f"s{n % 60}") for n in range(120)]
    places = sent(fleet, *some)
    assert places[:60] == places[60:]
    assert all(places.count(engine) > 20 for engine in range(3))
    least = min(range(3), key=places.count)
    assert sent(fleet, arrival("x")) == [least]


@pytest.mark.parametrize("routing", ["least", "turns", "session"])
def test_what_happens_is_told_in_order_of_time_and_once(routing):
    """As much as one engine would tell, but over with sooner."""
    plan = [arrival(n, at_s=0.03 * n, session=f"s{n}") for n in range(60)]
    fleet = Fleet(model(noise=0.1), replicas=3, routing=routing, seed=1)
    happened = events(fleet, plan)
    assert all(a.at_s <= b.at_s for a, b in pairwise(happened))
    for kind in (FirstToken, End):
        ids = [e.arrival.id for e in happened if isinstance(e, kind)]
        assert sorted(ids) == sorted(one.id for one in plan)
    alone = events(Fleet(model()), plan)
    assert happened[-1].at_s < alone[-1].at_s / 2


def test_one_engine_is_that_engine():
    """Whatever routes to it."""
    plan = [arrival(n, at_s=0.07 * n) for n in range(9)]
    times = [
        [e.at_s for e in events(Fleet(model(), routing=routing), plan)]
        for routing in ("least", "turns", "session")
    ]
    assert times[0] == times[1] == times[2]


def test_each_engine_has_noise_of_its_own():
    """The same request in both takes other times."""
    fleet = Fleet(model(noise=0.2), replicas=2, seed=7)
    ends = [e for e in events(fleet, [arrival(1), arrival(2)]) if isinstance(e, End)]
    assert ends[0].e2e_ms != pytest.approx(ends[1].e2e_ms)


def test_who_leaves_leaves_the_engine_it_is_in():
    """At the end of its step, 110 ms; the other has its answer."""
    fleet = Fleet(model(), replicas=2)
    sent(fleet, arrival(1), arrival(2))
    list(fleet.run_to(0.05))
    assert fleet.cancel("r1") == Gone(0, None, 0)
    assert fleet.cancel("unknown") is None
    happened = list(fleet.run_to(math.inf))
    assert [e.arrival.id for e in happened] == ["r2", "r2"]
    assert [engine.inside for engine in fleet.engines] == [0, 0]


def test_a_refusal_is_that_of_the_engine_it_was_sent_to():
    """In turns the third meets a full one; the other has room when it is over."""
    fleet = Fleet(model(max_num_queued_reqs=1), replicas=2, routing="turns")
    fleet.submit(arrival(1, output_tokens=100))
    fleet.submit(arrival(2))
    list(fleet.run_to(0.5))
    assert not fleet.submit(arrival(3))
    assert fleet.submit(arrival(4))
    assert not any(isinstance(e, Refused) for e in fleet.run_to(math.inf))


def test_time_goes_on_everywhere():
    """Also where nothing happens."""
    fleet = Fleet(model(), replicas=2)
    fleet.submit(arrival(1))
    assert fleet.ahead_s == 0.0
    list(fleet.run_to(0.15))
    assert {engine.now_s for engine in fleet.engines} == {fleet.now_s} == {0.15}
    assert fleet.ahead_s == pytest.approx(0.21)
    list(fleet.run_to(math.inf))
    assert fleet.ahead_s == math.inf


def test_no_two_engines_of_neighbouring_runs_share_their_noise():
    """Seeds 1 and 2 are two runs, not one run moved by a replica."""
    noisy = model(noise=0.3)
    ends = [
        tuple(_times(engine))
        for seed in (1, 2)
        for engine in Fleet(noisy, 3, seed=seed).engines
    ]
    assert len(set(ends)) == 6


def _times(engine):
    engine.submit(arrival(1, output_tokens=40))
    return [event.at_s for event in engine.run_to(math.inf)]
