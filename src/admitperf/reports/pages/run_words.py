"""What a run's page says beside its tables: rows and sentences, whoever shows them."""

from collections.abc import Iterator

from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.report import RunReport
from admitperf.reports.runs.answers import Answers, Row
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.runs.log import Files
from admitperf.reports.wording import (
    counted,
    number,
    percent,
    plural,
    printable,
    share,
    spread,
)

SECTIONS = (
    "1 Could it have fired?",
    "2 Which signals moved",
    "3 What it did",
    "4 What it cost",
    "5 Faults of the instrument",
    "6 The seven reporting items",
)
"""The parts of a run's page, in order."""
NO_GATES = "No comparison was recorded, so there is no table of gates."
NEAREST = (
    "nearest: distance of the nearest value from the bound, -- when the gate was"
    " both true and false."
)
NO_DECISION = "Nothing: there is no decision in the log."
NOT_CARRIED = "not carried: this log does not carry the fact."
_BLIND_REASONS = ("signal_absent", "signal_stale", "policy_error")


def found(run: RunReport) -> Iterator[str]:
    """The finding and what stands behind it; the first sentence begins with it."""
    first, *rest = run.finding.says
    yield f"{run.finding.word}: {first}"
    yield from rest


def gates(run: RunReport) -> Iterator[str]:
    """What a reader of the table of gates has to know."""
    yield from _last_asked(run)
    yield from _together(run)
    yield from _completed(run)
    yield NEAREST


def _last_asked(run: RunReport) -> Iterator[str]:
    """A held request has one line, and no gate is true on one that was let in."""
    if run.answers.held.n:
        yield (
            f"Of {plural(run.answers.held.n, 'held request')} the gates and the"
            " signals are those of the last time the policy was asked, not of when it"
            " deferred them."
        )


def _together(run: RunReport) -> Iterator[str]:
    if run.together is not None:
        yield f"All were true at once on {_share(run.together)}."
    joint = run.joint
    if joint is not None and joint.distance > 0:
        at = ", ".join(f"{printable(k)} {number(v)}" for k, v in joint.values.items())
        yield (
            f"At the nearest joint approach ({at}) the gate farthest off was short by"
            f" {number(joint.distance)} of its bound."
        )


def _completed(run: RunReport) -> Iterator[str]:
    """What of the table was not asked by the policy, and what could not be."""
    for gate in run.gates:
        if gate.completed:
            skipped = share(gate.completed, gate.evaluated)
            yield (
                f"{gate_text(gate)}: and/or passed over it on {skipped}; there it is"
                " completed from the line's own signals."
            )
        if gate.unknown:
            yield f"{gate_text(gate)}: on {gate.unknown} its signal was not supplied."


def signals(run: RunReport) -> Iterator[str]:
    """What a reader of the table of signals has to know."""
    what = "sample" if run.basis == "samples" else "decision"
    yield (
        "-- never supplied. Percentiles by nearest rank; n<20 where p95 would be the"
        f" maximum. n of {plural(run.answers.offered, what)}."
    )
    if run.facts:
        offered = run.answers.offered
        carried = (
            f"{printable(k)} {percent(n, offered)}" for k, n in run.facts.items()
        )
        yield f"Facts carried, of {offered}: {', '.join(carried)}."
    elif run.basis != "samples":
        yield "No request carried any fact."


def answers(run: RunReport) -> Iterator[str]:
    """What a reader of the table of answers has to know."""
    said = run.answers
    asked = "samples" if run.basis == "samples" else "offered"
    yield (
        f"{asked} {said.offered} = admit {said.admitted} + defer"
        f" {said.deferred} + reject {said.rejected}. turned: callers really"
        f" turned away, {said.turned_away} in all; p50 ms and max: the waits they"
        " were told."
    )
    if said.held.n:
        yield _held(said)
    if said.enforced < said.offered:
        yield f"Governed: {share(said.enforced, said.offered)}."
    if run.wait_kinds:
        yield f"Waits by origin: {counted(run.wait_kinds)}."


def _held(answers: Answers) -> str:
    held = answers.held
    return (
        f"Deferred at first and held: {share(held.n, answers.offered)} = let in"
        f" {held.let_in} + turned away {held.refused} + left while held {held.left};"
        f" {spread(held.held_ms, 'ms')}."
    )


def answer(one: Row) -> str:
    """An answer in the first column of their table."""
    blind = "(blind)" if one.blind and one.reason not in _BLIND_REASONS else ""
    return " ".join(filter(None, (one.verdict, printable(one.reason), blind)))


def faults(run: RunReport) -> Iterator[tuple[str, str]]:
    """Section 5 of a run's page."""
    seen = run.faults
    lost = {f"{kind} lines": n for kind, n in seen.lost.items()}
    yield "lost records", counted(lost) or "none"
    if lost:
        decisions = _share(seen.lost_decisions)
        yield "", f"{decisions} decisions, in no number above"
        yield "", f"why: {counted(seen.lost_why)}"
    when = f", {seen.blind_when.text}" if seen.blind_when.text else ""
    yield "blind", f"{_share(seen.blind)} decisions{when}"
    yield "policy errors", str(seen.policy_errors)
    yield "events", counted(seen.events, most=12) or "none"
    yield from _odd(run)
    yield "reading age", _timing(seen.age_ms, "ms")
    took = _timing(seen.decide_us, "us")
    if seen.decide_us.high == 0:
        took = "not measured: the clock stood still while it decided"
    yield "decide took", took


def _odd(run: RunReport) -> Iterator[tuple[str, str]]:
    seen = run.faults
    if seen.repeated:
        yield "repeated", f"{counted(seen.repeated)}; each counted once"
    if seen.dangling:
        decisions = plural(seen.dangling, "decision")
        yield "no reading", f"{decisions} made on one that is not in the log"
    if seen.without_decision:
        outcomes = plural(seen.without_decision, "outcome")
        yield "no decision", f"{outcomes}, left out above"
    if seen.newer_schema is not None:
        yield "schema", f"{seen.newer_schema} is newer than this reader"
    if seen.signals_left_out:
        values = plural(seen.signals_left_out, "value")
        yield "signals", f"{values} of further names left out"


def _timing(values: Spread, unit: str) -> str:
    return spread(values, unit) if values.n else "not in the log"


def files(read: Files) -> Iterator[tuple[str, str]]:
    """What was read, and what of it could not be used."""
    for path in read.paths:
        yield "read", printable(path)
    for why in read.unread:
        yield "not read", printable(why)
    unusable = sum(read.unusable.values())
    yield "lines", f"{read.lines} read, {unusable} could not be used"
    for why, n in read.unusable.items():
        yield "", f"{n} {printable(why)}"
    for first in read.first:
        yield "at", printable(first)
    for notice in read.notices:
        yield "notice", printable(notice)


def _share(part: Share) -> str:
    return share(part.n, part.of)
