"""The seven questions, in the order in which one decides whether to ask the next."""

from collections.abc import Callable, Iterator, Mapping

from admitperf.reports.questions.question import (
    CANNOT_SAY,
    TOO_FEW,
    Question,
    yes_or_no,
)
from admitperf.reports.questions.seen import FACTS, FEWEST, OFTEN, Seen, often
from admitperf.reports.ratio import Share
from admitperf.reports.runs.crowd import FULL, NEAR_MOST
from admitperf.reports.wording import (
    counted,
    number,
    plural,
    printable,
    ratio,
    share,
    spread,
)


def questions(seen: Seen) -> tuple[Question, ...]:
    """What a run answers to each of them."""
    return tuple(ask(seen) for ask in _ALL)


# --------------------------------------------------------------------- overload


def overload(seen: Seen) -> Question:
    """Without any, every policy would be INERT."""
    return Question(
        "overload",
        "Was there overload at all?",
        TOO_FEW if seen.few else yes_or_no(seen.overload),
        tuple(_overload(seen)),
    )


def _overload(seen: Seen) -> Iterator[str]:
    if seen.few:
        yield f"n {seen.offered}: nothing is answered from fewer than {FEWEST}."
    if seen.too_tight:
        yield too_tight(seen)
    yield _above_zero(seen, "queue_depth", seen.crowd.queued)
    yield _waited(seen)
    if seen.samples:
        yield "A sample has no request behind it: no TTFT and no goodput."
    else:
        yield from _served(seen)
    if seen.kept_away:
        away = share(seen.kept_away, seen.offered)
        yield (
            f"{away} were turned away: what the engine would have made of them is not"
            " in this log."
        )


def _waited(seen: Seen) -> str:
    waits = seen.signal("oldest_wait_s")
    if not waits.n:
        return "oldest_wait_s was never supplied."
    return f"oldest_wait_s: {spread(waits, 's')}."


def _served(seen: Seen) -> Iterator[str]:
    paid = seen.run.cost
    if not paid.reported.n:
        yield "No outcome is in the log: neither TTFT nor goodput can be said."
        return
    if paid.ttft_ms.n:
        yield f"TTFT: {spread(paid.ttft_ms, 'ms')}."
    if paid.slo:
        missed = (
            f", missed by {counted(paid.missed)}" if paid.missed else ", not missed"
        )
        yield f"SLO ({paid.slo_origin}): {printable(paid.slo)}{missed}, n {paid.ok.n}."
    else:
        yield (
            f"No SLO is stated, so a slow answer cannot be told: give --slo. What"
            f" holds on under {number(OFTEN)} of decisions is not counted."
        )
    good = seen.run.goodput
    if good is not None:
        yield f"Goodput over offered: {ratio(good.n, good.of)}."
    if seen.harmless:
        yield "Almost all that was offered met its SLO: a refusal could only lose."
    if paid.engine_refused.n:
        refused = share(paid.engine_refused.n, paid.engine_refused.of)
        yield f"The engine itself refused {refused} of what was let in."


# ------------------------------------------------------------------------ facts


def facts(seen: Seen) -> Question:
    """A policy can rest only on what requests say of themselves."""
    if seen.samples:
        says: tuple[str, ...] = ("A sample has no request behind it.",)
        return Question("facts", _FACTS, CANNOT_SAY, says)
    carried = {name: seen.fact(name) for name in FACTS}
    some = [name for name, part in carried.items() if part.n]
    return Question("facts", _FACTS, ", ".join(some) or "nothing", (*_facts(carried),))


def _facts(carried: Mapping[str, Share]) -> Iterator[str]:
    for name, part in carried.items():
        if part.n:
            yield f"{name}: {_share(part)}."
    none = [name for name, part in carried.items() if not part.n]
    if none:
        of = max(part.of for part in carried.values())
        yield f"0 of {of} carry {', '.join(none)}."


_FACTS = "What do requests say of themselves?"


