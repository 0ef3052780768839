"""Shares of the work among those who want some."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError
from admitperf.policies.first_of import FirstOf
from admitperf.policies.parts.tenancy.claims import (
    CALLS_MOST,
    CLAIMS_MOST,
    NEAR_S,
    Claims,
)
from admitperf.policies.parts.tenancy.holders import HOLDERS_MOST, LOOKED_AT, Holders
from admitperf.policies.tenant_share import TENANTS_MOST, TenantShare
from admitperf.testing import FakeClock, MemoryLog

BIG = {"input_tokens": 8000, "max_output_tokens": 500}
SMALL = {"input_tokens": 200, "max_output_tokens": 50}


class House:
    """A pool that holds so many, with shares, and calls by name."""

    def __init__(self, slots=4, share="tenant_share"):
        self.clock = FakeClock(start_s=100.0)
        self.log = MemoryLog()
        parts = [share, ("in_flight_cap", {"max_in_flight": slots})]
        self.policy = FirstOf(
            policies=parts, clock=self.clock, log=self.log, reports_outcomes=True
        )
        self.share = self.policy.parts[0]

    def call(self, name, size=BIG, **facts):
        """A call; the tenant is the first letter of its name."""
        told = {"tenant": name[0], "logical_id": name, **size, **facts}
        return self.policy({}, request_id=name, **told)

    def end(self, name, **outcome):
        """It ended, as it was expected to."""
        self.policy.outcome(name, ttft_ms=50.0, **outcome)


def said(*answers):
    """The reasons of answers; None = admitted."""
    return [d.reason for d in answers]


def test_alone_a_tenant_gets_everything():
    """Nobody waits: the share is all there is."""
    house = House(slots=6)
    assert said(*(house.call(f"a{n}") for n in range(6))) == [None] * 6
    assert house.call("a7").reason == "in_flight_cap"


def test_who_is_ahead_leaves_the_room_to_who_is_behind_and_waits():
    """The slot that becomes free is the other's, whoever asks first."""
    house = House()
    for n in range(4):
        house.call(f"a{n}")
    assert house.call("b0", SMALL).reason == "in_flight_cap"
    house.end("a0")
    d = house.call("a4")
    assert (d.reason, str(d.verdict), d.status) == ("tenant_share", "reject", 429)
    assert house.call("b0", SMALL).admitted
    house.end("a1")
    assert house.call("a4").admitted


def test_it_tells_when_the_other_is_given_up():
    """The wait of who is ahead ends when the awaited call should be in, or gone."""
    house = House(slots=1)
    house.call("a0")
    told_s = house.call("b0").retry_after_ms / 1000
    house.end("a0")
    d = house.call("a1")
    assert d.wait == "policy"
    assert d.estimate_ms == pytest.approx(1000 * (told_s + NEAR_S), abs=2)
    house.clock.advance(told_s + NEAR_S - 0.001)
    assert house.call("a2").reason == "tenant_share"
    house.clock.advance(0.002)
    assert house.call("a2").admitted


def test_no_room_is_kept_for_a_call_that_is_to_be_back_much_later():
    """Others use what nobody wants now."""
    house = House(slots=1)
    house.call("a0")
    house.clock.advance(11.0)
    d = house.call("b0")
    assert d.retry_after_ms > 40_000
    house.end("a0")
    assert house.call("a1").admitted
    house.end("a1")
    house.clock.advance(d.retry_after_ms / 1000 - NEAR_S)
    assert house.call("a2").reason == "tenant_share"


def test_it_keeps_as_much_room_as_there_are_calls_that_wait():
    """One call is awaited, two slots are free: one of them is anybody's."""
    house = House(slots=3)
    for n in range(3):
        house.call(f"a{n}")
    house.call("b0")
    house.end("a0")
    assert house.call("a3").reason == "tenant_share"
    house.end("a1")
    assert house.call("a3").admitted
    assert house.call("a4").reason == "tenant_share"


