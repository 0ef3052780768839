"""One open request."""

from collections.abc import Hashable

from admitperf.core.request import Request


class Entry:
    """One open request.

    Attributes:
        cost: its work, in tokens.
        prefill: prompt tokens that it waits for, until its first token.
        charge: what its policy's `decided` returned for it.
        held: the charges in it, as they were then.
        overtaken: first tokens of later requests, while it waited for its own.
    """

    first_ns: int | None = None
    ended = False
    replica: str | None = None
    cost = 0.0
    prefill = 0.0
    charge: object = None
    held: tuple[tuple[Hashable, float], ...] = ()
    overtaken = 0

    def __init__(
        self,
        seq: int,
        request_id: str,
        request: Request,
        now_ns: int,
        admitted: bool,  # noqa: FBT001  by position: made for every request
    ) -> None:
        self.seq = seq
        self.request_id = request_id
        self.request = request
        self.opened_ns = self.seen_ns = now_ns
        self.admitted = admitted

    @property
    def waits(self) -> bool:
        """Whether it is in flight without a first token, for all we know."""
        return not self.ended and self.first_ns is None
