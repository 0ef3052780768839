"""`report --card md`: what a paper must say of a run, as Markdown tables.

Its lines may be longer than 80 columns: a row of such a table is one line.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from admitperf.reports.pages import stated
from admitperf.reports.pages.checks import NO, checks
from admitperf.reports.pages.headline import at_least, parameters
from admitperf.reports.pages.items import items
from admitperf.reports.pages.terminology import TERMS
from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.report import Report, RunReport
from admitperf.reports.wording import NOT_KNOWN, number, printable

_DEFINED = (
    "offered",
    "call",
    "goodput",
    "SLO attainment",
    "TTFT",
    "user's clock",
    "failed",
    "nearest rank",
    "not carried",
)
"""The terms a card's numbers rest on."""
_SPECIAL = re.compile(r"([\\`*|<\[])")


def card(report: Report, command: str) -> str:
    """A card for each run, then the definitions and the command.

    Args:
        report: the runs.
        command: the command line that makes the card again.
    """
    lines = [line for run in report.runs for line in _run(run, report.runs)]
    lines += ["## Definitions", "", *_definitions(), ""]
    lines += ["## Made by", "", f"    {printable(command)}"]
    return "\n".join(lines) + "\n"


def _run(run: RunReport, runs: Sequence[RunReport]) -> Iterator[str]:
    yield f"# {_title(run)}"
    for heading, head, rows in (
        ("Reporting items", ("item", "answer", "evidence"), _items(run, runs)),
        ("Configuration", ("fact", "value"), _configuration(run)),
        ("Numbers", ("number", "value", "n", "of"), _numbers(run)),
    ):
        yield from ("", f"## {heading}", "", *_table(head, rows))
    yield ""
    for notice in run.notices:
        yield f"- Notice: {_plain(notice)}"
    yield f"- {_checked(run)}"
    yield ""


def _title(run: RunReport) -> str:
    header = run.header
    said = f"Run of {header.get('policy') or 'unknown policy'}"
    said += f", experiment {header['experiment']}" if header.get("experiment") else ""
    said += f", run {header['name']}" if header.get("name") else ""
    return _plain(said)


def _checked(run: RunReport) -> str:
    failed = [one.name for one in checks(run) if one.answer == NO]
    if not failed:
        return "Checks: the log supports a claim."
    return f"Checks: the log does not support a claim: {', '.join(failed)}."


# ----------------------------------------------------------------------- tables


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _line(head)
    yield _line(["---"] * len(head))
    for row in rows:
        yield _line([_plain(cell) for cell in row])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """The text so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", printable(text))


def _items(run: RunReport, runs: Sequence[RunReport]) -> Iterator[tuple[str, ...]]:
    for item in items(run, runs):
        yield item.name, item.answer, item.says


def _configuration(run: RunReport) -> Iterator[tuple[str, str]]:
    header = run.header
    yield "policy", str(header.get("policy") or NOT_KNOWN)
    yield "parameters", parameters(header) or "none"
    for name in stated.CONFIGURATION:
        yield name.replace("_", " "), stated.text(run, name) or NOT_KNOWN
    if stated.simulated(run):
        yield "simulated", "outcomes come from a simulated engine"
    if stated.oracle(run):
        yield "ORACLE", "the policy was told how long answers would be"
    yield "SLO", _slo(run)
    yield "enforce", number(header.get("enforce"))
    yield "plan", run.load.plan or NOT_KNOWN
    yield "warm-up", _warmup(run)
    yield "config", str(header.get("config") or NOT_KNOWN)
    yield "AdmitPerf", str(header.get("version") or NOT_KNOWN)


def _slo(run: RunReport) -> str:
    if not run.cost.slo_origin:
        return "none declared"
    return f"{run.cost.slo}, from {run.cost.slo_origin}"


def _warmup(run: RunReport) -> str:
    if run.warmup is None:
        return "nothing left out"
    left = run.warmup.left_out
    return f"{run.warmup.asked}: {left} of {left + run.warmup.kept} left out"


# ---------------------------------------------------------------------- numbers

_Row = tuple[str, str, str, str]


def _numbers(run: RunReport) -> Iterator[_Row]:
    answers, paid = run.answers, run.cost
    yield "finding", run.finding.word, str(answers.offered), _asked(run)
    yield _part("refused", Share.part(answers.refused, answers.offered), _asked(run))
    if run.basis == "samples":
        return
    if answers.held.n:
        yield _part("held", Share.part(answers.held.n, answers.offered), _asked(run))
        yield from _tails("held, ms", answers.held.held_ms, "attempts held")
    rate, n = run.load.rate_per_s, run.load.calls or run.load.attempts
    yield "offered per s", number(rate), str(n), _what(run)
    yield _part("let in", paid.let_in, "attempts offered")
    yield from _goodput(run)
    yield _part("SLO attainment", paid.attained, "attempts with an outcome")
    yield _part("failed", paid.failed, "attempts with an outcome")
    yield from _tails("TTFT, ms", paid.ttft_ms, "attempts that ended well")
    if paid.requests is not None:
        user = paid.requests.ttft_user_ms
        yield from _tails("TTFT on the user's clock, ms", user, "calls that ended well")
    yield _part("decided blind", run.faults.blind, "decisions")
    yield _part("lost", run.faults.lost_decisions, "decisions")


def _goodput(run: RunReport) -> Iterator[_Row]:
    """Of attempts, of calls, or of a plan's calls, and how many nobody asked."""
    if run.planned is not None:
        yield _part("goodput", run.planned.goodput, "planned calls offered")
        yield _part("never asked", run.planned.never_asked, "planned calls offered")
        return
    more = "" if run.goodput is None else at_least(run)
    yield _part(f"{more}goodput", run.goodput, f"{_what(run)} offered")


def _asked(run: RunReport) -> str:
    return "samples" if run.basis == "samples" else "attempts offered"


def _what(run: RunReport) -> str:
    return "attempts" if run.cost.requests is None else "calls"


def _part(name: str, part: Share | None, of: str) -> _Row:
    if part is None:
        return name, NOT_KNOWN, NOT_KNOWN, of
    value = NOT_KNOWN if part.value is None else f"{part.value:.3f}"
    return name, value, str(part.n), f"{part.of} {of}"


def _tails(name: str, values: Spread, of: str) -> Iterator[_Row]:
    for word, value, withheld in (
        ("p50", values.p50, None),
        ("p95", values.p95, values.withheld),
        ("p99", values.p99, values.withheld_p99),
    ):
        yield f"{word} of {name}", withheld or number(value), str(values.n), of


def _definitions() -> Iterator[str]:
    defined = {term.word: term.means for term in TERMS}
    for word in _DEFINED:
        yield f"- **{word}**: {_plain(defined[word])}"
