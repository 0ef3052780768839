"""Reads what AIPerf writes: `profile_export.jsonl`, or the totals of its JSON export.

A line is a request: `metadata`, `metrics` by name with their unit, and `error`. Names
have changed: `ttft` became `time_to_first_token`, `timestamp_ns` `request_start_ns`.
"""

from collections.abc import Sequence
from typing import Any

from admitperf.bench.callers.records import CallRecord
from admitperf.bench.interchange.foreign import (
    MOST_CLOCK_S,
    MOST_MS,
    MOST_TOKENS,
    Foreign,
    Totals,
    call,
)
from admitperf.simulator.fit.vetted import MOST_COUNT, Fields, Vetted

TOOL = "AIPerf"

_MOST_NS = round(MOST_CLOCK_S * 1e9)
_WARMUP = "warmup"
_TTFT = ("time_to_first_token", "ttft")
_SAID = (
    (
        "What a caller would do when refused: it goes on with the next call of a"
        " session as if it had been answered."
    ),
    "Second tries: it makes none.",
)


def known(whole: Fields) -> bool:
    """Whether an object is the totals of such a run."""
    return "aiperf_version" in whole or (
        "request_count" in whole and "input_config" in whole
    )


def known_line(line: Fields) -> bool:
    """Whether an object is a line of such a run."""
    return isinstance(line.get("metadata"), dict) and "metrics" in line


def read_lines(where: str, lines: Sequence[tuple[int, Fields]]) -> Foreign:
    """The run whose requests are lines.

    Args:
        where: the file, for messages.
        lines: each with its number.

    Raises:
        LogError: a value is missing, or none it could be.
    """
    rows = [Vetted(line, f"{where}:{n}") for n, line in lines]
    rows = [row for row in rows if _phase(row) != _WARMUP]
    if not rows:
        Vetted({}, where).refuse("metadata", "there is no request but of the warm-up")
    first_ns = min(map(_due_ns, rows))
    return Foreign(
        tool=TOOL,
        records=tuple(_record(n, row, first_ns) for n, row in enumerate(rows)),
        notes={"left_out_warmup": len(lines) - len(rows)},
        missing=_SAID,
        goes_on=True,
    )


def read(where: str, whole: Fields) -> Foreign:
    """The run of which the totals were exported.

    Raises:
        LogError: a value is none it could be.
    """
    told = Vetted(whole, where)
    done, failed = (_average(told, name) for name in ("request_count", _FAILED))
    good = _average(told, "good_request_count")
    found = next((told.inner(name) for name in _TTFT if name in whole), Vetted({}, ""))
    fraction = _average(told, "good_request_fraction")
    return Foreign(
        tool=TOOL,
        totals=Totals(
            offered=round((done or 0) + (failed or 0)),
            failed=round(failed or 0),
            good=None if good is None else round(good),
            ttft_ms={
                name: found.maybe(name, MOST_MS) for name in ("p50", "p95", "p99")
            },
        ),
        own=None if fraction is None else f"good_request_fraction {fraction:.4g}",
        notes={"version": str(whole.get("aiperf_version") or "")[:40] or None},
        missing=(
            (
                "It holds no single request, so no bound of ours can be asked:"
                " profile_export.jsonl beside it does."
            ),
            *_SAID,
        ),
    )


_FAILED = "error_request_count"


def _phase(told: Vetted) -> str | None:
    metadata = told.inner("metadata")
    return metadata.text("benchmark_phase") or metadata.text("credit_phase")


def _sent_ns(told: Vetted) -> int:
    metadata = told.inner("metadata")
    sent_ns = metadata.count("request_start_ns", _MOST_NS)
    return metadata.whole("timestamp_ns", _MOST_NS) if sent_ns is None else sent_ns


def _due_ns(told: Vetted) -> int:
    """When its turn came; where that is not said, when it was sent."""
    due_ns = told.inner("metadata").count("credit_issued_ns", _MOST_NS)
    return _sent_ns(told) if due_ns is None else min(due_ns, _sent_ns(told))


def _record(n: int, told: Vetted, first_ns: int) -> CallRecord:
    metadata, failed = told.inner("metadata"), told.fields.get("error") is not None
    error, due_ns = told.inner("error"), _due_ns(told)
    tokens = _metric(told, "output_sequence_length", "output_token_count")
    return call(
        name=metadata.text("x_request_id") or str(n),
        session=metadata.text("x_correlation_id"),
        place=metadata.count("turn_index", MOST_COUNT) or 0,
        due_s=(due_ns - first_ns) / 1e9,
        late_ms=(_sent_ns(told) - due_ns) / 1e6,
        input_tokens=_whole(told, _metric(told, "input_sequence_length")),
        output_tokens=_whole(told, tokens),
        ttft_ms=_ms(told, _metric(told, *_TTFT)),
        max_gap_ms=_longest_ms(told, _metric(told, "inter_chunk_latency")),
        e2e_ms=_ms(told, _metric(told, "request_latency")),
        status=error.count("code", MOST_COUNT) or 0 if failed else 200,
        error=_text(error) if failed else None,
    )


def _text(error: Vetted) -> str:
    kind, message = error.fields.get("type"), error.fields.get("message")
    return (
        ": ".join(str(one)[:100] for one in (kind, message) if one) or "no error given"
    )


def _metric(told: Vetted, *names: str) -> Any:  # noqa: ANN401  as it was read
    """The value of a metric by the first of its names that is there."""
    metrics = told.inner("metrics")
    for name in names:
        if name in metrics.fields:
            return metrics.inner(name).fields.get("value")
    return None


def _ms(told: Vetted, value: object) -> float | None:
    return None if value is None else told.value(value, "metrics", MOST_MS)


def _whole(told: Vetted, value: object) -> int | None:
    return None if value is None else told.whole_value(value, "metrics", MOST_TOKENS)


def _longest_ms(told: Vetted, value: object) -> float | None:
    if not isinstance(value, list) or not value:
        return None
    return max(told.value(one, "inter_chunk_latency", MOST_MS) for one in value)


def _average(told: Vetted, name: str) -> float | None:
    """A total, which stands there as the average of one."""
    return told.inner(name).maybe("avg", MOST_COUNT)
