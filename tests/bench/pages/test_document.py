"""The document keeps to its published schema."""

import json
import math
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator
from tests.bench.pages.verdicts_schema import verdicts_schema

from admitperf.bench.pages.document import document


@pytest.fixture(scope="module")
def path(root):
    """Where the schema is published."""
    return root / "docs" / "reference" / "bench" / "comparison.schema.json"


@pytest.mark.parametrize("claim", [None, "better", "gain", "no-harm"])
def test_the_document_keeps_to_its_schema(verdicts, path, claim):
    """Every kind of arm, each claim and none."""
    plain = json.loads(json.dumps(document(verdicts, claim), allow_nan=False))
    schema = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(plain)
    assert (plain["check"] is None) == (claim is None)


def test_the_published_schema_is_made_from_the_classes(path, request):
    """A field that is added stands in the docs, with its meaning."""
    text = json.dumps(verdicts_schema(), indent=2) + "\n"
    if request.config.getoption("--update"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{path}: run with --update"


def test_every_key_says_what_it_means(path):
    """But for those of other documents, which say it there."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    for name in (
        "Verdicts",
        "Compared",
        "Pooled",
        "Explored",
        "Guard",
        "Curve",
        "Point",
    ):
        for key, one in schema["$defs"][name]["properties"].items():
            assert one.get("description"), f"{name}.{key}"


def test_the_check_holds_what_against_says(verdicts):
    """Of the arms that are asked."""
    asked = document(verdicts, "better", ["bounded"])["check"]
    assert asked == {"claim": "better", "passed": True, "failures": []}
    asked = document(verdicts, "better")["check"]
    assert asked["failures"] == list(verdicts.against("better"))
    assert not asked["passed"]


def test_numbers_that_json_cannot_hold_become_null(verdicts):
    """What a manifest says may hold anything."""
    odd = replace(verdicts, capacity={"per_s": math.nan, "all": [math.inf, 1.5]})
    plain = document(odd)
    assert plain["comparison"]["capacity"] == {"per_s": None, "all": [None, 1.5]}
    json.dumps(plain, allow_nan=False)
