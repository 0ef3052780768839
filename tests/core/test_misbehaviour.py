"""In the request path nothing raises, whoever misbehaves."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.rules import (
    QUIET,
    KvWall,
    admits,
    defers,
    reading,
    rejects,
    rule,
    strict,
)

from admitperf import Decision, Policy, Reading, Verdict
from admitperf.core.signals import KV_PRESSURE
from admitperf.testing import FakeClock, MemoryLog


class Subclassed(Decision):
    """Not ours."""


@pytest.mark.parametrize(
    "answer",
    [
        None, True, False, 0, "admit", Verdict.ADMIT, object(), [], Decision,
        Subclassed(Verdict.ADMIT), Decision("admit"), Decision("reject", "kv_pressure"),
        Decision(None), Decision(Verdict.REJECT), Decision(Verdict.DEFER, None),
        Decision(Verdict.REJECT, "no_such_reason"), Decision(Verdict.REJECT, ["x"]),
        NotImplemented, math.nan,
    ],
    ids=repr,
)  # fmt: skip
def test_an_answer_that_is_no_decision_is_a_policy_error(answer, log):
    """It is caught, recorded, and the posture answers."""
    d = rule(lambda p, m: answer, log=log)(QUIET)
    assert (d.admitted, d.reason, d.status) == (True, "policy_error", 200)
    (line,) = log.decisions
    assert line["blind"] == "policy_error"


class Unspeakable(Exception):  # noqa: N818  it is not ours
    """An error that cannot say what it is."""

    def __str__(self):
        raise RuntimeError

    __repr__ = __str__


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyError("x"), RecursionError(), MemoryError(), StopIteration(),
     AssertionError(), Unspeakable(), TimeoutError(), UnicodeError("\udc80"),
     ExceptionGroup("g", [ValueError()])],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
@pytest.mark.parametrize("posture", ["degrade", "reject", "hold_last"])
def test_any_exception_of_a_rule_is_answered_and_recorded(error, posture, log):
    """Whatever it is, and even if it cannot be printed."""

    def decide(policy, metrics):
        raise error

    d = rule(decide, on_blind=posture, log=log)(QUIET)
    assert d.reason == "policy_error"
    assert d.admitted is (posture != "reject")
    (line,) = log.decisions
    assert type(error).__name__ in line["why"]
    strict(log.texts[-1])


def test_a_rule_that_recurses_for_ever_is_answered():
    """The interpreter's own limit ends it."""

    def decide(policy, metrics):
        return decide(policy, metrics)

    assert rule(decide)(QUIET).reason == "policy_error"


def test_a_class_without_a_rule_is_answered():
    """Forgetting `decide` is a policy error, not an outage."""

    class Empty(Policy):
        name = "empty"

    assert Empty()(QUIET).reason == "policy_error"


def test_one_decision_object_given_twice_tells_each_request_its_own(log):
    """What the first caller was told stands; the second gets its own id and line."""
    kept = {}

    def decide(policy, metrics):
        return kept.setdefault("d", policy.defer("queue_depth"))

    policy = rule(decide, log=log)
    first = policy({}, request_id="a")
    before = (first.request_id, first.seq, first.retry_after_ms, first.verdict)
    second = policy({}, request_id="b")
    assert (first.request_id, first.seq, first.retry_after_ms, first.verdict) == before
    assert (second.request_id, second.verdict) == ("b", "defer")
    assert second.seq > first.seq
    assert [line["id"] for line in log.decisions] == ["a", "b"]


@pytest.mark.parametrize(
    ("decide", "given"),
    [
        (defers("queue_depth", retry_after_ms=200), {}),
        (defers("slots", estimate_ms=4_000), {}),
        (defers("slots", estimate_ms=10**6), {}),
        (rejects("rate_limit", retry_after_ms=90_000), {}),
        (rejects("kv_pressure"), {"enforce": 0.5}),
        (admits, {}),
        (admits, {"enforce": 0.5}),
    ],
)
def test_a_kept_decision_says_what_a_fresh_one_says(decide, given):
    """Verdict, hint and estimate of a decision that a policy keeps are not worn off."""
    kept = {}

    def keeps(policy, metrics):
        return kept.setdefault("d", decide(policy, metrics))

    fresh, worn = rule(decide, **given), rule(keeps, **given)
    for n in range(30):
        one, other = (p({}, request_id=f"r{n}") for p in (fresh, worn))
        assert one.headers() == other.headers()
        assert one.body() == other.body()
        assert (one.verdict, one.status) == (other.verdict, other.status)


