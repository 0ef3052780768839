"""prometheus_client reads the same pages; where it is right, we agree with it."""

import math

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from tests.engines.pages import FIXTURES, by_labels, text_pages

from admitperf.engines.exposition import parse


def agreed_part(body):
    """A page without what the oracle reads and should not.

    It reads on after `# EOF`, and takes the beginning of a number at the end of a cut
    page for the whole of it.
    """
    text = body.replace("\r\n", "\n")
    whole, ended, _ = text.partition("# EOF\n")
    return whole + ended if ended else text[: text.rfind("\n") + 1]


def told_apart(families):
    """The oracle's samples by name and labels, and its families' types."""
    samples, counters = {}, set()
    for family in families:
        if family.type == "counter":
            counters.add(family.name)
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            samples[key] = float(sample.value)
    return samples, counters


def renamed_back(samples, counters, mine):
    """The oracle's text parser adds `_total` to every counter that lacks it."""
    printed = {name for name, _ in mine}
    return {
        (
            name.removesuffix("_total")
            if name not in printed and name.removesuffix("_total") in counters
            else name,
            labels,
        ): value
        for (name, labels), value in samples.items()
    }


def agree(one, other):
    """Whether two numbers are the same; NaN agrees with NaN."""
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("name", text_pages())
def test_the_text_parser_reads_the_same_series_and_values(name):
    """Each series and value of a page is what prometheus_client reads."""
    text = agreed_part((FIXTURES / name).read_bytes().decode())
    mine = by_labels(parse(text))
    theirs, counters = told_apart(text_string_to_metric_families(text))
    theirs = renamed_back(theirs, counters, mine)
    assert set(mine) == set(theirs)
    assert [key for key in mine if not agree(mine[key], theirs[key])] == []


@pytest.mark.parametrize(
    "name", [n for n in text_pages() if "# EOF" in (FIXTURES / n).read_text("utf-8")]
)
def test_the_openmetrics_parser_reads_the_same_series_and_values(name):
    """Each series and value of an OpenMetrics page is what prometheus_client reads."""
    text = agreed_part((FIXTURES / name).read_bytes().decode())
    mine = by_labels(parse(text, "application/openmetrics-text"))
    try:
        theirs, _ = told_apart(openmetrics.text_string_to_metric_families(text))
    except ValueError as refusal:
        # It refuses what its own encoder prints when names are escaped.
        if "Clashing name" not in str(refusal):
            raise
        pytest.skip("the oracle refuses its own encoder's output: Clashing name")
    assert set(mine) == set(theirs)
    assert [key for key in mine if not agree(mine[key], theirs[key])] == []


@pytest.mark.parametrize("name", text_pages())
def test_types_are_the_printed_ones(name):
    """The type of each family is the one on its TYPE line."""
    text = agreed_part((FIXTURES / name).read_bytes().decode())
    printed = dict(
        line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE ")
    )
    assert parse(text).types == printed