def test_work_is_counted_in_tokens_and_not_in_requests():
    """After one big request thirty-four small ones are the others' due."""
    house = House(slots=1)
    house.call("a0")
    for n in range(34):
        house.call(f"b{n}", SMALL)
    house.end("a0", output_tokens=500)
    for n in range(34):
        assert house.call("a1").reason == "tenant_share"
        assert house.call(f"b{n}", SMALL).admitted
        assert house.call("b99", SMALL).reason == "in_flight_cap"
        house.end(f"b{n}", output_tokens=50)
    assert house.call("b98", SMALL).admitted
    house.end("b98", output_tokens=50)
    house.clock.advance(NEAR_S)
    assert house.call("b97", SMALL).reason == "tenant_share"
    assert house.call("a1").admitted


@pytest.mark.parametrize("weights", ["a=2,b=1", "a=2 b=1", {"a": 2.0, "b": 1.0}])
def test_a_tenant_of_twice_the_weight_gets_twice_the_work(weights):
    """Both always want more: served in the ratio of their weights."""
    house = House(slots=1, share=("tenant_share", {"weights": weights}))
    served = {"a": 0, "b": 0}
    for n in range(90):
        for tenant in "ba":
            d = house.call(f"{tenant}{n}")
            if d.admitted:
                served[tenant] += 1
                house.end(d.request_id, output_tokens=500)
        house.call("a-waits"), house.call("b-waits")
        for name in ("a-waits", "b-waits"):
            if house.policy.ledger.opened.get(name):
                served[name[0]] += 1
                house.end(name, output_tokens=500)
    assert served["a"] / served["b"] == pytest.approx(2.0, rel=0.1)


def test_who_was_away_has_no_claim_from_that_time():
    """A day of work of others is no credit: the two are equals from now on."""
    house = House(slots=1)
    house.call("b0")
    house.end("b0", output_tokens=500)
    for n in range(50):
        house.call(f"a{n}")
        house.end(f"a{n}", output_tokens=500)
    served = []
    for n in range(60, 80):
        for name in (f"b{n}", f"a{n}"):
            if house.call(name).admitted:
                served.append(name[0])
                house.call("b-waits"), house.call("a-waits")
                house.end(name, output_tokens=500)
    assert 0.4 < served.count("b") / len(served) < 0.6


def test_a_refusal_for_a_limit_of_its_own_is_no_claim_on_room():
    """Who is over its own quota does not wait for others to leave."""
    house = House(slots=2)
    house.call("a0")
    told = {"tenant": "b", "logical_id": "b0", **SMALL}
    house.policy.refuse({}, "rate_limit", why="quota", request_id="b0", **told)
    assert house.call("a1").admitted
    house.end("a1")
    house.policy.refuse(
        {}, "in_flight_cap", why="quota", verdict="defer", request_id="b1", **told
    )
    assert house.call("a2").reason == "tenant_share"


def test_who_names_no_tenant_has_no_share():
    """A fact that is missing refuses nobody."""
    house = House(slots=2)
    house.call("a0")
    house.policy({}, request_id="x")
    assert house.policy({}).reason == "in_flight_cap"
    house.policy.outcome("x")
    house.call("b0", SMALL), house.call("b1", SMALL)
    house.end("b0")
    assert house.call("a1").reason == "tenant_share"
    assert house.policy({}).admitted


def test_asking_again_and_again_changes_nothing():
    """A host that holds a request asks as often as it likes: no claim and no work."""
    house = House(slots=1)
    house.call("a0")
    asked = house.policy.ask({}, tenant="b", logical_id="b0", **SMALL)
    before = dict(house.share._had)
    house.clock.advance(30.0)
    for _ in range(20):
        house.policy.ask(
            {}, request_id=asked.request_id, tenant="b", logical_id="b0", **SMALL
        )
    assert house.share._had == before
    assert len(house.share._claims) == 0
    house.policy.answer(asked)
    assert len(house.share._claims) == 1


