"""The answers to `report --check`, as text."""

from collections.abc import Iterator

from admitperf.reports.pages.checks import NO, Check, Checked, RunChecks
from admitperf.reports.pages.layout import row, wrapped
from admitperf.reports.wording import printable

_CHECK_COLUMN = 18  # what "cannot be asked" takes


def checks(checked: Checked) -> Iterator[str]:
    """The last section of a page on which `--check` was asked."""
    yield "Check"
    for run in checked.runs:
        yield from wrapped(_whose(run))
        for one in run.checks:
            yield from _check(one)
    yield from wrapped("The files")
    yield from _check(checked.lines)
    verdict = "The log supports a claim." if checked.passed else _unsupported(checked)
    yield from wrapped(verdict)


def _check(one: Check) -> list[str]:
    return row(one.answer, f"{one.name}: {printable(one.says)}", _CHECK_COLUMN)


def _whose(run: RunChecks) -> str:
    said = f"Run of {run.policy or 'unknown policy'}"
    said += f", experiment {run.experiment}" if run.experiment else ""
    said += f", run {run.name}" if run.name else ""
    return printable(said)


def _unsupported(checked: Checked) -> str:
    asked = [one for run in checked.runs for one in run.checks]
    names = [one.name for one in (*asked, checked.lines) if one.answer == NO]
    failed = ", ".join(dict.fromkeys(names)) or "no run"
    return f"The log does not support a claim: {failed}."
