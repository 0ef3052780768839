"""Endpoints read in rounds."""

import threading

import pytest
from tests.scrape.server import http

from admitperf.core.clock import SYSTEM
from admitperf.scrape.address import Address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.target import Endpoint
from admitperf.scrape.watch import Watcher, names_of, usable

PAGE = b"vllm:num_requests_waiting 3\nvllm:kv_cache_usage_perc 0.5\n"


def endpoint(url, timeout_s=2.0):
    """What reads an address."""
    return Endpoint(Address.of(url), timeout_s=timeout_s)


def watcher(*servers, interval_s=0.1, **options):
    """A watcher of servers."""
    return Watcher([endpoint(one.url, **options) for one in servers], interval_s)


def counting(bodies):
    """An answer that says how often it was asked: the bodies, then the last again."""
    left = list(bodies)

    def answer(_):
        body = left.pop(0) if len(left) > 1 else left[0]
        return body if body.startswith(b"HTTP") else http(body)

    return answer


def slow(gate):
    """An answer that comes when the gate opens."""

    def answer(_):
        gate.wait(5)
        yield http(PAGE)

    return answer


def test_every_round_holds_every_replicas_page(serve):
    """Several endpoints, each under its host and port."""
    one, two = serve(http(PAGE)), serve(http(PAGE))
    found = list(watcher(one, two).rounds(3))
    assert [made.number for made in found] == [0, 1, 2]
    names = {f"127.0.0.1:{one.port}", f"127.0.0.1:{two.port}"}
    assert all(set(made.pages) == names for made in found)
    assert all(not made.failed and not made.skipped for made in found)


def test_rounds_stay_on_their_times(serve):
    """Each is due at the start plus its number of intervals: no drift from the work."""
    server = serve(http(PAGE))
    asked = []
    for made in watcher(server, interval_s=0.2).rounds(6):
        asked.append((made.number, made.taken_ns))
        threading.Event().wait(0.12)
    (_, began_ns), *later = asked
    late_s = [(at_ns - began_ns) / 1e9 - number * 0.2 for number, at_ns in later]
    # Late is possible on a busy machine, early is not. Lateness does not add up: a
    # schedule that begins anew after each round would be 0.12 s later every time.
    assert min(late_s) > -0.05
    assert min(late_s[-2:]) < 0.3


def test_a_consumer_that_is_late_misses_rounds_and_they_are_counted(serve):
    """What went by is not made up for in a burst."""
    rounds = watcher(serve(http(PAGE)), interval_s=0.05).rounds(40)
    first = next(rounds)
    threading.Event().wait(0.32)
    second = next(rounds)
    assert first.missed == 0
    assert second.missed >= 5
    assert second.number == second.missed + 1


def test_a_slow_endpoint_is_skipped_and_does_not_hold_up_the_others(serve):
    """It is asked again when it has answered; nobody waits for it."""
    gate = threading.Event()
    fast, late = serve(http(PAGE)), serve(slow(gate))
    found = []
    for made in watcher(fast, late).rounds(4):
        found.append(made)
        if made.number == 2:
            gate.set()
    assert [set(made.pages) for made in found[:3]] == [{f"127.0.0.1:{fast.port}"}] * 3
    assert found[0].skipped == ()
    assert found[1].skipped == found[2].skipped == (late.url,)
    assert all(made.failed == () for made in found)
    assert len(late.requests) <= 2


def test_a_busy_endpoints_last_page_counts_while_it_is_young(serve):
    """Its queue is not taken for gone because one scrape takes long."""
    gate, answers = threading.Event(), []

    def answer(_):
        answers.append(1)
        if len(answers) > 1:
            gate.wait(5)
        yield http(PAGE)

    fast, late = serve(http(PAGE)), serve(answer)
    found = list(watcher(fast, late).rounds(3))
    gate.set()
    assert [len(made.pages) for made in found] == [2, 2, 2]
    assert found[2].skipped == (late.url,)
    assert found[2].taken_ns == found[0].pages[f"127.0.0.1:{late.port}"].asked_ns


