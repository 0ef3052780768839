"""Which chains of the engine's prefix cache a prompt consists of.

The engine knows content by chains that only grow; HTTP brings text. Here each block of
what was ever asked or answered is known by what it and all before it say, and belongs
to one chain. A prompt that leaves a known chain begins one of its own there.
"""

from collections.abc import Sequence

from admitperf.simulator.traffic.arrival import Prefix


class _Chain:
    """A stretch of known blocks.

    Attributes:
        path: the chains before it and how many of their tokens, in order.
        name: of itself.
        start: its first block.
        end: the block after its last.
    """

    __slots__ = ("end", "name", "path", "start")

    def __init__(self, path: Prefix, name: str, start: int) -> None:
        self.path = path
        self.name = name
        self.start = start
        self.end = start


class Prefixes:
    """The chains of one engine's life, as far as they are remembered.

    Args:
        size: tokens a block holds.
        most: blocks to remember, those named longest ago are forgotten first. The
            engine holds fewer, so what is forgotten here is long gone there.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._most = most
        self._known: dict[int, _Chain] = {}  # the last named last
        self._names = 0

    def __len__(self) -> int:
        return len(self._known)

    def path(self, blocks: Sequence[int], tokens: int) -> Prefix:
        """Takes in a prompt with its answer.

        Args:
            blocks: what each whole block of prompt and answer is known by.
            tokens: of the prompt alone.

        Returns:
            The chains the prompt consists of; their tokens add up to all of it.
        """
        chain = self._taken_in(blocks)
        whole = tokens // self._size
        if chain.start > whole:  # it is another's up to somewhere in the answer
            return self._cut(chain, whole, tokens)
        return (*chain.path, (chain.name, tokens - chain.start * self._size))

    def _taken_in(self, blocks: Sequence[int]) -> _Chain:
        """The chain that the last of the blocks belongs to."""
        known = len(blocks)
        while known and blocks[known - 1] not in self._known:
            known -= 1
        chain = self._known[blocks[known - 1]] if known else self._new((), 0)
        if known == len(blocks) or chain.end == known:
            pass
        elif known:
            passed = (chain.name, (known - chain.start) * self._size)
            chain = self._new((*chain.path, passed), known)
        self._remember(blocks, known, chain)
        return chain

    def _remember(self, blocks: Sequence[int], known: int, chain: _Chain) -> None:
        for block in blocks[:known]:
            old = self._known.pop(block, None)
            if old is not None:
                self._known[block] = old
        for block in blocks[known:]:
            self._known[block] = chain
        chain.end = max(chain.end, len(blocks))
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def _cut(self, chain: _Chain, whole: int, tokens: int) -> Prefix:
        """A path up to the prompt's end, and from there on nobody else's."""
        kept, passed = list[tuple[str, int]](), 0
        for name, more in chain.path:
            if passed + more > whole * self._size:
                kept.append((name, whole * self._size - passed))
                passed = whole * self._size
                break
            kept.append((name, more))
            passed += more
        own = self._new((), 0).name
        return (*(part for part in kept if part[1]), (own, tokens - passed))

    def _new(self, path: Prefix, start: int) -> _Chain:
        self._names += 1
        return _Chain(path, f"c{self._names}", start)
