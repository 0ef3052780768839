"""A token bucket, kept as the time at which it is full again."""

LOWS_MOST = 8
"""Low points remembered of a bucket; past it the two oldest become one, the lower, so
that an old charge gets back less and never more. Plain choice: about 1 KB a bucket."""


class Bucket:
    """What is owed to it is time: whole nanoseconds, so that nothing drifts.

    What was charged too much goes back as if it had never been taken: what has refilled
    since in vain, because the bucket was full without it, is lost. So a bucket that was
    full after a charge gives nothing of it back. Not thread-safe by itself: the
    policy's lock is.

    Attributes:
        full_at_ns: when it will be full, on the policy's clock.
    """

    __slots__ = ("_lows", "full_at_ns")

    def __init__(self, now_ns: int) -> None:
        self.full_at_ns = now_ns
        self._lows: list[tuple[int, int]] = []  # (number of a taking, owed before it)

    def owed_ns(self, now_ns: int) -> int:
        """Time until it is full; more than a burst is a debt."""
        return max(0, self.full_at_ns - now_ns)

    def take(self, number: int, cost_ns: int, most_ns: int, now_ns: int) -> int:
        """Takes so much, as long as no more than `most_ns` is owed.

        Args:
            number: of this taking; later ones have higher numbers.

        Returns:
            What was taken.
        """
        owed_ns = self.owed_ns(now_ns)
        self._note_low(number, owed_ns)
        after_ns = max(owed_ns, min(owed_ns + cost_ns, most_ns))
        self.full_at_ns = now_ns + after_ns
        return after_ns - owed_ns

    def give_back(self, number: int, amount_ns: int, now_ns: int) -> None:
        """Gives back of what was taken under a number what has not refilled since."""
        owed_ns = self.owed_ns(now_ns)
        since = (low for at, low in self._lows if at > number)
        back_ns = min(amount_ns, owed_ns, *since)
        self._lows = [
            (at, low - back_ns if at > number else low) for at, low in self._lows
        ]
        self.full_at_ns = now_ns + owed_ns - back_ns

    def _note_low(self, number: int, owed_ns: int) -> None:
        lows = self._lows
        while lows and lows[-1][1] >= owed_ns:
            lows.pop()
        lows.append((number, owed_ns))
        if len(lows) > LOWS_MOST:
            lows[:2] = [(lows[1][0], min(lows[0][1], lows[1][1]))]