def test_a_failed_scrape_is_a_fault_and_no_page(serve):
    """The page it had before says nothing about an engine that is gone."""
    one = serve(http(PAGE))
    two = serve(counting([PAGE, http(status="500 Oops"), PAGE]))
    found = list(watcher(one, two).rounds(3))
    assert [len(made.pages) for made in found] == [2, 1, 2]
    assert [fault.kind for made in found for fault in made.failed] == ["status"]
    assert found[1].failed[0].target == two.url


def test_a_server_that_dies_and_returns(serve):
    """Refused while it is away, read again once it is back."""
    one = serve(http(PAGE))
    rounds = watcher(one, interval_s=0.05).rounds(400)
    assert next(rounds).pages
    one.close()
    gone = next(made for made in rounds if made.failed)
    assert (gone.failed[0].kind, gone.pages) == ("refused", {})
    serve(http(PAGE), port=one.port)
    assert next(made for made in rounds if made.pages)


def test_all_endpoints_failing_leaves_no_page(serve):
    """A round without an answer is no sample of an idle engine."""
    found = list(watcher(serve(http(b"")), serve(http(status="404 No"))).rounds(1))
    assert found[0].pages == {}
    assert sorted(fault.kind for fault in found[0].failed) == ["empty", "not_found"]


def test_the_first_reading_waits_for_every_answer(serve):
    """Before the watch begins nobody is in a hurry: who answers late is not lost."""
    gate = threading.Event()
    threading.Timer(0.4, gate.set).start()
    found = watcher(serve(slow(gate)), interval_s=0.05).first()
    assert len(found.pages) == 1


def test_stop_ends_a_wait_at_once(serve):
    """Neither the next round nor a slow answer is waited for."""
    gate = threading.Event()
    watching = watcher(serve(slow(gate)), interval_s=60)
    began_ns = SYSTEM.monotonic_ns()
    threading.Timer(0.2, watching.stop).start()
    assert list(watching.rounds(10)) == []
    assert SYSTEM.monotonic_ns() - began_ns < 4e9
    gate.set()
    assert watching.first() is None


def test_a_page_that_ends_too_early_is_a_failed_scrape(serve):
    """What is missing on it may be an engine."""
    server = serve(http(PAGE + b"vllm:num_requests_run"))
    with pytest.raises(ScrapeError) as caught:
        usable(endpoint(server.url), 3.0)
    assert caught.value.kind == "cut"


def test_a_page_of_no_known_engine_is_a_failed_scrape(serve):
    """Numbers of something else are no idle engine."""
    with pytest.raises(ScrapeError) as caught:
        usable(endpoint(serve(http(b"python_info 1\n")).url), 3.0)
    assert caught.value.kind == "no_known_series"


def test_samples_that_say_they_are_old_are_left_out(serve):
    """A federating proxy that kept a page for an hour is not the engine."""
    old = b"vllm:num_requests_waiting 3 1000000000000\n"
    with pytest.raises(ScrapeError) as caught:
        usable(endpoint(serve(http(old)).url), 3.0)
    assert caught.value.kind == "stale"
    both = usable(endpoint(serve(http(old + b"vllm:kv_cache_usage_perc 1\n")).url), 3.0)
    assert list(both.page) == ["vllm:kv_cache_usage_perc"]


def test_a_scrape_that_fails_in_a_new_way_is_a_failed_scrape(serve, monkeypatch):
    """Whatever a page does to us, the endpoint is asked again."""
    monkeypatch.setattr("admitperf.scrape.target.read_page", lambda *_: 1 / 0)
    (made,) = watcher(serve(http(PAGE))).rounds(1)
    assert "ZeroDivisionError" in str(made.failed[0])


def test_names_tell_replicas_apart():
    """Host and port; with the path where two share them, and a number if need be."""
    urls = ["a:1", "b:1", "http://c:1/x/metrics", "http://c:1/y/metrics"]
    queries = ["http://d:1/m?k=1", "http://d:1/m?k=2"]
    assert names_of([endpoint(url) for url in urls]) == [
        "a:1", "b:1", "c:1/x/metrics", "c:1/y/metrics"
    ]  # fmt: skip
    names = names_of([endpoint(url) for url in queries])
    assert len(set(names)) == 2
    assert "k=" not in "".join(names)


def test_an_endpoint_named_twice_is_refused():
    """It would count twice in every sum."""
    with pytest.raises(ScrapeError, match="given twice"):
        names_of([endpoint("a:1"), endpoint("http://a:1/metrics")])
