"""The first part that refuses answers."""

import pytest

from admitperf import Policy
from admitperf.core.decision import Decision
from admitperf.core.signals import QUEUE_DEPTH
from admitperf.core.verdict import Verdict
from admitperf.policies.first_of import FirstOf
from admitperf.policies.kv_threshold import KvThreshold
from admitperf.testing import FakeClock, MemoryLog


def composed(parts, **given):
    """A composition on a clock of its own."""
    told = {"clock": FakeClock(start_s=10.0), "reports_outcomes": True, **given}
    return FirstOf(policies=parts, **told)


def test_the_first_that_refuses_answers_and_the_rest_is_not_asked():
    """The cheapest first, and no gate of one that was not asked."""
    policy = composed("queue_depth:max_waiting=1; kv_threshold:threshold=0.5")
    d = policy({"queue_depth": 5.0, "kv_pressure": 0.9})
    assert d.reason == "queue_depth"
    assert [g.name for g in d.gates] == ["queue_depth", "first_of: 1 queue_depth"]


def test_what_all_admit_is_admitted():
    """With the gates of all of them."""
    policy = composed("queue_depth:max_waiting=1; kv_threshold:threshold=0.5")
    d = policy({"queue_depth": 1.0, "kv_pressure": 0.4})
    assert d.admitted
    assert len(d.gates) == 4


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ("rate_limit:burst=1; in_flight_cap:max_in_flight=1", ("rate_limit", 429)),
        ("in_flight_cap:max_in_flight=1; rate_limit:burst=1", ("in_flight_cap", 503)),
    ],
)
def test_the_order_is_whose_word_a_caller_hears(parts, says):
    """Both would refuse: the first is told."""
    policy = composed(parts)
    assert policy({}).admitted
    d = policy({})
    assert (d.reason, d.status) == says


def test_it_answers_as_the_part_alone_does():
    """Verdict, wait, limit and rank are the part's own."""

    class Ranking(Policy):
        """Refuses everybody, with all there is to say."""

        name = "ranking"

        def decide(self, metrics):
            """Refuse."""
            d = self.defer("slots", estimate_ms=4000, rank=7.0)
            d.limit, d.used = 3.0, 2.0
            return d

    alone = Ranking(clock=FakeClock(start_s=10.0))({}, request_id="r")
    d = composed(["no_admission", Ranking()])({}, request_id="r")
    for one in (alone, d):
        assert (one.rank, one.limit, one.used, one.estimate_ms) == (7.0, 3.0, 2.0, 4000)
    assert d.headers() == alone.headers()
    assert d.body() == alone.body()


def test_the_wait_is_measured_by_the_gates_of_who_spoke():
    """As it would be without the composition, whatever stands around it."""
    waits = []
    for made in (
        KvThreshold(threshold=0.5, clock=(one := FakeClock(start_s=10.0))),
        composed("no_admission; kv_threshold:threshold=0.5", clock=one),
    ):
        for pressure in (0.9, 0.8, 0.7, 0.6):
            d = made({"kv_pressure": pressure})
            one.advance(1.0)
        waits.append((d.wait, d.estimate_ms))
    assert waits[0] == waits[1] == ("measured", pytest.approx(1000, rel=0.4))


def test_a_part_may_say_the_same_again():
    """A decision that a part keeps and returns each time is told as a new one."""

    class Keeping(Policy):
        """Refuses everybody with one and the same answer."""

        name = "keeping"
        kept = Decision(Verdict.DEFER, "prefill_backlog")

        def decide(self, metrics):
            """Refuse."""
            metrics.above(QUEUE_DEPTH, 0)
            return self.kept

    clock = FakeClock(start_s=10.0)
    policy, told = composed([Keeping()], clock=clock), []
    for waiting in (9.0, 8.0, 7.0, 6.0):
        told.append(policy({"queue_depth": waiting}))
        clock.advance(1.0)
    assert len({d.request_id for d in told}) == 4
    assert told[3].wait == "measured"


def test_every_refusal_is_on_the_record_once():
    """One line a request, whoever of the parts refused it."""
    log = MemoryLog()
    policy = composed("rate_limit:burst=1; in_flight_cap:max_in_flight=1", log=log)
    for _ in range(3):
        policy({})
    reasons = [line.get("reason") for line in log.decisions]
    assert reasons == [None, "rate_limit", "rate_limit"]