def test_what_was_never_started_was_not_had():
    """A request that the engine refused is no work."""
    house = House(slots=2)
    house.call("a0")
    assert house.share._had["a"] == 8500
    house.policy.outcome("a0", ok=False, error="upstream_refused")
    assert house.share._had["a"] == 0


def test_the_end_settles_what_was_guessed():
    """By what the engine counted."""
    house = House(slots=2)
    house.call("a0")
    house.end("a0", output_tokens=100, input_tokens=7000)
    assert house.share._had["a"] == 7100
    house.call("a1", {})  # of a prompt that is not known only the answer counts yet
    assert house.share._had["a"] == 7100 + 100
    house.end("a1", output_tokens=200, input_tokens=5000)
    assert house.share._had["a"] == 7100 + 5200


def test_where_nobody_knows_a_size_requests_are_shared():
    """Each counts as one."""
    house = House(slots=3)
    for name in ("a0", "a1"):
        house.call(name, {})
    assert house.share._had["a"] == 2
    house.end("a0")
    assert house.share._had["a"] == 2


def test_a_request_is_as_much_work_here_as_everywhere():
    """The ledger's: its prompt, cached or not, and the answer it should have."""
    house = House(slots=3)
    house.call("a0", BIG, cached_tokens=7900)
    assert house.share._had["a"] == house.policy.ledger.cost_of(
        house.policy.ledger.opened["a0"].request
    )


def test_a_contended_pool_refuses_who_holds_more_than_its_share():
    """With the bound, a queue in the engine is enough: nobody has to be refused."""
    policy = TenantShare(contended_at=4, reports_outcomes=True, clock=FakeClock())
    for n, tenant in enumerate("aaab"):
        d = policy({"queue_depth": 0}, tenant=tenant, request_id=f"{n}", **BIG)
        assert d.admitted
    refused = policy({"queue_depth": 5}, tenant="a", **BIG)
    assert (refused.reason, refused.status) == ("tenant_share", 429)
    assert policy({"queue_depth": 4}, tenant="a", request_id="x", **BIG).admitted
    policy.outcome("x", ok=False)
    assert policy({"queue_depth": 5}, tenant="b", **SMALL).admitted
    assert [g.name for g in refused.gates][-2:] == ["tenant_share", "queue_depth"]


def test_alone_in_a_contended_pool_it_gets_everything():
    """Those who left have no share to keep free."""
    clock = FakeClock()
    policy = TenantShare(contended_at=0, reports_outcomes=True, clock=clock)
    policy({"queue_depth": 0}, tenant="b", request_id="b", **BIG)
    policy.outcome("b", ttft_ms=1.0)
    clock.advance(1.0)
    policy({"queue_depth": 1}, tenant="a", **BIG)
    assert policy({"queue_depth": 9}, tenant="a", **BIG).admitted


def test_every_decision_leaves_its_gates():
    """It tells how far ahead a tenant was also when nobody waits."""
    house = House()
    d = house.call("a0")
    assert [g.name for g in d.gates[:2]] == [
        "tenant_share_ahead_tokens",
        "tenant_share_room",
    ]
    assert not d.gates[0].held


@pytest.mark.parametrize(
    "wrong",
    ["a", "a=0", "a=-1", "a=x", {"a": 0}, {"a": True}, 3, "a=inf", "a=1e-308", "a=1e7"],
)
def test_a_wrong_weight_stops_at_construction(wrong):
    """A share of nothing, or of a word, is no share."""
    with pytest.raises(ConfigError, match="weights"):
        TenantShare(weights=wrong)


def test_a_crowd_of_invented_tenants_costs_little():
    """What is remembered is bounded, of those served and of those refused."""
    house = House(slots=1)
    for n in range(3 * TENANTS_MOST):
        told = {"tenant": f"t{n}", "logical_id": f"c{n}", **SMALL}
        house.policy({}, request_id=f"{n}", **told)
    assert len(house.share._had) <= TENANTS_MOST
    assert len(house.share._claims) <= CLAIMS_MOST
    house.clock.advance(200.0)
    house.policy.outcome("0", ttft_ms=1.0)
    assert house.call("a0").admitted
    assert len(house.share._claims) == 0


