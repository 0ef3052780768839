"""What a policy knows of the engine is what was seen at the last look, late."""

import pytest
from tests.simulator.small import arrival, model

from admitperf.simulator import Fleet, Scraping
from admitperf.simulator.scraper import Scraper


def scraper(fleet=None, seed=1, **how):
    """A scraper of an engine that idles."""
    return Scraper(fleet or Fleet(model()), Scraping(**how), seed)


def came_s(made):
    """When a look can first be used, after it was taken; to 1 ms."""
    taken_s = made.next_s
    made.look(round(taken_s * 1e9))
    at_s = taken_s
    while made.newest(at_s).taken_ns != round(taken_s * 1e9):
        at_s += 0.001
    return at_s - taken_s


def test_nothing_is_known_before_the_first_look_has_come():
    """An empty reading, from which every signal reads None."""
    made = scraper(delay_s=0.5, spread_s=0.0)
    made.look(0)
    assert dict(made.newest(0.499).raw) == {}
    assert dict(made.newest(0.5).raw) != {}


def test_a_reading_is_as_old_as_the_look():
    """The delay makes it older, not younger."""
    made = scraper(interval_s=2.0, delay_s=0.3, spread_s=0.0)
    for _ in range(2):
        made.look(round(made.next_s * 1e9))
    assert made.newest(2.29).taken_ns == 0
    assert made.newest(2.3).taken_ns == 2_000_000_000
    assert made.newest(9.0).interval_s == 2.0


def test_what_happens_between_two_looks_is_not_seen():
    """The page is a copy of that moment."""
    fleet = Fleet(model())
    made = scraper(fleet, delay_s=0.0, spread_s=0.0)
    made.look(0)
    fleet.submit(arrival(1))
    list(fleet.run_to(0.0))
    list(fleet.run_to(fleet.engines[0].next_s))
    assert made.newest(0.5).raw["vllm:num_requests_running"] == 0
    made.look(1_000_000_000)
    assert made.newest(1.0).raw["vllm:num_requests_running"] == 1


def test_looks_keep_to_their_schedule_whatever_an_answer_took():
    """A late answer does not push the next look back."""
    made = scraper(interval_s=0.25)
    for _ in range(40):
        made.look(round(made.next_s * 1e9))
    assert made.next_s == pytest.approx(10.0)


def test_no_answer_overtakes_the_one_before():
    """Looks 1 ms apart, delays of 30 ms and more: readings come in their order."""
    made = scraper(interval_s=0.001, delay_s=0.0, spread_s=0.03)
    for _ in range(200):
        made.look(round(made.next_s * 1e9))
    taken = [made.newest(n / 1000).taken_ns for n in range(400)]
    assert taken == sorted(taken)
    assert taken[-1] == 199_000_000


def test_answers_are_slow_now_and_then_when_the_engine_has_a_queue():
    """As it was recorded: an idle engine answers at once, a full one not always."""
    fleet = Fleet(model(max_num_seqs=1), replicas=2)
    for n in range(4):
        fleet.submit(arrival(n))
    list(fleet.run_to(0.0))
    idle = [came_s(made) for made in [scraper()] for _ in range(200)]
    busy = [came_s(made) for made in [scraper(fleet)] for _ in range(200)]
    assert max(idle) < 0.1
    assert 0.1 < max(busy) < 0.6
    assert sum(a != b for a, b in zip(idle, busy, strict=True)) < 20


def test_one_look_takes_the_pages_of_all_engines():
    """One reading, in which they are told apart."""
    made = scraper(Fleet(model(), replicas=3), delay_s=0.0, spread_s=0.0)
    made.look(0)
    names = made.newest(0.0).raw
    assert sum(name.startswith("vllm:num_requests_waiting") for name in names) == 3
