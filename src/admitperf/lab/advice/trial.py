"""Would a policy at its defaults have fired in a log?

A policy that remembers nothing and goes by signals alone answers the same wherever the
same of its comparisons are true. So it is asked once for each such group of decisions:
the object that would be deployed, on values that stood in the log. It may show further
comparisons when it is asked, and then the groups are made anew. What goes by facts, by
what was let in before, or by a number of its own, is not tried: a log of another
policy cannot say what it would have counted. Of some of these the gates on a signal
are held against the range it had (`ranges.py`).

Never having fired is no proof where the log's own policy kept the signals low.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from admitperf.core.decision import Decision
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.core.notice import in_words
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.verdict import Verdict
from admitperf.lab.advice.ranges import RANGED, Ranged, bounds
from admitperf.lab.virtual import Recorded
from admitperf.reports.ratio import Share
from admitperf.reports.runs.finding import FEWEST_FOR_NEVER, MOST_BLIND
from admitperf.reports.runs.patterns import Bound, Pattern, Reach, Rows

MOST_BOUNDS = 16
"""Plain choice: twice what our largest policy compares; more is a bound that moves."""

COULD, COULD_NOT = "could have fired", "could not have fired"
DID_NOT, NOT_TRIED = "did not fire", "not tried"
BY_RANGE = "by range"
KEPT_LOW = "kept low by this log's policy"


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of it.

    Attributes:
        word: `COULD`, `COULD_NOT`, `NOT_TRIED`; `DID_NOT` where too few decisions can
            be told of to say that it could not, `KEPT_LOW` where the log's own policy
            refused, and `BY_RANGE` where only the range of a signal was looked at.
        why: why it was not tried, or did not fire without being asked; what a gate
            does whose range was looked at; why it is not known how often it fired.
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


@dataclass(frozen=True, slots=True)
class Setting:
    """What the decisions of a run are.

    Attributes:
        of: how many, those lost from the log too.
        samples: whether no request stands behind them.
        shielded: whether the log's own policy refused or held, so that signals stayed
            lower than without it.
    """

    of: int
    samples: bool = False
    shielded: bool = False

    def quiet(self, n: int) -> str:
        """The word for what did not fire on n decisions."""
        return KEPT_LOW if self.shielded else never(n, self.of)


def trial(policy: Policy, rows: Rows, setting: Setting) -> Trial:
    """Tries one policy on one run.

    Args:
        policy: as `set_up` made it; it is asked nothing itself, but objects like it.
        rows: the run.
        setting: what its decisions are.
    """
    ranged = RANGED.get(policy.name)
    if ranged and all(one.signal in rows.columns for one in bounds(policy, ranged)):
        return _by_range(policy, rows, setting, ranged)
    if why := _beyond(policy, rows, setting):
        return not_tried(why)
    try:
        return _Trying(policy, rows, setting).run()
    except _BeyondError as error:
        return not_tried(str(error))


def _by_range(policy: Policy, rows: Rows, setting: Setting, ranged: Ranged) -> Trial:
    """What can be told of a policy that remembers from how far signals went."""
    reaches = tuple(rows.reach(one) for one in bounds(policy, ranged))
    held = any(one.true.n for one in reaches)
    if ranged.needed and not held:
        least = min(one.true.of for one in reaches)
        return Trial(setting.quiet(least), reaches=reaches)
    return Trial(BY_RANGE, ranged.moves, reaches=reaches)


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


def _ledger(policy: Policy) -> set[str]:
    """What it requires that depends on whom was let in."""
    return {one.name for one in _signals(policy) if one.origin == "ledger"}


def _beyond(policy: Policy, rows: Rows, setting: Setting) -> str | None:
    """Why a log cannot try it; None = it can."""
    if setting.samples and not _engine_alone(policy):
        return "a sample has no request behind it"
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


def _engine_alone(policy: Policy) -> bool:
    """Whether it goes by what the engine shows, and by no request."""
    made = type(policy)
    if made.decided is not Policy.decided or made.observe is not Policy.observe:
        return False
    return all(
        isinstance(one, Signal) and one.origin == "engine" for one in policy.requires
    )


_MEMORY = "it remembers what it let in, and this log let in something else"
_LET_IN = "how often is not known: these were let in by this log's policy, not by it"


@dataclass(frozen=True, slots=True)
class _Trying:
    """One policy on one run."""

    policy: Policy
    rows: Rows
    setting: Setting

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
        if not fired:
            return Trial(self.setting.quiet(n), "", Share.part(0, n), reaches)
        if {one.signal for one in bounds} & _ledger(self.policy):
            return Trial(COULD, _LET_IN, reaches=reaches)
        return Trial(COULD, fired=Share.part(fired, n), reaches=reaches)

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
        counted = _ledger(self.policy)
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
