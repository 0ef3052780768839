"""No outcomes means no ledger, never a full one."""

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
)
from hypothesis.stateful import rule as step
from tests.core.rules import admits, rule, sees

from admitperf.core.signals import (
    IN_FLIGHT,
    OLDEST_WAIT_S,
    SESSION_IN_FLIGHT,
    TENANT_IN_FLIGHT,
    TENANT_SHARE,
)
from admitperf.policies.in_flight_cap import InFlightCap
from admitperf.testing import FakeClock

LEASE_S = 900.0
COUNTS = (IN_FLIGHT, TENANT_IN_FLIGHT, SESSION_IN_FLIGHT, TENANT_SHARE, OLDEST_WAIT_S)
UNKNOWN = dict.fromkeys(signal.name for signal in COUNTS)
NAMED = {"tenant": "t", "session": "s"}


@pytest.fixture
def seen():
    """What the ledger's signals read, decision by decision."""
    return []


@pytest.fixture
def watched(seen, clock):
    """Makes a policy that notes the ledger's signals and starts everything."""
    return lambda **given: rule(sees(seen, *COUNTS), clock=clock, **given)


def test_without_outcomes_the_ledgers_signals_are_unknown(watched, seen):
    """A host that never reports an end has no ledger, however many it starts."""
    policy = watched()
    for _ in range(50):
        policy({}, **NAMED)
    assert all(values == UNKNOWN for values in seen)


def test_the_first_outcome_makes_them_known(watched, seen):
    """From then on the counts are those of what is really open."""
    policy = watched()
    for n in range(3):
        policy({}, request_id=str(n), **NAMED)
    policy.first_token("1")
    policy.outcome("1")
    policy({}, **NAMED)
    assert seen[2] == UNKNOWN
    assert seen[3]["in_flight"] == 2.0
    assert seen[3]["tenant_in_flight"] == 2.0
    assert seen[3]["session_in_flight"] == 2.0
    assert None not in (seen[3]["tenant_share"], seen[3]["oldest_wait_s"])


def test_an_outcome_of_nobody_does_not_make_them_known(watched, seen):
    """An end that belongs to no request says nothing about those that are open."""
    policy = watched()
    policy({}, **NAMED)
    policy.outcome("nobody")
    policy({}, **NAMED)
    assert seen[1] == UNKNOWN


def test_the_hosts_word_makes_them_known_at_once(watched, seen):
    """With `reports_outcomes=True` nothing open is a true zero."""
    policy = watched(reports_outcomes=True)
    policy({}, **NAMED)
    assert seen[0]["in_flight"] == 0.0
    assert seen[0]["session_in_flight"] == 0.0
    assert seen[0]["oldest_wait_s"] == 0.0


def test_a_request_outlives_its_lease_after_900_seconds(watched, seen, clock):
    """It counts up to its last second, and no longer."""
    policy = watched(reports_outcomes=True)
    policy({}, request_id="leak", **NAMED)
    clock.advance(LEASE_S - 1)
    for n in range(3):
        policy({}, request_id=str(n), **NAMED)
    clock.advance(1)
    policy({}, request_id="3", **NAMED)
    assert seen[-1]["in_flight"] == 4.0
    clock.advance(1)
    policy({}, request_id="4", **NAMED)
    assert seen[-1]["in_flight"] == 4.0
    assert seen[-1]["tenant_in_flight"] == 4.0
    assert seen[-1]["session_in_flight"] == 4.0


def test_any_sign_of_life_renews_a_lease(watched, seen, clock):
    """Every call of `first_token` buys another 900 s."""
    policy = watched(reports_outcomes=True)
    policy({}, request_id="long", **NAMED)
    for _ in range(5):
        clock.advance(LEASE_S - 1)
        policy.first_token("long")
    policy({}, **NAMED)
    assert seen[-1]["in_flight"] == 1.0


def test_a_sign_of_life_after_the_lease_brings_a_request_back(watched, seen, clock):
    """A renewal that is late is a renewal: the request is open, and can end."""
    policy = watched(reports_outcomes=True)
    policy({}, request_id="late", **NAMED)
    clock.advance(LEASE_S + 10)
    policy({}, request_id="x", **NAMED)
    policy.first_token("late")
    policy({}, request_id="y", **NAMED)
    assert seen[-1]["in_flight"] == 2.0
    assert seen[-1]["tenant_in_flight"] == 2.0
    policy.outcome("late")
    assert policy.ledger.in_flight == 2
    assert policy.ledger.expired_total == 1


