"""Another tool's run as plain text: ours first, then its own, then what is missing."""

from collections.abc import Iterator, Mapping

from admitperf.bench.callers.score import Spread, Summary
from admitperf.bench.interchange.foreign import Totals
from admitperf.bench.interchange.judged import Judged, offered
from admitperf.reports.pages.layout import WIDTH, row, wrapped
from admitperf.reports.quantile import FEWEST_FOR_P95, FEWEST_FOR_P99
from admitperf.reports.wording import counted, number, printable, ratio, share


def text(judged: Judged, file: str) -> str:
    """The page of one run, with a line end.

    Args:
        judged: the run, held to an objective.
        file: whose it is, as the person named it.
    """
    return "\n".join(_lines(judged, file)) + "\n"


def _lines(judged: Judged, file: str) -> Iterator[str]:
    run = judged.run
    title = printable(f"{run.tool}{': ' + run.name if run.name else ''}")
    yield from wrapped(title, indent="")
    yield "=" * min(len(title), WIDTH)
    yield from row("read", printable(file))
    if run.notes:
        yield from row("notes", _notes(run.notes))
    yield from row("offered", f"{offered(judged)} requests")
    if judged.summary is not None:
        yield from _calls(judged, judged.summary)
    elif run.totals is not None:
        yield from _totals(run.totals)
    yield from row("goodput", _goodput(judged))
    for why in judged.at_most:
        yield from row("", f"at most that: {printable(why)}")
    if run.own is not None:
        yield from row("its own", printable(run.own))
    for said in run.missing:
        yield from row("not said", printable(said))


def _notes(notes: Mapping[str, object]) -> str:
    told = (f"{name}={_plain(value)}" for name, value in notes.items() if value)
    return printable(", ".join(told))


def _plain(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _calls(judged: Judged, summary: Summary) -> Iterator[str]:
    ended = {name.replace("_", " "): n for name, n in summary.ended.items() if n}
    yield from row("ended", counted(ended))
    failed = summary.offered - summary.answered
    yield from row("no answer", f"{share(failed, summary.offered)} requests offered")
    errors = _errors(judged)
    if errors:
        yield from row("", counted(errors))
    yield from row("TTFT served", _spread(summary.ttft_served_ms))
    yield from row("TTFT offered", _offered(summary.ttft_offered_ms))
    if summary.late_ms["max"]:
        late = _spread(summary.late_ms, ("p50", "p99"))
        yield from row("sent late", f"{late}, max {_ms(summary.late_ms['max'])}")
    bounds = ", ".join(f"{name} {value:g}" for name, value in judged.bounds.items())
    yield from row("SLO", bounds or "none given: an answer is enough (--slo)")


def _errors(judged: Judged) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in judged.run.records:
        if one.error is not None:
            found[one.error] = found.get(one.error, 0) + 1
    return found


def _totals(totals: Totals) -> Iterator[str]:
    yield from row("failed", f"{share(totals.failed, totals.offered)} requests")
    if totals.good is not None:
        good = ratio(totals.good, totals.offered)
        yield from row("good", f"{good} offered, by its own rule")
    known = {name: value for name, value in totals.ttft_ms.items() if value is not None}
    if known:
        told = ", ".join(f"{name} {_ms(value)}" for name, value in known.items())
        yield from row("TTFT served", f"{told}, by its own percentiles")


def _goodput(judged: Judged) -> str:
    known = judged.summary
    if judged.cannot is not None or known is None:
        return f"cannot be answered: {judged.cannot}"
    return f"{ratio(known.good, known.offered)} requests offered"


def _spread(values: Spread, names: tuple[str, ...] = ("p50", "p95", "p99")) -> str:
    """Percentiles and how many they are of; one that rests on too few says so."""
    n = values["n"]
    if not n:
        return "no answer carries one"
    told = (f"{name} {_percentile(values, name)}" for name in names)
    return f"{', '.join(told)}, n {n}"


def _percentile(values: Spread, name: str) -> str:
    value = values[name]
    return f"withheld (n under {_FEWEST[name]})" if value is None else _ms(value)


_FEWEST = {"p50": 1, "p95": FEWEST_FOR_P95, "p99": FEWEST_FOR_P99}


def _or_never(values: Spread, name: str) -> str:
    enough = (values["n"] or 0) >= _FEWEST[name]
    if enough and values[name] is None:
        return "never"
    return _percentile(values, name)


def _offered(values: Spread) -> str:
    """Over all that were offered: one without an answer never came."""
    told = [f"{name} {_or_never(values, name)}" for name in ("p50", "p95")]
    return f"{', '.join(told)}, n {values['n']}; no answer counts as never"


def _ms(value: float | None) -> str:
    return f"{number(value)} ms"
