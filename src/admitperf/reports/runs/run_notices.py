"""What a reader should know before believing a run's numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.runs.cost import Cost, Output
from admitperf.reports.runs.load import LATE_MS, Load
from admitperf.reports.runs.planned import Planned
from admitperf.reports.runs.store import Store
from admitperf.reports.runs.warmup import Warmup
from admitperf.reports.wording import counted, number, percent, plural, share

FEWEST_COLD = 5
COLD_PART = 10
COLD_TIMES = 5.0
"""Plain choices: the slowest tenth, and at least 5, over 5 times the median of the
rest. A queue that builds up makes the last slow, not the first."""

LEAST_STEP_S = 1.0
"""Plain choice: clocks that are slewed stay below it from one header to the next."""

LEAST_OUTPUT = 0.5
"""Plain choice: outputs below half of what was asked for make another load."""

MOST_SIZE_DIFFERENCE = 0.05
"""Origin: brief, section 9, what two loads may differ by."""


@dataclass(frozen=True, slots=True)
class Odd:
    """What the rows of all runs show.

    Attributes:
        steps_s: by run, the largest step of the wall clock, in seconds.
        recurring: by run, ids that stand on more than one decision of a process.
    """

    steps_s: Mapping[int, float]
    recurring: Mapping[int, int]


def odd(store: Store) -> Odd:
    """Looks for steps of the clock and for ids that recur.

    Args:
        store: with the view `decisions` and the table `process`.
    """
    return Odd(dict(store.rows(_STEPS)), dict(store.rows(_RECURRING)))


_STEPS = f"""
WITH headers AS (
    SELECT run_n, process_n, t_us, other.rowid AS row,
        TRY_CAST(json_extract(line, '$.wall_us') AS HUGEINT) - t_us AS ahead_us
    FROM other JOIN process USING (run) WHERE k = 'run'),
steps AS (
    SELECT run_n, (ahead_us - lag(ahead_us) OVER (
        PARTITION BY process_n ORDER BY t_us, row)) / 1e6 AS step_s FROM headers)
SELECT run_n, arg_max(step_s, abs(step_s)) FROM steps
WHERE abs(step_s) > {LEAST_STEP_S} GROUP BY run_n"""

_RECURRING = """
WITH ids AS (
    SELECT run_n FROM decisions WHERE id IS NOT NULL
    GROUP BY run_n, process_n, id HAVING count(*) > 1)