def test_a_kept_decision_is_not_rewritten_while_blind(clock):
    """A posture that asks the rule again leaves what it told others alone."""
    kept = {}

    def decide(policy, metrics):
        if KV_PRESSURE.read(metrics) > 0.9:
            return kept.setdefault("d", policy.reject("kv_pressure"))
        return policy.admit()

    policy = rule(decide, on_blind="hold_last", clock=clock)
    told = policy({"kv_pressure": 0.95})
    blind = policy({})
    assert (told.reason, told.blind) == ("kv_pressure", None)
    assert (blind.reason, blind.verdict) == ("signal_absent", "reject")
    assert blind.blind


class Refusing:
    """A host's sink that raises on everything."""

    def decision(self, view, line):
        """No."""
        raise OSError("disk")

    def event(self, kind, line):
        """No."""
        raise OSError("disk")

    def flush(self, timeout_s=0.0):
        """Not possible."""
        return False

    def close(self, timeout_s=0.0):
        """Nothing to close."""

    def after_fork(self, run):
        """No."""
        raise OSError("disk")


@pytest.mark.parametrize("posture", ["degrade", "reject"])
def test_a_sink_that_raises_changes_no_decision(posture):
    """The rule's verdict stands, blind or not, and places are taken and given back."""

    def decide(policy, metrics):
        return (
            policy.reject("kv_pressure")
            if KV_PRESSURE.read(metrics) > 0.9
            else policy.admit()
        )

    policy = rule(decide, log=Refusing(), on_blind=posture, reports_outcomes=True)
    assert policy({"kv_pressure": 0.95}, request_id="a").reason == "kv_pressure"
    d = policy({"kv_pressure": 0.1}, request_id="b", bad_fact=1)
    assert (d.admitted, d.reason) == (True, None)
    assert policy({}, request_id="c").reason == "signal_absent"
    policy.first_token("b")
    policy.outcome("b")
    policy.outcome("b")
    policy.outcome("c")
    assert policy.ledger.in_flight == 0
    assert policy.flush() is False
    policy.close()


class Hostile(Mapping):
    """A mapping that raises wherever it is asked."""

    def __init__(self, where):
        self.where = where

    def _maybe(self, here):
        if self.where == here:
            raise RuntimeError(here)

    def __getitem__(self, key):
        self._maybe("get")
        return 0.95

    def __iter__(self):
        self._maybe("iter")
        return iter(["kv_pressure"])

    def __len__(self):
        self._maybe("len")
        return 1

    def __eq__(self, other):
        self._maybe("eq")
        return False

    __hash__ = None


@pytest.mark.parametrize("where", ["get", "iter", "len"])
def test_raw_metrics_that_raise_supply_nothing(where, log):
    """A mapping that cannot be read is an empty one."""
    policy = rule(admits, requires=(KV_PRESSURE,), on_blind="reject", log=log)
    for _ in range(3):
        d = policy(Hostile(where))
        assert d.admitted is (where == "len" and d.reason is None)
    assert len(log.decisions) == 3


def test_raw_metrics_that_cannot_be_compared_are_new_each_time():
    """Arrays inside a mapping make equality ambiguous: it is read all the same."""
    policy = rule(
        lambda p, m: p.reject("kv_pressure") if KV_PRESSURE.read(m) > 0.9 else None
    )
    assert [policy(Hostile("eq")).reason for _ in range(3)] == ["kv_pressure"] * 3


