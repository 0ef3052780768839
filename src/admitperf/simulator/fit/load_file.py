"""Reads the JSON lines of the load generator that recorded the real engines.

One `meta`, a `scrape` a look at the engine's page, a `req` a request with the time of
each of its tokens. All times are seconds from the start.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from admitperf.core.errors import LogError
from admitperf.simulator.fit.lines import Fields, count, maybe, number, whole
from admitperf.simulator.fit.recorded import Asked, Foreign, Recorded, Sight

_OK = 200
_LLAMA_BLOCK = 16
"""llama.cpp has no blocks: its cells are counted in sixteens here, which never bind."""

_SEEN = {
    "running": ("vllm:num_requests_running", "llamacpp:requests_processing"),
    "waiting": ("vllm:num_requests_waiting", "llamacpp:requests_deferred"),
    "kv_fraction": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "preemptions": ("vllm:num_preemptions_total",),
}


def recorded(path: Path, lines: Sequence[tuple[int, Fields]]) -> Recorded:
    """The run in the lines of a file.

    Raises:
        LogError: a line lacks something, or no request was answered.
    """
    meta = next((f for _, f in lines if f.get("type") == "meta"), {})
    left, asked = Counter[str](), list[Asked]()
    for at, fields in lines:
        if fields.get("type") == "req":
            why = _unusable(fields)
            if why is not None:
                left[why] += 1
                continue
            asked.append(_asked(fields, f"{path}:{at}"))
    if not asked:
        raise LogError(f"{path}: holds no request that was answered")
    args = _object(meta, "args")
    return Recorded(
        name=path.name.removesuffix(".gz").removesuffix(".jsonl"),
        kind="load",
        asked=tuple(chained(sorted(asked, key=lambda one: one.sent_s))),
        sights=tuple(_sight(f) for _, f in lines if _shows(f)),
        clients=count(args, "closed") or None,
        rate_per_s=maybe(args, "rate") or None,
        engine=engine_facts(_object(meta, "meta")),
        versions=_versions(_object(meta, "meta")),
        date=_date(maybe(meta, "t0_wall")),
        foreign=tuple(_foreign([fields for _, fields in lines])),
        shows_steps=args.get("api") != "llamacpp",
        left_out=left,
    )


def chained(asked: Iterable[Asked]) -> Iterator[Asked]:
    """The requests, with each session's turns set off by the end of the one before.

    Args:
        asked: in the order in which they were sent.
    """
    newest: dict[str, Asked] = {}
    for one in asked:
        before = newest.get(one.session) if one.session is not None else None
        if one.session is not None:
            newest[one.session] = one
        end_s = None if before is None else before.end_s
        if before is None or end_s is None or end_s > one.sent_s:
            yield one
        else:
            yield replace(one, after=before.id, think_s=one.sent_s - end_s)


def engine_facts(meta: Mapping[str, Any]) -> dict[str, object]:
    """What a run's note says of its engine, as fields of an `EngineModel`."""
    facts: dict[str, object] = {}
    for name in ("max_num_seqs", "block_size", "max_model_len", *_LIMITS):
        if (value := count(meta, name)) is not None:
            facts[name] = value
    if (blocks := count(meta, "num_blocks")) is not None:
        facts["kv_blocks"] = blocks - 1  # vLLM keeps one block for itself
    for name in ("prefix_caching", "chunked_prefill"):
        if isinstance(meta.get(name), bool):
            facts[name] = meta[name]
    if meta.get("scheduling") in ("fcfs", "priority"):
        facts["scheduling"] = meta["scheduling"]
    return facts | _llama_facts(meta)


_LIMITS = ("max_num_batched_tokens", "max_num_queued_reqs", "max_num_queued_tokens")


def _llama_facts(meta: Mapping[str, Any]) -> dict[str, object]:
    slots, cells = count(meta, "slots"), count(meta, "ctx_per_slot")
    if slots and not cells:
        cells = (count(meta, "ctx") or 0) // slots  # it is split evenly
    if not slots or not cells:
        return {}
    return {
        "max_num_seqs": slots,
        "block_size": _LLAMA_BLOCK,
        "kv_blocks": slots * cells // _LLAMA_BLOCK,
        "max_model_len": cells,
        "prefix_caching": bool(meta.get("cache_prompt", False)),
    }


