"""What another tool's run comes to by our own rules: good over offered, or why not."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from admitperf.bench.callers.records import line
from admitperf.bench.callers.score import Summary, score
from admitperf.bench.callers.slo import Slo
from admitperf.bench.interchange.foreign import Foreign

SCHEMA = 1
"""Number of the JSON format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One run, held to an objective.

    Attributes:
        run: as it was read.
        bounds: in ms by name; empty = an answer is enough.
        summary: of its calls; None = the file does not hold them.
        cannot: why there is no goodput over offered; None = there is.
        at_most: why there can only be less of it, in sentences; empty = it is so.
    """

    run: Foreign
    bounds: Mapping[str, float]
    summary: Summary | None
    cannot: str | None
    at_most: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """As plain data for strict JSON."""
        run, known = self.run, self.summary
        return {
            "tool": run.tool,
            "name": run.name,
            "bounds": dict(self.bounds),
            "offered": offered(self),
            "goodput": None if known is None or self.cannot else known.goodput,
            "cannot": self.cannot,
            "at_most": list(self.at_most),
            "own": run.own,
            "missing": list(run.missing),
            "notes": dict(run.notes),
            "summary": None if known is None else known.document(),
            "totals": None if run.totals is None else asdict(run.totals),
        }


def judge(run: Foreign, bounds: Mapping[str, float]) -> Judged:
    """Holds a run to an objective.

    Args:
        run: of another tool.
        bounds: `ttft_ms`, `stall_ms` and `e2e_ms`, each optional.
    """
    objective = Slo(classes={"": bounds} if bounds else {})
    summary = score(run.records, objective, unloaded_s=None) if run.records else None
    unknown = [name for name in bounds if name in run.unjudged]
    at_most = [*run.at_most]
    if summary is not None and "stall_ms" in unknown:
        at_most.append("the file has no gaps between tokens, so no stall is counted")
    return Judged(
        run=run,
        bounds=bounds,
        summary=summary,
        cannot=_cannot(summary, unknown),
        at_most=tuple(at_most),
    )


def offered(judged: Judged) -> int:
    """How many requests the run offered."""
    if judged.summary is not None:
        return judged.summary.offered
    return judged.run.totals.offered if judged.run.totals is not None else 0


def call_lines(run: Foreign) -> list[dict[str, Any]]:
    """Its calls as lines of a log, each an object of strict JSON."""
    return [line(one) for one in run.records]


def _cannot(summary: Summary | None, unknown: list[str]) -> str | None:
    if summary is None:
        return "the file holds no single request"
    first = next((name for name in unknown if name != "stall_ms"), None)
    return f"no answer of the file carries what {first} needs" if first else None
