"""Standardized admission control for LLM inference.

Decide before a request takes GPU memory, record what was known, and be able to show
whether the rule could have fired.
"""

from admitperf._version import __version__
from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.errors import (
    AdmitPerfError,
    BadPlugin,
    ConfigError,
    LogError,
    MissingSignal,
    PolicyNotFound,
)
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.core.reasons import Reason
from admitperf.core.signal import Signal
from admitperf.core.snapshot import Snapshot
from admitperf.core.source import Source
from admitperf.core.verdict import Verdict
from admitperf.engines.catalogue import install as install_engines

__all__ = [
    "AdmitPerfError",
    "BadPlugin",
    "Charge",
    "ConfigError",
    "Decision",
    "LogError",
    "MissingSignal",
    "Outcome",
    "Param",
    "Policy",
    "PolicyNotFound",
    "Reading",
    "Reason",
    "Signal",
    "Snapshot",
    "Source",
    "Verdict",
    "__version__",
]

install_engines()
