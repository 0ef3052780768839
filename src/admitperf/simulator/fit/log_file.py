"""Reads a policy's decision log as a run: what was let in, and how it ended.

A log says when the first token came and when the last, not those between.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from admitperf.core.errors import LogError
from admitperf.simulator.fit.lines import once, place
from admitperf.simulator.fit.load_file import chained, engine_facts, versions
from admitperf.simulator.fit.recorded import Asked, Recorded, Sight
from admitperf.simulator.fit.vetted import (
    MOST_COUNT,
    MOST_MS,
    MOST_S,
    MOST_TOKENS,
    MOST_WALL_S,
    Fields,
    Vetted,
    gauge,
)

_Key = tuple[str, int]
_SHOWN = {"running": "running", "waiting": "queue_depth", "kv_fraction": "kv_pressure"}
_PREEMPTIONS = "num_preemptions"


def recorded(path: Path, lines: Sequence[tuple[int, Fields]]) -> Recorded:
    """The run in the lines of a log.

    Raises:
        LogError: it is a trace of samples, or no request of it has all that is needed.
    """
    told = [Vetted(fields, place(path, at)) for at, fields in lines]
    head = next(_of(told, "run"), Vetted({}, str(path)))
    if head.fields.get("basis") == "samples":
        raise LogError(f"{path}: was made from samples: no request stands behind it")
    decided = _decided(told)
    begin_us = min((d.fields["t_us"] for d in decided.values()), default=0)
    asked, left = _requests(told, decided, begin_us)
    if not asked:
        raise LogError(
            f"{path}: no outcome has ttft_ms, e2e_ms and output_tokens, with"
            " input_tokens on its decision"
        )
    notes = head.inner("notes")
    return Recorded(
        name=path.name.removesuffix(".gz").removesuffix(".jsonl"),
        kind="log",
        asked=tuple(chained(sorted(asked, key=lambda one: one.sent_s))),
        sights=_sights(told, begin_us),
        engine=engine_facts(notes),
        versions=versions(notes, "engine", "model"),
        date=dt.datetime.fromtimestamp(begin_us / 1e6, dt.UTC).date().isoformat(),
        left_out=left,
        replicas=notes.count("replicas", MOST_COUNT) or 1,
    )


def _of(told: Iterable[Vetted], kind: str) -> Iterator[Vetted]:
    return (one for one in told if one.fields.get("k") == kind)


def _decided(told: Iterable[Vetted]) -> dict[_Key, Vetted]:
    decided: dict[_Key, Vetted] = {}
    seen: dict[str, str] = {}
    for one in _of(told, "decision"):
        seq = one.whole("seq", MOST_COUNT)
        one.number("t_us", MOST_WALL_S * 1e6)
        once(seen, f"{one.text('run')}/{seq}", one, "seq")
        decided[one.text("run") or "", seq] = one
    return decided


def _requests(
    told: Iterable[Vetted], decided: Mapping[_Key, Vetted], begin_us: int
) -> tuple[list[Asked], Counter[str]]:
    asked, left = list[Asked](), Counter[str]()
    seen: dict[str, str] = {}
    for one in _of(told, "outcome"):
        key = one.text("run") or "", one.count("of", MOST_COUNT) or 0
        decision, said = decided.get(key), one.fields
        if decision is None or not said.get("ok") or not said.get("admitted", True):
            left["not served"] += 1
        elif (made := _asked(decision, one, begin_us)) is None:
            left["lacks a time or a size"] += 1
        else:
            once(seen, made.id, one, "of")
            asked.append(made)
    return asked, left


def _asked(decision: Vetted, outcome: Vetted, begin_us: int) -> Asked | None:
    facts = decision.inner("facts")
    prompt = facts.count("input_tokens", MOST_TOKENS)
    given = outcome.count("output_tokens", MOST_TOKENS)
    ttft_ms = outcome.maybe("ttft_ms", MOST_MS)
    e2e_ms = outcome.maybe("e2e_ms", MOST_MS)
    if not prompt or not given or ttft_ms is None or e2e_ms is None:
        return None
    sent_s = (decision.fields["t_us"] - begin_us) / 1e6
    decision.value(sent_s, "t_us, in seconds from the first,", MOST_S)
    most = facts.count("max_output_tokens", MOST_COUNT) or given
    return Asked(
        id=f"{decision.text('run')}/{decision.fields['seq']}",
        sent_s=sent_s,
        input_tokens=prompt,
        output_tokens=given,
        max_output_tokens=max(given, most),
        ttft_ms=ttft_ms,
        e2e_ms=outcome.end_ms("e2e_ms", e2e_ms, ttft_ms),
        cached_tokens=outcome.count("cached_tokens", prompt),
        session=facts.text("session"),
        priority=facts.count("priority", MOST_COUNT, -MOST_COUNT) or 0,
    )


def _sights(told: Iterable[Vetted], begin_us: int) -> tuple[Sight, ...]:
    """What the readings showed, each once, at the time at which it was taken."""
    preempted: dict[object, float] = {}
    seen: list[Sight] = []
    for one in told:
        if one.fields.get("k") == "run":  # its raw says what is kept of pages
            continue
        shown = _page(one, "raw")
        counts = [
            value
            for name in shown.fields
            if _PREEMPTIONS in name
            and (value := shown.maybe(name, MOST_COUNT)) is not None
        ]
        if counts:
            preempted[one.text("run")] = max(counts)
        if one.fields.get("k") == "decision" and one.fields.get("signals") is not None:
            at_us = one.fields["t_us"] - 1e3 * (one.maybe("age_ms", MOST_MS) or 0.0)
            seen.append(_sight(one, (at_us - begin_us) / 1e6, preempted))
    ordered = sorted(seen, key=lambda sight: sight.at_s)
    return tuple(next(group) for _, group in groupby(ordered, key=lambda s: s.at_s))


def _sight(told: Vetted, at_s: float, preempted: Mapping[object, float]) -> Sight:
    page = _page(told, "signals")
    shown = {name: page.maybe(as_told, MOST_COUNT) for name, as_told in _SHOWN.items()}
    return Sight(at_s=at_s, preemptions=preempted.get(told.text("run")), **shown)


def _page(told: Vetted, name: str) -> Vetted:
    """What an engine showed, its NaN as absent."""
    page = told.inner(name)
    return Vetted({key: gauge(page.fields, key) for key in page.fields}, told.where)