def test_raw_metrics_that_change_under_our_hands_are_read_anew():
    """A host may update one dict in place between requests."""
    policy = rule(
        lambda p, m: p.reject("kv_pressure") if KV_PRESSURE.read(m) > 0.9 else p.admit()
    )
    raw = {"kv_pressure": 0.1}
    assert policy(raw).admitted
    raw["kv_pressure"] = 0.95
    assert not policy(raw).admitted
    raw["kv_pressure"] = 0.1
    assert policy(raw).admitted


class BadText(str):
    """A text that cannot be encoded in its own way."""

    __slots__ = ()

    def encode(self, *_):
        """No."""
        raise RuntimeError

    def isascii(self):
        """No."""
        raise RuntimeError


class BadCount(int):
    """A number that cannot be compared."""

    def __le__(self, other):
        raise RuntimeError("cannot be compared")

    __lt__ = __ge__ = __gt__ = __le__


def test_a_name_with_ways_of_its_own_is_a_name(log):
    """A subclass of text is read as the text it is."""
    policy = rule(admits, log=log)
    d = policy(QUIET, request_id=BadText("r"), tenant=BadText("t"))
    assert (d.request_id, d.reason) == ("r", None)
    assert log.decisions[0]["facts"] == {"tenant": "t"}
    policy.first_token(BadText("r"))
    policy.outcome(BadText("r"))
    assert policy.ledger.in_flight == 0


@pytest.mark.parametrize("posture", ["degrade", "reject", "defer"])
def test_when_we_fail_ourselves_the_posture_answers_and_it_is_on_the_record(
    posture, log, caplog
):
    """An answer of last resort has a line, an id, the table's status and a place."""
    policy = rule(
        admits, on_blind=posture, preset="mesh-safe", log=log, reports_outcomes=True
    )
    d = policy(QUIET, request_id="r", input_tokens=BadCount(5))
    refused = posture != "degrade"
    assert (d.reason, d.request_id) == ("policy_error", "r")
    assert (d.admitted, d.status) == ((False, 429) if refused else (True, 200))
    assert (d.retry_after_ms is not None) is refused
    (line,) = log.decisions
    assert (line["id"], line["blind"]) == ("r", "policy_error")
    assert policy.ledger.in_flight == (0 if refused else 1)
    policy.outcome("r")
    assert policy.ledger.in_flight == 0
    assert "cannot be compared" in caplog.text


def test_when_we_fail_ourselves_the_split_holds():
    """A shadow run refuses nobody, whatever fails."""
    policy = rule(admits, on_blind="reject", enforce=0.0)
    assert policy(QUIET, input_tokens=BadCount(5)).admitted


class Untrue:
    """A flag that cannot be asked."""

    def __bool__(self):
        raise ValueError("ambiguous")


def test_an_end_that_cannot_be_read_never_reaches_the_host(log):
    """It is noted as failed, and the host goes on."""
    policy = rule(admits, log=log)
    policy({}, request_id="r")
    policy.outcome("r", ok=Untrue())
    policy.outcome("r", ttft_ms=10**400)
    policy.outcome("r", output_tokens=BadCount(5))
    assert len(log.outcomes) == 1


RAW = st.dictionaries(
    st.one_of(
        st.sampled_from(
            ["kv_pressure", "queue_depth", "vllm:kv_cache_usage_perc", "running",
             'vllm:num_requests_waiting{engine="0"}', "vllm:num_preemptions_total",
             'a{b="c', "{", "}", 'x{="', "x{y=}", "", " ", "\n", "\udc80", "名前{}"]
        ),
        st.text(max_size=12),
        st.integers(),
        st.none(),
        st.binary(max_size=3),
    ),
    st.one_of(
        st.floats(), st.integers(), st.just(10**400), st.text(max_size=3), st.none(),
        st.booleans(), st.builds(object), st.fractions(), st.decimals(),
    ),
    max_size=6,
)  # fmt: skip