def _object(fields: Fields, name: str) -> Fields:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _versions(meta: Mapping[str, Any]) -> str | None:
    said = [str(meta[name]) for name in ("engine", "model") if name in meta]
    return ", ".join(said) or None


def _date(wall_s: float | None) -> str | None:
    if wall_s is None:
        return None
    return dt.datetime.fromtimestamp(wall_s, dt.UTC).date().isoformat()


def _unusable(fields: Fields) -> str | None:
    """Why a request cannot be used; None when it can."""
    if fields.get("status") != _OK:
        return f"status {fields.get('status')}"
    if fields.get("err"):
        return "ended with an error"
    return None if fields.get("chunks") else "no token came"


def _asked(fields: Fields, where: str) -> Asked:
    sent_s = number(fields, "sent", where)
    chunks = _chunks(fields, sent_s, where)
    end_s = maybe(fields, "fin")
    usage = _object(fields, "usage")
    return Asked(
        id=str(fields.get("id")),
        sent_s=sent_s,
        input_tokens=whole(fields, "plen", where),
        output_tokens=sum(n for _, n in chunks),
        max_output_tokens=count(fields, "max_tokens") or sum(n for _, n in chunks),
        ttft_ms=(chunks[0][0] - sent_s) * 1e3,
        e2e_ms=((end_s or chunks[-1][0]) - sent_s) * 1e3,
        chunks=chunks,
        cached_tokens=count(fields, "cached_tokens") or count(usage, "cached_tokens"),
        prefix=_prefix(fields, where),
        session=None if fields.get("session") is None else str(fields["session"]),
        priority=int(fields.get("priority") or 0),
    )


def _chunks(fields: Fields, sent_s: float, where: str) -> tuple[tuple[float, int], ...]:
    try:
        return tuple((sent_s + float(t), int(n)) for t, n in fields["chunks"])
    except (TypeError, ValueError):
        raise LogError(f"{where}: chunks are no pairs of seconds and tokens") from None


def _prefix(fields: Fields, where: str) -> tuple[tuple[str, int], ...]:
    try:
        return tuple((str(name), int(n)) for name, n in fields.get("prefix") or ())
    except (TypeError, ValueError):
        raise LogError(f"{where}: prefix is no pairs of a name and tokens") from None


def _shows(fields: Fields) -> bool:
    return fields.get("type") == "scrape" and isinstance(fields.get("m"), dict)


def _sight(fields: Fields) -> Sight:
    page = _object(fields, "m")
    seen = {
        name: next((v for key in keys if (v := maybe(page, key)) is not None), None)
        for name, keys in _SEEN.items()
    }
    return Sight(at_s=maybe(fields, "t") or 0.0, **seen)


STRETCH_S = 1.0
"""Over which the share of others is taken: the counters tick 100 times a second."""

_JIFFIES_PER_S = 100.0


def _foreign(lines: Sequence[Fields]) -> Iterator[Foreign]:
    """What is busy in the machine, less the engine and the load generator."""
    since: tuple[float, float] | None = None
    for fields in lines:
        cpu, at_s = fields.get("cpu"), maybe(fields, "t")
        if fields.get("type") != "scrape" or not isinstance(cpu, dict) or at_s is None:
            continue
        parts = [maybe(cpu, name) for name in ("busy", "eng", "me")]
        if None in parts or not parts[1]:
            continue
        others_s = (
            (parts[0] or 0) - (parts[1] or 0) - (parts[2] or 0)
        ) / _JIFFIES_PER_S
        if since is not None and at_s - since[0] < STRETCH_S:
            continue
        if since is not None:
            took = (others_s - since[1]) / (at_s - since[0])
            yield Foreign(since[0], at_s, max(0.0, took))
        since = at_s, others_s
