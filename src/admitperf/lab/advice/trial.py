"""Would a policy at its defaults have fired in a log?

A policy that remembers nothing and goes by signals alone answers the same wherever the
same of its comparisons are true. So it is asked once for each such group of decisions:
the object that would be deployed, on values that stood in the log. It may show further
comparisons when it is asked, and then the groups are made anew. What goes by facts, by
what was let in before, or by a number of its own, is not tried: a log of another
policy cannot say what it would have counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from admitperf.core.decision import Decision
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.core.notice import in_words
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.verdict import Verdict
from admitperf.lab.virtual import Recorded
from admitperf.reports.ratio import Share
from admitperf.reports.runs.finding import FEWEST_FOR_NEVER, MOST_BLIND
from admitperf.reports.runs.patterns import Bound, Pattern, Reach, Rows

MOST_BOUNDS = 16
"""Plain choice: twice what our largest policy compares; more is a bound that moves."""

COULD, COULD_NOT = "could have fired", "could not have fired"
DID_NOT, NOT_TRIED = "did not fire", "not tried"


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of it.

    Attributes:
        word: `COULD`, `COULD_NOT`, `NOT_TRIED`, or `DID_NOT` where too few decisions
            can be told of to say that it could not.
        why: why it was not tried, or did not fire without being asked.
        fired: decisions it would not have admitted, of those with all its signals.
        reaches: each of its comparisons.
    """

    word: str
    why: str = ""
    fired: Share | None = None
    reaches: tuple[Reach, ...] = ()


def set_up(cls: type[Policy]) -> Policy | str:
    """A policy at its defaults, without a past; in words why there is none."""
    try:
        return cls(clock=Recorded(), reports_outcomes=True, on_blind="admit")
    except ConfigError as error:
        return f"its defaults alone do not set it up: {'; '.join(error.faults)}"
    except Exception as error:  # noqa: BLE001  a plug-in may do anything at set-up
        return f"it cannot be set up: {in_words(error)}"


def trial(policy: Policy, rows: Rows, of: int) -> Trial:
    """Tries one policy on one run.

    Args:
        policy: as `set_up` made it; it is asked nothing itself, but objects like it.
        rows: the run.
        of: all its decisions, those lost from the log too.
    """
    if why := _beyond(policy, rows):
        return not_tried(why)
    try:
        return _Trying(policy, rows, of).run()
    except _BeyondError as error:
        return not_tried(str(error))


def never(n: int, of: int) -> str:
    """The word for not firing.

    Args:
        n: decisions it can be said of.
        of: all there were, those lost from the log too.
    """
    proved = n >= FEWEST_FOR_NEVER and of - n <= MOST_BLIND * of
    return COULD_NOT if proved else DID_NOT


def not_tried(why: str) -> Trial:
    """It was not tried, and why."""
    return Trial(NOT_TRIED, why)


class _BeyondError(AdmitPerfError):
    """It compares more than signals; the text says what."""


def _signals(policy: Policy) -> list[Signal]:
    return [one for one in policy.requires if isinstance(one, Signal)]


def _beyond(policy: Policy, rows: Rows) -> str | None:
    """Why a log cannot try it; None = it can."""
    facts = [
        one if isinstance(one, str) else one.name
        for one in policy.requires
        if isinstance(one, str) or one.origin == "request"
    ]
    if facts:
        return f"it goes by {', '.join(facts)} of each request"
    made = type(policy)
    if made.decided is not Policy.decided or made.observe is not Policy.observe:
        return _MEMORY
    missing = [one.name for one in _signals(policy) if one.name not in rows.columns]
    if missing:
        return f"this log does not carry {', '.join(missing)}"
    return None if policy.requires else "it goes by nothing that a log holds"


_MEMORY = "it remembers what it let in, and this log let in something else"


@dataclass(frozen=True, slots=True)
class _Trying:
    """One policy on one run."""

    policy: Policy
    rows: Rows
    of: int

    @property
    def signals(self) -> list[str]:
        """What it requires, all of which the log has."""
        return [one.name for one in _signals(self.policy)]

    def run(self) -> Trial:
        """Asks until no further comparison shows."""
        bounds: list[Bound] = []
        while True:
            fired, n, shown = self._ask(bounds)
            new = [one for one in dict.fromkeys(shown) if one not in bounds]
            if not new:
                break
            bounds += new
            if len(bounds) > MOST_BOUNDS:
                raise _BeyondError("its bounds move")
        if not n:
            raise _BeyondError("no decision of this log has all of its signals")
        self._check(bounds)
        reaches = tuple(self.rows.reach(bound) for bound in bounds)
        word = COULD if fired else never(n, self.of)
        return Trial(word, fired=Share.part(fired, n), reaches=reaches)

    def _ask(self, bounds: Sequence[Bound]) -> tuple[int, int, list[Bound]]:
        """Decisions it would not have admitted, all, and the comparisons it made."""
        fired = n = 0
        shown: list[Bound] = []
        for pattern in self.rows.patterns(self.signals, bounds):
            d = self._answer(pattern)
            n += pattern.n
            fired += pattern.n if d.verdict is not Verdict.ADMIT else 0
            shown += [Bound.of(gate) for gate in d.gates]
        own = [one.signal for one in shown if one.signal not in self.signals]
        if own:
            raise _BeyondError(f"it compares a number of its own, {own[0]}")
        return fired, n, shown

    def _check(self, bounds: Sequence[Bound]) -> None:
        """Who reads the ledger and compares nothing in it, goes by more of it."""
        compared = {one.signal for one in bounds}
        if not compared:
            raise _BeyondError("it compares nothing")
        counted = {one.name for one in _signals(self.policy) if one.origin == "ledger"}
        if counted and not counted & compared:
            raise _BeyondError(_MEMORY)

    def _answer(self, pattern: Pattern) -> Decision:
        """Of a fresh object each time, which has no past."""
        fresh = set_up(type(self.policy))
        if isinstance(fresh, str):
            raise _BeyondError(fresh)
        d = fresh(dict(pattern.values))
        if d.blind is not None:
            raise _BeyondError(f"it does not see on what a log holds ({d.blind})")
        return d
