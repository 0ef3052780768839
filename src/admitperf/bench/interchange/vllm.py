"""Reads what `vllm bench serve --save-result` writes.

With `--save-detailed` it has a list for each thing that is known of a request; without
it only totals. Of a refusal it keeps the phrase of its status and no time.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from admitperf.bench.interchange.foreign import (
    FULL,
    MOST_CLOCK_S,
    MOST_S,
    MOST_TOKENS,
    Foreign,
    Totals,
    call,
)
from admitperf.core.notes import Note
from admitperf.simulator.fit.vetted import MOST_COUNT, Fields, Vetted

TOOL = "vllm bench serve"

_LISTS = ("start_times", "ttfts", "itls", "latencies", "output_lens", "input_lens")
_PERCENTILES = {"p50": "p50_ttft_ms", "p95": "p95_ttft_ms", "p99": "p99_ttft_ms"}
_PHRASES = {status.phrase: int(status) for status in HTTPStatus if status in FULL}


def known(whole: Fields) -> bool:
    """Whether an object is such a result."""
    return "request_throughput" in whole and "completed" in whole


def read(where: str, whole: Fields) -> Foreign:
    """The run in the file.

    Args:
        where: the file, for messages.
        whole: its object.

    Raises:
        LogError: a value is missing, or none it could be.
    """
    told = Vetted(whole, where)
    if all(isinstance(whole.get(name), list) for name in _LISTS):
        return _detailed(told)
    return Foreign(
        tool=TOOL,
        totals=_totals(told),
        own=_own(told),
        notes=_notes(whole),
        missing=(
            (
                "It holds no single request: it was saved without --save-detailed, so"
                " no bound of ours can be asked."
            ),
            *_missing(whole),
        ),
    )


def _detailed(told: Vetted) -> Foreign:
    lists = _lists(told)
    starts_s = [
        told.value(at_s, f"start_times[{n}]", MOST_CLOCK_S)
        for n, at_s in enumerate(lists["start_times"])
    ]
    records = []
    for n, at_s in enumerate(starts_s):
        one = Vetted(
            {name: values[n] for name, values in lists.items()},
            f"{told.where}: request {n}",
        )
        queued_s = one.maybe("queue_times", MOST_S) or 0.0
        records.append(_record(n, one, at_s - min(starts_s) - queued_s, queued_s))
    return Foreign(
        tool=TOOL,
        records=tuple(records),
        own=_own(told),
        notes=_notes(told.fields),
        missing=tuple(_missing(told.fields)),
    )


def _lists(told: Vetted) -> dict[str, Sequence[Any]]:
    names = (*_LISTS, "errors", "queue_times")
    lists = {name: told.many(name, "values") for name in names if told.fields.get(name)}
    n = len(lists.get("start_times", ()))
    for name, values in lists.items():
        if len(values) != n:
            told.refuse(name, f"there are {len(values)} for {n} requests")
    if not n:
        told.refuse("start_times", "there is no request")
    return lists


def _record(n: int, told: Vetted, due_s: float, queued_s: float) -> Any:  # noqa: ANN401
    said = told.fields.get("errors")
    tokens = told.whole("output_lens", MOST_TOKENS)
    error = str(said) if said else None if tokens else "no token came"
    gaps_s = [
        told.value(gap_s, "itls", MOST_S) for gap_s in told.many("itls", "seconds")
    ]
    ttft_s, took_s = told.number("ttfts", MOST_S), told.number("latencies", MOST_S)
    return call(
        name=str(n),
        due_s=due_s,
        late_ms=queued_s * 1e3,
        input_tokens=told.whole("input_lens", MOST_TOKENS),
        output_tokens=tokens,
        ttft_ms=ttft_s * 1e3,
        max_gap_ms=max(gaps_s) * 1e3 if gaps_s else None,
        e2e_ms=took_s * 1e3 or None,
        status=_PHRASES.get(error or "", 0 if error else 200),
        error=None if error is None else _first_line(error),
    )


def _first_line(error: str) -> str:
    """What a traceback ends with; a phrase stands for itself."""
    lines = [line for line in error.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no error given"


def _totals(told: Vetted) -> Totals:
    done = told.whole("completed", MOST_COUNT)
    failed = told.count("failed", MOST_COUNT)
    asked = told.count("num_prompts", MOST_COUNT)
    if failed is None:
        failed = max((asked or done) - done, 0)
    return Totals(
        offered=done + failed,
        failed=failed,
        ttft_ms={
            name: told.maybe(field, MOST_S) for name, field in _PERCENTILES.items()
        },
    )


def _own(told: Vetted) -> str | None:
    """Its goodput, which is a rate and has no denominator."""
    rate = told.maybe("request_goodput", MOST_COUNT)
    if rate is None:
        return None
    return f"request_goodput {rate:.4g}/s, over the time of the run, not over offered"


def _notes(whole: Fields) -> Mapping[str, Note]:
    names = ("date", "model_id", "backend", "request_rate", "burstiness")
    kept = {name: whole.get(name) for name in (*names, "max_concurrency", "duration")}
    return {
        name: value if isinstance(value, bool | int | float) else str(value)[:200]
        for name, value in kept.items()
        if value is not None
    }


def _missing(whole: Fields) -> list[str]:
    said = [
        (
            "Which requests were refused: it keeps the phrase of a status and no time,"
            " so refusals have no latency."
        ),
        "Whether calls belong together: it knows no sessions and makes no second try.",
    ]
    if not whole.get("queue_times"):
        said.append(
            "When requests were due: latency is from when they were sent, and what the"
            " generator was late is in no number."
        )
    if whole.get("max_concurrency") is not None:
        said.append(
            "What load was offered: at most so many ran at once, so slow answers held"
            " back the rest."
        )
    return said
