"""The parameters of generators, as `benchmarks/measure_traces.py` wrote them."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from admitperf.bench.workloads import servegen
from admitperf.bench.workloads.arrivals import Bursts, Swells
from admitperf.bench.workloads.clients import Client
from admitperf.bench.workloads.conversations import Conversations
from admitperf.bench.workloads.generated import Sizes
from admitperf.bench.workloads.grown import Growth

FILE = "measured.json"


@cache
def measured() -> dict[str, Any]:
    """All of them, by workload; not to be changed."""
    text = files("admitperf.bench.workloads").joinpath(FILE).read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def growth(name: str) -> Growth:
    """How the sessions of a workload grow."""
    return Growth(**measured()[name]["growth"])


def swells(name: str) -> Swells:
    """When the requests of a workload come."""
    return Swells(**measured()[name]["swells"])


def bursts(name: str) -> Bursts:
    """The same where they come in bursts."""
    return Bursts(**measured()[name]["bursts"])


def sizes(name: str) -> Sizes:
    """How long they are."""
    return Sizes(**measured()[name]["sizes"])


def conversations(name: str) -> Conversations:
    """When the turns of conversations come."""
    told = measured()[name]
    starts = swells(name)
    return Conversations(
        name=name, growth=growth(name), starts=starts, **told["conversations"]
    )


def clients(name: str) -> list[Client]:
    """Who asks, each with one window."""
    lines = ((name, line) for line in measured()[name]["clients"])
    return servegen.of_lines(lines, name)
