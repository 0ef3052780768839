"""A short engine queue, and an order of groups that may be old but never stalls."""

import asyncio
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError, MissingSignal
from admitperf.core.reading import Reading
from admitperf.gateway.hold import HoldQueue, Waiter
from admitperf.policies import qlm_inspired
from admitperf.policies.parts.qlm import exchange, planner
from admitperf.policies.parts.qlm.group import GROUPS_MOST
from admitperf.policies.parts.qlm.virtual_queue import KINDS_MOST, WAITING_MOST
from admitperf.policies.qlm_inspired import QlmInspired
from admitperf.testing import FakeClock, MemoryLog, snapshot

MOST = 4
"""`max_batch` of these tests."""

BULK = {"slo_class": "bulk"}
CHAT = {"slo_class": "chat"}


def engine(running=MOST, waiting=0.0):
    """Raw metrics under the signals' own names; full unless told otherwise."""
    return {"running": float(running), "queue_depth": float(waiting)}


IDLE = engine(0)


def qlm(**given):
    """A policy on a clock that tests move, and that clock."""
    clock = FakeClock(start_s=1000.0)
    policy = QlmInspired(
        **{"max_batch": MOST, "clock": clock, "log": MemoryLog(), **given},
        reports_outcomes=True,
    )
    return policy, clock


def look(policy, raw):
    """Hands a new reading in and has it worked on, as a gateway's threads do."""
    now_ns = policy.settings.clock.monotonic_ns()
    policy.look(Reading(raw, taken_ns=now_ns))
    policy.background()


def serve(policy, clock, answers, every_s=0.1):
    """Lets answers of these (facts, tokens) end while the engine is full."""
    began = [(policy(IDLE, **facts).request_id, n) for facts, n in answers]
    look(policy, engine())
    for request_id, tokens in began:
        clock.advance(every_s)
        policy.outcome(request_id, output_tokens=tokens)


def measured(**given):
    """A policy that knows its engine: 1000 tokens a second, answers of 100."""
    policy, clock = qlm(**given)
    serve(policy, clock, [({}, 100)] * 10)
    return policy, clock


def with_two_classes(**given):
    """One that knows 1000 tokens a second, bulk of 1000 and chat of 100 tokens."""
    policy, clock = qlm(**given)
    kinds = [(BULK, 1000), (CHAT, 100)] * 100
    serve(policy, clock, kinds, every_s=0.55)
    return policy, clock


def crowd(policy, size, **facts):
    """So many callers of a kind find the engine full."""
    for n in range(size):
        policy(engine(), logical_id=f"{facts['slo_class']}-{n}", **facts)


def gates(d):
    """A decision's gates: name to (value, bound, held)."""
    return {gate.name: (gate.value, gate.bound, gate.held) for gate in d.gates}


def said(d):
    """What a decision says, in short."""
    return (str(d.verdict), d.reason, d.status)


# The queue of the engine is kept short.


@pytest.mark.parametrize("waiting", [0, 1, 3])
def test_it_starts_up_to_the_bound_and_no_further(waiting):
    """Running and waiting count alike: at the bound, not past it, the next waits."""
    policy, _ = qlm()
    assert policy(engine(MOST - 1 - waiting, waiting)).admitted
    assert said(policy(engine(MOST - waiting, waiting))) == ("defer", "slots", 503)


def test_the_bound_is_recorded_whether_it_holds_or_not():
    """A run in which it never held can be told how far away it stayed."""
    policy, _ = qlm()
    assert gates(policy(engine(1)))["engine_batch"] == (1.0, MOST, False)
    assert gates(policy(engine(9)))["engine_batch"] == (9.0, MOST, True)


def test_an_engine_that_exports_no_swapped_requests_is_no_full_engine():
    """QLM's worker adds a gauge that vLLM V1 lacks, and takes its absence for full."""
    policy, _ = qlm()
    page = {
        'vllm:num_requests_running{engine="0"}': 1.0,
        'vllm:num_requests_waiting{engine="0"}': 0.0,
    }
    assert policy(page).admitted
    busy = dict.fromkeys(page, 2.0)
    assert policy(busy).reason == "slots"


@pytest.mark.parametrize("left", ["running", "queue_depth"])
def test_half_of_what_it_counts_is_nothing_it_can_go_by(left):
    """An absent count is neither zero nor endless: it makes the rule blind."""
    policy, _ = qlm(on_blind="reject")
    d = policy({left: 1.0})
    assert (d.reason, d.admitted) == ("signal_absent", False)
    assert qlm(on_blind="admit")[0]({left: 99.0}).admitted


