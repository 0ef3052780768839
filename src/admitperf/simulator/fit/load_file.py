"""Reads the JSON lines of the load generator that recorded the real engines.

One `meta`, a `scrape` a look at the engine's page, a `req` a request with the time of
each of its tokens. All times are seconds from the start.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from admitperf.core.errors import LogError
from admitperf.simulator.fit.lines import once, place
from admitperf.simulator.fit.recorded import Asked, Foreign, Recorded, Sight
from admitperf.simulator.fit.vetted import (
    MOST_AT_ONCE,
    MOST_COUNT,
    MOST_S,
    MOST_TOKENS,
    MOST_WALL_S,
    Fields,
    Vetted,
    gauge,
)

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
    told = [Vetted(fields, place(path, at)) for at, fields in lines]
    meta = next(_of(told, "meta"), Vetted({}, str(path)))
    left, asked, seen = Counter[str](), list[Asked](), dict[str, str]()
    for one in _of(told, "req"):
        if (why := _unusable(one.fields)) is not None:
            left[why] += 1
        else:
            asked.append(_asked(one))
            once(seen, asked[-1].id, one)
    if not asked:
        raise LogError(f"{path}: holds no request that was answered")
    args, scrapes = meta.inner("args"), list(_of(told, "scrape"))
    note = meta.inner("meta")
    sights = [_sight(one) for one in scrapes if one.fields.get("m") is not None]
    return Recorded(
        name=path.name.removesuffix(".gz").removesuffix(".jsonl"),
        kind="load",
        asked=tuple(chained(sorted(asked, key=lambda one: one.sent_s))),
        sights=tuple(sorted(sights, key=lambda sight: sight.at_s)),
        clients=args.count("closed", MOST_COUNT) or None,
        rate_per_s=_rate(args),
        engine=engine_facts(note),
        versions=versions(note, "engine", "model"),
        date=_date(meta.maybe("t0_wall", MOST_WALL_S)),
        foreign=tuple(_foreign(scrapes)),
        shows_steps=args.fields.get("api") != "llamacpp",
        left_out=left,
    )


def _of(told: Iterable[Vetted], kind: str) -> Iterator[Vetted]:
    return (one for one in told if one.fields.get("type") == kind)


def _rate(args: Vetted) -> float | None:
    """Requests a second; None = not stated, or a closed loop's 0."""
    rate_per_s = args.maybe("rate", MOST_COUNT)
    if not rate_per_s:
        return None
    return args.number("rate", MOST_COUNT, 1 / MOST_S)


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


def engine_facts(meta: Vetted) -> dict[str, object]:
    """What a run's note says of its engine, as fields of an `EngineModel`.

    Raises:
        LogError: a number that no engine can have.
    """
    facts: dict[str, object] = {}
    for name in ("max_num_seqs", "block_size", "max_model_len", *_LIMITS):
        if (value := meta.count(name, MOST_COUNT, 1)) is not None:
            facts[name] = value
    if (blocks := meta.count("num_blocks", MOST_COUNT, 2)) is not None:
        facts["kv_blocks"] = blocks - 1  # vLLM keeps one block for itself
    for name in ("prefix_caching", "chunked_prefill"):
        if isinstance(meta.fields.get(name), bool):
            facts[name] = meta.fields[name]
    if meta.fields.get("scheduling") in ("fcfs", "priority"):
        facts["scheduling"] = meta.fields["scheduling"]
    return facts | _llama_facts(meta)


_LIMITS = ("max_num_batched_tokens", "max_num_queued_reqs", "max_num_queued_tokens")


def _llama_facts(meta: Vetted) -> dict[str, object]:
    slots = meta.count("slots", MOST_COUNT)
    cells = meta.count("ctx_per_slot", MOST_COUNT)
    if slots and not cells:
        cells = (meta.count("ctx", MOST_COUNT) or 0) // slots  # it is split evenly
    if not slots or not cells:
        return {}
    if slots * cells < _LLAMA_BLOCK:
        meta.refuse("ctx_per_slot", f"{slots} slots of {cells} tokens hold nothing")
    return {
        "max_num_seqs": slots,
        "block_size": _LLAMA_BLOCK,
        "kv_blocks": slots * cells // _LLAMA_BLOCK,
        "max_model_len": cells,
        "prefix_caching": bool(meta.fields.get("cache_prompt", False)),
    }


