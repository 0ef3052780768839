"""What all compositions have in common: their parts, and how those are kept apart."""

import os
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError, MissingSignal, Policy, Reason
from admitperf.core.charge import Charge
from admitperf.core.header import run_line
from admitperf.policies import load
from admitperf.policies.all_of import AllOf
from admitperf.policies.any_of import AnyOf
from admitperf.policies.first_of import FirstOf
from admitperf.policies.in_flight_cap import InFlightCap
from admitperf.policies.kv_threshold import KvThreshold
from admitperf.policies.parts.compose import part_list, written
from admitperf.policies.parts.compose.brackets import pieces
from admitperf.policies.parts.compose.shape import DEPTH_MOST, PARTS_MOST, TEXT_MOST
from admitperf.policies.parts.compose.written import read, replaced, spelt
from admitperf.policies.parts.tenancy.weights import weights_of
from admitperf.policies.queue_depth import QueueDepth
from admitperf.policies.rate_limit import RateLimit
from admitperf.testing import FakeClock, MemoryLog

KINDS = [FirstOf, AllOf, AnyOf]


class Counting(Policy):
    """Holds one of its own for each open request, and refuses beyond `most`."""

    name = "counting"
    most: int = 1

    def __init__(self, **given_):
        super().__init__(**given_)
        self.told, self.ends = [], []

    def decide(self, metrics):
        """Refuse over the bound."""
        full = metrics.gate("counting", metrics.charges((self.name,)), self.most)
        return self.defer("slots") if full else self.admit()

    def decided(self, metrics, d):
        """Charge what was admitted."""
        self.told.append(str(d.verdict))
        return Charge((self.name,)) if d.verdict == "admit" else None

    def observe(self, metrics, outcome):
        """Note what the end gives back."""
        if outcome is not None:
            self.ends.append(outcome.charge)


class Broken(Policy):
    """Fails in both hooks."""

    name = "broken"

    def decide(self, metrics):
        """Admit."""
        return self.admit()

    def decided(self, metrics, d):
        """Fail."""
        raise RuntimeError("decided")

    def observe(self, metrics, outcome):
        """Fail."""
        raise RuntimeError("observe")


def composed(kind, parts, **given_):
    """A composition on a clock of its own."""
    told = {"clock": FakeClock(start_s=10.0), "reports_outcomes": True, **given_}
    return kind(policies=parts, **told)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "parts",
    [
        "kv_threshold:threshold=0.85,action=reject; in_flight_cap:max_per_tenant=2",
        "kv_threshold:threshold=0.85 action=reject ;\n in_flight_cap:max_per_tenant=2;",
        [
            ("kv_threshold", {"threshold": 0.85, "action": "reject"}),
            {"in_flight_cap": {"max_per_tenant": 2}},
        ],
        lambda: [
            KvThreshold(threshold=0.85, action="reject"),
            "in_flight_cap:max_per_tenant=2",
        ],
    ],
)
def test_parts_are_named_in_any_of_these_ways(kind, parts):
    """From a text, as a file has them, or from Python: the same policy."""
    policy = composed(kind, parts() if callable(parts) else parts)
    first, second = policy.parts
    assert (first.threshold, first.action) == (0.85, "reject")
    assert (second.max_in_flight, second.max_per_tenant) == (100, 2)
    again = composed(kind, policy.parameters["policies"])
    assert again.parameters == policy.parameters


def test_a_value_with_a_mark_in_it_stands_in_brackets():
    """Weights of tenants, and compositions within each other."""
    policy = composed(
        AllOf,
        "tenant_share:weights=(a=2,b=1); first_of:policies=(queue_depth; rate_limit)",
    )
    shares, inner = policy.parts
    assert shares._weights == {"a": 2.0, "b": 1.0}
    assert [type(one) for one in inner.parts] == [QueueDepth, RateLimit]
    again = composed(AllOf, policy.parameters["policies"])
    assert again.parameters == policy.parameters


