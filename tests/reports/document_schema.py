"""JSON Schemas of the documents `--json` prints, made from the classes behind them.

Every object is closed and every key is required; what a key means is what the class
says under `Attributes:`.
"""

import inspect
import re
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from admitperf.reports.pages.checks import Checked
from admitperf.reports.pages.document import SCHEMA
from admitperf.reports.pages.items import Item
from admitperf.reports.ratio import Share
from admitperf.reports.report import RunReport
from admitperf.reports.runs.log import Files
from admitperf.reports.series.series import Series

_PLAIN = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    NoneType: {"type": "null"},
}
_NAMED = re.compile(r"^    (\w+(?:, \w+)*): (.*)$")


def schema_of(kind, made):
    """The schema of a class or of a type.

    Args:
        kind: a dataclass or an annotation.
        made: collects the schema of each class by its name, as `$defs`.
    """
    if is_dataclass(kind):
        if kind.__name__ not in made:
            made[kind.__name__] = {}  # a class that holds itself ends here
            made[kind.__name__] = _closed(kind, made)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return _annotated(kind, made)


def _annotated(kind, made):
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if origin is Literal:
        return {"enum": list(inside)}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(one, made) for one in inside]}
    if origin in (tuple, list):
        return {"type": "array", "items": schema_of(inside[0], made)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inside[1], made)}
    raise TypeError(f"no schema for {kind!r}")


def _closed(kind, made):
    hints, said = get_type_hints(kind), meanings(kind)
    properties = {}
    for field in fields(kind):
        one = schema_of(hints[field.name], made)
        if field.name in said:
            one["description"] = said[field.name]
        properties[field.name] = one
    return {
        "type": "object",
        "description": inspect.getdoc(kind).partition("\n")[0],
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def meanings(kind):
    """What a class says of each attribute, by name; null where it says None."""
    _, _, text = inspect.getdoc(kind).partition("Attributes:\n")
    found, names = {}, ()
    for line in text.partition("\n\n")[0].splitlines():
        if match := _NAMED.match(line):
            names = match[1].split(", ")
            found |= dict.fromkeys(names, match[2])
        else:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return {name: re.sub(r"\bNone\b", "null", said) for name, said in found.items()}


def report_schema():
    """The schema of what `report --json` prints."""
    made = {}
    for kind in (RunReport, Item, Files, Checked, Series):
        schema_of(kind, made)
    run = made["RunReport"]
    run["properties"]["goodput"] = {
        "anyOf": [schema_of(Share, made), {"type": "null"}],
        "description": " ".join(inspect.getdoc(RunReport.goodput).split()),
    }
    run["properties"]["items"] = {
        "type": "array",
        "items": schema_of(Item, made),
        "minItems": 7,
        "maxItems": 7,
        "description": "the seven reporting items, liveness first.",
    }
    run["required"] = list(run["properties"])
    run["properties"]["series"] = {
        "anyOf": [schema_of(Series, made), {"type": "null"}],
        "description": "only with --series: the run over time.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:admitperf:report:{SCHEMA}",
        "title": "What `admitperf report --json` prints.",
        "type": "object",
        "properties": {
            "schema": {"const": SCHEMA, "description": "number of this format."},
            "runs": {"type": "array", "items": schema_of(RunReport, made)},
            "files": schema_of(Files, made),
            "checks": schema_of(Checked, made)
            | {"description": "only with --check: whether the log supports a claim."},
        },
        "required": ["schema", "runs", "files"],
        "additionalProperties": False,
        "$defs": dict(sorted(made.items())),
    }