@pytest.mark.parametrize("contended_at", [None, 0])
def test_tenants_that_come_and_go_leave_nothing_behind(contended_at):
    """What is kept of each name does not grow with the names there were."""
    policy = TenantShare(
        contended_at=contended_at, reports_outcomes=True, clock=FakeClock()
    )
    for n in range(3 * TENANTS_MOST):
        d = policy({"queue_depth": 0}, tenant=f"t{n}", **SMALL)
        policy.outcome(d.request_id, output_tokens=50)
    assert len(policy._had) == TENANTS_MOST
    assert len(policy._holders) <= LOOKED_AT


def test_who_holds_work_is_looked_at_a_few_at_a_time():
    """No event costs more where many tenants hold work, and the sum stays exact."""
    holders, asked = Holders(), []
    for n in range(5000):
        holders.note(f"t{n}", 0.1 if n % 2 else 3.0)
    holders.look(lambda tenant: asked.append(tenant) or tenant == "t0")
    assert asked == ["t0", "t1", "t2", "t3"]
    assert len(holders) == 4997
    for _ in range(2000):
        holders.look(lambda tenant: tenant == "t0")
    assert (len(holders), holders.weight) == (1, 3.0)
    assert "t0" in holders
    for n in range(HOLDERS_MOST + 10):
        holders.note(f"u{n}", 1.0)
    assert (len(holders), holders.weight) == (HOLDERS_MOST, HOLDERS_MOST)


def test_who_does_not_wait_as_told_drives_nobody_out():
    """Thousands of tries at one call are one claim, and others keep theirs."""
    house = House(slots=1)
    house.call("a0")
    house.call("b0", SMALL)
    for _ in range(3 * CLAIMS_MOST):
        house.call("a1")
    assert len(house.share._claims) == 2
    assert len(house.share._claims._far) <= 2
    house.call("b0", SMALL)
    house.end("a0")
    assert house.call("a1").reason == "tenant_share"
    assert house.call("b0", SMALL).admitted


def test_a_tenant_of_many_calls_takes_no_place_from_one_of_few():
    """Each has so many claims; past all of them who has most gives one up."""
    claims = Claims()
    for n in range(CLAIMS_MOST):
        claims.refused(f"t{n % 5}", f"c{n}", 10**10)
    assert len(claims) == 5 * CALLS_MOST
    for n in range(CLAIMS_MOST):
        claims.refused(f"u{n % 5}", f"c{n}", 10**10)
    assert len(claims) == CLAIMS_MOST
    for n in range(5):
        claims.refused("late", f"c{n}", 10**10)
    assert len(claims) == CLAIMS_MOST
    claims.look(10**10)
    calls = {tenant: count for tenant, count, _ in claims.near(10**10)}
    assert calls["late"] == 5
    assert min(calls[f"t{n}"] for n in range(5)) == CALLS_MOST - 1


def test_a_claim_that_is_there_is_never_lost_for_want_of_a_place():
    """Who is refused again is noted anew, also where there is no place left."""
    claims = Claims()
    for n in range(CLAIMS_MOST):
        claims.refused(f"t{n}", "c", 10**10)
    claims.refused("t0", "c", 2 * 10**10)
    claims.refused("late", "c", 2 * 10**10)
    claims.look(2 * 10**10)
    assert [one[0] for one in claims.near(2 * 10**10)] == ["t0"]


@pytest.mark.parametrize("call", ["", None])
def test_calls_without_a_name_claim_once_and_not_for_ever(call):
    """An empty name is none: the claim is given up as others are."""
    claims = Claims()
    for n in range(CLAIMS_MOST):
        claims.refused(f"t{n}", call, 10**10)
    claims.refused("t0", None, 10**10)
    assert len(claims) == CLAIMS_MOST
    claims.served("t1", call)
    claims.look(10**10)
    assert claims.awaits("t0")
    assert not claims.awaits("t1")
    claims.look(2 * 10**10)
    assert len(claims) == len(claims._far) == len(claims._near) == 0


