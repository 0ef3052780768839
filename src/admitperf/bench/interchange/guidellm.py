"""Reads what GuideLLM writes as JSON: `benchmarks.json`, one run for each rate.

A request is under `requests.successful`, `.errored` or `.incomplete`. What it derives
of a request stands beside what it saw, and both are the same in versions since 0.3.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from admitperf.bench.callers.records import CallRecord
from admitperf.bench.interchange.foreign import (
    MOST_CLOCK_S,
    MOST_MS,
    MOST_S,
    MOST_TOKENS,
    Foreign,
    Totals,
    call,
)
from admitperf.core.notes import Note
from admitperf.simulator.fit.vetted import MOST_COUNT, Fields, Vetted

TOOL = "GuideLLM"

_SCHEDULED = ("constant", "poisson", "async", "trace")
"""Strategies that say when a request is due. The others begin one when another ends."""

_GROUPS = ("successful", "errored", "incomplete")


def known(whole: Fields) -> bool:
    """Whether an object is such a report."""
    found = whole.get("benchmarks")
    return isinstance(found, list) and "request_throughput" not in whole


def read(where: str, whole: Fields) -> tuple[Foreign, ...]:
    """The runs in the file, in its order.

    Args:
        where: the file, for messages.
        whole: its object.

    Raises:
        LogError: a value is missing, or none it could be.
    """
    told = Vetted(whole, where)
    version = told.inner("metadata").fields.get("guidellm_version")
    found = told.many("benchmarks", "runs")
    if not found:
        told.refuse("benchmarks", "there is no run")
    return tuple(
        _run(Vetted({"run": one}, f"{where}: benchmark {n}").inner("run"), version)
        for n, one in enumerate(found)
    )


def _run(told: Vetted, version: object) -> Foreign:
    strategy = told.inner("config").inner("strategy").fields
    kind = str(strategy.get("type_") or "unknown")
    rows = [*_rows(told.inner("requests"))]
    starts_s = [at_s for _, one in rows if (at_s := _due_s(one, kind)) is not None]
    first_s = min(starts_s, default=0.0)
    records = tuple(
        _record(n, group, one, kind, first_s) for n, (group, one) in enumerate(rows)
    )
    totals = _totals(told)
    sampled = totals is not None and totals.offered > len(records)
    return Foreign(
        tool=TOOL,
        name=_name(kind, strategy),
        records=() if sampled else records,
        totals=totals if sampled or not records else None,
        own=_own(told),
        notes=_notes(version, kind, strategy),
        missing=(*_SAID, *(_SAMPLED if sampled else ())),
        unjudged=frozenset({"stall_ms"}),
    )


_SAID = (
    "The gaps between tokens: it keeps the first and the last, so no stall is seen.",
    "Statuses and reasons: an error is a text, which may hold a status.",
    "Second tries: it makes none.",
)
_SAMPLED = (
    (
        "Its single requests: it kept a sample of them, so no bound of ours can be"
        " asked of all that were offered."
    ),
)


def _rows(told: Vetted) -> Iterator[tuple[str, Vetted]]:
    for group in _GROUPS:
        for n, one in enumerate(told.many(group, "requests")):
            where = f"{told.where}: {group} {n}"
            yield group, Vetted({"request": one}, where).inner("request")


def _times(told: Vetted) -> Vetted:
    """When things happened; where that stands has another name in older versions."""
    info = told.inner("info")
    if "timings" in info.fields:
        return info.inner("timings")
    return told.inner("scheduler_info").inner("request_timings")


def _sent_s(told: Vetted) -> float | None:
    sent_s = told.maybe("request_start_time", MOST_CLOCK_S)
    return (
        _times(told).maybe("request_start", MOST_CLOCK_S) if sent_s is None else sent_s
    )


def _due_s(told: Vetted, kind: str) -> float | None:
    """When it was due; of a strategy without a schedule, when it was sent."""
    due_s = _times(told).maybe("targeted_start", MOST_CLOCK_S)
    return due_s if due_s is not None and kind in _SCHEDULED else _sent_s(told)


def _record(n: int, group: str, told: Vetted, kind: str, first_s: float) -> CallRecord:
    due_s, sent_s = _due_s(told, kind), _sent_s(told)
    late_s = 0.0 if due_s is None or sent_s is None else max(sent_s - due_s, 0.0)
    info = told.inner("info")
    took_s = told.maybe("request_latency", MOST_S)
    error = _error(info) if group == "errored" else None
    return call(
        name=told.text("request_id") or str(n),
        session=info.text("conversation_id"),
        place=info.count("turn_index", MOST_COUNT) or 0,
        due_s=0.0 if due_s is None else due_s - first_s,
        late_ms=late_s * 1e3,
        input_tokens=told.count("prompt_tokens", MOST_TOKENS),
        output_tokens=told.count("output_tokens", MOST_TOKENS),
        ttft_ms=told.maybe("time_to_first_token_ms", MOST_MS),
        e2e_ms=None if took_s is None else took_s * 1e3,
        status=_status(error) if error else 200,
        error=error,
        unfinished=group == "incomplete",
    )


_STATUS = re.compile(r"error '(\d{3}) ")
"""How the HTTP client it uses words a status."""


def _status(error: str) -> int:
    found = _STATUS.search(error)
    return int(found[1]) if found else 0


def _error(info: Vetted) -> str:
    said = info.fields.get("error")
    return str(said)[:200] if said else "no error given"


def _totals(told: Vetted) -> Totals | None:
    """What its own counts say."""
    counts = told.inner("metrics").inner("request_totals")
    if not counts.fields:
        return None
    n = {group: counts.count(group, MOST_COUNT) or 0 for group in _GROUPS}
    return Totals(
        offered=sum(n.values()),
        failed=n["errored"],
        ttft_ms=_percentiles(told.inner("metrics").inner("time_to_first_token_ms")),
    )


def _percentiles(told: Vetted) -> dict[str, float | None]:
    found = told.inner("successful").inner("percentiles")
    return {name: found.maybe(name, MOST_MS) for name in ("p50", "p95", "p99")}


def _own(told: Vetted) -> str | None:
    metrics = told.inner("metrics").fields
    found = metrics.get("goodput") or metrics.get("slo_attainment")
    if found is None:
        return None
    return "its goodput leaves incomplete requests out of what it divides by"


def _name(kind: str, strategy: Mapping[str, Any]) -> str:
    for name in ("rate", "streams", "max_concurrency"):
        if isinstance(strategy.get(name), int | float):
            return f"{kind} {name} {strategy[name]:g}"
    return kind


def _notes(
    version: object, kind: str, strategy: Mapping[str, Any]
) -> Mapping[str, Note]:
    rate = strategy.get("rate")
    return {
        "version": str(version)[:40] if version else None,
        "strategy": kind,
        "request_rate": float(rate) if isinstance(rate, int | float) else None,
    }
