"""Types of options, under every release of click that the package says it takes."""

import click

from admitperf.cli.typed import Typed


def test_it_is_clicks_and_names_its_value_where_clicks_own_cannot():
    """`ParamType[float]` needs click 8.2; SkyPilot, for one, keeps 8.1."""
    assert issubclass(Typed, click.ParamType)
    assert Typed[float] is Typed
