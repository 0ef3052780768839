"""Reads what `vllm bench serve --save-result --save-detailed` writes."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from admitperf.core.errors import LogError
from admitperf.simulator.fit.load_file import versions
from admitperf.simulator.fit.recorded import Asked, Recorded
from admitperf.simulator.fit.vetted import (
    MOST_AT_ONCE,
    MOST_COUNT,
    MOST_S,
    MOST_TOKENS,
    Fields,
    Vetted,
)

_NEEDED = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times")
_DATE_DIGITS = 8

_MOST_CLOCK_S = 1e11
"""On a clock that began at any time: more than any shows. Plain choice."""


def recorded(path: Path, whole: Fields) -> Recorded:
    """The run in the file.

    Raises:
        LogError: it lacks the lists of `--save-detailed`, or they do not agree.
    """
    lists = _lists(path, whole)
    told = Vetted(whole, str(path))
    starts_s = [
        told.value(at_s, f"start_times[{n}]", _MOST_CLOCK_S)
        for n, at_s in enumerate(lists["start_times"])
    ]
    asked, left = list[Asked](), Counter[str]()
    for n, error in enumerate(_errors(told, len(starts_s))):
        if error or lists["output_lens"][n] == 0:
            left["ended with an error" if error else "no token came"] += 1
            continue
        one = Vetted({f"{name}[{n}]": lists[name][n] for name in _NEEDED}, str(path))
        asked.append(_asked(n, one, starts_s[n] - min(starts_s)))
    if not asked:
        raise LogError(f"{path}: holds no request that was answered")
    return Recorded(
        name=path.name.removesuffix(".json"),
        kind="bench",
        asked=tuple(sorted(asked, key=lambda one: one.sent_s)),
        clients=_clients(told),
        rate_per_s=None if _endless(whole) else told.number("request_rate", MOST_COUNT),
        versions=versions(told, "engine", "model_id"),
        date=_date(told),
        left_out=left,
    )


def _lists(path: Path, whole: Fields) -> dict[str, Sequence[Any]]:
    missing = [name for name in _NEEDED if not isinstance(whole.get(name), list)]
    if missing:
        what = ", ".join(missing)
        raise LogError(f"{path}: lacks {what}: run the bench with --save-detailed")
    lists = {name: whole[name] for name in _NEEDED}
    if len({len(values) for values in lists.values()}) > 1:
        sizes = ", ".join(f"{len(values)} {name}" for name, values in lists.items())
        raise LogError(f"{path}: its lists differ in length: {sizes}")
    return lists


def _errors(told: Vetted, requests: int) -> Sequence[Any]:
    """What each request ended with; an empty text = well."""
    errors = told.many("errors", "texts") or [""] * requests
    if len(errors) != requests:
        told.refuse("errors", f"there are {len(errors)} for {requests} requests")
    return errors


def _asked(n: int, told: Vetted, sent_s: float) -> Asked:
    ttft_s = told.number(f"ttfts[{n}]", MOST_S)
    gaps_s = [
        told.value(gap_s, f"itls[{n}]", MOST_S)
        for gap_s in told.many(f"itls[{n}]", "seconds")
    ]
    told.value(sent_s, f"start_times[{n}]", MOST_S)
    tokens = told.whole(f"output_lens[{n}]", MOST_TOKENS, 1)
    if tokens - len(gaps_s) > MOST_AT_ONCE:
        told.refuse(
            f"output_lens[{n}]", f"{tokens} tokens came {len(gaps_s) + 1} times"
        )
    chunks = _chunks(list(accumulate(gaps_s, initial=ttft_s)), tokens)
    took_s = told.number(f"latencies[{n}]", MOST_S)
    told.end_ms(f"latencies[{n}]", took_s * 1e3, chunks[-1][0] * 1e3)
    return Asked(
        id=str(n),
        sent_s=sent_s,
        input_tokens=told.whole(f"input_lens[{n}]", MOST_TOKENS, 1),
        output_tokens=tokens,
        max_output_tokens=tokens,
        ttft_ms=ttft_s * 1e3,
        e2e_ms=took_s * 1e3,
        chunks=tuple((sent_s + at_s, count) for at_s, count in chunks),
    )


def _chunks(times: list[float], tokens: int) -> tuple[tuple[float, int], ...]:
    """The bench does not say how many tokens a chunk had: one, and once the rest.

    The rest goes where the longest gap ends, since tokens that came together waited.
    """
    if len(times) > tokens:
        return tuple((at_s, 1) for at_s in times[:tokens])
    gaps = [0.0, *(b - a for a, b in pairwise(times))]
    longest = gaps.index(max(gaps))
    rest = tokens - len(times)
    return tuple((at_s, 1 + rest * (n == longest)) for n, at_s in enumerate(times))


def _clients(told: Vetted) -> int | None:
    """A closed loop is one at infinite rate that is held to so many at once."""
    most = told.count("max_concurrency", MOST_COUNT, 1)
    return most if _endless(told.fields) else None


def _endless(whole: Fields) -> bool:
    rate = whole.get("request_rate")
    return rate in (None, "inf") or rate == float("inf")


def _date(told: Vetted) -> str | None:
    """The day, of `20261129-215956`; None = not stated."""
    said = told.text("date")
    if said is None:
        return None
    try:
        return dt.date.fromisoformat(said[:_DATE_DIGITS]).isoformat()
    except ValueError:
        told.refuse("date", f"{said[:20]!r} is no date")
