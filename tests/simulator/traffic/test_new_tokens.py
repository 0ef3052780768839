"""What is new in a session's prompts is what an endless cache would not hold."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.small import model

from admitperf.simulator import End, Engine
from admitperf.simulator.traffic.sessions import Call, Session, UnderWay, new_tokens

ENDLESS = model(kv_blocks=50_000, block_size=1)


def call(tokens, *prefix, output_tokens=5):
    """A call after the one before it."""
    return Call(after=None, gap_s=0.0, input_tokens=tokens,
                output_tokens=output_tokens, prefix=prefix)  # fmt: skip


def session(*calls):
    """Calls of one session."""
    return Session("s", calls, 100)


def test_a_prompt_that_grows_is_new_as_far_as_nobody_has_said_it():
    """Its answer was said too: of 180 tokens 100 and an answer of 5 are known."""
    grown = session(call(100, (0, 100)), call(180, (0, 180)), call(150, (0, 150)))
    assert new_tokens(grown) == [100, 75, 0]


def test_what_all_share_is_new_once_in_a_session():
    """And what goes its own way after it is new each time."""
    calls = [call(100, ("all", 60), (n, 40)) for n in range(3)]
    assert new_tokens(session(*calls)) == [100, 40, 40]


def test_a_beginning_that_is_known_in_part_ends_there():
    """What follows it was said after other text."""
    calls = [call(60, ("all", 60), ("b", 0)), call(200, ("all", 90), ("b", 0))]
    assert new_tokens(session(*calls)) == [60, 140]


def test_a_prompt_that_repeats_nothing_is_new_and_repeats_nothing_later():
    """It has no chain that anything could go on with."""
    assert new_tokens(session(call(70), call(70))) == [70, 70]


def test_who_hangs_up_has_heard_only_a_part():
    """Two tokens of the answer are in the next prompt, not five."""
    first = replace(call(100, (0, 100)), hangs_up_after=2)
    assert new_tokens(session(first, call(180, (0, 180)))) == [100, 78]


CHAINS = st.lists(
    st.tuples(st.sampled_from([0, 1, "all"]), st.integers(0, 40)), max_size=3
)
CALLS = st.builds(
    lambda prefix, more, output: call(
        max(1, sum(n for _, n in prefix) + more), *prefix, output_tokens=output
    ),
    CHAINS,
    st.integers(0, 30),
    st.integers(1, 20),
)


@given(st.lists(CALLS, min_size=1, max_size=8))
@settings(deadline=None)
def test_an_engine_with_room_computes_just_that(calls):
    """But for the last token of an answer, which no engine keeps, and of a prompt.

    A prompt that is held to its end has its last block computed once more, and what
    follows that copy is not found again: a limit of the simulated engine, said on its
    page, so a session is followed until it has one.
    """
    one, engine, found = UnderWay(session(*calls)), Engine(ENDLESS), []
    for place in range(len(calls)):
        engine.submit(one.arrival(place, engine.now_s))
        found += [
            e.cached_tokens for e in engine.run_to(float("inf")) if type(e) is End
        ]
    for asked, new, cached in zip(calls, new_tokens(one.session), found, strict=True):
        assert 0 <= asked.input_tokens - new - cached <= 1
        if new == 0:
            break


def test_a_call_whose_caller_hangs_up_asks_for_all_and_takes_a_part():
    """The bound stays; who takes all of it hangs up on nothing."""
    for after, taken in ((2, 2), (5, 5), (9, 5), (None, 5)):
        one = UnderWay(session(replace(call(10), hangs_up_after=after)))
        arrival = one.arrival(0, 1.0)
        assert (arrival.output_tokens, arrival.hangs_up) == (taken, taken < 5)
        assert arrival.max_output_tokens == 100


def test_a_request_says_who_pays_for_its_session():
    """None where nobody is told apart."""
    for tenant in (None, "t"):
        one = UnderWay(replace(session(call(10)), tenant=tenant))
        assert one.arrival(0, 0.0).tenant == tenant
