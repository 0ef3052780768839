"""The third check of a benchmark: each arm fired above capacity."""

from collections import Counter
from collections.abc import Iterator, Sequence

from admitperf.bench.design.guard import Row, others, twins
from admitperf.bench.design.results import Experiment, Run, number_at
from admitperf.reports.pages.checks import NO, NOT_ASKED, OK
from admitperf.reports.wording import plural, printable, share

_SENTENCES = 6  # plain choice: enough to name the signal that moved instead


def fired(of: Experiment) -> Iterator[Row]:
    """Above capacity, where the verdict needs it; the baseline need only be judged."""
    for run in of.of(of.design.baseline):
        if run.finding in (None, "UNKNOWN", "SHADOW"):
            yield Row(run.arm, NOT_ASKED, _unjudged(run))
    same = twins(of)
    for arm in others(of):
        if arm in same:
            yield Row(arm, OK, f"{printable(arm)} refuses what the baseline refuses.")
            continue
        yield from _fired_arm(arm, [run for run in of.of(arm) if run.load > 1])


def _fired_arm(arm: str, runs: Sequence[Run]) -> Iterator[Row]:
    who, fired = printable(arm), [run for run in runs if _refused(run)]
    unjudged = [run for run in runs if _refused(run) is None]
    if not runs:
        yield Row(arm, NOT_ASKED, f"{who}: no run above capacity.")
    elif unjudged:
        yield Row(arm, NOT_ASKED, _unjudged(unjudged[0]))
    elif not fired:
        yield Row(arm, NO, _never(who, runs))
    else:
        yield from _by_block(arm, runs)
        told = f"fired in {share(len(fired), len(runs))} runs above capacity"
        yield Row(arm, OK, f"{who} {told}.")


def _by_block(arm: str, runs: Sequence[Run]) -> Iterator[Row]:
    """A block is a repeat: in each it fired at some load above capacity."""
    blocks = {run.block for run in runs}
    slept = sorted(blocks - {run.block for run in runs if _refused(run)})
    if slept:
        told = f"did not fire in {len(slept)} of {plural(len(blocks), 'block')}"
        yield Row(arm, NO, f"{printable(arm)} {told}, such as b{slept[0]}.")


def _refused(run: Run) -> bool | None:
    """Whether it refused anything that counted; None = that is not known."""
    if run.finding in (None, "UNKNOWN"):
        return None
    if run.finding == "LIVE":
        counted = number_at(run.summary, "refusals")  # in the window
        return None if run.refused is None else run.refused > 0 and counted != 0
    if run.finding == "BASELINE":  # then an engine of its own is the arm
        return _engine_refused(run)
    return False


def _engine_refused(run: Run) -> bool | None:
    """Whether a limit of the engine refused: what failed without being an error."""
    failed = number_at(run.summary, "ended", "failed")
    errors = number_at(run.summary, "errors", "n")
    return None if failed is None or errors is None else failed > errors


def _unjudged(run: Run) -> str:
    if run.finding is None:
        return f"{run.name} has no log: whether it fired is not known."
    if run.finding == "BASELINE":
        return f"{run.name} refuses nothing, and what its engine refused is not said."
    return printable(f"{run.name} is {run.finding}: {' '.join(run.says[:2])}")


def _never(who: str, runs: Sequence[Run]) -> str:
    words = Counter(run.finding for run in runs)
    told = ", ".join(f"{word} in {n}" for word, n in sorted(words.items(), key=str))
    most = max(runs, key=lambda run: run.load)
    runs_above = plural(len(runs), "run")
    head = f"{who} could not have fired: {told} of {runs_above} above capacity."
    if most.finding == "BASELINE":
        return f"{who}: the limit of its engine refused nothing in {runs_above}."
    return printable(f"{head} {most.name}: {' '.join(most.says[:_SENTENCES])}")