def test_who_never_comes_back_keeps_no_engine_idle():
    """With nothing open for a second, one slot is anybody's."""
    house = House(slots=8)
    for n in range(8):
        house.call(f"a{n}")
    for n in range(8):
        house.call(f"b{n}", SMALL)
    for n in range(8):
        house.end(f"a{n}")
    assert house.call("a8").reason == "tenant_share"
    house.clock.advance(1.0)
    assert house.call("a8").admitted
    assert house.call("a9").reason == "tenant_share"
    house.end("a8")
    assert house.call("a9").admitted
    assert house.call("b0", SMALL).admitted


def test_the_least_weight_leaves_numbers_that_add_up():
    """Whatever the weights, some tenant is ahead of another."""
    house = House(slots=1, share="tenant_share:weights=(a=1e-6,b=1e6)")
    for _ in range(3):
        house.call("a0", {"input_tokens": 2**53})
        house.call("b0", SMALL)
        house.end("a0", input_tokens=2**53, output_tokens=2**53)
        assert house.call("a1").reason == "tenant_share"
        house.call("b0", SMALL)
        house.end("b0")
        house.clock.advance(60.0)
    assert max(house.share._had.values()) < 1e24


CLAIM_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["refused", "served", "look"]),
        st.sampled_from("abc"),
        st.sampled_from(["", None, "x", "y"]),
        st.integers(0, 12),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=100)
@given(steps=CLAIM_STEPS)
def test_claims_are_what_was_refused_last_and_not_served(steps):
    """In any order: each call is awaited about the time that it was told last."""
    claims, told, now_s = Claims(), {}, 0
    for what, tenant, call, seconds in steps:
        key = tenant, call or ""
        if what == "refused":
            claims.refused(tenant, call, (now_s + seconds) * 10**9)
            told[key] = now_s + seconds
        elif what == "served":
            claims.served(tenant, call)
            told.pop(key, None)
        else:
            now_s += seconds
            claims.look(now_s * 10**9)
            told = {one: at for one, at in told.items() if at + NEAR_S > now_s}
        assert len(claims) == len(told)
        near = {tenant: count for tenant, count, _ in claims.near(now_s * 10**9)}
        due = [one for one, at in told.items() if at - NEAR_S <= now_s]
        assert near == {name: sum(o[0] == name for o in due) for name, _ in due}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["call", "end", "fail", "ask", "wait"]),
        st.sampled_from("abc"),
        st.integers(0, 5),
    ),
    max_size=80,
)


def step(house, what, tenant, number):
    """One thing that happens."""
    name, opened = f"{tenant}{number}", house.policy.ledger.opened
    if what == "wait":
        house.clock.advance(number / 2)
    elif what == "ask":
        house.policy.ask({}, tenant=tenant, logical_id=name, **SMALL)
    elif what == "call" and name not in opened:
        house.call(name, SMALL if number % 2 else BIG)
    elif what in ("end", "fail") and name in opened:
        house.policy.outcome(name, ok=what == "end", output_tokens=number)


def would_admit(house, tenant):
    """Whether the shares would let this one in now."""
    house.policy._gates.clear()
    metrics = house.policy._look({}, {"tenant": tenant, **SMALL})
    return house.share.decide(metrics).reason is None


@settings(deadline=None, max_examples=100)
@given(steps=STEPS)
def test_somebody_is_always_let_in_and_nothing_leaks(steps):
    """In any order: the shares never refuse everybody, and all ends at zero."""
    house = House(slots=2)
    for one in steps:
        step(house, *one)
        assert house.policy.ledger.in_flight <= 2
        assert any(would_admit(house, tenant) for tenant in "abc")
    for key in list(house.policy.ledger.opened):
        house.policy.outcome(key, ok=True)
    for tenant in "abc":
        assert house.policy.ledger.charges(("tenant_share", tenant)) == 0
