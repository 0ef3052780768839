"""What may repair a missing signal: the names in the log that look like it."""

from collections.abc import Mapping
from itertools import islice

from admitperf.core.request import FACTS
from admitperf.core.series import Series
from admitperf.core.signals import ALL

MOST_KEYS = 1 << 13  # plain choice: an engine's page has a few hundred series
NEAREST = 3
# Counters and the parts of histograms: none is the value of a signal as it stands.
_NO_GAUGE = ("_bucket", "_count", "_created", "_sum", "_total")
_FROM_HOST = FACTS.union(signal.name for signal in ALL if signal.origin != "engine")


class RawNames:
    """The raw metrics that a log names, up to about `MOST_KEYS`.

    Attributes:
        keys: as they stand in the log, with their labels.
    """

    def __init__(self) -> None:
        self.keys: dict[str, object] = {}

    def add(self, raw: Mapping[str, object]) -> None:
        """Takes the keys of raw metrics in."""
        if len(self.keys) < MOST_KEYS and not self.keys.keys() >= raw.keys():
            self.keys.update(islice(raw.items(), MOST_KEYS))

    def nearest(self, name: str) -> list[str]:
        """The names that look most like a signal's and may be mapped to it."""
        found = Series(self.keys).nearest(name, len(self.keys) or 1)
        return [one for one in found if not one.endswith(_NO_GAUGE)][:NEAREST]

    def advice(self, name: str) -> str:
        """A sentence that helps to repair a missing signal.

        Empty for what comes with a request or from the host's own calls: no metric
        supplies that.
        """
        if name in _FROM_HOST:
            return ""
        if not self.keys:
            return "No raw metric is in the log."
        near = ", ".join(self.nearest(name))
        if not near:
            return "No raw name in the log looks like it."
        return f"Nearest raw names in the log: {near}."
