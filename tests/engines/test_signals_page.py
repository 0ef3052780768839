"""The reference page of signals says what the code does."""

import pytest
from tests.engines.signals_page import READINGS, filled, tables

from admitperf.core.signals import ALL
from admitperf.engines.readings import read


def test_the_tables_of_the_page_are_current(root, request):
    """Signals, sources, rhythms and gaps are those of the constants."""
    path = root / "docs" / "reference" / "signals.md"
    page = path.read_text(encoding="utf-8")
    current = filled(page)
    if request.config.getoption("--update"):
        path.write_text(current, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == current, "`make golden` rewrites it"


@pytest.mark.parametrize("name", tables())
def test_the_page_has_a_place_for_each_table(root, name):
    """A marker lost would leave its table out for ever."""
    page = (root / "docs" / "reference" / "signals.md").read_text(encoding="utf-8")
    assert page.count(f"<!-- {name} -->\n") == 1


def test_every_reading_is_explained():
    """The page lists what `read` gives besides the signals."""
    assert set(READINGS) == set(read({})) - {signal.name for signal in ALL}
