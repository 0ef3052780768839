"""A report as one JSON document: its numbers, the seven items, and the checks."""

from dataclasses import asdict
from typing import Any

from admitperf.reports.pages.checks import Checked
from admitperf.reports.pages.items import items
from admitperf.reports.report import Report

SCHEMA = 1
"""Number of the document's format, `docs/reference/report/report.schema.json`."""


def document(report: Report, checked: Checked | None = None) -> dict[str, Any]:
    """The report as plain dicts and lists, ready for strict JSON.

    Args:
        report: what is shown.
        checked: the answers to `--check`; None = they were not asked for, and the
            document has no `checks`.
    """
    plain = report.to_dict()
    for run, one in zip(plain["runs"], report.runs, strict=True):
        run["goodput"] = None if one.goodput is None else asdict(one.goodput)
        run["items"] = [asdict(item) for item in items(one, report.runs)]
    made = {"schema": SCHEMA, **plain}
    return made if checked is None else {**made, "checks": asdict(checked)}
