"""Reads what inference-perf writes: `per_request_lifecycle_metrics.json`, or totals.

The first is a list of requests; times are in seconds of its own clock. The totals are
`summary_lifecycle_metrics.json`, and `stage_0_lifecycle_metrics.json` of a stage.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from admitperf.bench.callers.records import CallRecord
from admitperf.bench.interchange.foreign import (
    MOST_CLOCK_S,
    MOST_S,
    MOST_TOKENS,
    Foreign,
    Totals,
    call,
)
from admitperf.simulator.fit.vetted import MOST_COUNT, Fields, Vetted

TOOL = "inference-perf"

_STATUS = re.compile(r"HTTP Error (\d{3})")
_PERCENTILES = {"p50": "median", "p95": "p95", "p99": "p99"}
_SAID = (
    (
        "When requests were due: latency is from when they were sent. Its summary has"
        " schedule_delay, by which the generator was late."
    ),
    "Which calls belong to one session.",
)


def known(whole: Fields) -> bool:
    """Whether an object is the totals of such a run."""
    return "load_summary" in whole and "successes" in whole


def known_list(found: Sequence[Any]) -> bool:
    """Whether a list is the requests of such a run."""
    return bool(found) and all(
        isinstance(one, dict) and "start_time" in one and "info" in one for one in found
    )


def read_list(where: str, found: Sequence[Fields]) -> Foreign:
    """The run whose requests are told one by one.

    Raises:
        LogError: a value is missing, or none it could be.
    """
    rows = [Vetted(one, f"{where}: request {n}") for n, one in enumerate(found)]
    first_s = min(row.number("start_time", MOST_CLOCK_S) for row in rows)
    return Foreign(
        tool=TOOL,
        records=tuple(_record(n, row, first_s) for n, row in enumerate(rows)),
        missing=_SAID,
    )


def read(where: str, whole: Fields) -> Foreign:
    """The run of which the totals were written.

    Raises:
        LogError: a value is none it could be.
    """
    told = Vetted(whole, where)
    good, failed = told.inner("successes"), told.inner("failures")
    done = good.count("count", MOST_COUNT) or 0
    lost = failed.count("count", MOST_COUNT) or 0
    spread = good.inner("latency").inner("time_to_first_token")
    share = good.inner("goodput_metrics").maybe("goodput_percentage", 100)
    return Foreign(
        tool=TOOL,
        totals=Totals(
            offered=done + lost,
            failed=lost,
            good=None if share is None else round(share * done / 100),
            ttft_ms={
                name: None
                if (at_s := spread.maybe(field, MOST_S)) is None
                else at_s * 1e3
                for name, field in _PERCENTILES.items()
            },
        ),
        own=_own(share),
        missing=(
            (
                "It holds no single request, so no bound of ours can be asked: report"
                " request_lifecycle.per_request has them."
            ),
            *_SAID[1:],
        ),
    )


def _own(share: float | None) -> str | None:
    if share is None:
        return None
    return f"goodput_percentage {share:.4g}, of those that did not fail only"


def _record(n: int, told: Vetted, first_s: float) -> CallRecord:
    sent_s = told.number("start_time", MOST_CLOCK_S)
    ended_s = told.number("end_time", MOST_CLOCK_S)
    if ended_s < sent_s:
        told.refuse("end_time", f"it ended {sent_s - ended_s:.4g} s before it began")
    info, failed = told.inner("info"), told.fields.get("error") is not None
    answer = info.inner("response_metrics") if _nested(info) else info
    times_s = [
        told.value(at_s, "output_token_times", MOST_CLOCK_S)
        for at_s in answer.many("output_token_times", "seconds")
    ]
    error = told.inner("error")
    return call(
        name=str(n),
        due_s=sent_s - first_s,
        input_tokens=info.count("input_tokens", MOST_TOKENS),
        output_tokens=answer.count("output_tokens", MOST_TOKENS),
        ttft_ms=max(times_s[0] - sent_s, 0.0) * 1e3 if times_s else None,
        max_gap_ms=_longest_ms(times_s),
        e2e_ms=(ended_s - sent_s) * 1e3,
        status=_status(error) if failed else 200,
        error=_text(error) if failed else None,
    )


def _nested(info: Vetted) -> bool:
    """Whether what came stands apart, as it does since version 0.3."""
    return info.fields.get("response_metrics") is not None


def _longest_ms(times_s: Sequence[float]) -> float | None:
    return max(((b - a) * 1e3 for a, b in pairwise(times_s)), default=None)


def _status(error: Vetted) -> int:
    found = _STATUS.match(str(error.fields.get("error_type")))
    return int(found[1]) if found else 0


def _text(error: Vetted) -> str:
    said = (error.fields.get("error_type"), error.fields.get("error_msg"))
    return ": ".join(str(one)[:100] for one in said if one) or "no error given"
