"""A report as one JSON document: its numbers, the seven items, and the checks."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from admitperf.reports.pages.checks import Checked
from admitperf.reports.pages.items import items
from admitperf.reports.report import Report
from admitperf.reports.series.series import Series

SCHEMA = 1
"""Number of the document's format, `docs/reference/report/report.schema.json`."""


def document(
    report: Report,
    checked: Checked | None = None,
    series: Sequence[Series | None] | None = None,
) -> dict[str, Any]:
    """The report as plain dicts and lists, ready for strict JSON.

    Args:
        report: what is shown.
        checked: the answers to `--check`; None = they were not asked for, and the
            document has no `checks`.
        series: each run over time; None = it was not asked for, and no run has
            `series`. A run whose own is None has a null there.
    """
    plain = report.to_dict()
    for run, one in zip(plain["runs"], report.runs, strict=True):
        run["goodput"] = None if one.goodput is None else asdict(one.goodput)
        run["items"] = [asdict(item) for item in items(one, report.runs)]
    for run, over_time in zip(plain["runs"], series or (), strict=series is not None):
        run["series"] = None if over_time is None else over_time.to_dict()
    made = {"schema": SCHEMA, **plain}
    return made if checked is None else {**made, "checks": asdict(checked)}
