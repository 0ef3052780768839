"""Tokens are counted where they can be, else estimated from what answers taught."""

import pytest

from admitperf.gateway.facts.body import Wish
from admitperf.gateway.facts.tokens import START_BYTES, TokenCounter


def text(size):
    """A prompt of this many bytes."""
    return Wish(text_bytes=size)


def test_the_first_estimate_is_four_bytes_a_token():
    """Before any answer a rule of thumb is used, rounded up."""
    counter = TokenCounter()
    assert counter.estimate("m", text(400)) == 100
    assert counter.estimate("m", text(401)) == 101
    assert counter.estimate(None, text(0)) == 0


def test_token_ids_are_exact_and_an_unreadable_body_is_unknown():
    """What is known is not estimated, and what cannot be read is not guessed."""
    counter = TokenCounter()
    assert counter.estimate("m", Wish(prompt_tokens=7, text_bytes=999)) == 7
    assert counter.estimate("m", Wish(readable=False)) is None


@pytest.mark.parametrize("ratio", [1.5, 2.7, 6.0])
def test_a_model_learns_its_ratio_and_no_other_does(ratio):
    """After some dozens of answers the estimate is within a few percent."""
    counter = TokenCounter()
    for size in range(1000, 5000, 50):
        counter.learn("m", text(size), round(size / ratio))
    assert counter.bytes_per_token("m") == pytest.approx(ratio, rel=0.03)
    assert counter.bytes_per_token("other") == START_BYTES


def test_a_changed_ratio_is_learnt_anew():
    """The past fades: a model swapped behind its name is followed."""
    counter = TokenCounter()
    for _ in range(200):
        counter.learn("m", text(1000), 500)
    for _ in range(200):
        counter.learn("m", text(1000), 200)
    assert counter.bytes_per_token("m") == pytest.approx(5.0, rel=0.05)


@pytest.mark.parametrize(
    ("wish", "tokens"),
    [
        (Wish(text_bytes=1000, images=1), 800),
        (Wish(text_bytes=1000, audio=1), 800),
        (Wish(text_bytes=1000, files=1), 800),
        (Wish(prompt_tokens=50, text_bytes=0), 50),
        (text(0), 10),
        (text(1000), 0),
        (text(1000), -5),
        (text(1_000_000), 1),
        (text(10), 1000),
        (Wish(text_bytes=1000, estimated=True), 500),
    ],
)
def test_only_pure_text_with_a_sane_count_teaches(wish, tokens):
    """Pictures, token ids, mere bounds and odd counts leave the ratio as it was."""
    counter = TokenCounter()
    counter.learn("m", wish, tokens)
    assert counter.bytes_per_token("m") == START_BYTES


def test_parts_that_are_no_text_count_as_configured_for_their_model():
    """A model's own constants come first, then its pool's, then the built-in ones."""
    counter = TokenCounter({"image": 100}, {"big": {"image": 1000, "file": 1}})
    wish = Wish(text_bytes=40, images=2, audio=1, files=1)
    assert counter.estimate("big", wish) == 10 + 2000 + 750 + 1
    assert counter.estimate("small", wish) == 10 + 200 + 750 + 2000


def test_the_models_remembered_are_bounded():
    """Names callers make up push each other out, not the memory."""
    counter = TokenCounter()
    for number in range(5000):
        counter.learn(f"m{number}", text(1000), 500)
    assert len(counter._sums) <= 256
    assert counter.bytes_per_token("m4999") < START_BYTES


def test_a_models_name_is_kept_short():
    """However long a name is, what is kept of it is not, and two stay two."""
    one, other = "m" * 5000 + "1", "m" * 5000 + "2"
    counter = TokenCounter(each={one: {"image": 1000}})
    counter.learn(one, text(1000), 500)
    assert max(map(len, counter._sums)) == 256
    assert counter.bytes_per_token(one) < START_BYTES == counter.bytes_per_token(other)
    assert counter.estimate(one, Wish(images=1)) == 1000