def versions(told: Vetted, *names: str) -> str | None:
    """The engine and the model, in words; None = not stated.

    Raises:
        LogError: they are no texts.
    """
    said = [told.text(name) for name in names if told.fields.get(name)]
    return ", ".join(word for word in said if word) or None


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


def _asked(told: Vetted) -> Asked:
    sent_s = told.number("sent", MOST_S)
    chunks = _chunks(told, sent_s)
    tokens, last_s = sum(n for _, n in chunks), chunks[-1][0]
    end_s = told.maybe("fin", 2 * MOST_S)
    took_s = (last_s if end_s is None else end_s) - sent_s
    told.end_ms("fin", took_s * 1e3, (last_s - sent_s) * 1e3)
    prompt = told.whole("plen", MOST_TOKENS, 1)
    return Asked(
        id=told.text("id") or told.refuse("id", "is missing"),
        sent_s=sent_s,
        input_tokens=prompt,
        output_tokens=tokens,
        max_output_tokens=told.count("max_tokens", MOST_TOKENS, 1) or tokens,
        ttft_ms=(chunks[0][0] - sent_s) * 1e3,
        e2e_ms=took_s * 1e3,
        chunks=chunks,
        cached_tokens=_cached(told, prompt),
        prefix=_prefix(told, prompt),
        session=told.text("session"),
        priority=told.count("priority", MOST_COUNT, -MOST_COUNT) or 0,
    )


def _cached(told: Vetted, prompt: int) -> int | None:
    """Of the prompt, found in the cache; None = not known."""
    found = told.count("cached_tokens", prompt)
    return found or told.inner("usage").count("cached_tokens", prompt)


def _chunks(told: Vetted, sent_s: float) -> tuple[tuple[float, int], ...]:
    """When tokens came, from the start of the run, with how many."""
    chunks = [
        (
            told.value(t, "chunks", MOST_S),
            told.whole_value(n, "chunks", MOST_AT_ONCE, 1),
        )
        for t, n in told.pairs("chunks", "seconds and tokens")
    ]
    for before, after in pairwise(chunks):
        if after[0] < before[0]:
            told.refuse("chunks", f"{after[0]:g} s comes after {before[0]:g} s")
    return tuple((sent_s + t, n) for t, n in chunks)


def _prefix(told: Vetted, prompt: int) -> tuple[tuple[str, int], ...]:
    """The prompt's leading tokens by chain; no more than it has."""
    pairs = told.pairs("prefix", "a name and tokens")
    prefix = tuple(
        (told.text_value(name, "prefix"), told.whole_value(n, "prefix", prompt))
        for name, n in pairs
    )
    if (tokens := sum(n for _, n in prefix)) > prompt:
        told.refuse("prefix", f"{tokens} tokens are more than the prompt's {prompt}")
    return prefix


def _sight(told: Vetted) -> Sight:
    page = told.inner("m")
    shows = Vetted({key: gauge(page.fields, key) for key in page.fields}, told.where)
    seen = {
        name: next(
            (v for key in keys if (v := shows.maybe(key, MOST_COUNT)) is not None), None
        )
        for name, keys in _SEEN.items()
    }
    return Sight(at_s=told.number("t", MOST_S), **seen)


STRETCH_S = 1.0
"""Over which the share of others is taken: the counters tick 100 times a second."""

_JIFFIES_PER_S = 100.0

_MOST_JIFFIES = 1e15
"""Since a machine's start: more than any has. Plain choice."""


def _foreign(scrapes: Sequence[Vetted]) -> Iterator[Foreign]:
    """What is busy in the machine, less the engine and the load generator."""
    since: tuple[float, float] | None = None
    for told in scrapes:
        cpu = told.inner("cpu")
        parts = [cpu.maybe(name, _MOST_JIFFIES) for name in ("busy", "eng", "me")]
        if None in parts or not parts[1]:
            continue
        at_s = told.number("t", MOST_S)
        others_s = (
            (parts[0] or 0) - (parts[1] or 0) - (parts[2] or 0)
        ) / _JIFFIES_PER_S
        if since is not None and at_s - since[0] < STRETCH_S:
            continue
        if since is not None:
            took = (others_s - since[1]) / (at_s - since[0])
            yield Foreign(since[0], at_s, max(0.0, took))
        since = at_s, others_s
