"""When things happened, in UTC. Log time counts microseconds since 1970."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

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


class Period:
    """What lies between the first and the last moment so far, in log time.

    Attributes:
        first_us, last_us: None while there is none.
    """

    __slots__ = ("first_us", "last_us")

    def __init__(self) -> None:
        self.first_us: int | None = None
        self.last_us: int | None = None

    def widen(self, t_us: int | None) -> None:
        """Takes a moment in."""
        if t_us is None:
            return
        self.first_us = t_us if self.first_us is None else min(self.first_us, t_us)
        self.last_us = t_us if self.last_us is None else max(self.last_us, t_us)

    def absorb(self, other: "Period") -> None:
        """Takes another period in."""
        self.widen(other.first_us)
        self.widen(other.last_us)

    @property
    def seconds(self) -> float | None:
        """Its length; None when there was no moment."""
        if self.first_us is None or self.last_us is None:
            return None
        return (self.last_us - self.first_us) / 1e6

    @property
    def times(self) -> Times:
        """Its ends in UTC."""
        return Times(_utc(self.first_us), _utc(self.last_us))


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
