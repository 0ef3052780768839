"""A request that was held was deferred at first: a firing, whatever its line says."""

import pytest
from tests.reports.byhand import decision, header, kv, outcome
from tests.reports.example_pages import example
from tests.reports.examples import BASELINE_HEAD

from admitperf.reports.pages import render
from admitperf.reports.pages.card import card
from admitperf.reports.pages.checks import check
from admitperf.reports.pages.items import items
from admitperf.reports.report import report


def calm(n, **changes):
    """Decisions of a KV threshold that all end in admit."""
    return [kv(seq, 0.5, **changes) for seq in range(1, n + 1)]


def left(seq, **changes):
    """Held, and its caller left."""
    gone = {"by": "host", "why": "client_closed", "held_ms": 900}
    return decision(seq, "defer", "kv_pressure", **{**gone, **changes})
