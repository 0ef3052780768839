"""How high KV pressure can get, and whether a threshold can be reached at all.

An engine runs at most so many requests at once. If all of them at their full length
take less KV memory than there is, the slots bind first, KV pressure has a ceiling below
1, and a threshold above it never fires, at any arrival rate.
"""

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from admitperf.lab.fault import LabError

MOST = 1e15
"""Largest number of tokens or requests taken. Plain choice: a million times what any
machine holds, and exact in a float."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One engine and the requests it gets.

    Attributes:
        kv_tokens: tokens its KV memory holds.
        max_num_seqs: requests it runs at once.
        tokens_per_request: input and output of one, at its end.
        threshold: KV pressure asked about, as a fraction.
        block_tokens: tokens in a block of KV memory, which is given out whole; 1 = not
            known, so nothing is rounded up.
    """

    kv_tokens: int
    max_num_seqs: int
    tokens_per_request: float
    threshold: float
    block_tokens: int = 1

    def faults(self) -> list[str]:
        """What is wrong with it, in words."""
        counts = ("kv_tokens", "max_num_seqs", "tokens_per_request", "block_tokens")
        faults = [
            f"{name} = {getattr(self, name)} is not from 1 to {MOST:g}"
            for name in counts
            if not 1 <= getattr(self, name) <= MOST
        ]
        if not 0 < self.threshold <= 1:
            faults.append(f"threshold = {self.threshold:g} is not above 0, at most 1")
        return faults


@dataclass(frozen=True, slots=True)
class Reach:
    """What such an engine can reach.

    Attributes:
        reachable_fraction: largest KV pressure, every slot holding one such request at
            its full length.
        held_tokens: what they hold together, at most the whole memory.
        fits: such requests that the memory holds at once.
        binds: what runs out first: "slots", "kv", or "both" at the same request.
        smallest_tokens: the smallest request that reaches the threshold in all slots;
            None = none does, since one alone would not fit.
        reaches: whether such requests reach the threshold.
    """

    reachable_fraction: float
    held_tokens: int
    fits: int
    binds: str
    smallest_tokens: int | None
    reaches: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def reach(shape: Shape) -> Reach:
    """The arithmetic.

    Raises:
        LabError: the shape makes no sense, or one request does not fit.
    """
    faults = shape.faults()
    if faults:
        raise LabError("; ".join(faults))
    block, kv, slots = shape.block_tokens, shape.kv_tokens, shape.max_num_seqs
    each = _held(shape.tokens_per_request, block)
    if each > kv:
        one = f"one request of {shape.tokens_per_request:g} tokens"
        raise LabError(f"{one} does not fit into {kv} tokens of KV memory")
    held, fits = min(slots * each, kv), kv // each
    whole = Fraction(held, kv)
    threshold = Fraction(str(shape.threshold))
    return Reach(
        reachable_fraction=float(whole),
        held_tokens=held,
        fits=fits,
        binds="slots" if fits > slots else "kv" if fits < slots else "both",
        smallest_tokens=_smallest(threshold * kv / slots, block, kv),
        reaches=whole >= threshold,
    )


def large_slots(shape: Shape, large_tokens: float) -> int | None:
    """How many slots must hold a large request to reach the threshold.

    The other slots hold usual ones.

    Args:
        shape: the engine, and the usual request.
        large_tokens: input and output of a large one, at its end.

    Returns:
        0 when usual ones do; None when not even large ones in all slots do.

    Raises:
        LabError: the shape makes no sense, or one request does not fit.
    """
    usual, large = reach(shape), reach(replace(shape, tokens_per_request=large_tokens))
    if usual.reaches:
        return 0
    if not large.reaches:
        return None
    few, many = (
        _held(tokens, shape.block_tokens)
        for tokens in (shape.tokens_per_request, large_tokens)
    )
    wanted = Fraction(str(shape.threshold)) * shape.kv_tokens
    return math.ceil((wanted - shape.max_num_seqs * few) / (many - few))


def _held(tokens: float, block: int) -> int:
    """What one request holds at its end, in whole blocks."""
    return math.ceil(Fraction(str(tokens)) / block) * block


def _smallest(share: Fraction, block: int, kv: int) -> int | None:
    """The fewest tokens that take so many tokens of memory, in whole blocks."""
    blocks = math.ceil(share / block)
    return (blocks - 1) * block + 1 if blocks * block <= kv else None