@given(pages=st.lists(RAW, min_size=1, max_size=4), timed=st.booleans())
@settings(deadline=None, max_examples=150)
def test_no_raw_metrics_raise_or_break_the_log(pages, timed):
    """Any mapping gives a decision, strict lines, and no signal outside its range."""
    clock, log = FakeClock(), MemoryLog()
    policy = rule(
        lambda p, m: p.defer("slots") if KV_PRESSURE.read(m) else p.admit(),
        clock=clock, log=log, raw="inline",
    )  # fmt: skip
    for page in pages:
        d = policy(reading(clock, page) if timed else page)
        assert d.reason in (None, "slots", "signal_absent", "signal_stale")
        clock.advance(1.0)
    for text in log.texts:
        line = strict(text)
        for name, value in line.get("signals", {}).items():
            assert math.isfinite(value)
            assert value >= 0
            assert name != "kv_pressure" or value <= 1


@given(
    age_s=st.floats(allow_nan=False, min_value=0, max_value=1e6),
    interval_s=st.none() | st.floats(0, 1e6),
)
@settings(deadline=None, max_examples=50)
def test_a_reading_of_any_age_and_interval_is_answered(age_s, interval_s):
    """Old is stale, and nothing overflows."""
    once = Reading(QUIET, age_s=age_s, interval_s=interval_s)
    d = rule(admits, requires=(KV_PRESSURE,))(once)
    limit_s = max(1.5, 3 * (interval_s or 0.0))
    if age_s < limit_s * 0.9:
        assert d.reason is None
    elif age_s > limit_s * 1.1 + 1:
        assert d.reason == "signal_stale"


@pytest.mark.own_voice
def test_a_voice_that_blocks_costs_no_request():
    """Logging handlers run in a thread of their own: a stuck one stalls nobody."""
    import logging
    import threading

    stuck = threading.Event()

    class Stuck(logging.Handler):
        def emit(self, record):
            stuck.wait(20)

    logger, handler = logging.getLogger("admitperf"), Stuck()
    logger.addHandler(handler)
    try:
        policy = KvWall(threshold=0.9, max_waiting=32)
        done = threading.Event()

        def work():
            for i in range(500):
                policy({} if i % 2 else {"kv_pressure": 0.1, "queue_depth": 1})
            done.set()

        threading.Thread(target=work, daemon=True).start()
        assert done.wait(15)
    finally:
        stuck.set()
        logger.removeHandler(handler)


@pytest.mark.parametrize("posture", ["degrade", "reject", "defer"])
@pytest.mark.parametrize("enforce", [0.0, 0.5, 1.0])
def test_an_undecodable_id_is_an_id_like_any_other(posture, enforce):
    """A header byte that is no UTF-8 neither raises nor turns a refusal into a yes."""
    policy = KvWall(
        threshold=0.9, max_waiting=4, on_blind=posture, enforce=enforce, log=MemoryLog()
    )
    d = policy(
        {"kv_pressure": 0.1, "queue_depth": 500},
        request_id=b"a\xff".decode("utf8", "surrogateescape"),
    )
    assert (d.verdict, d.reason) == ("defer", "queue_depth")
    assert d.admitted is not d.enforced


def test_a_lease_is_given_back_whatever_is_told_about_the_end():
    """An `ok` that can be read neither way ends the request as not ok."""

    class Neither:
        def __bool__(self):
            raise ValueError

    log = MemoryLog()
    policy = KvWall(threshold=0.9, max_waiting=4, log=log)
    d = policy({"kv_pressure": 0.1, "queue_depth": 1})
    policy.outcome(d.request_id, Neither(), ttft_ms=Neither(), error=Neither())
    assert policy.ledger.in_flight == 0
    assert log.outcomes[0]["ok"] is False


def test_a_reading_from_the_future_is_one_from_now():
    """A scraper on another clock must not be believed for years."""
    clock = FakeClock(start_s=100.0)
    policy = KvWall(threshold=0.9, max_waiting=4, clock=clock)
    reading = Reading({"kv_pressure": 0.1, "queue_depth": 1}, taken_ns=10**18)
    assert policy(reading).blind is None
    clock.advance(10.0)
    assert policy(reading).reason == "signal_stale"
