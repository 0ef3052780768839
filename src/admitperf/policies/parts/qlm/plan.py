"""One order of the groups, and what is ahead of each."""

from collections.abc import Sequence

from admitperf.policies.parts.qlm.group import Group, Key

Place = tuple[int, float, float]
"""Which one it is, from 0; the output tokens expected of the groups before it, and
their variance."""

FIRST: Place = (0, 0.0, 0.0)
"""The place of who has nobody before it."""


class Plan:
    """An order of groups, as it was at one time.

    Attributes:
        order: the groups, the first to start first.
        made_s: when they waited so, on the policy's clock.
        ready_s: from when on it may be used.
    """

    def __init__(self, order: Sequence[Group], made_s: float, ready_s: float) -> None:
        self.order = tuple(order)
        self.made_s = made_s
        self.ready_s = ready_s
        self._places: dict[Key, Place] = {}
        tokens = variance = 0.0
        for number, group in enumerate(self.order):
            for key in group.keys:
                self._places[key] = number, tokens, variance
            tokens += group.tokens
            variance += group.variance

    def place(self, key: Key, due_s: float) -> Place:
        """The place of a request: its group's, or that of the nearest group.

        Args:
            key: its group.
            due_s: when it is due, on the policy's clock.
        """
        known = self._places.get(key)
        if known is not None or not self.order:
            return known or FIRST
        nearest = min(self.order, key=lambda group: _distance(group, key, due_s))
        return self._places[nearest.keys[0]]


def _distance(group: Group, key: Key, due_s: float) -> tuple[bool, float]:
    """One of the same model is nearer than any other."""
    return group.keys[0][0] != key[0], abs(group.due_s - due_s)
