"""Several runs on one page: all in a line each, and repeats side by side."""

from collections.abc import Iterator, Sequence

from admitperf.reports.comparison import score
from admitperf.reports.comparison.arms import Arm
from admitperf.reports.pages.layout import named, table, wrapped
from admitperf.reports.pages.repeats import middle_and_range
from admitperf.reports.report import RunReport
from admitperf.reports.wording import NOT_KNOWN, number, plural, printable


def overview(runs: Sequence[RunReport]) -> Iterator[str]:
    """All runs in a line each, for who has many."""
    yield f"{len(runs)} runs"
    held = any(run.answers.held.n for run in runs)
    columns = ("finding", *["held"] * held, fired(runs), asked(runs), "goodput")
    yield table("policy and run", columns)
    for run in runs:
        word, *rest = _run_cells(run)
        yield from named(named_run(run), (word, *[_held(run)] * held, *rest))
    yield ""


def fired(runs: Sequence[RunReport]) -> str:
    """What its refusals were: where nothing was enforced, none was turned away."""
    shadow = all(run.finding.word in ("SHADOW", "BASELINE") for run in runs)
    return "would" if shadow else "refused"


def asked(runs: Sequence[RunReport]) -> str:
    """What its decisions were made on."""
    return "samples" if all(run.basis == "samples" for run in runs) else "offered"


def named_run(run: RunReport) -> str:
    """The policy, and the run's name where it has one."""
    policy = run.header.get("policy") or "unknown policy"
    name = run.header.get("name")
    return printable(f"{policy}, {name}" if name else str(policy))


def _run_cells(run: RunReport) -> tuple[str, ...]:
    return run.finding.word, *map(str, refused_of(run)), _value(run)


def refused_of(run: RunReport) -> tuple[int, int]:
    """How many of how many: of attempts, and of a plan of its calls."""
    if run.planned is not None:
        return score.refused(run).n, score.offered(run)
    return run.answers.refused, run.answers.offered


def _held(run: RunReport) -> str:
    return str(run.answers.held.n)


def _value(run: RunReport) -> str:
    """Goodput without its denominator, which has a column of its own."""
    good = run.goodput
    return NOT_KNOWN if good is None or good.value is None else f"{good.value:.3f}"


def repeats(experiment: str, arm: Arm) -> Iterator[str]:
    """The runs of one arm in a line each, and how far apart they came out."""
    title = printable(f"Repeats of {arm.label} in {experiment}")
    yield from wrapped(title, indent="")
    held = any(run.answers.held.n for run in arm.runs)
    rest = ("offered", "refused", "goodput", "p50 ms", "p95 ms", "n ok")
    yield table("run", (*["held"] * held, *rest))
    for name, run in zip(arm.names, arm.runs, strict=True):
        yield from named(name, (*[_held(run)] * held, *_repeat_cells(run)))
    for sentence in over_repeats(arm.runs):
        yield from wrapped(sentence)


def _repeat_cells(run: RunReport) -> tuple[str, ...]:
    ttft, (refused, offered) = run.cost.ttft_ms, refused_of(run)
    return (
        str(offered),
        str(refused),
        _value(run),
        number(ttft.p50),
        "n<20" if ttft.withheld else number(ttft.p95),
        str(ttft.n),
    )


def over_repeats(same: Sequence[RunReport]) -> Iterator[str]:
    """How far apart the repeats came out, in sentences."""
    good = [run.goodput.value for run in same if run.goodput is not None]
    p95 = [run.cost.ttft_ms.p95 for run in same]
    for name, values in (("goodput", good), ("p95 of TTFT, ms", p95)):
        known = [value for value in values if value is not None]
        if known:
            yield f"{name}: {middle_and_range(known)}, of {plural(len(known), 'run')}."
