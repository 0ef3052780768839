"""Any sequence of calls that a host could make."""

from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import strategies as st

from admitperf.testing import FakeClock, MemoryLog

FACTS = st.fixed_dictionaries(
    {},
    optional={
        "tenant": st.sampled_from(["a", "b", "c"]),
        "session": st.sampled_from(["s", "t"]),
        "logical_id": st.sampled_from(["l", "m", "n"]),
        "attempt": st.integers(0, 3),
        "input_tokens": st.integers(0, 10_000),
        "max_output_tokens": st.integers(1, 4_000),
        "deadline_s": st.floats(0.0, 60.0),
        "stream": st.booleans(),
    },
)
RAW = st.fixed_dictionaries(
    {},
    optional={
        "vllm:kv_cache_usage_perc": st.sampled_from([0.0, 0.5, 0.95, 1.0, 1.7]),
        "vllm:num_requests_waiting": st.sampled_from([0, 3, 200, -1]),
        "vllm:num_requests_running": st.integers(0, 64),
        "kv_capacity_tokens": st.sampled_from([2_000, 1_000_000]),
        "prefix_hit_rate": st.sampled_from([0.0, 0.1, 0.9]),
        "pool_load": st.sampled_from([0.5, 1.5]),
    },
)
WHICH = st.integers(0, 30)
OUTCOMES = st.fixed_dictionaries(
    {"ok": st.booleans()},
    optional={
        "ttft_ms": st.integers(0, 5_000),
        "max_gap_ms": st.integers(0, 900),
        "e2e_ms": st.integers(0, 60_000),
        "output_tokens": st.integers(0, 4_000),
    },
)


def histories(seconds=20.0):
    """Lists of steps.

    A call, one that is held, a refusal of the host's own, a first token, an end, or
    up to `seconds` pass.
    """
    step = st.one_of(
        st.tuples(st.just("ask"), RAW, FACTS),
        st.tuples(st.just("hold"), st.lists(RAW, min_size=1), FACTS, st.booleans()),
        st.tuples(st.just("refuse"), RAW, FACTS),
        st.tuples(st.just("token"), WHICH),
        st.tuples(st.just("end"), WHICH, OUTCOMES),
        st.tuples(st.just("pass"), st.floats(0.0, seconds)),
    )
    return st.lists(step, max_size=40)


@dataclass
class Played:
    """What came of a history.

    Attributes:
        asked: every decision, with the facts it was made on.
        ended: indices of the decisions that an outcome was reported for, in order.
    """

    asked: list = field(default_factory=list)
    ended: list = field(default_factory=list)

    @property
    def open(self):
        """Decisions that let a request in which has not ended."""
        done = set(self.ended)
        return [a for i, a in enumerate(self.asked) if i not in done and a[0].admitted]


def play(policy, clock, history, before_each=lambda _played: None):
    """Take the steps in order; a step on a request that is not there does nothing."""
    played = Played()
    for kind, *rest in history:
        before_each(played)
        with suppress(IndexError):
            STEPS[kind](policy, clock, played, *rest)
    return played


def _ask(policy, _clock, played, raw, facts):
    played.asked.append((policy(raw, **facts), facts))


def _hold(policy, clock, played, raws, facts, probe):
    """Asked about reading after reading, then answered, perhaps let in as a probe."""
    d = policy.ask(raws[0], **facts)
    for raw in raws[1:]:
        if d.open:
            clock.advance(0.25)
            d = policy.ask(raw, request_id=d.request_id, **facts)
    played.asked.append((policy.answer(d, held_ms=1.0, probe=probe), facts))


def _refuse(policy, _clock, played, raw, facts):
    d = policy.refuse(raw, "rate_limit", why="early", retry_after_ms=500.0, **facts)
    played.asked.append((d, facts))


def _token(policy, _clock, played, which):
    policy.first_token(played.asked[which][0].request_id)


def _end(policy, _clock, played, which, outcome):
    policy.outcome(played.asked[which][0].request_id, **outcome)
    played.ended.append(which)


def _pass(_policy, clock, _played, seconds):
    clock.advance(seconds)


STEPS = {
    "ask": _ask,
    "hold": _hold,
    "refuse": _refuse,
    "token": _token,
    "end": _end,
    "pass": _pass,
}


def watched(cls, **settings):
    """A policy of a class with a fake clock and a memory log, and those two."""
    clock, log = FakeClock(wall_s=1_700_000_000.0), MemoryLog()
    policy = cls(clock=clock, log=log, reports_outcomes=True, **settings)
    return policy, clock, log
