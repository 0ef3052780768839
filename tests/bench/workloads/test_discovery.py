"""Workloads are found by entry point, whoever wrote them."""

import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from admitperf.bench import workloads
from admitperf.bench.workloads import WorkloadError, available, workload
from admitperf.core import plugins


def night(*, trace=(), divisor=None, size=3):
    """What comes at night.

    Args:
        size: of it.
    """
    return "night", list(trace), divisor, size


shift = 3


class Distribution:
    """As much of a distribution as an entry point knows."""

    def __init__(self, name):
        self.name = name


def offer(name, value, distribution="acme"):
    """An entry point that a distribution declares."""
    made = EntryPoint(name, value, workloads.GROUP)
    vars(made)["dist"] = Distribution(distribution)
    return made


@pytest.fixture
def install(monkeypatch):
    """Installs these entry points and no others, for one test."""
    monkeypatch.setitem(sys.modules, "acme_load", sys.modules[__name__])

    def installed(*offers):
        found = EntryPoints(offers)
        monkeypatch.setattr(plugins, "entry_points", lambda group: found)

    return installed


def test_an_entry_point_is_all_it_takes(install):
    """It is handed what was asked for, and nothing that was not."""
    install(offer("night", "acme_load:night"))
    assert available() == {"night": "What comes at night."}
    assert workload("night") == ("night", [], None, 3)
    made = workload("night", trace=["a"], divisor=2, size=7)
    assert [made[0], [str(path) for path in made[1]], *made[2:]] == [
        "night",
        ["a"],
        2,
        7,
    ]


def test_two_packages_offering_one_name_are_both_named(install):
    """Nobody gets one of two workloads by chance."""
    install(
        offer("night", "acme_load:night"), offer("night", "acme_load:shift", "other")
    )
    for ask in (available, lambda: workload("night")):
        with pytest.raises(WorkloadError, match="more than once") as caught:
            ask()
        assert "acme" in str(caught.value)
        assert "other" in str(caught.value)


def test_one_that_is_broken_takes_no_other_away(install):
    """It is told as that, and refused when it is asked for."""
    install(
        offer("night", "acme_load:night"), offer("day", "acme_load:shift"),
        offer("dawn", "acme_nowhere:dawn"),
    )  # fmt: skip
    told = available()
    assert told["night"] == "What comes at night."
    assert "cannot be called" in told["day"]
    assert "cannot be imported" in told["dawn"]
    for name, words in (("day", "cannot be called"), ("dawn", "cannot be imported")):
        with pytest.raises(WorkloadError, match=words):
            workload(name)
