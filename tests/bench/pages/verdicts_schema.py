"""JSON Schema of what `bench compare --json` prints, from the classes behind it."""

import inspect
from typing import Literal

from tests.reports.document_schema import schema_of

from admitperf.bench.design.claims import CLAIMS, Pooled
from admitperf.bench.design.comparison import SCHEMA, Verdicts

_ADDED = ("rises", "falls", "not_worse", "equivalent")


def verdicts_schema():
    """Closed, every key required and described."""
    made = {}
    comparison = schema_of(Verdicts, made)
    pooled = made["Pooled"]
    for name in _ADDED:
        said = " ".join(inspect.getdoc(getattr(Pooled, name)).split())
        pooled["properties"][name] = {"type": "boolean", "description": said}
    pooled["required"] = list(pooled["properties"])
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
    beside = {
        "type": "array",
        "description": "per arm, the medians of its runs above capacity.",
        "items": {
            "type": "object",
            "properties": {
                "arm": {"type": "string", "description": "its name."},
                "values": {
                    "type": "object",
                    "description": "by what they are; null = no run has it.",
                    "additionalProperties": {
                        "anyOf": [
                            {"type": "number"},
                            {"const": "infinite"},
                            {"type": "null"},
                        ]
                    },
                },
            },
            "required": ["arm", "values"],
            "additionalProperties": False,
        },
    }
    items = {
        "type": "array",
        "description": "per arm whose runs have logs, the seven reporting items.",
        "items": {
            "type": "object",
            "properties": {
                "arm": {"type": "string", "description": "its name."},
                "items": {
                    "type": "object",
                    "description": "how many runs answer how: by item, by answer.",
                    "additionalProperties": {
                        "type": "object",
                        "additionalProperties": {"type": "integer"},
                    },
                },
            },
            "required": ["arm", "items"],
            "additionalProperties": False,
        },
    }
    properties = {
        "schema": {"const": SCHEMA, "description": "number of this format."},
        "comparison": comparison,
        "beside": beside,
        "items": items,
        "check": {"anyOf": [check, {"type": "null"}]},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:admitperf:bench-compare:{SCHEMA}",
        "title": "What `admitperf bench compare --json` prints.",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        "$defs": dict(sorted(made.items())),
    }
