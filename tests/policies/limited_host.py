"""A host with a limit that moves: it opens, starts and ends requests, and looks."""

from admitperf.core.reading import Reading
from admitperf.testing import FakeClock

LOOK_S = 0.25


class LimitedHost:
    """A policy with a limit, on a clock of its own.

    Attributes:
        open: ids of open requests, the oldest first.
        waiting: those of them without a first token.
        reading: its engine as of the last look; nothing these policies read.
    """

    def __init__(self, cls, **given):
        self.clock = FakeClock(start_s=1000.0)
        self.policy = cls(clock=self.clock, reports_outcomes=True, **given)
        self.open = []
        self.waiting = []
        self.reading = None
        self.look()

    def ask(self, **facts):
        """One more request, streamed."""
        d = self.policy(self.reading, **{"stream": True, **facts})
        if d.admitted:
            self.open.append(d.request_id)
            self.waiting.append(d.request_id)
        return d

    def fill(self, count, **facts):
        """So many, all of them let in, and each with its first token."""
        for _ in range(count):
            d = self.ask(**facts)
            assert d.admitted
            self.start(d.request_id)

    def start(self, request_id):
        """Its first token comes."""
        self.policy.first_token(request_id)
        if request_id in self.waiting:
            self.waiting.remove(request_id)

    def end(self, request_id=None, **told):
        """One ends, by default the oldest that has started."""
        started = [one for one in self.open if one not in self.waiting]
        request_id = request_id or started[0]
        self.start(request_id)
        self.open.remove(request_id)
        self.policy.outcome(request_id, **told)

    def look(self, times=1, seconds=LOOK_S):
        """Time passes, with a look at the engine each quarter of a second."""
        for _ in range(times):
            self.clock.advance(seconds)
            self.reading = Reading({"running": 1.0}, taken_ns=self.clock.monotonic_ns())
            self.policy.look(self.reading)

    @property
    def limit(self):
        """What the next decision's gate will have as its bound."""
        return self.policy._window.whole
