"""Where something was measured; said beside every table of the benchmarks."""

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

from admitperf import __version__


def machine(*packages: str) -> dict[str, object]:
    """Where this was measured, and with which versions of these packages."""
    cpuinfo = Path("/proc/cpuinfo")
    names = cpuinfo.read_text().split("\n") if cpuinfo.exists() else []
    cpu = next((n.partition(": ")[2] for n in names if n.startswith("model name")), "?")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "admitperf": __version__,
        **{name: version(name) for name in packages},
        "date": time.strftime("%Y-%m-%d"),
    }
