"""Names in the log that may repair a missing signal."""

import pytest

from admitperf.reports.repair import MOST_KEYS, RawNames


@pytest.fixture
def names():
    """What a log names, from the keys of some raw metrics."""

    def _names(*keys):
        made = RawNames()
        made.add(dict.fromkeys(keys, 0.5))
        return made

    return _names


def test_the_nearest_names_are_said_without_labels(names):
    """Best first, ready for `add_source`, each once."""
    found = names(
        'acme:kv_cache_used{engine="0"}', 'acme:kv_cache_used{engine="1"}', "up"
    )
    said = found.advice("kv_pressure")
    assert said == "Nearest raw names in the log: acme_kv_cache_used."


def test_counters_and_parts_of_histograms_are_not_offered(names):
    """None of them is the value of a signal as it stands."""
    ends = ("_total", "_created", "_bucket", "_sum", "_count")
    found = names(*(f"kv_pressure{end}" for end in ends))
    assert found.nearest("kv_pressure") == []
    assert found.advice("kv_pressure") == "No raw name in the log looks like it."


@pytest.mark.parametrize("name", ["in_flight", "attempt", "input_tokens", "tenant"])
def test_nothing_is_offered_for_what_the_host_knows(names, name):
    """No metric supplies what comes with a request or from the host's own calls."""
    assert names(f"acme_{name}").advice(name) == ""


def test_an_empty_page_is_said(names):
    """Nothing came in: that is another repair than a new name."""
    assert names().advice("kv_pressure") == "No raw metric is in the log."


def test_names_without_end_are_cut(names):
    """A log that invents a name per line cannot fill the memory."""
    found = names("first")
    for page in range(3):
        found.add({f"{page}_{number}": 1 for number in range(2 * MOST_KEYS)})
    assert len(found.keys) <= 2 * MOST_KEYS