def test_an_end_after_the_lease_is_an_end(watched, clock, log):
    """The outcome of a request that ran 1,000 s silently still joins its decision."""
    policy = watched(reports_outcomes=True, log=log)
    d = policy({}, request_id="late")
    clock.advance(1000.0)
    policy({}, request_id="x")
    policy.outcome("late", ttft_ms=7)
    (line,) = log.outcomes
    assert (line["of"], line["ttft_ms"]) == (d.seq, 7)
    assert policy.ledger.in_flight == 1


def test_half_past_their_lease_is_still_known_and_more_than_half_is_not(
    watched, seen, clock
):
    """Over half of what is open silent for 900 s: these counts mean nothing."""
    policy = watched(reports_outcomes=True)
    for n in range(3):
        policy({}, request_id=f"old{n}", **NAMED)
    clock.advance(LEASE_S - 10)
    for n in range(3):
        policy({}, request_id=f"new{n}", **NAMED)
    clock.advance(11)
    policy({}, request_id="probe", **NAMED)
    assert seen[-1]["in_flight"] == 3.0
    policy.outcome("new0")
    policy.outcome("new1")
    policy({}, **NAMED)
    assert seen[-1] == UNKNOWN


def test_a_new_outcome_makes_them_known_again(watched, seen, clock):
    """A host that is heard again is believed again."""
    policy = watched(reports_outcomes=True)
    policy({}, request_id="leak", **NAMED)
    clock.advance(LEASE_S + 1)
    policy({}, request_id="a", **NAMED)
    policy({}, request_id="b", **NAMED)
    assert seen[-1] == UNKNOWN
    policy.outcome("a")
    policy({}, request_id="c", **NAMED)
    assert seen[-1]["in_flight"] == 1.0


@pytest.mark.parametrize("growth", [1.0, 1.2])
def test_a_host_that_falls_silent_is_not_believed_for_ever(
    growth, watched, seen, clock
):
    """One outcome and then none for hours: unknown, never a pool that looks full."""
    policy = watched()
    policy({}, request_id="only", **NAMED)
    policy.outcome("only")
    pause = 5.0
    for n in range(4_000):
        policy({}, **NAMED)
        clock.advance(pause)
        if n % 500 == 499:
            pause /= growth
    assert seen[10]["in_flight"] is not None
    assert all(values == UNKNOWN for values in seen[-1_000:])


@pytest.mark.parametrize("cap", [1, 10, 200])
def test_a_pool_filled_by_leaks_recovers_although_everything_is_refused(cap, clock):
    """Leases run out while nobody is let in: the front door opens again by itself."""
    policy = InFlightCap(max_in_flight=cap, clock=clock, reports_outcomes=True)
    for n in range(cap):
        assert policy({}, request_id=f"leak{n}").admitted
    answers = []
    for _ in range(100):
        answers.append(policy({}).admitted)
        clock.advance(10.0)
    assert 88 <= answers.index(True) <= 92


def test_200_000_opens_without_outcomes_stay_bounded(clock):
    """A host that never reports keeps a bounded table, whatever names it invents."""
    policy = rule(admits, clock=clock)
    for n in range(200_000):
        policy({}, request_id=f"r{n}", session=f"s{n}", tenant=f"t{n % 1000}")
    ledger = policy.ledger
    assert ledger.in_flight <= 100_000
    assert len(ledger._expired) <= 100_000
    assert len(ledger._sessions) <= 100_000
    assert len(ledger._waiting) <= 2 * 100_000 + 2048
    assert sum(held[0] for held in ledger._tenants.values()) == ledger.in_flight


def test_refusals_without_end_stay_bounded(clock):
    """So does one that refuses for ever."""
    policy = InFlightCap(max_in_flight=1, clock=clock, reports_outcomes=True)
    policy({})
    for n in range(30_000):
        policy({}, request_id=f"r{n}")
    assert len(policy.ledger._refused) <= 10_000


def test_leases_that_run_out_together_are_worked_off_in_small_parts(clock):
    """20,000 leaks do not stop one request for all of them, and soon all are gone."""
    policy = rule(admits, clock=clock, reports_outcomes=True)
    for n in range(20_000):
        policy({}, request_id=f"leak{n}")
    clock.advance(LEASE_S + 1)
    left = []
    for _ in range(50):
        policy.outcome(policy({}).request_id)
        left.append(policy.ledger.in_flight)
    steps = [before - after for before, after in itertools.pairwise([20_000, *left])]
    assert left[-1] == 0
    assert max(steps) <= 2_000