# ----------------------------------------------------------------------- memory


def memory(seen: Seen) -> Question:
    """A threshold above what is ever reached never fires."""
    return Question(
        "memory",
        "Does the KV cache fill at peak?",
        _memory_answer(seen),
        tuple(_memory(seen)),
    )


def _memory_answer(seen: Seen) -> str:
    full = seen.crowd.full
    if full.n and seen.fills is False:
        return SELDOM
    return _known(seen.fills, full)


def _memory(seen: Seen) -> Iterator[str]:
    crowd, pressure = seen.crowd, seen.signal("kv_pressure")
    if not pressure.n:
        yield "kv_pressure was never supplied."
        return
    yield f"kv_pressure: {spread(pressure, 'of 1')}."
    yield f"At {number(FULL)} or over: {_share(crowd.full)}."
    capacity = seen.signal("kv_capacity_tokens")
    if capacity.n:
        yield f"Capacity: {number(capacity.low)} tokens."
    else:
        yield "Capacity: kv_capacity_tokens was never supplied."
    yield _above_zero(seen, "preemptions", crowd.preempting)
    yield from _full(seen)


def _full(seen: Seen) -> Iterator[str]:
    """Whether a full cache hurt, or was one that is well used."""
    crowd, hits = seen.crowd, seen.crowd.hits_full
    if not crowd.full.n:
        return
    if crowd.full_queued.of:
        yield f"Full while requests wait in the engine: {_share(crowd.full_queued)}."
    else:
        yield "Whether requests wait while it is full cannot be said: no queue_depth."
    if hits.n:
        yield f"prefix_hit_rate while full: {spread(hits, 'of 1')}."
    if crowd.full_queued.of and not crowd.full_queued.n:
        yield "Full, and nobody waits: a cache that is well used, not overload."


# ------------------------------------------------------------------------ queue


def queue(seen: Seen) -> Question:
    """And where: in the engine, or before it."""
    queued = seen.crowd.queued
    answer = _known(seen.queues, queued)
    if seen.queues is False and queued.n:
        answer = SELDOM
    return Question("queue", "Does a queue form?", answer, tuple(_queue(seen)))


def _queue(seen: Seen) -> Iterator[str]:
    depth, held = seen.signal("queue_depth"), seen.run.answers.held
    if depth.n:
        yield f"In the engine, queue_depth: {spread(depth, 'requests')}."
    else:
        yield "In the engine: queue_depth was never supplied."
    if held.n:
        yield f"At the host: held {share(held.n, seen.offered)}."
    elif not seen.samples:
        yield "At the host: none was held."
    yield _waited(seen)
    if seen.waits_long and depth.n and not often(seen.crowd.queued):
        yield (
            "Requests wait and the engine shows no queue: it stands in front of the"
            " engine, where queue_depth does not see it."
        )


# ------------------------------------------------------------------------ binds


def binds(seen: Seen) -> Question:
    """Memory, slots or prefill: what the queue waits for."""
    queued = seen.crowd.queued
    answer = seen.binds or CANNOT_SAY
    if queued.of >= FEWEST and not queued.n:
        answer = "nothing: no queue"
    elif 0 < queued.n < FEWEST or 0 < queued.of < FEWEST:
        answer = TOO_FEW
    return Question(
        "binds", "What do those in the queue wait for?", answer, tuple(_binds(seen))
    )


def _binds(seen: Seen) -> Iterator[str]:
    crowd, running = seen.crowd, seen.signal("running")
    if not crowd.queued.n:
        yield "No decision saw a queue in the engine."
        return
    if crowd.memory.of:
        yield f"Memory: with a queue, the cache was full on {_share(crowd.memory)}."
    else:
        yield "Memory: kv_pressure was never supplied."
    if running.n:
        yield (
            f"Slots: with a queue, running stood within {number(1 - NEAR_MOST)} of its"
            f" most ({number(running.high)}) on {_share(crowd.slots)}."
        )
    else:
        yield "Slots: running was never supplied."
    yield _prefill(seen)


