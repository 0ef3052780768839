"""Counters over time: by how much did they rise, restarts included.

Per series, never on a sum: a restarted rank makes the sum fall while the others rise.
"""

import re
from collections.abc import Collection

from admitperf.core.series import REPLICA_LABEL, Identity, Labels, Series, Where

_PART = re.compile(r"_(total|bucket|count|sum)$")
"""What a counter's or histogram's series add to the name its `_created` has."""

_RESTART_MARKER = "process_start_time_seconds"


class _Step:
    """Two pages of one endpoint, `seconds` apart."""

    __slots__ = ("after", "before", "known", "seconds")

    def __init__(self, before: Series, after: Series, seconds: float) -> None:
        self.before = before
        self.after = after
        self.seconds = seconds
        self.known: dict[tuple[str, Where], dict[Identity, float]] = {}

    def increase(self, name: str, where: Where) -> dict[Identity, float]:
        known = self.known.get((name, where))
        if known is None:
            known = self.known[name, where] = self._measure(name, where)
        return known

    def _measure(self, name: str, where: Where) -> dict[Identity, float]:
        old = _counters(self.before, name, where)
        if not old:
            return {}
        new = _counters(self.after, name, where)
        restarted = self._restarted(name, new)
        return {
            key: value if value < old[key] or key in restarted else value - old[key]
            for key, value in new.items()
            if key in old
        }

    def _restarted(self, name: str, keys: Collection[Identity]) -> set[Identity]:
        start = [
            _by_replica(_counters(page, _RESTART_MARKER, ()))
            for page in (self.before, self.after)
        ]
        if start[0] and start[1] and start[0] != start[1]:
            told = start[0].keys() | start[1].keys()
            anew = {one for one in told if start[0].get(one) != start[1].get(one)}
            return {key for key in keys if _replica(key) in anew or None in anew}
        base = _PART.sub("", name)
        was, now = (
            _counters(page, f"{base}_created", ()) for page in (self.before, self.after)
        )
        newborn = {key for key in now if key in was and now[key] != was[key]}
        return {
            key
            for key in keys
            if newborn and tuple(pair for pair in key if pair[0] != "le") in newborn
        }


class Window:
    """The last few seconds of an endpoint's pages, in steps from page to page."""

    __slots__ = ("steps",)

    EMPTY: "Window"

    def __init__(self, steps: tuple[_Step, ...] = ()) -> None:
        self.steps = steps

    @classmethod
    def between(cls, before: Series, after: Series, seconds: float) -> "Window":
        """A window of one step."""
        return cls((_Step(before, after, seconds),))

    def then(self, after: "Window") -> "Window":
        """This window followed by another one."""
        return Window(self.steps + after.steps)

    @property
    def seconds(self) -> float:
        """Its length in seconds; 0.0 when there was only one page."""
        return sum(step.seconds for step in self.steps)

    def increase(self, name: str, where: Where = ()) -> dict[Identity, float] | None:
        """How much each series of a counter rose over the window.

        A value that fell, or whose restart marker (`<name>_created`,
        `process_start_time_seconds`) changed, counts as risen from zero: a lower bound.
        A series in only one of two pages is left out of that step.

        Returns:
            None when it is not known: one page only, or no series common to two pages.
        """
        total: dict[Identity, float] = {}
        for step in self.steps:
            for key, rise in step.increase(name, where).items():
                total[key] = total.get(key, 0.0) + rise
        return total or None


Window.EMPTY = Window()


def _counters(page: Series, name: str, where: Where) -> dict[Identity, float]:
    return {
        identity: value
        for identity, labels, value in page.identified(name)
        if value >= 0 and value != float("inf") and _allowed(labels, where)
    }


def _allowed(labels: Labels, where: Where) -> bool:
    return all(labels.get(key, allowed[0]) in allowed for key, allowed in where)


def _by_replica(
    markers: dict[Identity, float],
) -> dict[str | None, dict[Identity, float]]:
    """Restart markers by the endpoint they belong to; None = to the whole page."""
    found: dict[str | None, dict[Identity, float]] = {}
    for key, value in markers.items():
        found.setdefault(_replica(key), {})[key] = value
    return found


def _replica(key: Identity) -> str | None:
    return next((value for name, value in key if name == REPLICA_LABEL), None)
