"""How much of a session's context was still cached when its next call came.

It falls only when the cache gave up what sessions come back for, so it tells that more
of them are live than fit, and by how much work that costs. It needs no scrape, and a
cold start does not look like it: first calls do not count.
"""

from collections import OrderedDict

from admitperf.core.outcome import Outcome
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.live.sessions import LEASE_S, SESSIONS_MOST
from admitperf.policies.parts.settled import prompt_tokens

TURNS_LEAST = 5
"""Continuing turns after which there is a value. Origin: research notes, 7.5."""

_WEIGHT = 0.1
"""Weight of the newest turn. Plain choice: some ten turns back, a few seconds' worth of
tens of sessions."""


class Retention:
    """The mean of it over the last turns of all sessions, the newest counting most.

    A continuing turn is a call whose prompt is at least what the session's last one
    left, its prompt and its answer: a shorter one is of a helper that goes by the same
    name, or of a context that was compacted.

    Args:
        lease_s: seconds of silence after which a session's next call is its first.

    Attributes:
        turns: continuing turns seen.
    """

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self._lease_ns = int(lease_s * 1e9)
        self._left: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._mean = 0.0
        self.turns = 0

    @property
    def value(self) -> float | None:
        """Part of former contexts that was cached, from 0 to 1; None = not known."""
        return self._mean if self.turns >= TURNS_LEAST else None

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """A call ended; anything else is passed over."""
        if outcome is None or outcome.request is None or not outcome.ok:
            return
        name, prompt = outcome.request.session, prompt_tokens(outcome, cached=True)
        if name is None or prompt is None:
            return
        had, seen_ns = self._left.pop(name, (0, 0))
        recent = metrics.now_ns - seen_ns < self._lease_ns
        if had and recent and prompt >= had and outcome.cached_tokens is not None:
            self._take(min(1.0, outcome.cached_tokens / had))
        if not outcome.request.session_final:
            self._keep(name, prompt + (outcome.output_tokens or 0), metrics.now_ns)

    def _take(self, kept: float) -> None:
        self.turns += 1
        weight = max(_WEIGHT, 1.0 / self.turns)
        self._mean += weight * (kept - self._mean)

    def _keep(self, name: str, tokens: int, now_ns: int) -> None:
        self._left[name] = (tokens, now_ns)
        if len(self._left) > SESSIONS_MOST:
            self._left.popitem(last=False)