def test_every_fault_of_every_part_is_told_at_once():
    """With the part's name, and the nearest of what is not installed."""
    with pytest.raises(ConfigError) as error:
        FirstOf(
            policies="kv_treshold; queue_depth:max_waiting=-1,foo=2; "
            "rate_limit:rate_per_s=x; in_flight_cap:max_in_flight=none",
        )
    told = "\n".join(error.value.faults)
    for part in (
        "no policy 'kv_treshold'; nearest: kv_threshold",
        "queue_depth: foo is no parameter",
        "queue_depth: max_waiting = -1 is not at least 0",
        "rate_limit: rate_per_s = 'x' is not float",
        "in_flight_cap: give at least one of",
    ):
        assert f"policies: {part}" in told


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ("", "there is none"),
        ("queue_depth:(", "brackets do not match"),
        ("queue_depth:)(", "brackets do not match"),
        ("queue_depth:max_waiting", "'max_waiting' is not PARAM=VALUE"),
        ("queue_depth:max_waiting=1,max_waiting=2", "max_waiting is given twice"),
        (7, "7 is no text and no list"),
        ([7], "7 is no policy and no name"),
        ([("queue_depth", 7)], "queue_depth: 7 are no parameters"),
        ([{"queue_depth": {}, "rate_limit": {}}], "is no policy and no name"),
        ("queue_depth:enforce=0.5", "enforce is a setting of the whole"),
        ("rate_limit:clock=5", "rate_limit: clock is a setting of the whole"),
        (
            [("rate_limit", {"reports_outcomes": 5})],
            "rate_limit: reports_outcomes is a setting of the whole",
        ),
        ("rate_limit:rate_per_s=1e-300", "rate_limit: rate_per_s = 1e-300 is not from"),
        ("chronos_inspired:beta_ms=1e-320", "chronos_inspired: beta_ms = 1e-320"),
        ([{7: {}}], "is no policy and no name"),
        ([QueueDepth(log=MemoryLog())], "log is a setting of the whole"),
        ([one := QueueDepth(), one], "one object stands there twice"),
        ("queue_depth;" * (PARTS_MOST + 1), "17 are more than 16"),
        ('tenant_share:weights=("a=2)', "brackets do not match, or quotes"),
    ],
)
def test_what_cannot_be_parts_stops_at_construction(parts, fault):
    """No host starts with half a policy."""
    with pytest.raises(ConfigError) as error:
        FirstOf(policies=parts)
    assert fault in str(error.value)


def test_whatever_a_constructor_raises_is_a_fault_of_that_part(monkeypatch):
    """In one line, beside the faults of the others."""

    def broken(self, **_):
        raise OverflowError("too\nlarge")

    monkeypatch.setattr(RateLimit, "__init__", broken)
    with pytest.raises(ConfigError) as error:
        FirstOf(policies="rate_limit; queue_depth:max_waiting=-1")
    assert error.value.faults == [
        "policies: rate_limit: OverflowError: too large",
        "policies: queue_depth: max_waiting = -1 is not at least 0",
    ]


def cyclic(kind):
    """Parts that contain themselves, or are nested far too deep."""
    mapping, nested, deep, text = {}, [], [], "queue_depth"
    mapping["first_of"] = {"policies": mapping}
    nested.append(("first_of", {"policies": nested}))
    for _ in range(5000):
        deep = [deep]
    for _ in range(200):
        text = f"first_of:policies=({text})"
    return {"mapping": mapping, "list": nested, "deep": deep, "text": text}[kind]


@pytest.mark.parametrize("kind", ["mapping", "list", "text", "deep"])
def test_no_depth_is_too_much_for_a_fault(kind, monkeypatch):
    """It is told in one short line, before any part is made; dividing leaves it."""
    monkeypatch.setattr(QueueDepth, "__init__", None)
    told = cyclic(kind)
    with pytest.raises(ConfigError) as error:
        FirstOf(policies=told)
    fault = "no policy" if kind == "deep" else "nested more than 4 deep"
    assert fault in str(error.value)
    assert len(str(error.value)) < 300
    assert FirstOf.divided({"policies": told}, 8)["policies"] is told
    with pytest.raises(ConfigError):
        replaced(told, lambda _, value: value)


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ("kv_threshold;" * 1000, "1000 are more than 16"),
        ("kv_threshold;" * 20_000, "letters are more than 20000"),
        (["kv_threshold"] * 1000, "1000 are more than 16"),
        (["kv_threshold:" + "x" * TEXT_MOST], "letters are more than 20000"),
        ("first_of:policies=(" + "kv_threshold;" * 16 + ")", "17 are more than 16"),
        ([("first_of", {"policies": ["kv_threshold"] * 1000})], "1001 are more"),
    ],
)
def test_size_is_looked_at_before_anything_is_made(told, fault, monkeypatch):
    """A composition far too large costs nobody a minute, or a page of faults."""
    monkeypatch.setattr(part_list, "load", None)
    monkeypatch.setattr(written, "load", None)
    with pytest.raises(ConfigError) as error:
        FirstOf(policies=told)
    assert fault in str(error.value)
    assert len(error.value.faults) == 1


