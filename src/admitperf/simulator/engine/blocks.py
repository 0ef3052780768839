"""The KV cache: blocks that are free, held, or free and still to be found again.

All free blocks stand in one queue. They are taken from its front; what a request lets
go of joins at the back, the end of the request first, so that a beginning lives longer
than what follows it. A block keeps its content until it is taken.

Content is told apart by chains. A chain only grows, and what holds a block of it holds
all before it; so what can be found of a chain is one length, and what nobody holds of
it is a tail. The queue therefore holds stretches of chains instead of blocks. Rules and
their order are those of vLLM 0.32 (`block_pool.py`, `kv_cache_manager.py`).
"""

from collections import OrderedDict
from collections.abc import Callable
from math import inf

from admitperf.simulator.traffic.arrival import Prefix

_Key = tuple[Prefix, str]


class _Stretch:
    """Free blocks side by side, of one chain or of none."""

    __slots__ = ("chain", "high", "low", "stamp")

    def __init__(self, stamp: int, chain: "_Chain | None", low: int, high: int) -> None:
        self.stamp = stamp
        self.chain = chain
        self.low = low
        self.high = high


class _Chain:
    """Blocks with the same content wherever they appear; numbered within the prompt."""

    __slots__ = ("end", "goal", "held", "key", "loose", "owner", "start", "users")

    def __init__(self, key: _Key | None, start: int) -> None:
        self.key = key  # None = one request's own
        self.start = start
        self.end = start  # found up to here, unless it is being extended
        self.owner: Claim | None = None  # extends it
        self.goal: float = inf  # how far the owner will
        self.held: dict[int, int] = {}  # up to where, by how many others
        self.loose: list[_Stretch] = []  # what nobody holds, in order
        self.users = 0  # requests inside that name it

    def held_to(self) -> int:
        """Up to where somebody holds it, the owner apart."""
        return max(self.held, default=self.start)


class Claim:
    """What one request has to do with the cache: only `Blocks` changes it.

    Attributes:
        found: blocks of it that were found at its last start.
        stored: says how many tokens it has in the cache, those of the step that is
            being put together included.
        chains: what its tokens belong to, in order.
        ends: block at which each chain gives over to the next.
        held: up to which block it holds each; -1 = not, or it extends it.
        copies_from: from this block on what it computes is nobody else's.
    """

    __slots__ = ("chains", "copies_from", "ends", "found", "held", "stored")

    def __init__(
        self, chains: list[_Chain], ends: list[float], stored: Callable[[], int]
    ) -> None:
        self.found = 0
        self.stored = stored
        self.chains = chains
        self.ends = ends
        self.held: list[int] = []
        self.copies_from: float = inf


