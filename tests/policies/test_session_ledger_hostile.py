"""What callers and hosts can do to the ledger, and what it makes of it."""

import pytest
from tests.policies.test_session_ledger import (
    LEASE,
    NO_ROOM,
    STEADY,
    Host,
    full,
    gates,
    names,
    said,
)

from admitperf.policies.parts.ledger.books import SHARED_WEIGHT
from admitperf.policies.session_ledger import WANTED_WAITS

CACHED = {"cached_tokens": 900}


def test_a_session_that_comes_back_tells_nothing_of_what_all_prompts_share():
    """Its cache is its own: else everybody's context would seem to be held already."""
    host = Host(1_000_000)
    for name in names(20):
        host.turn(name, told={"cached_tokens": 0})
    host.passes(LEASE + 1)
    for name in names(20):
        host.turn(name, told=CACHED)
    assert host.books.shared == 0.0


def test_one_tenants_long_prompt_is_not_what_all_tenants_share():
    """It counts for as much as the tenant shares that shares least."""
    host = Host(100_000_000)
    for name in names(30):
        host.turn(name, 100_000, tenant="a", told={"cached_tokens": 99_000})
    assert host.books.shared > 90_000
    host.turn("other", tenant="b", told=CACHED)
    assert host.books.shared == pytest.approx(900 * SHARED_WEIGHT)


def test_no_more_is_shared_than_a_prompt_has():
    """An engine may count wrongly; nobody pays for it."""
    host = Host(1_000_000)
    for name in names(40):
        host.turn(name, 1_000, told={"cached_tokens": 1 << 53})
    assert host.books.shared <= 1_000


@pytest.mark.parametrize("every_s", [1, 4, 9])
def test_tasks_that_end_all_the_time_keep_no_silent_one_alive(every_s):
    """Ends have a lane of their own; leases run out behind them."""
    host = Host(10_000_000)
    host.turn("tools", told={"finish_reason": "tool_calls"})
    host.tasks(*names(5, "silent"))
    for number in range(300 // every_s):
        host.turn(f"t{number}", told={"finish_reason": "stop"})
        host.passes(every_s)
    assert not any(name.startswith("silent") for name in host.live)
    assert len(host.live) <= 1 + 10 // every_s + 1


def test_a_prompt_that_never_fits_is_refused_to_a_live_task_too():
    """And is charged to nobody: it cannot be served whatever is promised."""
    host = Host(30_000)
    host.turn("s")
    before = host.needed[0]
    assert host.call("s", 2_000_000).reason == "too_large"
    assert host.needed[0] == pytest.approx(before, abs=1)


def test_in_the_shadow_nothing_is_learnt_of_calls_that_were_refused():
    """They were served all the same; how long since they were met is no time."""
    host = full(enforce=0.0, patience=100.0)
    learnt = len(host.books.history(host.request()).service_s)
    opened = [host.call(name) for name in names(12, "new")]
    assert all(d.reason == "kv_headroom" and d.admitted for d in opened)
    host.passes(50.0)
    for d in opened:
        host.end(d)
    assert len(host.books.history(host.request()).service_s) == learnt


def test_requests_without_a_session_take_slots():
    """While they are open; and give them back."""
    host = Host(1_000_000, slots=4, **STEADY)
    host.tasks("s")
    opened = [d for d in (host.call(None, 10) for _ in range(20)) if d.admitted]
    assert 1 <= len(opened) <= 4
    for d in opened:
        host.end(d)
    assert host.call(None, 10).admitted


def test_a_tenant_within_its_share_loses_no_task_to_another_ones_newcomer():
    """Memory is taken from who has more than it may have."""
    host = Host(40_000, mode="shed", quantum=1, elephant_share=0.0, margin=0.0)
    host.tasks(*names(3, "a"), tenant="a")
    host.tasks("b0", tenant="b")
    host.call("a9", 5_000, tenant="a")
    assert not host.policy._elephants.leaves(host.books.task(host.request("b0")))


def test_a_tenant_with_no_task_has_a_share_while_it_wants_one():
    """Else who has everything would never be over its share."""
    host = Host(30_000, longest_wait_s=10.0)
    host.tasks(*names(3, "a"), tenant="a")
    assert said(host.call("b0", tenant="b")) == NO_ROOM
    assert host.call("a9", tenant="a").reason == "tenant_share"
    assert gates(host)["tenant_kv"][1] == pytest.approx(15_000)
    host.passes(WANTED_WAITS * 10.0 + 1.0)
    host.tasks("a0", tenant="a")
    host.call("a8", tenant="a")
    assert "tenant_kv" not in gates(host)


def test_a_newcomer_is_compared_with_what_is_short_and_with_nothing_else():
    """A comparison that speaks for it is no gate."""
    host = full(slots=4)
    assert said(host.call("new")) == NO_ROOM
    assert set(gates(host)) == {"ledger_kv", "ledger_slots", "task_wait_s"}
