"""The objective that calls and sessions of a benchmark are held to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from admitperf.bench.callers.records import CallRecord
from admitperf.core.slo import faults

TASK_FACTOR = 3.0
"""A session may take so many times its unloaded duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """Limits in ms by class of call, and the limit of a session.

    Attributes:
        classes: `ttft_ms`, `stall_ms` and `e2e_ms` by class, each optional; the class
            "" is for calls of classes that are not named. Empty = an answer is enough.
        task_factor: multiple of its unloaded duration in which a session is to finish.

    Raises:
        ValueError: a limit has another name or is no positive number.
    """

    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    task_factor: float = TASK_FACTOR

    def __post_init__(self) -> None:
        wrong = faults(self.classes)
        if not self.task_factor > 0:
            wrong.append(f"slo: task_factor = {self.task_factor} is not over 0")
        if wrong:
            raise ValueError("; ".join(wrong))

    def limits(self, slo_class: str) -> Mapping[str, float]:
        """The limits of a class; empty = an answer is enough.

        Raises:
            ValueError: there are classes, this is none of them, and none is for others.
        """
        if not self.classes:
            return {}
        found = self.classes.get(slo_class, self.classes.get(""))
        if found is None:
            known = ", ".join(self.classes)
            raise ValueError(f"no objective for class {slo_class!r}; there are {known}")
        return found

    def good(self, record: CallRecord) -> bool:
        """Whether a call got what it wanted, in time, on its caller's clock.

        One that its caller hung up on as planned is good when its first token was in
        time and it did not stall before. One with a single token has no stall.
        """
        if not record.served:
            return False
        limits = self.limits(record.slo_class)
        seen = {"ttft_ms": record.ttft_ms, "e2e_ms": record.e2e_ms}
        late = any(
            name in limits and (value is None or value > limits[name])
            for name, value in seen.items()
        )
        return not late and not self._stalled(record, limits)

    @staticmethod
    def _stalled(record: CallRecord, limits: Mapping[str, float]) -> bool:
        gap_ms, most_ms = record.max_gap_ms, limits.get("stall_ms")
        return gap_ms is not None and most_ms is not None and gap_ms > most_ms