# The oldest wait.


def test_the_oldest_wait_is_that_of_the_longest_waiting(watched, seen, clock):
    """It grows with time and falls when the oldest has its first token."""
    policy = watched(reports_outcomes=True)
    for n in range(3):
        policy({}, request_id=str(n))
        clock.advance(1.0)
    policy({})
    policy.first_token("1")
    policy({})
    policy.first_token("0")
    policy({})
    policy.outcome("2", ttft_ms=1)
    policy({})
    assert [s["oldest_wait_s"] for s in seen[3:]] == [3.0, 3.0, 1.0, 0.0]


def test_a_request_that_does_not_stream_has_no_first_token_to_wait_for(
    watched, seen, clock
):
    """It is left out: its age says nothing about waiting."""
    policy = watched(reports_outcomes=True)
    policy({}, request_id="batch", stream=False)
    clock.advance(100.0)
    policy({}, request_id="chat", stream=True)
    clock.advance(2.0)
    policy({})
    assert [s["oldest_wait_s"] for s in seen] == [0.0, 0.0, 2.0]


def test_a_host_that_never_reports_first_tokens_has_no_oldest_wait(
    watched, seen, clock
):
    """Where requests end without one, nobody can say who still waits."""
    policy = watched(reports_outcomes=True)
    policy({}, request_id="a")
    policy({}, request_id="b")
    policy.outcome("a", ttft_ms=418)
    clock.advance(60.0)
    policy({})
    assert seen[-1]["oldest_wait_s"] is None
    assert seen[-1]["in_flight"] == 1.0


def test_a_request_past_its_lease_is_not_the_oldest_wait(watched, seen, clock):
    """A leak does not look like a queue of a quarter of an hour."""
    policy = watched(reports_outcomes=True)
    policy({}, request_id="leak")
    clock.advance(LEASE_S - 5)
    for n in range(3):
        policy({}, request_id=str(n))
    clock.advance(6.0)
    policy({})
    assert seen[-1]["oldest_wait_s"] == 6.0


def test_an_engine_that_says_its_oldest_wait_is_believed_first(clock, seen):
    """What the engine knows of everybody goes before what this host knows."""
    policy = rule(sees(seen, OLDEST_WAIT_S), clock=clock, reports_outcomes=True)
    policy({})
    clock.advance(3.0)
    policy({"oldest_wait_s": 11.0})
    assert seen[-1]["oldest_wait_s"] == 11.0


# A tenant's share.


@pytest.mark.parametrize(
    ("held", "asking", "share"),
    [
        ([], {"tenant": "a"}, 1.0),
        ([{"tenant": "b"}], {"tenant": "a"}, 0.5),
        ([{"tenant": "a"}] * 2 + [{"tenant": "b"}], {"tenant": "a"}, 0.75),
        ([{"tenant": "a"}] * 2 + [{"tenant": "b"}], {"tenant": "b"}, 0.5),
        ([{}], {"tenant": "a"}, 0.5),
        (
            [{"tenant": "a", "input_tokens": 900, "max_output_tokens": 100}],
            {"tenant": "b", "input_tokens": 2000, "max_output_tokens": 1000},
            0.75,
        ),
        (
            [
                {"tenant": "a", "input_tokens": 1000},
                {"tenant": "b", "input_tokens": 10},
            ],
            {"tenant": "b", "input_tokens": 990},
            0.5,
        ),
    ],
)
def test_a_tenants_share_is_its_part_of_the_open_work(held, asking, share, seen, clock):
    """Work is tokens where they are known and requests where none is."""
    policy = rule(sees(seen, TENANT_SHARE), clock=clock, reports_outcomes=True)
    for facts in held:
        policy({}, **facts)
    policy({}, **asking)
    assert seen[-1]["tenant_share"] == pytest.approx(share)


def test_a_tenants_share_falls_when_its_work_ends(seen, clock):
    """What has ended no longer counts."""
    policy = rule(sees(seen, TENANT_SHARE), clock=clock, reports_outcomes=True)
    for n in range(3):
        policy({}, request_id=f"a{n}", tenant="a")
    policy({}, request_id="b", tenant="b")
    policy.outcome("a0")
    policy.outcome("a1")
    policy({}, tenant="b")
    assert seen[-1]["tenant_share"] == pytest.approx(2 / 3)