NAMES = st.text(st.sampled_from('ab,;=()" \\\t\n:é'), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40)
@given(weights=st.dictionaries(NAMES, st.floats(0.1, 9), max_size=4))
def test_the_text_of_weights_makes_the_same_weights(weights):
    """Whatever the names of tenants are."""
    text = spelt("first_of", {"policies": spelt("tenant_share", {"weights": weights})})
    inner = read(text)[1]["policies"]
    assert pieces(inner, ";") == [inner]
    assert weights_of(read(inner)[1]["weights"]) == weights


@pytest.mark.parametrize(
    "weights",
    [{"a)b": 2, "x;y": 1}, {"a,b=3": 2, "c d": 1}, {'"': 1, "\\": 2, "(": 3}, {}],
)
def test_the_text_of_parts_makes_the_same_parts(weights):
    """Of nested ones too, to every parameter."""
    part = ("tenant_share", {"weights": weights})
    made = FirstOf(policies=[part, ("any_of", {"policies": [part, "rate_limit"]})])
    again = FirstOf(policies=made.parameters["policies"])
    assert again.parameters == made.parameters
    for policy in (made, again):
        assert policy.parts[0]._weights == weights
        assert policy.parts[1].parts[0]._weights == weights


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["none", "5", "true", "(a)", '"a"', "a)b", " a ", ""]),
    NAMES,
)


@settings(deadline=None, max_examples=50)
@given(value=VALUES, nested=st.integers(0, 2))
def test_a_value_of_any_kind_is_read_as_it_was(value, nested):
    """Text is told from a number, true, false and none."""
    text = spelt("queue_depth", {"max_waiting": value})
    for _ in range(nested):
        text = spelt("first_of", {"policies": text})
    for _ in range(nested):
        text = read(text)[1]["policies"]
    found = read(text)[1]["max_waiting"]
    assert (found, type(found)) == (value, type(value))


def test_an_object_is_a_part_of_one_whole_for_good():
    """Its name, and so its accounts, are that one's: another would not find them."""
    part, spare = QueueDepth(), RateLimit()
    with pytest.raises(ConfigError):
        FirstOf(policies=[spare, "nobody"])
    whole = FirstOf(policies=[part, QueueDepth()])
    assert [one.name for one in whole.parts] == ["queue_depth 1", "queue_depth 2"]
    with pytest.raises(ConfigError, match="queue_depth 1: this one is a part of"):
        AnyOf(policies=[part])
    assert AllOf(policies=[spare]).parts == (spare,)
    with pytest.raises(ConfigError, match="rate_limit: this one is a part of another"):
        FirstOf(policies=[spare, "queue_depth"])
    assert part.name == "queue_depth 1"


def test_a_policy_that_decided_by_itself_becomes_no_part():
    """What it has open is in its own ledger, under its own name."""
    part = RateLimit(clock=FakeClock(start_s=10.0), reports_outcomes=True)
    d = part({})
    with pytest.raises(ConfigError, match="rate_limit: this one has decided by itself"):
        FirstOf(policies=[part, RateLimit()])
    assert part.name == "rate_limit"
    part.outcome(d.request_id)
    assert not part.ledger._accounts


def test_compositions_are_nested_but_not_without_end():
    """As deep as can be read."""
    parts = "queue_depth"
    for _ in range(DEPTH_MOST):
        assert FirstOf(policies=parts).parts
        parts = f"first_of:policies=({parts})"
    with pytest.raises(ConfigError, match="nested more than 4 deep"):
        FirstOf(policies=parts)


def test_it_requires_what_its_parts_require():
    """Each thing once, signals first; a host without it stops at start-up."""
    policy = FirstOf(policies="rate_limit; queue_depth; in_flight_cap:max_per_tenant=1")
    assert [getattr(r, "name", r) for r in policy.requires] == [
        "queue_depth",
        "in_flight",
        "tenant",
    ]
    with pytest.raises(MissingSignal, match="in_flight"):
        policy.check({"queue_depth": 1.0})


def test_it_is_blind_as_a_whole():
    """A part that cannot see is no part that agrees."""
    policy = composed(AnyOf, "no_admission; queue_depth", on_blind="reject")
    assert policy({}).reason == "signal_absent"
    assert policy({"queue_depth": 99.0}).admitted


