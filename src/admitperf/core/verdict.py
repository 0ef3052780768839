"""What a policy can say to a request."""

from enum import StrEnum


class Verdict(StrEnum):
    """Start it now, make it wait, or refuse it."""

    ADMIT = "admit"
    DEFER = "defer"
    REJECT = "reject"
