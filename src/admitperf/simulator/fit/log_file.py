"""Reads a policy's decision log as a run: what was let in, and how it ended.

A log says when the first token came and when the last, not those between.
"""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from admitperf.core.errors import LogError
from admitperf.simulator.fit.lines import Fields, count, maybe, number
from admitperf.simulator.fit.load_file import chained, engine_facts
from admitperf.simulator.fit.recorded import Asked, Recorded, Sight

_Key = tuple[str, int]
_SHOWN = {"running": "running", "waiting": "queue_depth", "kv_fraction": "kv_pressure"}
_PREEMPTIONS = "num_preemptions"


def recorded(path: Path, lines: Sequence[tuple[int, Fields]]) -> Recorded:
    """The run in the lines of a log.

    Raises:
        LogError: it is a trace of samples, or no request of it has all that is needed.
    """
    head: Fields = next((f for _, f in lines if f.get("k") == "run"), {})
    if head.get("basis") == "samples":
        raise LogError(f"{path}: was made from samples: no request stands behind it")
    decided = _decided(path, lines)
    begin_us = min((d["t_us"] for d in decided.values()), default=0)
    asked, left = _requests(lines, decided, begin_us)
    if not asked:
        raise LogError(
            f"{path}: no outcome has ttft_ms, e2e_ms and output_tokens, with"
            " input_tokens on its decision"
        )
    notes = head.get("notes")
    return Recorded(
        name=path.name.removesuffix(".gz").removesuffix(".jsonl"),
        kind="log",
        asked=tuple(chained(sorted(asked, key=lambda one: one.sent_s))),
        sights=_sights(lines, begin_us),
        engine=engine_facts(notes) if isinstance(notes, dict) else {},
        versions=_versions(notes),
        date=dt.datetime.fromtimestamp(begin_us / 1e6, dt.UTC).date().isoformat(),
        left_out=left,
    )


def _decided(path: Path, lines: Sequence[tuple[int, Fields]]) -> dict[_Key, Fields]:
    decided: dict[_Key, Fields] = {}
    for at, fields in lines:
        if fields.get("k") == "decision":
            seq = int(number(fields, "seq", f"{path}:{at}"))
            number(fields, "t_us", f"{path}:{at}")
            decided[str(fields.get("run")), seq] = fields
    return decided


def _requests(
    lines: Sequence[tuple[int, Fields]],
    decided: Mapping[_Key, Fields],
    begin_us: int,
) -> tuple[list[Asked], Counter[str]]:
    asked, left = list[Asked](), Counter[str]()
    for _, fields in lines:
        if fields.get("k") != "outcome":
            continue
        decision = decided.get((str(fields.get("run")), count(fields, "of") or 0))
        if decision is None or not fields.get("ok") or not fields.get("admitted", True):
            left["not served"] += 1
        elif (one := _asked(decision, fields, begin_us)) is None:
            left["lacks a time or a size"] += 1
        else:
            asked.append(one)
    return asked, left


def _asked(decision: Fields, outcome: Fields, begin_us: int) -> Asked | None:
    facts: Mapping[str, Any] = decision.get("facts") or {}
    prompt, given = count(facts, "input_tokens"), count(outcome, "output_tokens")
    ttft_ms, e2e_ms = maybe(outcome, "ttft_ms"), maybe(outcome, "e2e_ms")
    if not prompt or not given or ttft_ms is None or e2e_ms is None:
        return None
    return Asked(
        id=f"{decision.get('run')}/{decision['seq']}",
        sent_s=(decision["t_us"] - begin_us) / 1e6,
        input_tokens=prompt,
        output_tokens=given,
        max_output_tokens=max(given, count(facts, "max_output_tokens") or given),
        ttft_ms=ttft_ms,
        e2e_ms=e2e_ms,
        cached_tokens=count(outcome, "cached_tokens"),
        session=facts.get("session"),
        priority=int(facts.get("priority") or 0),
    )


def _sights(lines: Sequence[tuple[int, Fields]], begin_us: int) -> tuple[Sight, ...]:
    """What the readings showed, each once, at the time at which it was taken."""
    preempted: dict[object, float] = {}
    seen: list[Sight] = []
    for _, fields in lines:
        raw = fields.get("raw")
        counts = [
            value
            for name in (raw if isinstance(raw, dict) else ())
            if _PREEMPTIONS in name and (value := maybe(raw or {}, name)) is not None
        ]
        if counts:
            preempted[fields.get("run")] = max(counts)
        if fields.get("k") == "decision" and isinstance(fields.get("signals"), dict):
            at_us = fields["t_us"] - 1e3 * (maybe(fields, "age_ms") or 0.0)
            seen.append(_sight(fields, (at_us - begin_us) / 1e6, preempted))
    ordered = sorted(seen, key=lambda sight: sight.at_s)
    return tuple(next(group) for _, group in groupby(ordered, key=lambda s: s.at_s))


def _sight(fields: Fields, at_s: float, preempted: Mapping[object, float]) -> Sight:
    shown = {name: maybe(fields["signals"], told) for name, told in _SHOWN.items()}
    return Sight(at_s=at_s, preemptions=preempted.get(fields.get("run")), **shown)


def _versions(notes: object) -> str | None:
    if not isinstance(notes, dict):
        return None
    said = [str(notes[name]) for name in ("engine", "model") if notes.get(name)]
    return ", ".join(said) or None
