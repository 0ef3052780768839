"""What a watch found, in lines: short where the report is not installed."""

from collections.abc import Iterator, Sequence

from admitperf.cli.layout import row, wrapped
from admitperf.lab.judge import GateTally, Judged
from admitperf.lab.watch import Watch
from admitperf.reports.wording import number, plural, printable, share

_COLUMN = 22


def unseen(watch: Watch) -> Iterator[str]:
    """The endpoints that never answered, first of all; nothing when each did."""
    counts = watch.counts
    silent = [
        name
        for name, n in counts.failed.items()
        if n + counts.skipped.get(name, 0) >= counts.rounds
    ]
    if silent:
        of = f"{len(silent)} of {plural(len(watch.plan.endpoints), 'endpoint')}"
        said = f"{of} never answered: {', '.join(silent)}. The rest is without them."
        yield from wrapped(said)
        yield ""


def summary(watch: Watch, judged: Sequence[Judged]) -> Iterator[str]:
    """Which signals moved, and how each policy would have done."""
    if watch.simulated:
        said = "SIMULATED: the numbers come from a simulated engine, not from hardware."
        yield from wrapped(said)
        yield ""
    yield "Signals, over the samples"
    yield f"  {'':20}{'n':>8}{'min':>12}{'max':>12}"
    for name, moved in watch.moved.items():
        low, high = number(moved.low), number(moved.high)
        yield f"  {printable(name)[:20]:20}{moved.n:>8}{low:>12}{high:>12}"
    for one in judged:
        if one.why_not is None:
            yield ""
            yield from _policy(one)


def closing(watch: Watch, judged: Sequence[Judged], *, reported: bool) -> Iterator[str]:
    """Which policies samples cannot judge, what failed, and where the trace is."""
    apart = [one for one in judged if one.why_not is not None]
    if apart:
        yield ""
        yield "Not judged"
    for one in apart:
        yield from row(printable(one.policy), one.why_not or "", column=_COLUMN)
    yield ""
    yield "The watch"
    yield from row("samples", _samples(watch), column=_COLUMN)
    yield from _scrapes(watch)
    yield from row("trace", _trace(watch), column=_COLUMN)
    if not reported and not watch.fault:
        more = (
            "the extra admitperf[reports] (pip install duckdb scipy) gives the whole"
            f" page: admitperf report {watch.plan.path}"
        )
        yield from row("report", more, column=_COLUMN)
    yield ""
    yield from wrapped(
        "No policy governed: every request went its way, and each policy answered"
        " samples of the metrics, not requests."
    )


def _policy(one: Judged) -> Iterator[str]:
    yield printable(one.policy)
    fired = f"would have refused on {share(one.fired, one.n)} of the samples"
    yield from row("fired", fired, column=_COLUMN)
    if one.blind:
        told = f"could not see on {share(one.blind, one.n)}: {one.why_blind}"
        yield from row("blind", told, column=_COLUMN)
    for gate in one.gates.values():
        yield from row("gate", _gate(gate), column=_COLUMN)


def _gate(gate: GateTally) -> str:
    said = f"{gate.name} {gate.op} {number(gate.bound)} was true on"
    said += f" {share(gate.held, gate.n)}; {number(gate.low)} to {number(gate.high)}"
    if gate.distance is None:
        return said
    return f"{said}; at its nearest {number(gate.distance)} away"


def _samples(watch: Watch) -> str:
    counts = watch.counts
    told = f"{counts.samples} in {plural(counts.rounds, 'round')}"
    told += f", {number(watch.plan.interval_s)} s apart"
    if counts.missed:
        told += f"; {plural(counts.missed, 'round')} missed: this process was held up"
    return told


def _scrapes(watch: Watch) -> Iterator[str]:
    counts = watch.counts
    for target, n in counts.failed.items():
        told = f"{n} of {counts.rounds} rounds; last: {counts.last[target]}"
        yield from row("failed scrapes", told, column=_COLUMN)
    for target, n in counts.skipped.items():
        told = f"{target}: {n} of {counts.rounds} rounds, still busy with the last"
        yield from row("skipped", told, column=_COLUMN)


def _trace(watch: Watch) -> str:
    if watch.fault:
        return f"incomplete: {watch.fault}"
    return watch.plan.path
