"""What the gateway says of itself while it runs: a line each, with the time."""

from datetime import UTC, datetime

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.notice import say


def tell(what: str, clock: Clock = SYSTEM) -> None:
    """Has a line said, with the time in UTC before it; never waits."""
    at = datetime.fromtimestamp(clock.wall_ns() // 10**9, UTC)
    say(f"{at:%Y-%m-%dT%H:%M:%SZ} {what}")
