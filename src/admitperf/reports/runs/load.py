"""What was offered to a policy: how much, how fast, and how big."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admitperf.reports.quantile import Spread, spread_of
from admitperf.reports.ratio import Share
from admitperf.reports.runs.run import Run
from admitperf.reports.runs.store import Store

LATE_MS = 10.0
"""Plain choice: a request sent more than this after its due time was sent late."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load of one run.

    Attributes:
        attempts: decisions, one for each attempt.
        calls: distinct logical ids, and every attempt without one; None when no line
            carries a logical id.
        span_s: from the first decision to the last; None without decisions.
        rate_per_s: arrivals a second, (n - 1) / span: of calls when they are known
            (their first attempts), else of attempts; None below 2 or without a span.
        input_tokens, max_output_tokens: what the requests brought and asked for, in
            tokens; n counts the attempts that said so.
        plan: the hash of the planned load, as the header's notes say; None = not said.
        late_ms: how much later than due requests were sent, of those that say it.
        late: sent more than `LATE_MS` late, of those that say it; None when none does.
    """

    attempts: int
    calls: int | None
    span_s: float | None
    rate_per_s: float | None
    input_tokens: Spread
    max_output_tokens: Spread
    plan: str | None
    late_ms: Spread
    late: Share | None


def loads(
    store: Store, runs: Mapping[int, Run], columns: Mapping[str, str]
) -> dict[int, Load]:
    """What was offered in every run.

    Args:
        store: with the view `decisions` and the table `calls`.
        runs: by their numbers.
        columns: its column by signal.
    """
    inputs, outputs = (
        spread_of(columns.get(name, "NULL::DOUBLE"))
        for name in ("input_tokens", "max_output_tokens")
    )
    asked = {
        run: rest
        for run, *rest in store.rows(
            f"""SELECT run_n, count(*), count(t_us), (max(t_us) - min(t_us)) / 1e6,
                {inputs}, {outputs}, {spread_of("late_ms")},
                count(*) FILTER (late_ms > {LATE_MS})
            FROM decisions GROUP BY run_n"""
        )
    }
    calls = {
        run: rest
        for run, *rest in store.rows(
            """SELECT run_n, count(*), count(first_us),
                (max(first_us) - min(first_us)) / 1e6
            FROM calls GROUP BY run_n"""
        )
    }
    return {
        number: _load(asked.get(number), calls.get(number), _plan(run))
        for number, run in runs.items()
    }


def _load(
    asked: Sequence[Any] | None, calls: Sequence[Any] | None, plan: str | None
) -> Load:
    attempts, timed, span_s, inputs, outputs, late_ms, late = asked or _NOTHING
    late_spread = Spread.read(late_ms)
    return Load(
        attempts=attempts,
        calls=None if calls is None else calls[0],
        span_s=span_s,
        rate_per_s=_rate(*(calls[1:] if calls else (timed, span_s))),
        input_tokens=Spread.read(inputs),
        max_output_tokens=Spread.read(outputs),
        plan=plan,
        late_ms=late_spread,
        late=Share.part(late, late_spread.n) if late_spread.n else None,
    )


_NOTHING = (0, 0, None, None, None, None, 0)


def _rate(n: int, span_s: float | None) -> float | None:
    return (n - 1) / span_s if n > 1 and span_s else None


def _plan(run: Run) -> str | None:
    notes = run.said("notes")
    plan = notes.get("plan") if isinstance(notes, Mapping) else None
    return plan if isinstance(plan, str) else None
