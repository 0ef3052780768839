"""Which shapes of policy follow: unit, signal, rule and action.

Sessions of several calls come first, since a refusal within one loses all of it.
Deadlines on requests? A formal bound. Otherwise, does KV memory fill at peak? A bound
on it, or a dual gate where it is full of what is used again. Otherwise a bound on the
queue. Tenants and priorities add a shape beside that one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from admitperf.lab.advice import candidates
from admitperf.lab.advice.candidates import Candidate
from admitperf.reports.questions.asked import too_tight
from admitperf.reports.questions.seen import Seen, often
from admitperf.reports.wording import printable, share

_DEFER = "defer: capacity comes back"


@dataclass(frozen=True, slots=True)
class Shape:
    """Four choices, of which each limits the next.

    Attributes:
        name: in two or three words.
        unit: what is decided about.
        signal: what is read.
        rule: how it becomes an answer.
        action: what is done with what does not pass.
        why: the facts it follows from, in one sentence.
        candidates: the policies of this shape, in the order to try them.
    """

    name: str
    unit: str
    signal: str
    rule: str
    action: str
    why: str
    candidates: tuple[Candidate, ...]


def shapes(seen: Seen) -> tuple[Shape, ...]:
    """What follows from a log: the main shape first; empty when nothing does."""
    if seen.few or seen.too_tight or seen.overload is False:
        return ()
    sessions = [*_sessions(seen)]
    main = [_outside(one) if sessions else one for one in _main(seen)]
    found = [*sessions, *main, *_beside(seen)]
    return (*found, _joined()) if len(found) > 1 else tuple(found)


def _main(seen: Seen) -> Iterator[Shape]:
    deadlines = seen.fact("deadline_s")
    if deadlines.n:
        yield _formal(share(deadlines.n, deadlines.of))
    if deadlines.n < deadlines.of or seen.samples:
        yield from _without_deadline(seen)


def _without_deadline(seen: Seen) -> Iterator[Shape]:
    crowd = seen.crowd
    if seen.fills and often(crowd.full_queued):
        both = share(crowd.full_queued.n, crowd.full_queued.of)
        yield _dual(both) if seen.reuses else _memory(both)
        if seen.binds != "memory":
            yield _queue(seen)
    elif seen.fills and (often(crowd.preempting) or not crowd.full_queued.of):
        yield _threshold(share(crowd.full.n, crowd.full.of))
    elif seen.queues:
        yield _queue(seen)


def _sessions(seen: Seen) -> Iterator[Shape]:
    if seen.in_sessions:
        yield _session(seen)


def _outside(shape: Shape) -> Shape:
    """A shape that must not refuse within a session."""
    return replace(shape, unit="request that is in no session, or opens one")


def _beside(seen: Seen) -> Iterator[Shape]:
    who, priorities = seen.callers, seen.fact("priority")
    if seen.one_tenant:
        yield _tenant(share(who.largest.n, who.largest.of))
    if priorities.n:
        yield _priority(share(priorities.n, priorities.of))


def _formal(carried: str) -> Shape:
    return Shape(
        "formal bound",
        "request",
        "deadline slack",
        "the wait to expect, against the slack that is left",
        "reject: waiting would miss it anyway",
        f"{carried} requests carry a deadline.",
        candidates.DEADLINE,
    )


def _dual(both: str) -> Shape:
    return Shape(
        "dual gate",
        "request",
        "KV pressure and queue depth",
        "both over their bounds at once",
        _DEFER,
        f"The cache was full while requests waited on {both}, mostly of prefixes that"
        " are used again.",
        candidates.REUSE,
    )


def _memory(both: str) -> Shape:
    return Shape(
        "bound on memory",
        "request",
        "KV pressure, or what is still to come",
        "over a high-water mark",
        _DEFER,
        f"The cache was full while requests waited on {both}.",
        candidates.MEMORY,
    )


def _threshold(full: str) -> Shape:
    return Shape(
        "KV threshold",
        "request",
        "KV pressure",
        "over a high-water mark",
        _DEFER,
        f"The cache was full on {full}, and no queue is known beside it.",
        candidates.THRESHOLD,
    )


def _queue(seen: Seen) -> Shape:
    signal, tried = "queue depth", candidates.QUEUE
    if not often(seen.crowd.queued):
        signal, tried = "oldest wait", candidates.HOST_QUEUE
    elif seen.binds == "prefill":
        signal, tried = "prompt tokens that wait, or queue depth", candidates.PREFILL
    return Shape(
        "bound on the queue",
        "request",
        signal,
        "over a bound",
        _DEFER,
        _why_queue(seen),
        tried,
    )


def _why_queue(seen: Seen) -> str:
    if not often(seen.crowd.queued):
        return "Requests wait in front of the engine, where its queue does not show."
    queued = share(seen.crowd.queued.n, seen.crowd.queued.of)
    beside = "and how full the cache is was not supplied"
    if seen.fills is not None:
        full = share(seen.crowd.full.n, seen.crowd.full.of)
        beside = f"and the cache was full on {full}"
    return f"Requests waited in the engine on {queued}, {beside}."


def _tenant(largest: str) -> Shape:
    return Shape(
        "share of a tenant",
        "tenant",
        "tenant's share",
        "over its share",
        "reject: the caller is over, not the engine (429)",
        f"The largest tenant makes {largest} requests.",
        candidates.TENANT,
    )


def _session(seen: Seen) -> Shape:
    who = seen.callers
    several = share(who.several.n, who.several.of)
    why = f"{several} sessions ask more than once: a refusal within one loses all of it"
    if who.refused.n:
        why += f", and {share(who.refused.n, who.refused.of)} had a call refused"
    return Shape(
        "whole sessions",
        "agent-session",
        "sessions and the memory they keep",
        "no new session over a bound; a begun one goes on",
        "defer: when a session ends there is room",
        f"{why}.",
        candidates.SESSION,
    )


def _priority(carried: str) -> Shape:
    return Shape(
        "shedding by priority",
        "request",
        "load, and the request's priority",
        "a lower bound for what matters less",
        _DEFER,
        f"{carried} requests carry a priority.",
        candidates.PRIORITY,
    )


def _joined() -> Shape:
    return Shape(
        "several in one",
        "as its parts",
        "those of its parts",
        "the first that refuses answers",
        "as its parts",
        "More than one shape follows, and a host asks one policy.",
        candidates.JOINED,
    )


def _loosen(seen: Seen) -> str:
    """The policy that is there is the finding, and not another one."""
    policy = printable(str(seen.run.header.get("policy") or "the log's own policy"))
    return (
        f"{policy} is too tight: {too_tight(seen)} Loosen it, run again and ask that"
        " log; only if running stood at all the slots that the engine has is it right."
    )


def why_none(seen: Seen) -> str:
    """Why no shape follows, and what would be needed for one."""
    if seen.few:
        return f"Too few to say: n {seen.offered}. Watch or run for longer."
    if seen.too_tight:
        return _loosen(seen)
    if seen.overload is False:
        return (
            "No policy is needed for this load: what waited or missed its SLO is too"
            " little to count, so every policy would be INERT or refuse what could be"
            " served."
        )
    if seen.overload is None and seen.kept_away:
        return (
            f"This log cannot say: {seen.kept_away} were turned away, and behind that"
            " nothing waited. Whether it would have without, a shadow run shows."
        )
    absent = [
        name for name in ("queue_depth", "kv_pressure") if not seen.signal(name).n
    ]
    if absent:
        return (
            f"This log cannot say: {' and '.join(absent)} was never supplied, and no"
            " request carries a deadline. admitperf signals shows what the engine has."
        )
    return (
        "This log cannot say: neither queue nor cache shows what requests wait for, and"
        " none carries a deadline."
    )
