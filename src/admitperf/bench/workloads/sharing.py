"""Tells apart what sessions share and what is a session's own.

Where blocks have one name space over all sessions, chains have too (`chains`). Here
those of a session that others go through as well get a name, as far as they do, and
the rest a number: a session that is drawn a second time then shares with the first
what any other session would, and no more.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

Tokens = Sequence[tuple[int, int]]
"""Chains that a prompt goes through, by number, and how many tokens of each."""

Prefix = tuple[tuple[int | str, int], ...]
"""The same as `Call` has it."""


def told_apart(
    prompts: Mapping[str, Sequence[Tokens]], name: str
) -> dict[str, list[Prefix]]:
    """The prompts of each session, whose chains are shared by name or its own.

    Args:
        prompts: of each session, in its order.
        name: begins the names of chains that are shared.
    """
    depths = _shared(prompts.values())
    return {
        session: [
            tuple(_apart(one, depths, name, place)) for place, one in enumerate(its)
        ]
        for session, its in prompts.items()
    }


def _shared(sessions: Iterable[Sequence[Tokens]]) -> dict[int, int]:
    """Of each chain the tokens that at least two sessions go through."""
    depths = defaultdict[int, list[int]](list)
    for prompts in sessions:
        deepest = dict[int, int]()
        for prompt in prompts:
            for chain, tokens in prompt:
                deepest[chain] = max(tokens, deepest.get(chain, 0))
        for chain, tokens in deepest.items():
            depths[chain].append(tokens)
    return {
        chain: sorted(found)[-2] for chain, found in depths.items() if len(found) > 1
    }


def _apart(
    prompt: Tokens, depths: Mapping[int, int], name: str, place: int
) -> Iterator[tuple[int | str, int]]:
    for number, (chain, tokens) in enumerate(prompt, 1):
        shared = depths.get(chain, 0)
        last = number == len(prompt)
        if shared:
            yield f"{name}/{chain}", min(tokens, shared)
        if tokens > shared or (last and tokens == shared):
            yield chain, tokens - shared
        elif last:  # others go on from within: the answer is this prompt's own
            yield -1 - place, 0
