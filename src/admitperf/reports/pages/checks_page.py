"""The answers to `report --check`, as text."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from admitperf.reports.pages.checks import NO, Check, Checked
from admitperf.reports.pages.layout import row, wrapped
from admitperf.reports.wording import printable

_CHECK_COLUMN = 18  # what "cannot be asked" takes


def checks(checked: Checked) -> Iterator[str]:
    """The last section of a page on which `--check` was asked."""
    yield "Check"
    for run in checked.runs:
        yield from wrapped(whose(asdict(run)))
        for one in run.checks:
            yield from _check(one)
    yield from wrapped("The files")
    yield from _check(checked.lines)
    yield from wrapped(claim(asdict(checked)))


def _check(one: Check) -> list[str]:
    return row(one.answer, f"{one.name}: {printable(one.says)}", _CHECK_COLUMN)


def whose(run: Mapping[str, Any]) -> str:
    """Whose checks they are, of a document's `checks.runs`."""
    said = f"Run of {run['policy'] or 'unknown policy'}"
    said += f", experiment {run['experiment']}" if run["experiment"] else ""
    said += f", run {run['name']}" if run["name"] else ""
    return printable(said)


def claim(checked: Mapping[str, Any]) -> str:
    """Whether the log supports a claim, of a document's `checks`."""
    if checked["passed"]:
        return "The log supports a claim."
    asked = [one for run in checked["runs"] for one in run["checks"]]
    every = (*asked, checked["lines"])
    names = [one["name"] for one in every if one["answer"] == NO]
    failed = ", ".join(dict.fromkeys(names)) or "no run"
    return f"The log does not support a claim: {failed}."
