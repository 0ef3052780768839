"""Finds the sessions of requests that have none, by what their prompts begin with.

A block is private when few requests hold it, which leaves system prompts out. A request
continues the one in which its deepest private block was seen last, when it holds all of
that one's blocks but the last, which may not have been full, and came later. Sessions
are the trees that this makes.

What it cannot see: the window cuts sessions at both ends; large blocks hide short
turns; a history that was rewritten is two sessions; users of one long document are one
session unless blocks are private to fewer requests; a request whose blocks are those of
an earlier one may be a second try.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

PRIVATE = 50
"""Requests that may hold a block before it is nobody's own. On Mooncake's conversations
20 and 200 change the number of sessions by under 0.5 %."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request.

    Attributes:
        at_s: when it came.
        blocks: of its prompt; blocks of one number are alike.
    """

    at_s: float
    blocks: Sequence[int]


def continued(asked: Sequence[Asked], private: int = PRIVATE) -> list[int | None]:
    """Of each request the place of the one that it continues; None = it begins.

    Args:
        asked: in the order of time.
        private: requests that may hold a private block.
    """
    held = Counter(block for one in asked for block in set(one.blocks))
    last_in = dict[int, int]()  # private block -> place of the request
    found = list[int | None]()
    for place, one in enumerate(asked):
        own = [block for block in one.blocks if held[block] <= private]
        seen = next((b for b in reversed(own) if b in last_in), None)
        before = None if seen is None else last_in[seen]
        follows = before is not None and _follows(asked[before], one)
        found.append(before if follows else None)
        last_in.update(dict.fromkeys(own, place))
    return found


def _follows(before: Asked, one: Asked) -> bool:
    """Whether a prompt holds all of another that came earlier."""
    whole = before.blocks[:-1]
    begins = list(one.blocks[: len(whole)]) == list(whole)
    return begins and one.at_s > before.at_s


def roots(continues: Sequence[int | None]) -> list[int]:
    """Of each request the place of the one with which its session began."""
    found = list[int]()
    for place, before in enumerate(continues):
        found.append(place if before is None else found[before])
    return found
