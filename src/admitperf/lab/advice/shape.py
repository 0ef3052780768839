"""Which shapes of policy follow: unit, signal, rule and action.

Deadlines on requests? A formal bound. Otherwise, does KV memory fill at peak? A dual
gate or a threshold on it. Otherwise a bound on the queue. What callers are like adds a
shape of its own beside that one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from admitperf.lab.advice import candidates
from admitperf.lab.advice.candidates import Candidate
from admitperf.reports.questions.seen import Seen
from admitperf.reports.wording import share

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
    if seen.overload is False:
        return ()
    found = [*_main(seen), *_beside(seen)]
    return (*found, _joined()) if len(found) > 1 else tuple(found)


def _main(seen: Seen) -> Iterator[Shape]:
    deadlines = seen.fact("deadline_s")
    if deadlines.n:
        yield _formal(share(deadlines.n, deadlines.of))
    if deadlines.n < deadlines.of or seen.samples:
        yield from _without_deadline(seen)


def _without_deadline(seen: Seen) -> Iterator[Shape]:
    crowd = seen.crowd
    if seen.fills and crowd.full_queued.n:
        yield _dual(share(crowd.full_queued.n, crowd.full_queued.of))
        if seen.binds != "memory":
            yield _queue(seen)
    elif seen.fills and (crowd.preempting.n or not crowd.full_queued.of):
        yield _threshold(share(crowd.full.n, crowd.full.of))
    elif seen.queues:
        yield _queue(seen)


def _beside(seen: Seen) -> Iterator[Shape]:
    who, priorities = seen.callers, seen.fact("priority")
    if seen.one_tenant:
        yield _tenant(share(who.largest.n, who.largest.of))
    if seen.in_sessions:
        yield _session(share(who.several.n, who.several.of))
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
        f"The cache was full while requests waited on {both}.",
        candidates.DUAL,
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
    if not seen.crowd.queued.n:
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
    if not seen.crowd.queued.n:
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


def _session(several: str) -> Shape:
    return Shape(
        "whole sessions",
        "agent-session",
        "sessions and the memory they keep",
        "no new session over a bound; a begun one goes on",
        "defer: when a session ends there is room",
        f"{several} sessions ask more than once: a refusal within one loses all of it.",
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


def why_none(seen: Seen) -> str:
    """Why no shape follows, and what would be needed for one."""
    if seen.overload is False:
        return (
            "No policy is needed for this load: nothing waited and nothing was missed,"
            " so every policy would be INERT or refuse what could be served."
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
