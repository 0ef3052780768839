"""Blocks of the cache: which are free, which can be found, and which go first."""

import pytest

from admitperf.simulator.engine.blocks import Blocks


class Asking:
    """A request that stores its tokens at once, in blocks of 10.

    Args:
        blocks: the cache.
        tokens: it has.
        prefix: how they begin.
    """

    def __init__(self, blocks, tokens, *prefix):
        self._blocks = blocks
        self.stored = 0
        self.claim = blocks.claim(prefix, lambda: self.stored)
        self.begun = blocks.start(self.claim, tokens)
        self.found = self.claim.found if self.begun else None
        if self.begun:
            self.grow(tokens, held=self.found)

    def grow(self, tokens, held=None):
        """Has so many tokens from now on."""
        held = -(-self.stored // 10) if held is None else held
        self._blocks.take(-(-tokens // 10) - held)
        self.stored = tokens

    def end(self):
        """Lets go of everything."""
        self._blocks.let_go(self.claim, self.stored)
        self._blocks.leave(self.claim)


def cache(count=10):
    """All free, 10 tokens a block."""
    return Blocks(count, 10, findable=True)


def test_a_begun_block_is_a_block_and_only_whole_ones_are_found():
    """35 tokens take 4 blocks; 3 can be found when they are over."""
    blocks = cache()
    one = Asking(blocks, 35, ("a", 35))
    assert (one.found, blocks.free) == (0, 6)
    one.end()
    assert (blocks.free, blocks.length("a")) == (10, 3)


def test_what_is_free_longest_goes_first_and_of_that_the_end():
    """4 that were never used, then a from its end, then b."""
    blocks = cache()
    Asking(blocks, 30, ("a", 30)).end()
    Asking(blocks, 30, ("b", 30)).end()
    left = []
    for count in (4, 5, 7, 9):
        other = Asking(blocks, count * 10)
        left.append((blocks.length("a"), blocks.length("b")))
        other.end()
        # What it had is free last now: fill the cache anew for the next.
        blocks = cache()
        Asking(blocks, 30, ("a", 30)).end()
        Asking(blocks, 30, ("b", 30)).end()
    assert left == [(3, 3), (2, 3), (0, 3), (0, 1)]


def test_a_broken_block_is_taken_before_any_other():
    """Nothing is lost to a second short request when the first one's block is there."""
    blocks = cache(4)
    Asking(blocks, 30, ("a", 30)).end()
    for _ in range(3):
        Asking(blocks, 5).end()
    assert blocks.length("a") == 3


def test_what_is_asked_for_again_is_held_and_then_free_last():
    """a is older than b, but was used since; so b goes first."""
    blocks = cache(7)
    Asking(blocks, 30, ("a", 30)).end()
    Asking(blocks, 30, ("b", 30)).end()
    again = Asking(blocks, 35, ("a", 30), ("x", 0))
    assert (again.found, blocks.free) == (3, 3)
    again.end()
    Asking(blocks, 30)
    assert (blocks.length("a"), blocks.length("b")) == (3, 1)


def test_what_two_hold_is_free_when_both_have_let_go():
    """Four blocks of a, and one of each request's own."""
    blocks = cache()
    Asking(blocks, 40, ("a", 40)).end()
    one, two = (Asking(blocks, 45, ("a", 40), (name, 0)) for name in "xy")
    assert blocks.free == 4
    one.end()
    assert blocks.free == 5
    two.end()
    assert blocks.free == 10


def test_one_that_finds_its_blocks_free_needs_them_all_the_same():
    """5 blocks, 4 of them found: with one of the others held there is no room."""
    blocks = cache(5)
    Asking(blocks, 40, ("a", 40)).end()
    other = Asking(blocks, 5)
    refused = Asking(blocks, 45, ("a", 40))
    assert (refused.begun, blocks.free, blocks.length("a")) == (False, 4, 4)
    other.end()
    assert Asking(blocks, 45, ("a", 40)).found == 4


def test_there_has_to_be_room_for_all_it_has_even_if_it_begins_with_less():
    """41 tokens are 5 blocks."""
    blocks = cache(5)
    Asking(blocks, 5)
    assert not Asking(blocks, 41).begun
    assert Asking(blocks, 40).begun


def test_the_last_token_is_never_found():
    """Of the same 40 tokens 3 blocks, of 41 all 4."""
    blocks = cache(20)
    Asking(blocks, 40, ("a", 40)).end()
    assert Asking(blocks, 40, ("a", 40)).found == 3
    assert Asking(blocks, 41, ("a", 40), ("x", 0)).found == 4


def test_who_extends_a_chain_is_found_as_far_as_it_is():
    """While it is under way, and what it has of a block counts for nothing."""
    blocks = cache(20)
    one = Asking(blocks, 25, ("a", 20))
    assert Asking(blocks, 60, ("a", 20), ("x", 0)).found == 2
    one.grow(49)
    assert Asking(blocks, 60, ("a", 60)).found == 4


def test_what_two_compute_side_by_side_the_second_has_for_itself():
    """It holds copies that nobody finds; the first goes on with the chain."""
    blocks = cache(20)
    one = Asking(blocks, 25, ("a", 20))
    two = Asking(blocks, 60, ("a", 60))
    assert two.found == 2
    two.end()
    assert blocks.length("a") == 2
    one.grow(45)
    one.end()
    assert (blocks.length("a"), blocks.free) == (4, 20)


def test_who_begins_before_the_end_of_a_chain_does_not_extend_it():
    """4 blocks are there, 3 are found of the same 40 tokens; what follows is a copy."""
    blocks = cache(20)
    Asking(blocks, 40, ("a", 40)).end()
    again = Asking(blocks, 40, ("a", 40))
    again.grow(60)
    assert (again.found, blocks.length("a"), blocks.free) == (3, 4, 14)
    again.end()
    assert (blocks.length("a"), blocks.free) == (4, 20)


def test_a_chain_is_what_it_is_after_what_stands_before_it():
    """b after a and b after c are different text, though c is known as well."""
    blocks = cache(20)
    Asking(blocks, 25, ("a", 10), ("b", 10), ("x", 0)).end()
    Asking(blocks, 15, ("c", 10), ("y", 0)).end()
    assert Asking(blocks, 25, ("c", 10), ("b", 10), ("z", 0)).found == 1
    assert Asking(blocks, 25, ("a", 10), ("b", 10), ("z", 0)).found == 2


def test_a_beginning_lives_longer_than_what_follows_it():
    """20 of a and 20 of x, and one block is needed: it is the last one of x."""
    blocks = cache(4)
    Asking(blocks, 40, ("a", 20), ("x", 20)).end()
    Asking(blocks, 5)
    assert blocks.length("a") == 2
    assert Asking(blocks, 25, ("a", 20), ("x", 5)).found == 2


def test_a_block_belongs_to_the_chain_that_completes_it():
    """15 of a and 5 of b: whoever has 20 of a shares one block, not two."""
    blocks = cache(20)
    Asking(blocks, 36, ("a", 15), ("b", 20), ("x", 0)).end()
    assert blocks.length("a") == 1
    assert Asking(blocks, 36, ("a", 15), ("c", 20), ("x", 0)).found == 1
    assert Asking(blocks, 36, ("a", 15), ("b", 20), ("y", 0)).found == 3


def test_where_nothing_can_be_found_blocks_are_counted_all_the_same():
    """A cache for the requests of the moment."""
    blocks = Blocks(10, 10, findable=False)
    one = Asking(blocks, 35, ("a", 35))
    assert (one.found, blocks.free) == (0, 6)
    one.end()
    assert (blocks.free, Asking(blocks, 35, ("a", 35)).found) == (10, 0)
    blocks.remember("a", 30)
    assert blocks.length("a") == 0


def test_a_chain_can_be_remembered_and_made_longer():
    """In whole blocks; a shorter one changes nothing, and all of it is free."""
    blocks = cache()
    for tokens, length in ((35, 3), (20, 3), (80, 8)):
        blocks.remember("a", tokens)
        assert (blocks.length("a"), blocks.free) == (length, 10)


def test_what_does_not_fit_is_not_remembered():
    """Six are held."""
    blocks = cache()
    Asking(blocks, 60)
    with pytest.raises(ValueError, match="a: 5 blocks more, and 4 are free"):
        blocks.remember("a", 50)
    blocks.remember("a", 40)
    assert blocks.length("a") == 4
