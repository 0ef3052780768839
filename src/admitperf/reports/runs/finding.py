"""Could the policy have fired? The first thing a report says.

The rules are asked in order and the first that applies gives the finding:

UNKNOWN   no decision of the policy's in the log, or no header to tell a policy from a
          baseline.
BASELINE  it refuses nothing by design, and never fired.
UNKNOWN   more than 1 % of its decisions were made blind; or it never fired, and a
          signal it compares was not supplied for more than 1 % of them, or more than
          1 % of them were lost.
SHADOW    nothing was enforced, or the host served what it refused.
LIVE      it refused something, or deferred it so that it was held.
INERT     it ran and never answered anything but admit.

A request that the host held was deferred at first, whatever its one line says in the
end: that is a firing. What the host refused by itself says nothing of the policy, and
is no firing of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from admitperf.core.request import FACTS
from admitperf.core.signals import ALL
from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.runs.answers import Answers
from admitperf.reports.runs.cost import Cost
from admitperf.reports.runs.faults import Recorded
from admitperf.reports.runs.gates import Gate
from admitperf.reports.runs.repair import Repair
from admitperf.reports.runs.run import Run
from admitperf.reports.wording import counted, number, plural, printable, share

MOST_BLIND = 0.01  # the brief's bound: above it a run is UNKNOWN, never a win
MOST_MOVED_NAMED = 3
_TELLING = ("queue_depth", "kv_pressure", "oldest_wait_s")  # what rules are made of
FEWEST_FOR_NEVER = 20  # plain choice: on fewer decisions "could not" claims too much
NEAR = 0.1  # plain choice: a value this share of its bound away came near
_REQUEST_FACTS = {signal.name for signal in ALL if signal.origin == "request"}
_SIGNALS = {signal.name for signal in ALL}
_FACTS_ONLY = FACTS - _SIGNALS


@dataclass(frozen=True, slots=True)
class Finding:
    """One word and what stands behind it.

    Attributes:
        word: LIVE, INERT, UNKNOWN, BASELINE or SHADOW.
        says: sentences, the most important first.
    """

    word: str
    says: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the finding is drawn from."""

    run: Run
    answers: Answers
    gates: tuple[Gate, ...]
    together: Share | None
    signals: Mapping[str, Spread]
    facts: Mapping[str, int]
    cost: Cost
    recorded: Recorded
    repair: Repair
    left_out: int = 0

    @property
    def samples(self) -> bool:
        """Whether a policy only watched, with no request behind its decisions."""
        return self.run.basis == "samples"

    @property
    def lost(self) -> int:
        """Decisions that are lost from the log."""
        return self.recorded.lost.get("decision", 0)

    def of_all(self, n: int) -> str:
        """So many of all decisions, and of what they were made on."""
        said = share(n, self.answers.offered)
        return f"{said} samples" if self.samples else said


def finding(seen: Evidence) -> Finding:
    """The finding for one run."""
    found = next(filter(None, (rule(seen) for rule in _RULES)), None) or _inert(seen)
    governed = ("No policy governed.",) if seen.samples else ()
    held = () if found.word == "LIVE" else _held(seen)
    return Finding(found.word, (*found.says, *held, *_by_host(seen), *governed))


def _held(seen: Evidence) -> tuple[str, ...]:
    """How many waited at the host; of a policy that is LIVE it is said at once."""
    if not seen.answers.held.n:
        return ()
    return (f"The host held {_held_of(seen)} before it answered them.",)


def _held_of(seen: Evidence) -> str:
    return share(seen.answers.held.n, seen.answers.offered)


def _by_host(seen: Evidence) -> Iterator[str]:
    """What the host did by itself: refusals of its own, and refusals it let in."""
    answers = seen.answers
    if answers.host and answers.decided:
        away = share(answers.host_total, answers.offered)
        yield f"The host refused {away} by itself: {counted(answers.host)}."
    if answers.probes:
        yield f"The host let {plural(answers.probes, 'refusal')} in as probes."


def _inert(seen: Evidence) -> Finding:
    said = (_only_admitted(seen), *_how_near(seen), *_lost_sentence(seen))
    return Finding("INERT", said)


def _nothing(seen: Evidence) -> Finding | None:
    if seen.answers.offered:
        return None
    if seen.samples:
        return Finding("UNKNOWN", ("There is no sample in the log.",))
    if seen.left_out:
        cut = plural(seen.left_out, "request")
        said = f"The warm-up left nothing: {cut} came, and all are left out."
        return Finding("UNKNOWN", (said,))
    return Finding("UNKNOWN", ("There is no decision in the log: no policy ran.",))


def _unasked(seen: Evidence) -> Finding | None:
    answers = seen.answers
    if answers.decided:
        return None
    said = (
        f"The host refused all {answers.offered} by itself: {counted(answers.host)}."
        " The policy was never asked."
    )
    return Finding("UNKNOWN", (said,))


