"""Reads what `vllm bench serve --save-result --save-detailed` writes."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from admitperf.core.errors import LogError
from admitperf.simulator.fit.lines import Fields, count, maybe
from admitperf.simulator.fit.recorded import Asked, Recorded

_NEEDED = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times")
_DATE_DIGITS = 8


def recorded(path: Path, whole: Fields) -> Recorded:
    """The run in the file.

    Raises:
        LogError: it lacks the lists of `--save-detailed`, or they do not agree.
    """
    lists = _lists(path, whole)
    begin_s = min(lists["start_times"], default=0.0)
    asked, left = list[Asked](), Counter[str]()
    errors = whole.get("errors") or [""] * len(lists["ttfts"])
    for n, error in enumerate(errors):
        if error or not lists["output_lens"][n]:
            left["ended with an error" if error else "no token came"] += 1
            continue
        asked.append(_asked(n, {name: lists[name][n] for name in _NEEDED}, begin_s))
    if not asked:
        raise LogError(f"{path}: holds no request that was answered")
    return Recorded(
        name=path.name.removesuffix(".json"),
        kind="bench",
        asked=tuple(sorted(asked, key=lambda one: one.sent_s)),
        clients=_clients(whole),
        rate_per_s=None if _endless(whole) else maybe(whole, "request_rate"),
        versions=_versions(whole),
        date=_date(whole.get("date")),
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


def _asked(n: int, told: dict[str, Any], begin_s: float) -> Asked:
    sent_s = told["start_times"] - begin_s
    times = list(accumulate(told["itls"], initial=sent_s + told["ttfts"]))
    return Asked(
        id=str(n),
        sent_s=sent_s,
        input_tokens=int(told["input_lens"]),
        output_tokens=int(told["output_lens"]),
        max_output_tokens=int(told["output_lens"]),
        ttft_ms=told["ttfts"] * 1e3,
        e2e_ms=told["latencies"] * 1e3,
        chunks=_chunks(times, int(told["output_lens"])),
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


def _clients(whole: Fields) -> int | None:
    """A closed loop is one at infinite rate that is held to so many at once."""
    return count(whole, "max_concurrency") if _endless(whole) else None


def _endless(whole: Fields) -> bool:
    rate = whole.get("request_rate")
    return rate in (None, "inf") or rate == float("inf")


def _versions(whole: Fields) -> str | None:
    said = [str(whole[name]) for name in ("engine", "model_id") if whole.get(name)]
    return ", ".join(said) or None


def _date(said: object) -> str | None:
    digits = str(said or "")[:_DATE_DIGITS]
    if len(digits) != _DATE_DIGITS or not digits.isdigit():
        return None
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
