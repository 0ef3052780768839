"""Prompts as chains find in the cache what a real engine would find by block."""

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.server.ask import Ask
from admitperf.simulator.server.intake import Intake
from admitperf.simulator.server.prefixes import Prefixes
from admitperf.simulator.server.words import Tape

SIZE = 4
MODEL = EngineModel(max_num_seqs=4, kv_blocks=5000, block_size=SIZE, step_ms=1.0)


class Blocks:
    """The real thing: every whole block that was ever stored, by all it follows."""

    def __init__(self):
        self._stored = set()

    def found(self, ids):
        """Tokens of a prompt that are there; the last one never is."""
        blocks = 0
        while (blocks + 1) * SIZE < len(ids) and ids[
            : (blocks + 1) * SIZE
        ] in self._stored:
            blocks += 1
        return blocks * SIZE

    def store(self, ids, found):
        """A request that ended, of which so many tokens were found.

        A prompt of whole blocks computes its last one again. That is a copy, and what
        follows a copy cannot be found: the engine model leaves that out.
        """
        if ids[: found + SIZE] in self._stored:
            return
        for end in range(SIZE, len(ids) + 1, SIZE):
            self._stored.add(ids[:end])


# A step of a story: how far back into which earlier conversation a prompt goes, what
# follows there, and how long the answer is.
STEP = st.tuples(
    st.integers(0, 5), st.integers(0, 60), st.lists(st.integers(0, 1), max_size=14),
    st.integers(1, 12),
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(story=st.lists(STEP, min_size=1, max_size=14))
def test_what_is_found_is_what_blocks_would_find(story):
    """Never more; and never less, unless an answer leaves another's in its middle."""
    tape, oracle, engine = Tape(3), Blocks(), Engine(MODEL)
    intake = Intake(MODEL, tape)
    told, cut = [()], []
    keep = Prefixes._cut
    with patch.object(Prefixes, "_cut", lambda *args: cut.append(1) or keep(*args)):
        for which, back, more, length in story:
            earlier = told[which % len(told)]
            prompt = (*earlier[: max(0, len(earlier) - back)], *more) or (7,)
            ask = Ask(prompts=[prompt], most=length, forced=True, echoed={})
            (entry,) = intake.entries(ask)
            assert sum(n for _, n in entry.arrival.prefix) == len(prompt)
            assert engine.submit(entry.arrival)
            (end,) = [e for e in engine.run_to(float("inf")) if hasattr(e, "e2e_ms")]
            expected = oracle.found(prompt)
            assert end.cached_tokens <= expected
            assert cut or end.cached_tokens == expected
            part = entry.part
            whole = prompt + tape.ids(part.start, part.length)
            # The last token is given and never stored.
            oracle.store(whole[:-1], end.cached_tokens)
            told.append(whole)


def test_an_answer_that_leaves_another_in_its_middle_shares_the_prompt_alone():
    """What comes after the prompt would be the other's, so it is nobody else's."""
    prefixes = Prefixes(4, most=100)
    prefixes.path([1, 2, 3, 4], 8)
    assert prefixes.path([1, 2, 3, 4, 5], 18) == (("c1", 18),)
    shared, own = prefixes.path([1, 2, 3, 9], 9)
    assert shared == ("c1", 8)
    assert own[1] == 1
    assert own[0] not in {"c1", "c2"}


def test_what_was_named_longest_ago_is_forgotten_first():
    """The book of names has a bound, and what is in use stays in it."""
    prefixes = Prefixes(4, most=6)
    first = prefixes.path([1, 2, 3], 12)
    prefixes.path([10, 20, 30], 12)
    assert prefixes.path([1, 2, 3], 12) == first
    prefixes.path([11, 21, 31], 12)
    assert len(prefixes) == 6
    assert prefixes.path([1, 2, 3], 12) == first
    assert prefixes.path([10, 20, 30], 12) != (("c2", 12),)


def test_a_prompt_that_leaves_a_chain_begins_its_own_there():
    """The engine shares what is before, and nothing after."""
    prefixes = Prefixes(4, most=100)
    (one,) = prefixes.path([1, 2, 3], 10)
    assert one == ("c1", 10)
    assert prefixes.path([1, 2, 9], 13) == (("c1", 8), ("c2", 5))
    assert prefixes.path([1, 2, 9, 8], 17) == (("c1", 8), ("c2", 9))
    assert prefixes.path([1, 2, 9, 7], 17) == (("c1", 8), ("c2", 4), ("c3", 5))