def _headless(seen: Evidence) -> Finding | None:
    if seen.run.header or seen.answers.acted:
        return None
    said = (
        "The log holds no run header, so a policy that never fired cannot be told"
        " from a baseline."
    )
    return Finding("UNKNOWN", (said,))


def _baseline(seen: Evidence) -> Finding | None:
    if seen.run.taxonomy.get("baseline") is not True or seen.answers.acted:
        return None
    let_in = seen.of_all(seen.answers.admitted)
    return Finding("BASELINE", (f"It refuses nothing by design: {let_in} admitted.",))


def _blind(seen: Evidence) -> Finding | None:
    answers = seen.answers
    if answers.blind_total <= MOST_BLIND * answers.decided:
        return None
    said = (
        f"It decided blind on {seen.of_all(answers.blind_total)}, more than 1 %:"
        f" {counted(answers.blind)}."
    )
    whys = [
        f"First {reason}: {printable(seen.recorded.whys[reason])}."
        for reason in answers.blind
        if reason in seen.recorded.whys
    ]
    when = seen.recorded.blind_when.text
    since = (f"Blind decisions: {when}.",) if when else ()
    repair = _never_supplied(seen, _named_as_absent(seen))
    return Finding("UNKNOWN", (said, *since, *whys, *repair, *_meanwhile(seen)))


def _unsupplied(seen: Evidence) -> Finding | None:
    if seen.answers.acted:
        return None
    said = _never_supplied(seen) or _sometimes_unsupplied(seen)
    return Finding("UNKNOWN", (*said, *_meanwhile(seen))) if said else None


def _lost(seen: Evidence) -> Finding | None:
    lost = seen.lost
    if seen.answers.acted or lost <= MOST_BLIND * (seen.answers.offered + lost):
        return None
    return Finding("UNKNOWN", (f"{_lost_sentence(seen)[0]} That is more than 1 %.",))


def _lost_sentence(seen: Evidence) -> tuple[str, ...]:
    lost, kept = seen.lost, seen.answers.offered
    if not lost:
        return ()
    return (f"What it answered on {share(lost, lost + kept)} is lost from the log.",)


def _shadow(seen: Evidence) -> Finding | None:
    answers, served = seen.answers, seen.cost.refused_but_served
    if seen.samples:
        return Finding("SHADOW", _watched(seen))
    if answers.enforced and not served and seen.run.said("enforce") != 0:
        return None
    fired = f"It would have fired on {share(answers.acted, answers.offered)}."
    if served:
        how = f"The host served {plural(served, 'request')} that it refused."
    else:
        how = f"Nothing was enforced ({_enforce(seen)})."
    rest = () if answers.acted else _how_near(seen)
    if seen.cost.reported.n and not answers.held.n:
        rest = (*rest, "The outcomes are those of running without it.")
    return Finding("SHADOW", (how, fired, *rest, *_contradiction(seen)))


def _watched(seen: Evidence) -> tuple[str, ...]:
    """What a policy that only watched would have done."""
    fired = f"It would have fired on {seen.of_all(seen.answers.refused)}."
    gates = [gate for gate in seen.gates if gate.evaluated]
    near = map(_stayed, gates) if seen.answers.refused else _how_near(seen)
    return (fired, *near, *_contradiction(seen))


def _live(seen: Evidence) -> Finding | None:
    answers = seen.answers
    if not answers.acted:
        return None
    said = [_did(seen)]
    if answers.enforced < answers.offered:
        governed = share(answers.enforced, answers.offered)
        enforced = share(answers.acted_enforced, answers.acted)
        what = "of these answers" if answers.held.n else "of its refusals"
        said.append(
            f"It governed {governed} of the requests ({_enforce(seen)});"
            f" {enforced} {what} were enforced."
        )
    return Finding("LIVE", (*said, *_never_supplied(seen), *_contradiction(seen)))


def _did(seen: Evidence) -> str:
    answers = seen.answers
    if not answers.held.n:
        return f"It refused {share(answers.refused, answers.offered)}."
    refused = f"{answers.refused or 'none'} of {answers.offered}"
    held = f"held {_held_of(seen)} before starting or refusing them"
    return f"It refused {refused} and {held}."


_RULES: tuple[Callable[[Evidence], Finding | None], ...] = (
    _nothing,
    _unasked,
    _headless,
    _baseline,
    _blind,
    _unsupplied,
    _lost,
    _shadow,
    _live,
)


def _enforce(seen: Evidence) -> str:
    enforce = seen.run.said("enforce")
    return "enforce not stated" if enforce is None else f"enforce={number(enforce)}"


def _contradiction(seen: Evidence) -> tuple[str, ...]:
    if seen.run.taxonomy.get("baseline") is not True:
        return ()
    return ("It calls itself a baseline, and it is none: it fired.",)


def _only_admitted(seen: Evidence) -> str:
    answers = seen.answers
    said = f"It ran and never answered anything but admit: {answers.admitted} of"
    said += f" {answers.decided}"
    by_posture = answers.decided - answers.admitted
    return (
        f"{said}, {by_posture} refused by its blind posture."
        if by_posture
        else f"{said}."
    )


