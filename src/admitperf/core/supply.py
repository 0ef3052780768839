"""One signal of one view."""

from admitperf.core.found import Found
from admitperf.core.source import Source


class Supply:
    """One signal of one view: its value, where it came from, how long it is good."""

    __slots__ = ("found", "good_until_ns", "source", "taken_ns", "why_then")

    def __init__(
        self,
        found: Found,
        source: Source,
        taken_ns: int,
        good_until_ns: int,
        why_then: str,
    ) -> None:
        self.found = found
        self.source = source
        self.taken_ns = taken_ns
        self.good_until_ns = good_until_ns
        self.why_then = why_then
