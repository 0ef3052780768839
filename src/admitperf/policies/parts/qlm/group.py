"""Requests that wait and are told apart no further: one model, one class, one deadline.

QLM puts requests of one model, one rounded SLO and one kind of length in a group, so
that its optimizer has few things to order.
"""

from math import frexp
from typing import NamedTuple

from admitperf.core.request import Request

Key = tuple[str | None, str | None, int | None]
"""Model, SLO class and deadline class; None = the request does not say."""

Kind = tuple[str | None, str | None]
"""Model and SLO class."""

Note = tuple[Key, float, float]
"""A caller that was sent off: its group, when it is due, and until when it is waited
for, on the policy's clock."""

GROUPS_MOST = 8
"""Groups that are ordered. Origin: research notes, 1.3."""


class Group(NamedTuple):
    """What waits together.

    Attributes:
        keys: what is in it; more than one where others joined it.
        size: requests.
        due_s: when the first of them is due, on the policy's clock.
        tokens: output tokens expected of all of them.
        variance: of those, in tokens squared.
    """

    keys: tuple[Key, ...]
    size: int
    due_s: float
    tokens: float
    variance: float


def key_of(request: Request) -> Key:
    """The group of a request. Deadlines are told apart by doubling, from 1 s on."""
    due_s = request.deadline_s
    kind = None if due_s is None else frexp(max(due_s, 1.0))[1]
    return request.model, request.slo_class, kind


def kind_of(key: Key) -> Kind:
    """Whose answers a group's are like: a deadline says nothing about lengths."""
    return key[:2]
