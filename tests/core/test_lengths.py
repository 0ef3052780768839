"""How long answers are, learnt from how long they were."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.rules import QUIET, admits, rule

from admitperf.core.lengths import CLASSES_MOST, SHRINK, Lengths
from admitperf.core.recent import KEPT
from admitperf.core.request import Request
from admitperf.testing import FakeClock, snapshot


def learnt(lengths, tokens, **facts):
    """Teaches answers of these sizes."""
    for one in tokens:
        lengths.learn(Request(facts), one)
    return lengths


def guess(lengths, q=0.5, **facts):
    """What it says of a request."""
    return lengths.quantile(Request(facts), q)


def test_nothing_is_known_before_anything_was_learnt():
    """Absence is not zero: then it is what the request allows, or not known."""
    assert guess(Lengths()) is None
    assert guess(Lengths(), max_output_tokens=300) == 300
    assert guess(Lengths(), max_output_tokens=300, n=2) == 600


def test_a_quantile_is_of_the_answers_seen():
    """Nearest rank, of one class that is all there is."""
    sizes = list(range(1, 101))
    random.Random(3).shuffle(sizes)
    lengths = learnt(Lengths(), sizes)
    assert [guess(lengths, q) for q in (0.0, 0.5, 0.8, 0.95, 1.0)] == [
        1,
        50,
        80,
        95,
        100,
    ]


def test_never_more_than_the_request_allows():
    """The engine would end it there."""
    lengths = learnt(Lengths(), [500] * 50)
    assert guess(lengths, max_output_tokens=64) == 64
    assert guess(lengths, max_output_tokens=64, n=3) == 192
    assert guess(lengths, n=3) == 1500


def test_a_class_with_few_answers_leans_on_the_one_around_it():
    """Ten of its own beside thirty of the wider class: a quarter of the way."""
    lengths = learnt(Lengths(), [100] * 300, model="m", slo_class="chat")
    learnt(lengths, [900] * 10, model="m", slo_class="agent")
    everything = guess(lengths)
    assert everything == 100
    expected = (10 * 900 + SHRINK * 100) / (10 + SHRINK)
    assert guess(lengths, model="m", slo_class="agent") == expected
    assert guess(lengths, model="m", slo_class="chat") == 100


def test_a_class_with_many_answers_stands_by_itself():
    """The pull of the rest fades as 30 over n."""
    lengths = learnt(Lengths(), [100] * 256, tenant="a")
    learnt(lengths, [900] * 200, tenant="b")
    assert guess(lengths, tenant="a", q=0.5) < 300
    assert guess(lengths, tenant="b", q=0.5) > 700


def test_so_much_does_a_class_lean():
    """Thirty of its own beside the rest: half and half."""
    lengths = learnt(Lengths(), [100] * 200, model="m", slo_class="chat")
    learnt(lengths, [300] * SHRINK, model="m", slo_class="agent")
    wide = guess(lengths)
    assert guess(lengths, model="m", slo_class="agent") == (300 + wide) / 2


def test_mean_and_variance_of_a_class_lean_too():
    """What a normal law needs, from the same answers."""
    lengths = Lengths()
    assert lengths.moments() is None
    learnt(lengths, [90, 110] * 50, model="m")
    assert lengths.moments("m") == (100.0, 100.0)
    assert lengths.moments("unknown") == lengths.moments() == (100.0, 100.0)
    learnt(lengths, [400] * 30, model="n")
    (own, _), (wide, _) = lengths.moments("n"), lengths.moments()
    assert own == (30 * 400 + SHRINK * wide) / (30 + SHRINK)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3 * KEPT))
def test_mean_and_variance_are_those_of_the_answers_it_holds(sizes):
    """Kept sums forget what the class forgets: the oldest, and all before a drift."""
    lengths = learnt(Lengths(), sizes)
    held = lengths._classes[None].ordered
    mean, variance = lengths.moments()
    assert mean == pytest.approx(statistics.fmean(held))
    assert variance == pytest.approx(statistics.pvariance(held), abs=1e-9)


def test_a_session_knows_itself_best():
    """Its own answers count beside those of its tenant."""
    lengths = Lengths()
    for _ in range(30):
        learnt(lengths, [100] * 6, tenant="a")
        learnt(lengths, [2000], tenant="a", session="s")
    assert guess(lengths, tenant="a", session="s") > guess(lengths, tenant="a")


def test_what_changed_is_forgotten():
    """Two hundred short answers do not stand against sixteen long ones for long."""
    drawn = random.Random(1)
    lengths = learnt(Lengths(), [drawn.randint(50, 150) for _ in range(200)])
    learnt(lengths, [drawn.randint(900, 1100) for _ in range(32)])
    assert guess(lengths) > 800
    assert guess(lengths, 0.05) > 800


def test_chance_is_not_taken_for_change():
    """Of one law, two hundred times over, the past is hardly ever dropped."""
    kept = 0
    for seed in range(200):
        drawn = random.Random(seed)
        lengths = Lengths()
        learnt(lengths, [int(drawn.lognormvariate(5, 1)) for _ in range(128)])
        kept += len(lengths._classes[None]) == 128
    assert kept >= 190


def test_equal_answers_are_no_change():
    """A class that always answers alike keeps its past."""
    lengths = learnt(Lengths(), [64] * 200)
    assert len(lengths._classes[None]) == 200


def test_memory_is_bounded():
    """So many answers a class, so many classes, the ones used last."""
    lengths = Lengths()
    for number in range(3 * CLASSES_MOST):
        learnt(lengths, [number % 7], session=f"s{number}")
    assert len(lengths._classes) == CLASSES_MOST
    assert len(lengths._classes[None]) == KEPT


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=120),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
)
def test_quantiles_lie_within_what_was_seen_and_do_not_cross(seen, one, other):
    """Shrunk or not, drifted or not."""
    lengths = learnt(Lengths(), seen, tenant="a", input_tokens=100)
    low, high = sorted((one, other))
    a, b = (guess(lengths, q, tenant="a", input_tokens=100) for q in (low, high))
    assert min(seen) <= a <= b <= max(seen)


def test_a_policy_learns_from_answers_that_ended_properly():
    """Cut off ones say how long the caller stayed."""
    seen = []

    def decide(policy, metrics):
        seen.append(metrics.output_tokens(0.8))
        return policy.admit()

    policy = rule(decide, clock=FakeClock())
    for ok, tokens in ((True, 80), (False, 3), (True, None), (True, 80)):
        policy.outcome(policy(QUIET).request_id, ok=ok, output_tokens=tokens)
    policy(QUIET, max_output_tokens=50)
    assert seen == [None, 80, 80, 80, 50]


def test_answers_of_one_request_are_divided():
    """`n` answers are learnt as so many of a part each."""
    policy = rule(admits, clock=FakeClock())
    policy.outcome(policy(QUIET, n=4).request_id, output_tokens=400)
    assert policy.ledger.lengths.quantile(Request({}), 0.5) == 100


def test_a_share_of_work_uses_what_answers_take():
    """What callers allow at most is not what they use: one place knows sizes."""
    policy = rule(admits, clock=FakeClock(), reports_outcomes=True)
    ledger = policy.ledger
    asked = Request({"input_tokens": 100, "max_output_tokens": 8000})
    assert ledger.cost_of(asked) == 8100
    policy.outcome(policy(QUIET).request_id, output_tokens=50)
    assert ledger.cost_of(asked) == 150


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
def test_a_snapshot_made_by_hand_knows_no_lengths(q):
    """It stands for a host at its start."""
    assert snapshot({}, max_output_tokens=10).output_tokens(q) == 10
    assert snapshot({}).output_tokens(q) is None