# Any sequence of calls, against books kept by hand.


class Books(RuleBasedStateMachine):
    """A host that opens, ends, renews and forgets, and books of what is open."""

    ids = Bundle("ids")

    @initialize(promised=st.booleans())
    def start(self, promised):
        """One policy, nothing open."""
        self.clock = FakeClock(start_s=5.0)
        self.seen, self.refuse = [], False

        def decide(policy, metrics):
            return self._decide(policy, metrics)

        self.policy = rule(
            decide,
            clock=self.clock,
            reports_outcomes=promised,
            name="books",
        )
        self.open, self.late, self.refused = {}, {}, {}
        self.heard, self.silent, self.ends = promised, False, 0

    def _decide(self, policy, metrics):
        self.seen.append([signal.read(metrics) for signal in COUNTS[:3]])
        return policy.reject("kv_pressure") if self.refuse else policy.admit()

    def _now(self):
        return self.clock.monotonic_ns() / 1e9

    def _judge(self):
        if len(self.late) > len(self.open):
            self.silent = True
        elif not self.late:
            self.silent = False  # nothing of that time is left

    def _expire(self):
        for key, (*_, last) in list(self.open.items()):
            if self._now() - last > LEASE_S:
                self.late[key] = self.open.pop(key)
        for key, (*_, last) in list(self.late.items()):
            if self._now() - last > 2 * LEASE_S + 60:
                del self.late[key]
        self._judge()

    @step(
        target=ids,
        name=st.sampled_from(["a", "b", "c", None]),
        tenant=st.sampled_from(["x", "y", "", None]),
        session=st.sampled_from(["s", "", None]),
        refuse=st.integers(0, 3).map(lambda n: n == 0),
    )
    def ask(self, name, tenant, session, refuse):
        """A request, refused one time in four; what `decide` saw is in the books."""
        self.refuse = refuse
        d = self.policy({}, request_id=name, tenant=tenant, session=session)
        self._expire()
        known = self.heard and not self.silent
        held = self.open.values()
        expected = [
            len(self.open),
            None if tenant is None else sum(e[0] == tenant for e in held),
            None if session is None else sum(e[1] == session for e in held),
        ]
        assert self.seen[-1] == (expected if known else [None] * 3)
        assert d.request_id not in self.open
        if name is not None and name not in self.open:
            assert d.request_id == name
        if not refuse:
            self.late.pop(d.request_id, None)
            self.refused.pop(d.request_id, None)
        into = self.refused if refuse else self.open
        into[d.request_id] = (tenant, session, self._now())
        return d.request_id

    @step(key=ids, twice=st.booleans())
    def end(self, key, twice):
        """An outcome, perhaps reported twice."""
        for _ in range(1 + twice):
            before = self.policy.ledger.in_flight
            self.policy.outcome(key)
            freed = before - self.policy.ledger.in_flight
            table = next(
                (t for t in (self.open, self.late, self.refused) if key in t), None
            )
            assert freed == (table is self.open)
            if table is not None:
                del table[key]
                self.heard, self.silent = True, False
                self._judge()

    @step(key=ids)
    def token(self, key):
        """A sign of life."""
        self.policy.first_token(key)
        if key in self.late:
            self.open[key], self.silent = self.late.pop(key), False
            self._judge()
        if key in self.open:
            self.open[key] = (*self.open[key][:2], self._now())

    @step(seconds=st.sampled_from([1, 60, 400, 899, 901, 1861, 4000]))
    def pass_time(self, seconds):
        """Time goes by in whole seconds."""
        self.clock.advance(seconds)

    @precondition(lambda self: hasattr(self, "policy"))
    @invariant()
    def the_tables_hold_what_is_open(self):
        """Pool, tenants and sessions are counted alike, and nothing goes below zero."""
        ledger = self.policy.ledger
        assert set(ledger.opened) == set(self.open)
        tenants = [e[0] for e in self.open.values() if e[0] is not None]
        sessions = [e[1] for e in self.open.values() if e[1] is not None]
        assert {t: ledger.tenant_in_flight(t) for t in set(tenants)} == {
            t: tenants.count(t) for t in set(tenants)
        }
        assert {s: ledger.session_in_flight(s) for s in set(sessions)} == {
            s: sessions.count(s) for s in set(sessions)
        }
        assert set(ledger._tenants) == set(tenants)
        assert set(ledger._sessions) == set(sessions)
        assert ledger._cost >= 0


BooksTest = Books.TestCase
BooksTest.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
