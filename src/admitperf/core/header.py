"""The run line: everything a reader needs to know about a run once."""

import os
import sys
from typing import TYPE_CHECKING

from admitperf._version import __version__
from admitperf.core.digest import blake2b
from admitperf.core.record import SCHEMA, dumps
from admitperf.core.signal import Signal

if TYPE_CHECKING:
    from admitperf.core.policy import Policy


def run_line(policy: "Policy", run: str, t_us: int, wall_us: int) -> dict[str, object]:
    """The header of a run, as a mapping.

    Args:
        run: the run's id.
        t_us: log time in microseconds.
        wall_us: the system's wall clock at the same moment.
    """
    s = policy.settings
    rule = _rule(policy)
    return {
        "k": "run",
        "schema": SCHEMA,
        "run": run,
        "t_us": t_us,
        "wall_us": wall_us,
        "pid": os.getpid(),
        "version": __version__,
        "python": sys.version.partition(" ")[0],
        **rule,
        "provenance": _provenance(policy),
        "experiment": s.experiment,
        "name": s.run,
        "notes": s.notes,
        "config": blake2b(dumps(rule).encode(), digest_size=8).hexdigest(),
    }


def _rule(policy: "Policy") -> dict[str, object]:
    """What makes two runs runs of the same thing."""
    s, cls = policy.settings, type(policy)
    return {
        "policy": policy.name,
        "class": f"{cls.__module__}:{cls.__qualname__}",
        "params": dict(policy.parameters),
        "taxonomy": {
            "unit": cls.unit,
            "setting": cls.setting,
            "slo_awareness": cls.slo_awareness,
            "signal_quantity": cls.signal_quantity,
            "signal_structure": cls.signal_structure,
            "metadata_assumed": list(cls.metadata_assumed),
            "baseline": cls.baseline,
        },
        "requires": [r.name if isinstance(r, Signal) else r for r in policy.requires],
        "slo": s.slo or None,
        "enforce": s.enforce,
        "on_blind": s.on_blind,
        "preset": s.preset,
        "raw": s.raw,
        "reports_outcomes": s.reports_outcomes,
    }


def _provenance(policy: "Policy") -> dict[str, str]:
    stated = policy.settings.provenance
    known = {
        n: "unstated" if n in policy.given else "default" for n in policy.parameters
    }
    return {**known, **{str(name): str(word) for name, word in stated.items()}}
