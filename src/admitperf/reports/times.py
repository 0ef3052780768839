"""When things happened, in UTC. Log time counts microseconds since 1970."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TO_SECONDS = len("2026-11-30T01:22:10")


@dataclass(frozen=True, slots=True)
class Times:
    """The first and the last of some moments.

    Attributes:
        first_utc, last_utc: ISO 8601, to the microsecond; None when there was none, or
            it lies behind the year 9999.
    """

    first_utc: str | None
    last_utc: str | None

    @classmethod
    def between(cls, first_us: int | None, last_us: int | None) -> Self:
        """From moments in log time; None when there was none."""
        return cls(_utc(first_us), _utc(last_us))

    @property
    def text(self) -> str:
        """`from 2026-11-30 01:22:10Z to 01:22:12Z`; empty when it is not known."""
        if self.first_utc is None or self.last_utc is None:
            return ""
        first, last = _to_seconds(self.first_utc), _to_seconds(self.last_utc)
        if first == last:
            return f"at {first}"
        day, _, time = last.partition(" ")
        return f"from {first} to {time if first.startswith(day) else last}"


def _utc(t_us: int | None) -> str | None:
    if t_us is None:
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=t_us)
    except OverflowError:
        return None
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _to_seconds(utc: str) -> str:
    return utc[:_TO_SECONDS].replace("T", " ") + "Z"