def _never_supplied(
    seen: Evidence, also: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """What is said of each signal that the policy compares or requires and never got.

    Args:
        seen: the run.
        also: further such signals.
    """
    compared = {
        gate.signal for gate in seen.gates if not gate.evaluated and gate.unknown
    }
    required = {
        name
        for name in seen.run.said("requires") or ()
        if name not in _FACTS_ONLY
        and not seen.facts.get(name)
        and not _known(seen, name)
    }
    missing = sorted(compared | required | also)
    return tuple(_repair(seen, name) for name in missing)


def _named_as_absent(seen: Evidence) -> frozenset[str]:
    """The signal that the first blind decision missed, when none had it.

    A policy that states no requirements has none in the run header.
    """
    why = seen.recorded.whys.get("signal_absent", "")
    name = why.partition(" ")[0]
    missed = name in _SIGNALS and not _known(seen, name)
    return frozenset({name} if missed else ())


def _repair(seen: Evidence, name: str) -> str:
    return printable(f"{name} was never supplied{seen.repair.advice(name)}")


def _known(seen: Evidence, name: str) -> bool:
    return name in seen.signals and seen.signals[name].n > 0


def _sometimes_unsupplied(seen: Evidence) -> tuple[str, ...]:
    return tuple(
        f"{gate_text(gate)} could not be evaluated on {seen.of_all(gate.unknown)}, more"
        " than 1 %: the signal was not supplied."
        for gate in seen.gates
        if gate.unknown > MOST_BLIND * seen.answers.decided
    )


def _how_near(seen: Evidence) -> tuple[str, ...]:
    """How far each gate stayed from changing its answer, and what moved instead."""
    gates = [gate for gate in seen.gates if gate.evaluated]
    if not gates:
        said = "It recorded no comparisons, so how near it came cannot be said."
        return (said, *_meanwhile(seen))
    crossed = [gate for gate in gates if gate.crossed]
    if crossed:
        verdict = "Its gates changed their answers, never so that it refused."
        if seen.together is not None:
            verdict += (
                f" All were true at once on {share(seen.together.n, seen.together.of)}."
            )
    else:
        verdict = f"{_could_not(seen, gates)}: no gate ever changed its answer."
    return (verdict, *map(_stayed, gates), *_meanwhile(seen))


def _could_not(seen: Evidence, gates: Sequence[Gate]) -> str:
    n = seen.answers.decided
    if n >= FEWEST_FOR_NEVER:
        return "It could not have fired"
    near = any(map(_came_near, gates))
    came = "came near and did not fire" if near else "did not come near"
    return f"It {came} in this log (n={n})"


def _came_near(gate: Gate) -> bool:
    if gate.distance is None or gate.nearest_bound is None:
        return False
    return gate.distance <= NEAR * abs(gate.nearest_bound)


def _stayed(gate: Gate) -> str:
    of = f"{number(gate.value_low)} to {number(gate.value_high)}, n {gate.evaluated}"
    if gate.nearest is None:
        return f"{gate_text(gate)} has no finite bound ({of})."
    if gate.crossed:
        return (
            f"{gate_text(gate)} was true on {share(gate.true, gate.evaluated)} ({of})."
        )
    past = "always" if gate.true else "never"
    return (
        f"{gate_text(gate)} was {past} true ({of}): at its nearest,"
        f" {number(gate.nearest)}, it was {number(gate.distance)} from the bound."
    )


def _meanwhile(seen: Evidence) -> tuple[str, ...]:
    """Which other signals moved most, and how far."""
    judged = {gate.signal for gate in seen.gates if gate.evaluated}
    moved = [
        (name, spread)
        for name, spread in seen.signals.items()
        if spread.moved and name not in judged and name not in _REQUEST_FACTS
    ]
    if not moved:
        return ("No other signal moved.",) if judged else ("No signal moved.",)
    moved.sort(key=lambda item: (item[0] not in _TELLING, -_relative(item[1])))
    said = [
        f"Meanwhile {printable(name)} went from {number(spread.low)} to"
        f" {number(spread.high)} (p95 {number(spread.p95)}, n {spread.n})."
        for name, spread in moved[:MOST_MOVED_NAMED]
    ]
    more = len(moved) - len(said)
    return (*said, f"{plural(more, 'other signal')} moved too.") if more else (*said,)


def _relative(spread: Spread) -> float:
    """A signal's range over its largest size, from 0 to 2."""
    low, high = spread.low or 0.0, spread.high or 0.0
    largest = max(abs(low), abs(high))
    return (high - low) / largest if largest else 0.0


def gate_text(gate: Gate) -> str:
    """`signal >= bound`, with the bound's range when it moved."""
    bound = number(gate.bound_low) if gate.bound_low is not None else "infinity"
    if gate.bound_low != gate.bound_high:
        bound = f"{bound}..{number(gate.bound_high)}"
    return f"{printable(gate.signal)} {gate.op} {bound}"
