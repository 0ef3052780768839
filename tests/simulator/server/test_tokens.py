"""Counting without a tokenizer keeps what a real tokenizer would keep."""

from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.simulator.server.tokens import count, digest, hashes
from admitperf.simulator.server.words import WORDS, Tape

TEXT = st.text(alphabet=st.sampled_from("ab c,.\n\tzé漢"), max_size=200)
BREAK = st.sampled_from([" ", "\n"])


@settings(deadline=None, max_examples=60)
@given(text=st.text(max_size=300), size=st.integers(1, 20))
def test_blocks_and_what_is_left_are_all_tokens(text, size):
    """No token is lost between blocks, and none is cut in two."""
    blocks, rest = hashes(text, size)
    assert count(rest) < size
    assert len(blocks) * size + count(rest) == count(text)


@settings(deadline=None, max_examples=60)
@given(before=TEXT, blank=BREAK, more=TEXT, size=st.integers(1, 8))
def test_a_text_that_goes_on_after_a_blank_keeps_its_blocks(before, blank, more, size):
    """So the next prompt of a conversation begins with the blocks of the last."""
    old, rest = hashes(before, size)
    new, _ = hashes(before + blank + more, size)
    assert new[: len(old)] == old
    on, _ = hashes(rest + blank + more, size, old[-1] if old else 0)
    assert old + on == new


def test_english_has_about_four_characters_a_token():
    """The rule is a fair stand-in for a tokenizer."""
    text = (
        "Admission control decides which requests an engine starts at once, which of"
        " them have to wait for a while, and which are refused because they could not"
        " be served in time anyway. "
    ) * 20
    assert 3.5 < len(text) / count(text) < 4.5


def test_ids_are_counted_exactly_and_a_text_is_at_least_one_token():
    """What a caller has tokenized is taken as it is."""
    assert count(tuple(range(77))) == 77
    assert count("a") == 1
    assert hashes((1, 2, 3, 4, 5), 2)[1] == (5,)


def test_a_word_of_an_answer_is_one_token_and_needs_no_escape():
    """Else the counts of a stream would not add up."""
    assert {count(f" {word}") for word in WORDS} == {1}
    assert all(word.isalpha() and word.isascii() for word in WORDS)
    assert len(set(WORDS)) == len(WORDS)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 5), most=st.integers(1, 9000), name=st.text(max_size=5))
def test_an_answer_follows_from_seed_and_prompt(seed, most, name):
    """In every process; as text, as words and as ids it has the same length."""
    start, length = Tape(seed).answer(name, most, forced=False)
    assert (start, length) == Tape(seed).answer(name, most, forced=False)
    assert 1 <= length <= most
    tape = Tape(seed)
    assert tape.answer(name, most, forced=True)[1] == most
    text = tape.text(start, length, bare=True)
    words = [tape.word(start + i, bare=not i).decode() for i in range(length)]
    assert "".join(words) == text
    assert count(text) == length == len(tape.ids(start, length))


def test_prompts_are_told_apart_the_same_way_in_every_process():
    """A digest, not Python's hash, which differs between processes."""
    assert digest("hello") == "46fb7408d4f285228f4af516ea25851b"
    assert digest((1, 2)) == digest("1,2")
    assert digest("\ud800") != digest("\ud801")
