"""One reading of an engine: what a scraper hands to a policy."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from admitperf.core.clock import SYSTEM
from admitperf.core.series import Series

if TYPE_CHECKING:
    from admitperf.core.signal import Signal
    from admitperf.core.view import View


class Reading:
    """Raw metrics with the time they were taken; immutable.

    Handing the same `Reading` to many decisions is the fast way; a plain mapping is
    compared with the last one each time.

    Args:
        raw: metric key to number; copied.
        taken_ns: when, on the monotonic clock of the policy; None = now.
        age_s: how old it already is, in seconds; ignored when `taken_ns` is given.
        interval_s: how often its scraper takes one, in seconds; None = not known.
        replica: which replica it describes; None = not known, the only one, or a pool
            as a whole.
        own_since: the host is (one of) the front door of what was read, so what it
            admitted since `taken_ns` is added to what a policy sees.
        slots: requests that what was read runs at once (vLLM's `max_num_seqs`), which
            no metrics page says; None = not known, then it is learnt.
    """

    __slots__ = (
        "interval_s",
        "own_since",
        "raw",
        "replica",
        "series",
        "slots",
        "taken_ns",
        "views",
    )

    def __init__(  # noqa: PLR0913  facts about one page, by name
        self,
        raw: Mapping[str, object],
        *,
        taken_ns: int | None = None,
        age_s: float = 0.0,
        interval_s: float | None = None,
        replica: str | None = None,
        own_since: bool = False,
        slots: int | None = None,
    ) -> None:
        if taken_ns is None:
            taken_ns = SYSTEM.monotonic_ns() - int(age_s * 1e9)
        self.raw: Mapping[str, object] = dict(raw)
        self.series = Series(self.raw)
        self.taken_ns = taken_ns
        self.interval_s = interval_s
        self.replica = replica
        self.own_since = own_since
        self.slots = slots
        self.views: dict[int, View] = {}
        """What each policy made of it, by the policy's number; a cache, not a fact."""

    def read_signal(self, signal: "Signal") -> float | None:
        """What `SIGNAL.read(reading)` calls: a plain float, windows not known."""
        _, found, _ = signal.find(self.series)
        return None if found is None else found.value