def test_a_host_that_reports_no_outcomes_stops_at_start_up():
    """Its waits rest on answers that ended: said before the first request."""
    with pytest.raises(MissingSignal, match="reports_outcomes=True"):
        QlmInspired().check(engine())


# The wait.


def test_the_wait_is_that_of_one_answer_at_the_rate_of_a_full_engine():
    """One request too many, 100 tokens each, 1000 tokens a second: 0.1 s."""
    policy, _ = measured()
    d = policy(engine())
    assert d.estimate_ms == pytest.approx(100, abs=1)
    assert d.wait == "policy"
    assert policy(engine(MOST, 9)).estimate_ms == pytest.approx(1100, abs=1)


def test_who_is_sent_off_later_waits_behind_who_was_before():
    """Each caller that will come back is one answer more to wait for."""
    policy, _ = measured()
    waits = [policy(engine(), logical_id=str(n)).estimate_ms for n in range(5)]
    assert waits == pytest.approx([100, 200, 300, 400, 500], abs=1)


def test_a_scatter_of_lengths_makes_the_wait_longer():
    """The upper quantile is told, not the middle: z is what it takes."""
    answers = [({}, 50), ({}, 150)] * 10
    waits = []
    for z in (0.0, 1.64):
        policy, clock = qlm(z=z)
        serve(policy, clock, answers)
        waits.append(policy(engine(MOST, 24)).estimate_ms)
    middle, upper = waits
    assert middle == pytest.approx(2500, abs=1)
    assert upper == pytest.approx(2500 + 1.64 * 50 * 5, abs=15)


def test_before_a_rate_is_measured_the_wait_is_the_default():
    """No number is made up, and nobody is refused for a deadline that lies ahead."""
    policy, _ = qlm()
    d = policy(engine(MOST, 500), deadline_s=0.5)
    assert (str(d.verdict), d.wait, d.estimate_ms) == ("defer", "default", 1000)


def test_an_answer_that_broke_off_is_no_length():
    """Its tokens were made and count for the rate; answers are not so short."""
    policy, clock = qlm()
    began = [policy(IDLE).request_id for _ in range(20)]
    look(policy, engine())
    for n, request_id in enumerate(began):
        clock.advance(0.1)
        policy.outcome(request_id, ok=n % 2 == 0, output_tokens=150 - 100 * (n % 2))
    assert policy(engine()).estimate_ms == pytest.approx(150, abs=1)


def test_a_rate_is_of_a_full_engine_alone():
    """A quiet hour is no slow engine: what ends while there is room says nothing."""
    policy, clock = measured()
    look(policy, IDLE)
    for _ in range(5):
        d = policy(IDLE)
        clock.advance(600.0)
        policy.outcome(d.request_id, output_tokens=100)
    look(policy, engine())
    assert policy(engine()).estimate_ms == pytest.approx(100, abs=1)


def test_a_wait_is_at_most_until_it_has_to_start():
    """A later order may put it first: it is told to be back in time for that."""
    policy, _ = measured()
    crowd(policy, 40, deadline_s=3.0, **CHAT)
    for deadline_s in (3.0, 2.5):
        d = policy(engine(), deadline_s=deadline_s, **CHAT)
        assert (str(d.verdict), d.estimate_ms) == ("defer", 1000 * deadline_s)


def test_what_has_to_start_in_time_is_the_prompt():
    """0.5 s of it before the first token: it is told to be back 0.5 s sooner."""
    policy, clock = measured()
    for _ in range(3):
        d = policy(IDLE, input_tokens=1000)
        clock.advance(0.5)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id, ok=False)
    crowd(policy, 40, deadline_s=3.0, **CHAT)
    d = policy(engine(), deadline_s=3.0, input_tokens=1000, **CHAT)
    assert (str(d.verdict), d.estimate_ms) == ("defer", pytest.approx(2500, abs=1))


# Deadlines.


def test_who_would_be_late_from_the_first_place_is_refused_at_once():
    """21 requests of 0.1 s are ahead of everybody: 2.1 s, whatever the order."""
    policy, _ = measured()
    raw = engine(MOST, 20)
    late = policy(raw, deadline_s=2.0)
    assert said(late) == ("reject", "deadline_unmeetable", 503)
    assert late.should_retry is False
    assert gates(late)["first_token_s"] == (pytest.approx(2.1), 2.0, True)
    in_time = policy(raw, deadline_s=2.2)
    assert said(in_time) == ("defer", "slots", 503)
    assert gates(in_time)["first_token_s"][2] is False


