"""Names in the log that may repair a missing signal."""

import pytest
from tests.reports.byhand import decision, header, reading

from admitperf.reports.report import report
from admitperf.reports.runs.repair import advice, nearest

BLIND = {"reason": "signal_absent", "blind": "signal_absent"}


def test_the_nearest_names_are_said_without_labels():
    """Best first, ready for `add_source`, each once."""
    found = 'acme:kv_cache_used{engine="0"}', 'acme:kv_cache_used{engine="1"}', "up"
    said = advice("kv_pressure", found)
    assert said == "Nearest raw names in the log: acme_kv_cache_used."


def test_counters_and_parts_of_histograms_are_not_offered():
    """None of them is the value of a signal as it stands."""
    ends = ("_total", "_created", "_bucket", "_sum", "_count")
    found = [f"kv_pressure{end}" for end in ends]
    assert nearest("kv_pressure", found) == []
    assert advice("kv_pressure", found) == "No raw name in the log looks like it."


@pytest.mark.parametrize("name", ["in_flight", "attempt", "input_tokens", "tenant"])
def test_nothing_is_offered_for_what_the_host_knows(name):
    """No metric supplies what comes with a request or from the host's own calls."""
    assert advice(name, [f"acme_{name}"]) == ""


def test_an_empty_page_is_said():
    """Nothing came in: that is another repair than a new name."""
    assert advice("kv_pressure", []) == "No raw metric is in the log."


def test_names_without_end_are_cut(reported):
    """A log that invents names without end is reported on, by those met most often."""
    pages = [
        reading(page, {f"{page}_{n}": 1 for n in range(9000)} | {"acme_kv": 1})
        for page in (1, 2)
    ]
    run = reported(header(), *pages, decision(1, why="no", **BLIND))
    said = " ".join(run.finding.says)
    assert "Nearest raw names in the log: acme_kv." in said


def test_names_of_another_run_are_not_offered(write):
    """Another policy's engine is another engine."""
    path = write(
        header(),
        decision(1, why="no", **BLIND),
        header(run="b", policy="other"),
        reading(1, {"acme_kv": 1}, run="b"),
        decision(2, run="b"),
    )
    runs = {run.ids[0]: run for run in report([path]).runs}
    assert len(runs) == 2
    said = " ".join(runs["k3f9x2ab"].finding.says)
    assert "No raw metric is in the log." in said


def test_why_another_run_lacked_a_signal_is_not_its_reason(write):
    """Each run's own readings say why."""
    odd = {"kv_pressure": {"value": None, "absent": "kv_pressure{} = 43"}}
    path = write(
        header(),
        decision(1, why="no", **BLIND),
        header(run="b", policy="other"),
        reading(1, {}, run="b", signals=odd),
        decision(2, run="b"),
    )
    said = {run.ids[0]: " ".join(run.finding.says) for run in report([path]).runs}
    assert "kv_pressure{} = 43" in said["b"]
    assert "43" not in said["k3f9x2ab"]
