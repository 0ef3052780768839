"""What a refusal that is nobody's answer yet was decided on."""

from admitperf.core.snapshot import Snapshot


class Asked:
    """What an open refusal was decided on, kept until it is an answer.

    Attributes:
        snapshot: what the policy saw.
        derived: signals that are not the view's, as JSON members, as they were then.
        took_ns: how long it took to decide.
    """

    __slots__ = ("derived", "snapshot", "took_ns")

    def __init__(self, snapshot: Snapshot, derived: str, took_ns: int) -> None:
        self.snapshot = snapshot
        self.derived = derived
        self.took_ns = took_ns
