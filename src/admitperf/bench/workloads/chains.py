"""What prompts have in common, as chains: text that only grows.

Prompts are lists of blocks; those that begin alike share the blocks up to where they
part. Together they form a tree, and the tree is cut into chains so that what most
prompts go through stays one chain: a prompt then goes through few of them.
"""

from collections.abc import Iterable, Sequence

Run = tuple[int, int]
"""Blocks with numbers in a row: the first number, and how many."""

Path = tuple[tuple[int, int], ...]
"""Chains that a prompt goes through, by number, and how many blocks of each."""


def in_rows(blocks: Iterable[int]) -> list[Run]:
    """Blocks by their numbers, those in a row as one run."""
    made = list[Run]()
    for block in blocks:
        if made and block == made[-1][0] + made[-1][1]:
            made[-1] = (made[-1][0], made[-1][1] + 1)
        else:
            made.append((block, 1))
    return made


class _Node:
    """Where prompts part or end.

    Attributes:
        first, count: the run of blocks that leads to it.
        up: where that run begins; None = this is the beginning of all.
        below: what follows, by the number of its first block, in order of appearance.
        through: prompts that come through here.
        chain: the number of the chain that the run belongs to.
        ended: prompts that ended here and that nothing has followed yet.
    """

    __slots__ = ("below", "chain", "count", "ended", "first", "through", "up")

    def __init__(self, first: int, count: int, up: "_Node | None") -> None:
        self.first = first
        self.count = count
        self.up = up
        self.below: dict[int, _Node] = {}
        self.through = 0
        self.chain = -1
        self.ended: list[_Prompt] = []


class _Prompt:
    """Where a prompt ends, and what came next that begins with all of it."""

    __slots__ = ("end", "followed")

    def __init__(self, end: _Node) -> None:
        self.end = end
        self.followed: _Node | None = None

    def next(self) -> _Node | None:
        """The run that follows the prompt; later prompts may have parted within it."""
        node = self.followed
        while node is not None and node.up is not self.end:
            node = node.up
        return node


def chains(prompts: Iterable[Sequence[Run]]) -> list[Path]:
    """For each prompt the chains it goes through.

    The last of a path is the chain that goes on to what came next, which holds the
    prompt's answer; the prompt may have no block of it.
    """
    root = _Node(0, 0, None)
    made = [_insert(root, prompt) for prompt in prompts]
    spare = _number(root)
    return [_path(prompt, spare + place) for place, prompt in enumerate(made)]


def _insert(root: _Node, prompt: Sequence[Run]) -> _Prompt:
    node = root
    for run in prompt:
        first, count = run
        while count:
            node = _step(node, first, count)
            first, count = first + node.count, count - node.count
    ended = _Prompt(node)
    node.ended.append(ended)
    return ended


def _step(node: _Node, first: int, count: int) -> _Node:
    """Goes down by as much of a run as stands there, or puts it there."""
    below = node.below.get(first)
    if below is None:
        below = node.below[first] = _Node(first, count, node)
    elif below.count > count:
        below = _split(below, count)
    below.through += 1
    for prompt in node.ended:
        prompt.followed = below
    node.ended.clear()
    return below


def _split(node: _Node, count: int) -> _Node:
    """Puts a node on the way to another, after so many blocks."""
    upper = _Node(node.first, count, node.up)
    upper.through = node.through
    if node.up:
        node.up.below[node.first] = upper
    node.first, node.count, node.up = node.first + count, node.count - count, upper
    upper.below[node.first] = node
    return upper


def _number(root: _Node) -> int:
    """Gives each node the number of its chain; returns the first that is left."""
    count, left = 0, [root]
    while left:
        node = left.pop()
        onward = None if node is root else _onward(node)
        for below in node.below.values():
            if below is onward:
                below.chain = node.chain
            else:
                below.chain, count = count, count + 1
            left.append(below)
    return count


def _onward(node: _Node) -> _Node | None:
    """Where the chain goes on: to where most prompts go, to the latest of several."""
    latest_first = reversed(node.below.values())
    return max(latest_first, key=lambda one: one.through, default=None)


def _path(prompt: _Prompt, spare: int) -> Path:
    """The path of a prompt; `spare` is a chain for an answer that nothing follows."""
    path = list[tuple[int, int]]()
    node: _Node | None = prompt.end
    while node is not None and node.up is not None:
        if path and path[-1][0] == node.chain:
            path[-1] = (node.chain, path[-1][1] + node.count)
        else:
            path.append((node.chain, node.count))
        node = node.up
    path.reverse()
    follows = prompt.next()
    answer = follows.chain if follows else spare
    if prompt.end.below and answer != prompt.end.chain:
        path.append((answer, 0))
    return tuple(path)