def test_reasons_of_parts_are_reasons_of_the_whole():
    """A plug-in's own status is kept, under every preset; two meanings are a fault."""

    class Paced(Policy):
        """Refuses everybody."""

        name = "paced"
        reasons: ClassVar = {"acme_late": Reason(503)}

        def decide(self, metrics):
            """Refuse."""
            return self.defer("acme_late")

    class Other(Paced):
        """Means something else by it."""

        name = "other"
        reasons: ClassVar = {"acme_late": Reason(429, fault="caller")}

    inner = FirstOf(policies=[Paced()])
    assert composed(AllOf, [inner])({}).status == 503
    assert composed(AllOf, [Paced()], preset="mesh-safe")({}).status == 429
    with pytest.raises(ConfigError, match="means something else by acme_late"):
        AllOf(policies=[Paced(), Other()])


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_the_whole_admits_is_charged(kind):
    """A part that agreed is not charged when another refused, and each gets its own."""
    first, second = Counting(most=9), Counting(most=1)
    policy = composed(kind, [first, second, InFlightCap(max_in_flight=1)])
    a, b = policy({}), policy({})
    assert (a.admitted, b.admitted) == (True, kind is AnyOf)
    assert first.told == second.told == ["admit", "admit" if kind is AnyOf else "defer"]
    policy.outcome(a.request_id)
    assert [c.account for c in first.ends] == [("counting 1",)]
    assert [c.account for c in second.ends] == [("counting 2",)]
    policy.outcome(b.request_id)
    assert policy.ledger.charges(("counting 1",)) == 0
    assert policy.ledger.charges(("counting 2",)) == 0


def test_parts_of_one_class_have_accounts_of_their_own():
    """However deep they stand: neither counts what the other holds."""
    inner = AllOf(policies=[Counting(most=2)])
    policy = composed(AllOf, [Counting(most=2), inner])
    assert [policy({}).admitted for _ in range(3)] == [True, True, False]
    assert policy.ledger.charges(("counting 1",)) == 2
    assert policy.ledger.charges(("counting 2",)) == 2


def test_asking_charges_nothing():
    """A host may ask about a held request as often as it likes."""
    part = Counting(most=1)
    policy = composed(FirstOf, [part])
    a = policy({})
    held = policy.ask({})
    for _ in range(9):
        policy.ask({}, request_id=held.request_id)
    assert part.told == ["admit"]
    policy.answer(held)
    assert part.told == ["admit", "defer"]
    policy.outcome(a.request_id)
    assert policy({}).admitted


def test_a_part_that_fails_costs_the_others_nothing():
    """What they charge is held and given back all the same; the fault is written."""
    log, part = MemoryLog(), Counting(most=1)
    policy = composed(FirstOf, [Broken(), part], log=log)
    a = policy({})
    assert not policy({}).admitted
    policy.outcome(a.request_id)
    assert part.ends
    assert policy({}).admitted
    events = [line["event"] for line in log.controls]
    assert events.count("decided_failed") == events.count("observe_failed") == 1


class Working(Policy):
    """Has work, which may raise, and keeps what came of it."""

    name = "working"
    work = None

    def __init__(self, **given):
        super().__init__(**given)
        self.results = []

    def decide(self, metrics):
        """Admit."""
        return self.admit()

    def task(self, metrics):
        """What it was made with."""
        return self.work

    def task_done(self, metrics, result):
        """Keep it."""
        self.results.append(result)


def test_each_part_has_its_own_work_and_what_comes_of_it():
    """Nested ones too; a part without any, or whose work fails, costs no other."""
    log = MemoryLog()
    a, idle, fails, inner = (Working() for _ in range(4))
    a.work, fails.work, inner.work = lambda: "a", lambda: 1 / 0, lambda: "b"
    policy = composed(FirstOf, [a, idle, fails, AllOf(policies=[inner])], log=log)
    policy({})
    policy.background()
    assert [one.results for one in (a, idle, fails, inner)] == [["a"], [], [], ["b"]]
    [failed] = [line for line in log.controls if line["event"] == "task_failed"]
    assert "ZeroDivisionError" in failed["error"]


def test_without_work_there_is_none():
    """Nothing is handed in."""
    policy = composed(FirstOf, [Working(), "no_admission"])
    policy({})
    assert policy._task() is None


def test_the_line_says_which_part_spoke():
    """A gate by the part's place and name holds when it refuses."""
    log = MemoryLog()
    policy = composed(
        FirstOf, "queue_depth:max_waiting=1; kv_threshold:threshold=0.5", log=log
    )
    policy({"queue_depth": 0.0, "kv_pressure": 0.9})
    gates = {name: held for name, *_, held in log.decisions[0]["gates"]}
    assert gates["first_of: 1 queue_depth"] is False
    assert gates["first_of: 2 kv_threshold"] is True
    assert log.decisions[0]["reason"] == "kv_pressure"


