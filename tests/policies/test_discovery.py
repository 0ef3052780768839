"""Policies are found by entry point, ours like anyone's."""

import logging
import sys
from importlib.metadata import EntryPoint, EntryPoints, entry_points

import pytest
from tests.policies.test_pages import ours

from admitperf import BadPlugin, Policy, PolicyNotFound, policies
from admitperf.core import plugins
from admitperf.policies import available, load

OURS = sorted(ours())


class Distribution:
    """As much of a distribution as an entry point knows."""

    def __init__(self, name):
        self.name = name


def offer(name, value, distribution="acme"):
    """An entry point that a distribution declares."""
    made = EntryPoint(name, value, policies.GROUP)
    vars(made)["dist"] = Distribution(distribution)
    return made


@pytest.fixture
def installed(monkeypatch):
    """Installs entry points beside ours, for one test."""

    def install(*offers):
        every = EntryPoints([*entry_points(group=policies.GROUP), *offers])
        monkeypatch.setattr(plugins, "entry_points", lambda group: every)

    return install


class Foreign(Policy):
    """A policy of somebody else's."""

    name = "foreign"


def test_ours_are_there_in_alphabetical_order():
    """Those baked in are available, each a class that carries its own name."""
    found = available()
    ours = [name for name in found if name in OURS]
    assert ours == OURS
    assert list(found) == sorted(found)
    assert all(cls.name == name for name, cls in found.items())


def test_load_gives_the_class_that_available_lists():
    """There is one way in: both lead to the same object."""
    assert load("kv_threshold") is available()["kv_threshold"]


def test_a_foreign_policy_is_found_beside_ours(installed, monkeypatch):
    """An entry point is all it takes."""
    monkeypatch.setitem(sys.modules, "acme_foreign", sys.modules[__name__])
    installed(offer("foreign", "acme_foreign:Foreign"))
    assert load("foreign") is Foreign
    assert available()["foreign"] is Foreign
    assert set(OURS) <= set(available())


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [("kv-threshold", "kv_threshold"), ("queuedepth", "queue_depth")],
)
def test_a_wrong_name_is_answered_with_the_nearest(typed, nearest):
    """A typing error costs one look at the message."""
    with pytest.raises(PolicyNotFound, match=f"nearest: {nearest}") as caught:
        load(typed)
    assert typed in str(caught.value)
    assert isinstance(caught.value, LookupError)


def test_a_name_like_no_other_is_answered_with_all():
    """With nothing near, the message lists what there is."""
    with pytest.raises(PolicyNotFound, match=r"no policy '字'; installed: .*dual_gate"):
        load("字")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no_such_module_of_acme:Thing", "cannot be imported: ModuleNotFoundError"),
        ("admitperf.policies.rate_limit:Nothing", "cannot be imported: AttributeError"),
        ("math:pi", "math:pi is no subclass of admitperf.Policy"),
        ("math:sqrt", "math:sqrt is no subclass of admitperf.Policy"),
        ("collections:OrderedDict", "is no subclass of admitperf.Policy"),
        ("admitperf:Policy", "calls itself ''"),
        ("admitperf.policies.rate_limit:RateLimit", "calls itself 'rate_limit'"),
    ],
)
def test_a_plug_in_that_cannot_be_used_names_its_distribution(installed, value, said):
    """Whoever installed it learns which package to fix, in one line."""
    installed(offer("odd", value))
    with pytest.raises(BadPlugin) as caught:
        load("odd")
    assert "policy 'odd' of distribution acme" in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_a_broken_plug_in_is_left_out_and_said(installed, caplog):
    """One broken package takes no other policy away, and is not silent."""
    installed(offer("odd", "no_such_module_of_acme:Thing"))
    with caplog.at_level(logging.WARNING, logger="admitperf"):
        found = available()
    assert set(OURS) <= set(found)
    assert "odd" not in found
    assert "acme" in caplog.text
    assert "no_such_module_of_acme" in caplog.text


def test_two_distributions_with_one_name_are_an_error_naming_both(installed):
    """Nobody gets one of two rules by chance, whichever call is made."""
    installed(
        offer("odd", "one:Odd", "one-package"), offer("odd", "two:Odd", "two-package")
    )
    for call in (available, lambda: load("odd")):
        with pytest.raises(BadPlugin) as caught:
            call()
        assert "one-package (one:Odd)" in str(caught.value)
        assert "two-package (two:Odd)" in str(caught.value)


def test_a_name_of_ours_cannot_be_taken_over(installed):
    """A package that offers `kv_threshold` is an error, not a replacement."""
    installed(offer("kv_threshold", "acme:KvThreshold"))
    with pytest.raises(BadPlugin, match=r"admitperf .*acme"):
        load("kv_threshold")


def test_one_distribution_seen_twice_is_one(installed):
    """The same declaration found on two paths is no conflict."""
    installed(offer("odd", "math:pi"), offer("odd", "math:pi"))
    with pytest.raises(BadPlugin, match="no subclass"):
        load("odd")
