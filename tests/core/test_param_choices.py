"""A text parameter that takes one of a few words."""

from typing import Annotated

import pytest

from admitperf import ConfigError, Param, Policy


class Picky(Policy):
    """A policy with two such parameters."""

    name = "picky"
    action: Annotated[str, Param("what to do", choices=("defer", "reject"))] = "defer"
    tone: Annotated[str | None, Param("how", choices=("kind",))] = None

    def decide(self, metrics):
        """Admit."""
        return self.admit()


@pytest.mark.parametrize("word", ["defer", "reject"])
def test_each_choice_is_taken(word):
    """A word on the list becomes the attribute."""
    assert Picky(action=word).action == word


def test_another_word_is_a_fault_that_names_the_choices():
    """Every fault is told at once, each with the words that would do."""
    with pytest.raises(ConfigError) as caught:
        Picky(action="drop", tone="rude")
    assert caught.value.faults == [
        "action = 'drop' is not one of defer, reject",
        "tone = 'rude' is not one of kind",
    ]


@pytest.mark.parametrize("value", [1, None, True, ["defer"]])
def test_what_is_no_text_is_told_as_such(value):
    """The kind of a value is judged before its choice."""
    with pytest.raises(ConfigError, match="action"):
        Picky(action=value)


def test_an_optional_choice_may_be_none():
    """None stays None where the annotation allows it."""
    assert Picky(tone=None).tone is None


def test_the_range_in_words_is_the_choices():
    """Help and reference pages print the same words as the fault."""
    assert Picky.declared()["action"].range_text() == "one of defer, reject"