SELECT run_n, count(*) FROM ids GROUP BY run_n"""


def notices(
    run: int, seen: Odd, store: Store, load: Load, cost: Cost
) -> tuple[str, ...]:
    """What to know of one run, in sentences.

    Args:
        run: its number.
        seen: what the rows of all runs show.
        store: with the table `served`.
        load, cost: the rest of its report.
    """
    return tuple(
        filter(
            None,
            (
                _cold(store, run, cost.ttft_ms),
                _stepped(seen.steps_s.get(run)),
                _recurring(seen.recurring.get(run, 0)),
                _short(cost.output),
                _late(load.late),
            ),
        )
    )


def unwhole(
    paths: Sequence[str], cut: Mapping[str, str], repeated: Mapping[str, int]
) -> Iterator[str]:
    """What the files of a run lack, and what they hold twice.

    Args:
        paths: of the run.
        cut: by path, why reading it ended before it did.
        repeated: by kind, records that were in the files already.
    """
    for path in paths:
        if path in cut:
            yield f"{path} ends early: {cut[path]}. What stood behind is not here."
    if repeated:
        said = counted(dict(repeated))
        yield f"Records that stand in the files more than once count once: {said}."


def unasked(
    plan: Planned | None, warmup: Warmup | None, notes: object
) -> Iterator[str]:
    """What a plan offered and nobody asked, and what a cut does not touch.

    Args:
        plan: of the run; None = its log has no call lines.
        warmup: what was left out of its decisions.
        notes: the run's, in which a manifest may say how much was offered.
    """
    if plan is None:
        offered = notes.get("calls_offered") if isinstance(notes, Mapping) else None
        if isinstance(offered, int):
            yield (
                f"The plan offered {offered} calls, as the manifest says. Their lines"
                " are not here: goodput is of what was asked, and may be too high."
            )
        return
    if plan.never_asked.n:
        never = share(plan.never_asked.n, plan.never_asked.of)
        yield (
            f"The plan offered {plan.offered} calls; {never} were never asked: their"
            " session had ended before, or the run. They count as not met."
        )
    if warmup is not None and warmup.left_out:
        yield (
            f"--warmup {warmup.asked} left out decisions. The planned calls are counted"
            " as the plan says, by its own warm-up."
        )


def sizes(runs: Sequence[int]) -> str | None:
    """What to know of runs of one policy in one experiment, by their decisions."""
    low, high = min(runs), max(runs)
    if high - low <= MOST_SIZE_DIFFERENCE * high:
        return None
    return (
        f"The {len(runs)} runs of this policy in this experiment differ in size: {low}"
        f" to {high} decisions. A mean of their percentiles is no percentile."
    )


def _cold(store: Store, run: int, ttft_ms: Spread) -> str | None:
    """The slowest came first: an engine that was not warm."""
    slowest = max(FEWEST_COLD, ttft_ms.n // COLD_PART)
    usual_ms, high_ms = ttft_ms.p50 or 0.0, ttft_ms.high or 0.0
    if ttft_ms.n < 2 * slowest or high_ms <= COLD_TIMES * usual_ms:
        return None
    ((slow_us, rest_us, low, high, middle),) = store.rows(
        f"""WITH ranked AS (
            SELECT t_us, ttft_ms, {slowest} >=
                row_number() OVER (ORDER BY ttft_ms DESC, t_us, row) AS slow
            FROM served WHERE run_n = {run} AND ok AND ttft_ms IS NOT NULL
                AND t_us IS NOT NULL)
        SELECT max(t_us) FILTER (slow), min(t_us) FILTER (NOT slow),
            min(ttft_ms) FILTER (slow), max(ttft_ms) FILTER (slow),
            quantile_disc(ttft_ms, 0.5) FILTER (NOT slow)
        FROM ranked"""
    )
    if slow_us is None or rest_us is None or slow_us > rest_us:
        return None
    if low <= COLD_TIMES * middle:
        return None
    return (
        f"The slowest {slowest} of {ttft_ms.n} all arrived first, with a TTFT of"
        f" {number(low)} to {number(high)} ms where the rest had a p50 of"
        f" {number(middle)} ms: the engine was cold. --warmup {slowest} leaves them"
        " out."
    )


def _stepped(step_s: float | None) -> str | None:
    if step_s is None:
        return None
    return (
        f"The wall clock was stepped by {number(step_s)} s during the run. Times and"
        " durations here follow the monotonic clock."
    )


def _recurring(ids: int) -> str | None:
    if not ids:
        return None
    said = plural(ids, "request id stands", "request ids stand")
    return (
        f"{said} on more than one decision. Outcomes are joined by number, not by id."
    )


def _short(output: Output | None) -> str | None:
    if output is None or output.share is None or output.share >= LEAST_OUTPUT:
        return None
    return (
        f"Outputs are {percent(output.got_tokens, output.asked_tokens)} as long as"
        f" asked for ({output.got_tokens} of {output.asked_tokens} tokens, n"
        f" {output.n}): load may be far below plan, and then this run cannot show what"
        " the policy does."
    )


def _late(late: Share | None) -> str | None:
    if late is None or not late.n:
        return None
    return (
        f"{share(late.n, late.of)} requests were sent more than {number(LATE_MS)} ms"
        " late: the generator waited while the server stalled (coordinated omission)."
        " Judge latency from the due time."
    )