def _prefill(seen: Seen) -> str:
    found = seen.prefill
    if found is None:
        return "Prefill: no outcome says TTFT beside the prompt's tokens."
    if found.grows is None:
        return (
            f"Prefill: too few outcomes, or prompts too alike, to compare short with"
            f" long ones (n {found.n})."
        )
    return (
        f"Prefill: TTFT p50 {number(found.short_ms)} ms for prompts up to"
        f" {number(found.short_tokens)} tokens, {number(found.long_ms)} ms from"
        f" {number(found.long_tokens)} tokens on (a quarter each, n {found.n})."
    )


# ---------------------------------------------------------------------- callers


def callers(seen: Seen) -> Question:
    """One tenant's rush and a session's calls ask for units of their own."""
    who = seen.callers
    found = ["one tenant"] * seen.one_tenant + ["sessions"] * seen.in_sessions
    if not (who.tenants or who.sessions):
        found = [CANNOT_SAY]
    elif seen.few:
        found = [TOO_FEW]
    return Question(
        "callers",
        "Is it one tenant, or sessions?",
        " and ".join(found) or "no",
        (*_tenants(seen), *_sessions(seen)),
    )


def _tenants(seen: Seen) -> Iterator[str]:
    who = seen.callers
    if not who.tenants:
        yield "No request names a tenant."
        return
    yield f"{plural(who.tenants, 'tenant')}; the largest has {_share(who.largest)}."
    if who.largest_tokens.of:
        yield f"Of prompt tokens the largest has {_share(who.largest_tokens)}."
    if who.jain is not None:
        yield f"Jain's index of their requests: {number(who.jain)} (1 = all alike)."


def _sessions(seen: Seen) -> Iterator[str]:
    who = seen.callers
    if not who.sessions:
        yield "No request names a session."
        return
    calls = spread(who.calls, "calls", "sessions")
    yield f"Calls of a session: {calls}."
    yield f"With several calls: {_share(who.several)}."
    yield f"With a call refused: {_share(who.refused)}."
    if who.failed.of:
        yield f"With a call that failed: {_share(who.failed)}."
    parents = seen.fact("parent_session")
    if parents.n:
        yield f"Calls of a sub-agent (parent_session): {_share(parents)}."


# ------------------------------------------------------------------------- acts


def acts(seen: Seen) -> Question:
    """What the log's own policy did; the finding of its report."""
    found = seen.run.finding
    name = printable(str(seen.run.header.get("policy") or "a policy it does not name"))
    governs = f"The log is of {name}."
    return Question(
        "acts", "Does the policy of this log act?", found.word, (governs, *found.says)
    )


_ALL: tuple[Callable[[Seen], Question], ...] = (
    overload,
    facts,
    memory,
    queue,
    binds,
    callers,
    acts,
)


SELDOM = "seldom"


def too_tight(seen: Seen) -> str:
    """That the log's own policy refused while the engine idled, and by what."""
    away = share(seen.kept_away, seen.offered)
    said = [f"{away} were turned away while the engine idled: queue_depth at most"]
    said.append(f" {number(seen.signal('queue_depth').high)}, kv_pressure at most")
    said.append(f" {number(seen.signal('kv_pressure').high)}")
    running = seen.signal("running")
    if running.n:
        said.append(f", running at most {number(running.high)}")
    return f"{''.join(said)}."


def _known(found: bool | None, part: Share) -> str:  # noqa: FBT001  an answer
    """The answer, or that there is too little of what it rests on."""
    return TOO_FEW if found is None and part.of else yes_or_no(found)


def _share(part: Share) -> str:
    return share(part.n, part.of)


def _above_zero(seen: Seen, name: str, part: Share) -> str:
    if not part.of:
        return f"{name} was never supplied."
    high = number(seen.signal(name).high)
    return f"{name} was above 0 on {_share(part)}, at most {high}."
