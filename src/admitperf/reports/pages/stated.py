"""What a run's notes state: the facts that no log can know by itself."""

import math
from collections.abc import Mapping

from admitperf.reports.report import RunReport
from admitperf.reports.runs.slo import FROM_HEADER, Slo
from admitperf.reports.wording import printable

CONFIGURATION = (
    "model",
    "engine",
    "engine_version",
    "hardware",
    "workload",
    "baseline",
)
"""The names that, with the SLO, make a run's configuration."""


def notes(run: RunReport) -> Mapping[str, object]:
    """The notes by name; empty when there are none, or they are free text."""
    given = run.header.get("notes")
    return given if isinstance(given, dict) else {}


def text(run: RunReport, name: str) -> str | None:
    """A note as printable text; None when it is absent, null or blank."""
    given = notes(run).get(name)
    if given is None or isinstance(given, bool):
        return None
    return printable(str(given)).strip() or None


def positive(run: RunReport, name: str) -> float | None:
    """A note that is a number above 0; None when it is anything else."""
    given = notes(run).get(name)
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if 0 < given < math.inf else None


def simulated(run: RunReport) -> bool:
    """Whether the outcomes come from a simulated engine."""
    return notes(run).get("simulated") is True


def oracle(run: RunReport) -> bool:
    """Whether the policy was told how long answers would be, which no host can be."""
    return notes(run).get("oracle") is True


def slo(run: RunReport) -> Slo:
    """What a run's outcomes were judged by; without bounds when there are none."""
    if run.cost.slo_origin == FROM_HEADER:
        return Slo.declared(run.header.get("slo"))
    if run.cost.slo_origin:
        return Slo.parsed(run.cost.slo.replace(" ", "=").replace(",=", ","))
    return Slo()
