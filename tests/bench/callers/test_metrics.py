"""Outcome metrics are found by entry point, whoever wrote them."""

import logging
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from admitperf.bench.callers import metrics
from admitperf.core import plugins
from admitperf.core.errors import BadPlugin


class Share:
    """A metric of somebody else's."""

    name, better = "share", "higher"

    def __call__(self, records, slo):
        """All of it."""
        return float(len(records)) if slo else None


share = Share()


class Unsure(Share):
    """One that does not say which way is better."""

    better = "sideways"


unsure = Unsure()


class Distribution:
    """As much of a distribution as an entry point knows."""

    def __init__(self, name):
        self.name = name


def offer(name, value, distribution="acme"):
    """An entry point that a distribution declares."""
    made = EntryPoint(name, value, metrics.GROUP)
    vars(made)["dist"] = Distribution(distribution)
    return made


@pytest.fixture
def install(monkeypatch):
    """Installs these entry points and no others, for one test."""
    monkeypatch.setitem(sys.modules, "acme_share", sys.modules[__name__])

    def installed(*offers):
        found = EntryPoints(offers)
        monkeypatch.setattr(plugins, "entry_points", lambda group: found)

    return installed


def test_an_entry_point_is_all_it_takes(install):
    """They come by name, in alphabetical order."""
    assert metrics.installed() == {}
    install(offer("share", "acme_share:share"))
    assert metrics.installed() == {"share": share}


def test_two_packages_offering_one_name_are_both_named(install):
    """Nobody gets one of two numbers by chance."""
    install(
        offer("share", "acme_share:share"), offer("share", "other:share", "other-bench")
    )
    with pytest.raises(BadPlugin, match=r"acme .*other-bench \(other:share\)"):
        metrics.installed()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("odd", "no_such_module_of_acme:x", "cannot be imported: ModuleNotFoundError"),
        ("odd", "math:pi", "math:pi cannot be called"),
        ("odd", "acme_share:share", "calls itself 'share'"),
        ("share", "acme_share:unsure", "better is neither 'higher' nor 'lower'"),
        ("odd", "math:sqrt", "calls itself None"),
    ],
)
def test_one_that_cannot_be_used_is_left_out_and_said(
    install, caplog, name, value, said
):
    """And takes no other away."""
    install(offer(name, value), offer("fine", "acme_share:fine"))
    sys.modules["acme_share"].fine = type("Fine", (Share,), {"name": "fine"})()
    with caplog.at_level(logging.WARNING, logger="admitperf"):
        assert list(metrics.installed()) == ["fine"]
    assert said in caplog.text
    assert "of distribution acme" in caplog.text