class Blocks:
    """A cache of blocks, all free.

    Args:
        count: how many.
        size: tokens a block holds.
        findable: whether what they hold can be found again.

    Attributes:
        free: blocks nobody holds.
    """

    def __init__(self, count: int, size: int, *, findable: bool) -> None:
        self.free = 0
        self._size = size
        self._caching = findable
        self._stamp = 0
        self._queue: OrderedDict[int, _Stretch] = OrderedDict()
        self._chains: dict[_Key, _Chain] = {}
        self._append(None, 0, count)

    def claim(self, prefix: Prefix, stored: Callable[[], int]) -> Claim:
        """A request comes in; it holds nothing yet.

        Args:
            prefix: how its prompt begins.
            stored: says how many of its tokens are in the cache.
        """
        if not self._caching:
            return Claim([], [], stored)
        if not prefix:
            return Claim([_Chain(None, 0)], [inf], stored)
        chains, ends, tokens = list[_Chain](), list[float](), 0
        for place, (name, more) in enumerate(prefix):
            chain = self._chain((prefix[:place], name), tokens // self._size)
            chain.users += 1
            chains.append(chain)
            tokens += more
            ends.append(tokens // self._size)
        ends[-1] = inf
        return Claim(chains, ends, stored)

    def start(self, claim: Claim, tokens: int) -> bool:
        """Lets a request begin if there is room for all it has so far.

        What is found is held from now on; the rest is to be taken as it is computed.

        Args:
            claim: the request's.
            tokens: of its prompt and what it has given.

        Returns:
            Whether it began.
        """
        found, loose = self._find(claim, (tokens - 1) // self._size)
        if -(-tokens // self._size) - found + loose > self.free:
            return False
        claim.found = found
        if self._caching:
            self._hold(claim, found)
        return True

    def findable(self, claim: Claim, tokens: int) -> int:
        """Blocks that would be found of so many tokens; the last token never is."""
        return self._find(claim, (tokens - 1) // self._size)[0]

    def grows_in(self, claim: Claim, tokens: int) -> float:
        """Steps until one more block would be found of so many tokens; inf = never.

        That is when another request, which decodes on the same chain, has filled it.
        """
        most = (tokens - 1) // self._size
        for chain, end in zip(claim.chains, claim.ends, strict=True):
            found = min(self._reach(chain), end, most)
            if found < end:
                owner = chain.owner if found < most else None
                return self._size - owner.stored() % self._size if owner else inf
        return inf

    def take(self, count: int) -> None:
        """Takes free blocks, those that have been free longest; what they held goes."""
        self.free -= count
        queue = self._queue
        while count and self._caching:
            stretch = next(iter(queue.values()))
            used = min(count, stretch.high - stretch.low)
            stretch.high -= used
            count -= used
            chain = stretch.chain
            if chain:
                chain.end = stretch.high
            if stretch.high == stretch.low:
                del queue[stretch.stamp]
                if chain:
                    chain.loose.pop()
                    self._forget(chain)

    def let_go(self, claim: Claim, tokens: int) -> None:
        """Takes back all blocks of a request.

        Args:
            claim: the request's.
            tokens: it has stored.
        """
        whole, part = divmod(tokens, self._size)
        if not self._caching:
            self.free += whole + bool(part)
            return
        if part:
            self._append(None, 0, 1)
            self._queue.move_to_end(self._stamp, last=False)
        if whole > claim.copies_from:
            self._append(None, 0, whole - int(claim.copies_from))
        self._unhold(claim, whole)

    def leave(self, claim: Claim) -> None:
        """A request that holds nothing is gone for good."""
        for chain in claim.chains:
            chain.users -= 1
            self._forget(chain)

    def remember(self, name: str, tokens: int) -> None:
        """Has the beginning of a chain in the cache, as if just asked for.

        Raises:
            ValueError: it is longer than what is free.
        """
        if not self._caching:
            return
        chain, count = self._chain(((), name), 0), tokens // self._size
        low, more = chain.held_to(), max(0, count - chain.end)
        free = self.free - sum(one.high - one.low for one in chain.loose)
        if more > free:
            self._forget(chain)
            raise ValueError(f"{name}: {more} blocks more, and {free} are free")
        self._tighten(chain, count)
        self.take(more)
        chain.end = max(chain.end, count)
        if count > low:
            self._loosen(chain, low, count)

    def length(self, name: str) -> int:
        """Blocks that would be found of a chain that begins prompts."""
        chain = self._chains.get(((), name))
        return self._reach(chain) if chain else 0

    def _chain(self, key: _Key, start: int) -> _Chain:
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = _Chain(key, start)
        return chain

    def _forget(self, chain: _Chain) -> None:
        if chain.key and not chain.users and chain.end == chain.start:
            self._chains.pop(chain.key, None)

    def _find(self, claim: Claim, most: int) -> tuple[int, int]:
        """Blocks of a prompt that are there, and how many of them nobody holds."""
        found = loose = 0
        for chain, end in zip(claim.chains, claim.ends, strict=True):
            found = int(min(self._reach(chain), end, most))
            for stretch in chain.loose:
                if stretch.low >= found:
                    break
                loose += min(stretch.high, found) - stretch.low
            if found < end:
                break
        return found, loose

    def _reach(self, chain: _Chain) -> int:
        """Up to where a chain can be found; an owner that is through with it is none.

        Since all it will ever have of this chain is there, it is a holder from then on.
        """
        owner = chain.owner
        if owner is None:
            return chain.end
        reach = min(owner.stored() // self._size, chain.goal)
        if reach == chain.goal:
            self._disown(chain, owner, int(reach))
        return max(chain.end, int(reach))

    def _disown(self, chain: _Chain, owner: Claim, end: int) -> None:
        chain.owner, chain.end = None, end
        chain.held[end] = chain.held.get(end, 0) + 1
        owner.held[owner.chains.index(chain)] = end

    def _hold(self, claim: Claim, found: int) -> None:
        """Holds what was found, and sees how far the request will extend chains."""
        claim.held = [-1] * len(claim.chains)
        claim.copies_from = inf
        extends = True
        for place, chain in enumerate(claim.chains):
            end = claim.ends[place]
            if end == chain.start:
                continue
            self._tighten(chain, int(min(found, end)))
            if end <= found:
                claim.held[place] = int(end)
                chain.held[int(end)] = chain.held.get(int(end), 0) + 1
                continue
            begin = max(found, chain.start)
            extends = extends and chain.owner is None and chain.end == begin
            if extends:
                chain.owner, chain.goal = claim, end
                continue
            claim.copies_from = min(claim.copies_from, begin)
            if found > chain.start:
                claim.held[place] = found
                chain.held[found] = chain.held.get(found, 0) + 1

    def _unhold(self, claim: Claim, whole: int) -> None:
        places = range(len(claim.chains))
        for place in reversed(places):
            chain = claim.chains[place]
            if chain.owner is claim:
                end = max(chain.end, int(min(whole, chain.goal)))
                chain.owner, chain.end = None, end
            else:
                end = claim.held[place]
                if end < 0:
                    continue
                chain.held[end] -= 1
                if not chain.held[end]:
                    del chain.held[end]
            low = chain.held_to()
            if chain.owner is None and end > low:
                self._loosen(chain, low, end)

    def _tighten(self, chain: _Chain, end: int) -> None:
        """Takes out of the queue what is now held of a chain."""
        loose = chain.loose
        while loose and loose[0].low < end:
            first = loose[0]
            high = min(first.high, end)
            self.free -= high - first.low
            first.low = high
            if first.low == first.high:
                del self._queue[first.stamp]
                del loose[0]

    def _loosen(self, chain: _Chain, low: int, high: int) -> None:
        chain.loose.insert(0, self._append(chain, low, high))

    def _append(self, chain: _Chain | None, low: int, high: int) -> _Stretch:
        self._stamp += 1
        stretch = self._queue[self._stamp] = _Stretch(self._stamp, chain, low, high)
        self.free += high - low
        return stretch