class Prompts:
    """An engine with room that takes one prompt at a time, at a pace tests may change.

    Its answers take 99 s, which no deadline asks for.
    """

    def __init__(self, rate):
        self.policy, self.clock = qlm()
        self.rate = rate

    def ask(self, deadline_s=None, raw=IDLE):
        """One more with a prompt of 1000 tokens; nothing of it is served yet."""
        return self.policy(raw, input_tokens=1000, deadline_s=deadline_s, stream=True)

    def serve(self, d):
        """Its first token and its end."""
        first_s = 1000 / self.rate
        self.clock.advance(first_s)
        self.policy.first_token(d.request_id)
        self.clock.advance(99.0)
        told = {"ttft_ms": 1000 * first_s, "e2e_ms": 1000 * (first_s + 99.0)}
        self.policy.outcome(d.request_id, output_tokens=100, **told)

    def measured(self):
        """The engine, once its pace is known."""
        for _ in range(4):
            self.serve(self.ask())
        return self


def test_the_prompts_ahead_and_its_own_count_and_the_answer_does_not():
    """0.5 s of a prompt ahead and 0.5 s of its own fit 1.1 s, and not 0.9 s."""
    prompts = Prompts(2000.0).measured()
    prompts.ask()
    late = prompts.ask(deadline_s=0.9)
    assert said(late)[:2] == ("reject", "deadline_unmeetable")
    assert gates(late)["first_token_s"][0] == pytest.approx(1.0)
    assert prompts.ask(deadline_s=1.1).admitted


def test_with_nothing_ahead_it_is_let_in_whatever_is_foretold():
    """The gate is recorded, and the next one finds a prompt ahead of it."""
    prompts = Prompts(100.0).measured()
    first = prompts.ask(deadline_s=8.0)
    assert first.admitted
    assert gates(first)["first_token_s"] == (pytest.approx(10.0), 8.0, True)
    assert prompts.ask(deadline_s=8.0).reason == "deadline_unmeetable"
    prompts.policy.outcome(first.request_id, ok=False)
    assert prompts.ask(deadline_s=0.0).reason == "deadline_unmeetable"
    assert prompts.ask(deadline_s=8.0, raw=engine()).reason == "deadline_unmeetable"
    assert prompts.ask(deadline_s=0.001).admitted


def test_an_engine_that_was_slow_and_recovers_is_used_again():
    """10 s a prompt, every deadline foretold missed; then 1 s, and soon all fit."""
    prompts = Prompts(100.0).measured()
    prompts.rate = 1000.0
    foretold = []
    for _ in range(20):
        d = prompts.ask(deadline_s=8.0)
        assert d.admitted
        foretold.append(gates(d)["first_token_s"][2])
        prompts.serve(d)
    assert foretold[0] is True
    assert foretold[-1] is False
    together = [prompts.ask(deadline_s=8.0) for _ in range(3)]
    assert all(d.admitted for d in together)


def test_a_full_engine_that_was_slow_is_used_again_once_there_is_room():
    """A slot was foretold after every deadline; with a free one nothing is."""
    policy, clock = qlm()
    serve(policy, clock, [({}, 100)] * 10, every_s=100.0)
    assert policy(engine(), deadline_s=8.0).reason == "deadline_unmeetable"
    assert policy(engine(MOST - 1), deadline_s=8.0).admitted


def test_without_a_deadline_there_is_no_such_gate():
    """What a request does not say is no reason to refuse it."""
    policy, _ = measured()
    d = policy(engine(MOST, 400))
    assert d.reason == "slots"
    assert "first_token_s" not in gates(d)


# The order, and its age.


def crowded(**given):
    """Bulk due in 8 s that takes 10, and chat due in 9 s that takes half a second."""
    policy, clock = with_two_classes(**given)
    crowd(policy, 10, deadline_s=8.0, **BULK)
    crowd(policy, 5, deadline_s=9.0, **CHAT)
    return policy, clock


def ranks(policy):
    """The ranks of one more caller of each class."""
    bulk = policy.ask(engine(), deadline_s=8.0, **BULK)
    chat = policy.ask(engine(), deadline_s=9.0, **CHAT)
    return bulk.rank, chat.rank


