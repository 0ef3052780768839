"""A benchmark's comparison as one JSON document."""

from collections.abc import Sequence
from typing import Any

from admitperf.bench.design.claims import Claim
from admitperf.bench.design.comparison import SCHEMA, Verdicts
from admitperf.bench.design.results import Run, finite
from admitperf.bench.pages import middles
from admitperf.reports.pages.items import tally


def document(
    made: Verdicts,
    claim: Claim | None = None,
    only: Sequence[str] = (),
    runs: Sequence[Run] = (),
) -> dict[str, Any]:
    """The comparison as plain dicts and lists, ready for strict JSON.

    Args:
        made: what is shown.
        claim: what `--check` asks; None = nothing is asked, and `check` is null.
        only: arms that are asked; empty = all.
        runs: what it was made of, for the numbers beside the metric and the seven
            reporting items.
    """
    above = [run for run in runs if run.load in made.design.above]
    plain: dict[str, Any] = _strict(made.to_dict())
    return {
        "schema": SCHEMA,
        "comparison": plain,
        "beside": middles.numbers([curve.arm for curve in made.curves], above),
        "items": _items([curve.arm for curve in made.curves], runs),
        "check": None if claim is None else _checked(made, claim, only),
    }


def _items(arms: Sequence[str], runs: Sequence[Run]) -> list[dict[str, Any]]:
    """How many runs of each arm answer each reporting item how; those with a log."""
    logs = {
        arm: [run.log for run in runs if run.arm == arm and run.log] for arm in arms
    }
    every = [log for own in logs.values() for log in own]
    return [
        {"arm": arm, "items": tally(own, every)} for arm, own in logs.items() if own
    ]


def _checked(made: Verdicts, claim: Claim, only: Sequence[str]) -> dict[str, Any]:
    failures = list(made.against(claim, only))
    return {"claim": claim, "passed": not failures, "failures": failures}


def _strict(value: Any) -> Any:  # noqa: ANN401  whatever a manifest holds
    """The value with null for each number that JSON cannot hold."""
    if isinstance(value, dict):
        return {str(key): _strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(inner) for inner in value]
    return finite(value) if isinstance(value, float) else value
