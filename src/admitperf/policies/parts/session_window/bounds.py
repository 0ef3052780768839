"""What signs of congestion are compared with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the signs are compared with.

    Attributes:
        low, high: retention under which there are too many, and from which there is
            room; from 0 to 1.
        ttft_s: time to first token aimed at, in seconds.
        stall_ms: longest gap between tokens aimed at, in milliseconds.
    """

    low: float
    high: float
    ttft_s: float
    stall_ms: float