def age_s(policy):
    """The age in the gate of one more decision, and whether it was too old."""
    value, _, held = gates(policy.ask(engine()))["plan_age_s"]
    return round(value, 6), held


def test_while_all_are_in_time_the_nearest_deadline_goes_first():
    """Nothing is re-ordered before somebody would be late."""
    policy, _ = with_two_classes()
    crowd(policy, 2, deadline_s=8.0, **BULK)
    crowd(policy, 2, deadline_s=9.0, **CHAT)
    look(policy, engine())
    bulk, chat = ranks(policy)
    assert 0 < bulk < 1 < chat < 2


def test_groups_change_places_when_somebody_would_be_late():
    """Bulk is late in any place; before it, chat is in time."""
    policy, _ = crowded()
    look(policy, engine())
    bulk, chat = ranks(policy)
    assert 0 < chat < 1 < bulk < 2
    chat_ms = policy.ask(engine(), deadline_s=9.0, **CHAT).estimate_ms
    bulk_ms = policy.ask(engine(), deadline_s=8.0, **BULK).estimate_ms
    assert chat_ms < 5000 < bulk_ms


def test_within_a_place_the_nearest_deadline_goes_first():
    """The place is the group's, the rest of the rank the request's own."""
    policy, _ = crowded()
    look(policy, engine())
    near = policy.ask(engine(), deadline_s=8.1, **CHAT).rank
    far = policy.ask(engine(), deadline_s=9.0, **CHAT).rank
    assert 0 < near < far < 1


def test_an_optimizer_that_is_slow_shows_its_age_and_not_a_stall():
    """For its 5 s the order is the one before; then it is used, and 5 s old."""
    policy, clock = with_two_classes(solve_s=5.0)
    look(policy, engine())
    crowd(policy, 10, deadline_s=8.0, **BULK)
    crowd(policy, 5, deadline_s=9.0, **CHAT)
    clock.advance(0.25)
    look(policy, engine())
    for _ in range(4):
        clock.advance(1.0)
        look(policy, engine())
        assert policy(IDLE).admitted
        assert policy(engine()).reason == "slots"
    assert age_s(policy) == (4.25, False)
    clock.advance(1.0)
    bulk, chat = ranks(policy)
    assert chat < 1 < bulk
    assert age_s(policy) == (5.0, False)


LONG_S = 20.0
"""After so long a test is let go that would hang."""


def test_while_the_optimizer_is_at_it_decisions_are_made_on_an_older_plan(monkeypatch):
    """It lasts for 200 of them, whose plan grows old; then what it made is used."""
    policy, clock = with_two_classes(max_plan_age_s=15.0)
    look(policy, engine())
    crowd(policy, 10, deadline_s=8.0, **BULK)
    crowd(policy, 5, deadline_s=9.0, **CHAT)
    begun, go = threading.Event(), threading.Event()

    def exchanged(groups, time, now_s):
        begun.set()
        go.wait(LONG_S)
        return exchange.exchanged(groups, time, now_s)

    monkeypatch.setattr(planner, "exchanged", exchanged)
    thread = threading.Thread(target=look, args=(policy, engine()), daemon=True)
    thread.start()
    assert begun.wait(LONG_S)
    ages = []
    for _ in range(200):
        clock.advance(0.05)
        assert policy(engine(), logical_id="bulk-0", **BULK).reason == "slots"
        assert policy(IDLE, stream=True).admitted
        ages.append(age_s(policy)[0])
    bulk, chat = ranks(policy)
    assert thread.is_alive()
    assert ages == [pytest.approx(0.05 * n) for n in range(1, 201)]
    assert bulk < chat
    go.set()
    thread.join(LONG_S)
    bulk, chat = ranks(policy)
    assert chat < 1 < bulk
    assert age_s(policy) == (10.0, False)


def test_nothing_is_optimized_by_who_decides(monkeypatch):
    """Whatever a request meets, the groups are walked and ordered elsewhere."""
    policy, clock = crowded()
    look(policy, engine())
    monkeypatch.setattr(planner, "exchanged", None)
    monkeypatch.setattr(qlm_inspired, "grouped", None)
    for n in range(50):
        clock.advance(0.5)
        raw = engine(MOST, n % 7)
        policy.look(Reading(raw, taken_ns=clock.monotonic_ns()))
        d = policy(raw, deadline_s=8.0, **BULK)
        assert d.reason in ("slots", "deadline_unmeetable")
        policy.outcome(policy(IDLE).request_id, output_tokens=100)
    assert not policy.settings.log.controls
    policy.background()
    failed = [line["event"] for line in policy.settings.log.controls]
    assert failed == ["task_failed"]


