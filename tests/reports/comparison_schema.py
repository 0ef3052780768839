"""JSON Schemas of what `compare --json` and `experiments --json` print."""

import inspect
from typing import Literal

from tests.reports.document_schema import schema_of

from admitperf.reports.comparison import experiments
from admitperf.reports.comparison.comparison import CLAIMS, SCHEMA, Comparison
from admitperf.reports.comparison.verdict import Paired
from admitperf.reports.runs.log import Files

_ADDED = ("asked", "separate", "equivalent", "not_worse", "blocks_needed")
_TYPES = {"asked": bool, "blocks_needed": int | None}


def comparison_schema():
    """The schema of `compare --json`, from the classes behind it."""
    made = {}
    comparison, files = schema_of(Comparison, made), schema_of(Files, made)
    paired = made["Paired"]
    for name in _ADDED:
        said = inspect.getdoc(getattr(Paired, name)).replace("None", "null")
        kind = schema_of(_TYPES.get(name, bool | None), made)
        paired["properties"][name] = {**kind, "description": " ".join(said.split())}
    paired["required"] = list(paired["properties"])
    check = {
        "type": "object",
        "description": "What --check asked, and what stands against it.",
        "properties": {
            "claim": {**schema_of(Literal[CLAIMS], made), "description": "the claim."},
            "passed": {"type": "boolean", "description": "whether it is supported."},
            "failures": {
                "type": "array",
                "items": {"type": "string"},
                "description": "why not, each with its arm.",
            },
        },
        "required": ["claim", "passed", "failures"],
        "additionalProperties": False,
    }
    return _document(
        "compare",
        {
            "schema": {"const": SCHEMA, "description": "number of this format."},
            "comparisons": {"type": "array", "items": comparison},
            "check": {"anyOf": [check, {"type": "null"}]},
            "files": files,
        },
        made,
    )


def experiments_schema():
    """The schema of `experiments --json`."""
    made = {}
    listed = schema_of(experiments.ListedExperiment, made)
    files = schema_of(Files, made)
    return _document(
        "experiments",
        {
            "schema": {
                "const": experiments.SCHEMA,
                "description": "number of this format.",
            },
            "experiments": {"type": "array", "items": listed},
            "files": files,
        },
        made,
    )


def _document(verb, properties, made):
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:admitperf:{verb}:{SCHEMA}",
        "title": f"What `admitperf {verb} --json` prints.",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        "$defs": dict(sorted(made.items())),
    }
