"""The JSON form of a report keeps to its published schema."""

import copy
import json

import pytest
from jsonschema import Draft202012Validator
from tests.reports.byhand import decision, header
from tests.reports.document_schema import report_schema
from tests.reports.example_pages import example
from tests.reports.examples import PAGES

from admitperf.reports.pages.checks import check
from admitperf.reports.pages.document import document
from admitperf.reports.report import report
from admitperf.reports.runs.slo import Slo


@pytest.fixture(scope="module")
def published(root):
    """A validator from the schema in the docs."""
    path = root / "docs" / "reference" / "report" / "report.schema.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


@pytest.fixture
def made(write):
    """The document on some lines, as a reader parses it."""

    def _made(*lines, **options):
        plain = document(report([write(*lines)], **options))
        return json.loads(json.dumps(plain, allow_nan=False))

    return _made


def of_page(name, *, checked=False):
    """The document on an example, as a reader parses it."""
    one = example(name)
    plain = document(one, check(one) if checked else None)
    return json.loads(json.dumps(plain, allow_nan=False))


def test_the_published_schema_is_current(root, request):
    """It is made from the classes, and rewritten by `--update`."""
    path = root / "docs" / "reference" / "report" / "report.schema.json"
    current = json.dumps(report_schema(), indent=2) + "\n"
    if request.config.getoption("--update"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(current, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == current, "`make golden` rewrites it"
    Draft202012Validator.check_schema(json.loads(current))


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_every_document_keeps_to_the_schema(published, name, checked):
    """On every kind of log, with checks and without."""
    published.validate(of_page(name, checked=checked))


@pytest.mark.parametrize("options", [{"warmup": "10"}, {"slo": "ttft_ms=300"}])
def test_documents_with_options_keep_to_the_schema(made, published, options):
    """What is null without an option is an object with it."""
    if "slo" in options:
        options = {"slo": Slo.parsed(options["slo"])}
    published.validate(made(*PAGES["calls"](), **options))


def test_a_log_without_decisions_and_one_of_extremes_keep_to_it(made, published):
    """Numbers that JSON cannot hold are null."""
    published.validate(made(header()))
    gates = [["g", 1e308, ">=", -1e308, True], ["h", None, ">", None, None]]
    published.validate(made(header(), decision(1, gates=gates)))


def test_the_schema_is_closed(published):
    """A key nobody explained, and one that is missing, are faults."""
    plain = of_page("live", checked=True)
    for path in (("runs", 0), ("runs", 0, "cost"), ("files",), ("checks",)):
        changed = copy.deepcopy(plain)
        place = changed
        for step in path:
            place = place[step]
        place["extra"] = 1
        assert not published.is_valid(changed)
        del place["extra"]
        assert published.is_valid(changed)
        place.popitem()
        assert not published.is_valid(changed)


def test_every_key_is_explained(published):
    """A schema that only gives types sends its reader to the source."""
    silent = [
        f"{name}.{key}"
        for name, one in published.schema["$defs"].items()
        for key, said in one["properties"].items()
        if "description" not in said
    ]
    assert [key for key in silent if not key.startswith("Share.")] == []


def test_checks_stand_there_only_when_asked_for():
    """With the verdict of the exit code."""
    assert "checks" not in of_page("live")
    checks = of_page("baseline", checked=True)["checks"]
    assert checks["passed"] is True
    assert of_page("inert", checked=True)["checks"]["passed"] is False