def test_with_a_host_that_never_has_it_work_the_nearest_deadline_goes_first():
    """There is no plan and no age of one, and waits are told all the same."""
    policy, clock = qlm()
    for request_id in [policy(IDLE).request_id for _ in range(10)]:
        policy(engine())
        clock.advance(0.1)
        policy.outcome(request_id, output_tokens=100)
    crowd(policy, 10, deadline_s=8.0, **BULK)
    crowd(policy, 5, deadline_s=9.0, **CHAT)
    d = policy(engine(), deadline_s=9.0, **CHAT)
    assert "plan_age_s" not in gates(d)
    assert d.wait == "policy"
    bulk, chat = ranks(policy)
    assert 0 < bulk < chat < 1


def test_a_plan_that_is_too_old_gives_way_to_the_nearest_deadline():
    """No new reading for longer than the bound: then deadlines alone, and no stall."""
    policy, clock = crowded(max_plan_age_s=0.5)
    look(policy, engine())
    bulk, chat = ranks(policy)
    assert chat < 1 < bulk
    clock.advance(0.5)
    assert age_s(policy) == (0.5, False)
    clock.advance(0.001)
    assert age_s(policy) == (0.501, True)
    bulk, chat = ranks(policy)
    assert 0 < bulk < chat < 1
    assert policy(IDLE).admitted


def test_the_default_bound_bears_an_optimizer_as_slow_as_qlms():
    """A plan in use is at most twice as old as making one takes, and a reading."""
    policy, clock = with_two_classes(solve_s=5.0)
    look(policy, engine())
    ages = []
    for n in range(80):
        look(policy, engine())
        ages.append(age_s(policy)[0])
        clock.advance(0.24)
        crowd(policy, 10, deadline_s=8.0, **BULK)
        assert len(policy._queue) >= 10, n
    assert 5.0 < max(ages) <= policy.max_plan_age_s


@pytest.mark.parametrize(("slo_s", "after"), [(3600.0, True), (1.0, False)])
def test_who_has_no_deadline_is_ranked_as_if_due_in_an_hour(slo_s, after):
    """By default after all that are due within the hour, and never refused for it."""
    policy, _ = measured(slo_s=slo_s)
    none = policy.ask(engine(MOST, 20))
    due = policy.ask(engine(MOST, 20), deadline_s=9.0)
    assert (none.rank > due.rank) is after
    assert (none.reason, due.reason) == ("slots", "slots")


def test_a_host_that_holds_lets_them_out_in_the_order_of_the_plan():
    """Bulk was there first and is due first; chat goes first all the same."""
    policy, _ = crowded()
    look(policy, engine())
    room, served = [engine()], []

    def held(kind, deadline_s):
        def ask(held_ms):
            d = policy.ask(room[0], held_ms=held_ms, deadline_s=deadline_s, **kind)
            served.extend([kind["slo_class"]] * d.admitted)
            return d

        return Waiter(ask, ask(0.0), wait_s=5.0)

    async def run():
        queue = HoldQueue(most=8)
        for kind, deadline_s in [(BULK, 8.0), (CHAT, 9.0)] * 2:
            queue.enter(held(kind, deadline_s))
        room[0] = IDLE
        queue.pump()

    asyncio.run(run())
    assert served == ["chat", "chat", "bulk", "bulk"]


# What is kept.


def test_asking_many_times_notes_nobody():
    """A gateway that holds asks again and again; only the answer counts."""
    policy, _ = measured()
    d = policy.ask(engine(), logical_id="call")
    for _ in range(50):
        d = policy.ask(engine(), request_id=d.request_id, logical_id="call")
    assert len(policy._queue) == 0
    policy.answer(d)
    assert len(policy._queue) == 1
    assert policy(IDLE, logical_id="call").admitted
    assert len(policy._queue) == 0


def test_who_does_not_come_back_is_forgotten():
    """A note lasts half as long again as the wait that was told."""
    policy, clock = measured()
    d = policy(engine(), logical_id="gone")
    clock.advance(1.4 * d.retry_after_ms / 1000)
    look(policy, engine())
    assert len(policy._queue) == 1
    clock.advance(0.2 * d.retry_after_ms / 1000)
    look(policy, engine())
    assert len(policy._queue) == 0


