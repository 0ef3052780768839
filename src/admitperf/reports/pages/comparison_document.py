"""Comparisons as one JSON document."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from admitperf.reports.comparison.comparison import SCHEMA, Claim, Comparison
from admitperf.reports.runs.log import Files


def document(
    made: Sequence[Comparison], files: Files, claim: Claim | None = None
) -> dict[str, Any]:
    """The comparisons as plain dicts and lists, ready for strict JSON.

    Args:
        made: one for each arm.
        files: what they were read from.
        claim: what `--check` asks; None = nothing is asked, and `check` is null.
    """
    return {
        "schema": SCHEMA,
        "comparisons": [one.to_dict() for one in made],
        "check": None if claim is None else _checked(made, claim),
        "files": asdict(files),
    }


def failures(made: Sequence[Comparison], claim: Claim) -> list[str]:
    """Why they do not support a claim, each with its arm; empty = they do."""
    return [
        f"{one.arm.label}: {why}" for one in made for why in one.against_claim(claim)
    ]


def _checked(made: Sequence[Comparison], claim: Claim) -> dict[str, Any]:
    failed = failures(made, claim)
    return {"claim": claim, "passed": not failed, "failures": failed}
