"""What a reader of a comparison should know before believing its numbers."""

from collections.abc import Iterator, Sequence

from admitperf.reports.comparison.arms import Arm, Contest
from admitperf.reports.comparison.same_load import rates_apart
from admitperf.reports.quantile import Spread
from admitperf.reports.wording import plural, printable

_MOST_NOTICES = 12  # plain choice: what a page bears; the runs' own reports have all

_MUCH_LARGER = 1.5
"""Plain choice: from here on the p95 of one repeat rests on visibly more requests."""


def notices(met: Contest) -> tuple[str, ...]:
    """Of the design first, then what each run notices of itself."""
    said = [*_design(met), *(note for arm in met.sides for note in _of_runs(arm))]
    rest = len(said) - _MOST_NOTICES
    more = [f"And {rest} more: `admitperf report` has them."] if rest > 0 else []
    return (*said[:_MOST_NOTICES], *more)


def _design(met: Contest) -> Iterator[str]:
    """What the numbers of these repeats can and cannot stand for."""
    for arm in met.sides:
        yield from _sizes(arm)
    for pair in met.pairs:
        if (apart := rates_apart(pair)) is not None:
            yield (
                f"{pair.name}: one plan, and yet the load differs by {apart}: a closed"
                " loop, or a generator that fell behind."
            )
    plans = {pair.baseline.load.plan for pair in met.pairs}
    if len(met.pairs) > 1 and len(plans) == 1 and None not in plans:
        yield (
            "Every pair replays one plan: the interval speaks of this trace on this"
            " machine, not of other traces."
        )


def _sizes(arm: Arm) -> Iterator[str]:
    """What the numbers of one arm's repeats rest on."""
    spreads = [run.cost.ttft_ms for run in arm.runs]
    if _unequal_sizes(spreads):
        sizes = sorted(spread.n for spread in spreads)
        yield (
            f"{arm.label}: the repeats differ in size, {sizes[0]} to {sizes[-1]}"
            " served. Their percentiles are shown apart, never averaged."
        )
    bounds = sum(run.cost.at_least for run in arm.runs)
    if bounds:
        yield f"{arm.label}: goodput could be higher in {plural(bounds, 'repeat')}."


def _of_runs(arm: Arm) -> Iterator[str]:
    for name, run in zip(arm.names, arm.runs, strict=True):
        if len(run.ids) > 1 and run.header.get("name") is None:
            yield (
                f"{arm.label} {name}: {len(run.ids)} processes without a run name"
                " count as one run. Repeats need run=."
            )
        if 0 < (run.header.get("enforce") or 0) < 1:
            yield (
                f"{arm.label} {name}: it governed"
                f" {run.answers.enforced} of {run.answers.offered}. All of them is"
                " what is compared: both halves share one queue."
            )
        yield from (f"{arm.label} {name}: {printable(said)}" for said in run.notices)


def _unequal_sizes(spreads: Sequence[Spread]) -> bool:
    """Whether some repeats are so much larger that their percentiles differ in kind."""
    sizes = [spread.n for spread in spreads]
    return bool(sizes) and max(sizes) > _MUCH_LARGER * min(sizes)