def test_who_will_not_come_back_is_not_waited_for():
    """A refusal that says so leaves no note."""
    policy, _ = measured()
    policy(engine(), logical_id="late", deadline_s=-1.0)
    policy.refuse(engine(), "too_large", why="body", logical_id="large")
    assert len(policy._queue) == 0


def test_invented_names_cost_little_and_win_nothing():
    """Callers, groups that are told apart and groups that are ordered are bounded."""
    policy, _ = measured()
    for n in range(WAITING_MOST + 500):
        due_s = 1.2 ** (n % 90)
        policy(engine(), model=f"m-{n}", slo_class=f"c-{n}", deadline_s=due_s)
    look(policy, engine())
    assert len(policy._queue) <= WAITING_MOST
    assert len(policy._queue._counts) <= KINDS_MOST + 54
    plan = policy._planner.at(policy.settings.clock.monotonic_ns() / 1e9)
    assert len(plan.order) == GROUPS_MOST
    assert sum(group.size for group in plan.order) == len(policy._queue)
    rank = policy.ask(engine(), model="never seen").rank
    assert 0 < rank < GROUPS_MOST


def test_when_all_has_ended_nothing_is_left():
    """The books are the ledger's and notes that expire: none leaks."""
    policy, clock = measured()
    ids = [policy(IDLE).request_id for _ in range(20)]
    crowd(policy, 20, **CHAT)
    for request_id in ids:
        policy.outcome(request_id, ok=False)
    clock.advance(1000.0)
    look(policy, IDLE)
    assert policy.ledger.in_flight == 0
    assert len(policy._queue) == 0
    assert policy._queue._counts == {}


def test_the_wall_clock_moves_nothing():
    """Ages and notes go by the clock that never steps."""
    policy, clock = crowded()
    look(policy, engine())
    before = ranks(policy)
    clock.set_wall(4e9)
    assert ranks(policy) == before
    assert age_s(policy) == (0.0, False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_with_a_copy():
    """It knows the rate and who waits; nothing it does changes its parent."""
    policy, _ = measured()
    crowd(policy, 3, **CHAT)
    child = os.fork()
    if child == 0:
        crowd(policy, 5, **CHAT)
        os._exit(len(policy._queue))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 5
    assert len(policy._queue) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_batch": 0},
        {"max_plan_age_s": 0.0},
        {"solve_s": -1.0},
        {"slo_s": 0.0},
        {"z": -1.0},
        {"batch": 4},
    ],
)
def test_a_wrong_parameter_stops_at_construction(wrong):
    """No policy starts with a number that was not meant."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        QlmInspired(**wrong)


def test_by_hand_and_before_any_reading_it_decides_by_the_bound_alone():
    """No plan is no plan: nothing is said about its age."""
    d = QlmInspired().decide(snapshot({"running": 10.0, "queue_depth": 0.0}))
    assert (d.reason, d.estimate_ms) == ("slots", None)
    assert 0 <= d.rank < 1


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["call", "ask", "first", "end", "fail", "wait", "read"]),
        st.integers(0, 9),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=100)
@given(events=EVENTS, others=st.integers(0, 2), solve_s=st.sampled_from([0.0, 5.0]))
def test_the_engine_never_holds_more_than_the_bound(events, others, solve_s):
    """In any order of calls, ends and readings, with others on the engine too."""
    policy, clock = qlm(solve_s=solve_s)
    opened = []
    for what, n in events:
        load = others + len(opened)
        raw = engine(min(load, 2), max(0, load - 2))
        facts = {"slo_class": str(n % 3), "logical_id": str(n), "deadline_s": 5.0 + n}
        if what in ("call", "ask"):
            d = (policy if what == "call" else policy.ask)(raw, **facts)
            assert d.admitted is (load < MOST) or d.reason == "deadline_unmeetable"
            opened += [d.request_id] * d.admitted
        elif what == "first" and opened:
            policy.first_token(opened[n % len(opened)])
        elif what in ("end", "fail") and opened:
            ended = opened.pop(n % len(opened))
            policy.outcome(ended, ok=what == "end", output_tokens=10 * n)
        else:
            clock.advance(n / 4)
            look(policy, raw)
        assert others + len(opened) <= MOST