def test_the_run_is_described_by_every_parameter_of_every_part():
    """Two runs of the same rules have the same configuration, however it was told."""
    ways = (
        "kv_threshold:threshold=0.8; rate_limit",
        [KvThreshold(threshold=0.8), ("rate_limit", {})],
    )
    told = [run_line(composed(FirstOf, parts), "r", 0, 0) for parts in ways]
    assert told[0]["config"] == told[1]["config"]
    assert "burst=20" in told[0]["params"]["policies"]
    assert told[0]["policy"] == "first_of"


@pytest.mark.parametrize(
    "parts",
    [
        "in_flight_cap:max_in_flight=9; rate_limit:rate_per_s=8",
        [("in_flight_cap", {"max_in_flight": 9}), ("rate_limit", {"rate_per_s": 8})],
        lambda: [InFlightCap(max_in_flight=9), RateLimit(rate_per_s=8)],
        "first_of:policies=(in_flight_cap:max_in_flight=9; rate_limit:rate_per_s=8)",
    ],
)
def test_one_process_of_several_gets_its_part_of_each_bound(parts):
    """Also of what was left at its default, and within another composition."""
    parts = parts() if callable(parts) else parts
    shares = FirstOf.divided({"policies": parts, "blind_cap": 10}, 4)
    assert shares.pop("blind_cap") == 3
    made = FirstOf(**shares).parts
    cap, rate = made if len(made) > 1 else made[0].parts
    assert (cap.max_in_flight, rate.rate_per_s, rate.burst) == (3, 2.0, 5)
    assert FirstOf.divided({"policies": parts}, 1) == {"policies": parts}


def test_what_was_divided_can_be_made_twice():
    """As a host does that checks what it was told, and then starts with it."""
    shares = FirstOf.divided({"policies": "rate_limit; any_of:policies=rate_limit"}, 4)
    for _ in range(2):
        assert FirstOf(**shares).parts[0].burst == 5


def test_dividing_what_cannot_be_read_leaves_the_fault_to_construction():
    """It says nothing by itself."""
    assert FirstOf.divided({"policies": "nobody"}, 4) == {"policies": "nobody"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_none_of_the_parents_requests():
    """Its parts hold nothing that the parent has open, and go on with their rules."""
    policy = composed(
        AllOf, "in_flight_cap:max_in_flight=2; all_of:policies=(rate_limit:burst=3)"
    )
    assert policy({}).admitted
    child = os.fork()
    if child == 0:
        os._exit(sum(policy({}).admitted for _ in range(5)))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert [policy({}).admitted for _ in range(2)] == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_offered_by_name(kind):
    """As any policy is, and it cannot be made of nothing."""
    assert load(kind.name) is kind
    with pytest.raises(ConfigError, match="policies is required"):
        kind()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["call", "ask", "end", "wait"]),
        st.sampled_from([None, "a", "b"]),
        st.floats(0, 4),
    ),
    max_size=50,
)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS, kind=st.sampled_from(KINDS))
def test_two_equal_buckets_are_one(steps, kind):
    """Each is charged once for what is admitted: they admit what one of them would."""
    one = composed(kind, "rate_limit:rate_per_s=0.5,burst=2")
    two = composed(
        kind, "rate_limit:rate_per_s=0.5,burst=2; rate_limit:rate_per_s=0.5,burst=2"
    )
    for policy in (one, two):
        policy.opened = []
    for what, tenant, amount in steps:
        answers = [happens(policy, what, tenant, amount) for policy in (one, two)]
        assert answers[0] == answers[1]
    now_ns = one.settings.clock.monotonic_ns()
    for tenant in (None, "a", "b"):
        owed = {part._owed_ns(tenant, now_ns) for part in (*one.parts, *two.parts)}
        assert len(owed) == 1


def happens(policy, what, tenant, amount):
    """One step; what the policy says to it."""
    if what == "wait":
        policy.settings.clock.advance(amount)
    elif what == "end" and policy.opened:
        policy.outcome(policy.opened.pop(0), ok=amount > 1)
    elif what == "call":
        d = policy({}, tenant=tenant)
        policy.opened += [d.request_id] if d.admitted else []
        return d.admitted, d.reason, d.estimate_ms
    elif what == "ask":
        d = policy.ask({}, tenant=tenant)
        policy.opened += [d.request_id] if d.admitted else []
        return d.admitted, d.reason
    return None
