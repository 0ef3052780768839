"""Reads the traces of Azure's LLM services: one request a line of a CSV file.

    TIMESTAMP,ContextTokens,GeneratedTokens
    2023-11-16 18:17:03.9799600,4808,10

No request belongs to a session, and nothing says what prompts have in common.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

from admitperf.bench.workloads.reading import lines, number_of, whole
from admitperf.bench.workloads.workload import Recorded, TraceError
from admitperf.reports.wording import number, plural
from admitperf.simulator.traffic.sessions import Beginning, Call, Session

NAME = "azure"

HEADER = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

MAX_OUTPUT_TOKENS = 2_000
"""The bound callers set; the trace does not say, and its longest answers have about
1,500 tokens. Plain choice."""


def read(path: str | Path) -> Recorded:
    """Requests at the instants of the trace.

    Args:
        path: of the file.

    Raises:
        TraceError: it cannot be read, or is none of these; names file and line.
    """
    told = lines(path)
    _header(path, next(told, ("", ""))[1])
    asked = sorted((_asked(where, line) for where, line in told), key=itemgetter(0))
    if not asked:
        raise TraceError(f"{path}: holds no request")
    first_s = asked[0][0]
    begun = tuple(_begun(asked, first_s))
    lasted_s = begun[-1][0]
    return Recorded(
        name=NAME,
        begun=begun,
        pool=tuple(session for _, session in begun),
        said=f"requests: {plural(len(begun), 'recorded request')} of"
        f" {number(lasted_s)} s, nothing shared",
        notes={"trace_requests": len(begun), "trace_s": round(lasted_s, 3)},
    )


def _header(path: str | Path, line: str) -> None:
    if tuple(name.strip() for name in line.split(",")) != HEADER:
        raise TraceError(f"{path}, line 1: is not {','.join(HEADER)}")


def _asked(where: str, line: str) -> tuple[float, int, int]:
    """When, prompt and answer."""
    told = dict(zip(HEADER, line.strip().split(","), strict=False))
    if line.count(",") != len(HEADER) - 1:
        what = "is no time and two whole numbers, parted by commas"
        raise TraceError(f"{where}: {what}")
    at, prompt, answer = HEADER
    tokens = [max(1, _tokens(told, field, where)) for field in (prompt, answer)]
    return _seconds(told, at, where), tokens[0], tokens[1]


def _tokens(told: Mapping[str, str], field: str, where: str) -> int:
    digits = told[field].strip()
    if not digits.isdecimal():
        raise TraceError(f"{where}: {field} = {digits!r:.40} is no whole number")
    return whole({field: number_of(digits)}, field, where)


def _seconds(told: Mapping[str, str], field: str, where: str) -> float:
    """A time of a day of the trace; its last digit is 100 ns."""
    second, _, part = told[field].strip().partition(".")
    try:
        at = datetime.fromisoformat(second).replace(tzinfo=UTC)
        return at.timestamp() + (int(part[:7]) / 10 ** len(part[:7]) if part else 0.0)
    except ValueError:
        what = f"{field} = {told[field]!r:.40} is no time"
        raise TraceError(f"{where}: {what}") from None


def _begun(asked: list[tuple[float, int, int]], first_s: float) -> Iterator[Beginning]:
    for place, (at_s, prompt, answer) in enumerate(asked, 1):
        call = Call(after=None, gap_s=0.0, input_tokens=prompt, output_tokens=answer)
        yield at_s - first_s, Session(f"{NAME}-{place}", (call,), MAX_OUTPUT_TOKENS)
