"""A simulated engine in virtual time, and policies in front of it.

    clock = VirtualClock(wall_s=0.0)
    with KvThreshold(clock=clock, log="run.jsonl", reports_outcomes=True) as policy:
        run(policy, clock, arrivals, Setting(model=model))

What it models and what it leaves out: docs/reference/simulator.md.
"""

from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.events import End, FirstToken, Refused
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.fleet import Fleet
from admitperf.simulator.loop import Driven, Setting, run, serve
from admitperf.simulator.scraper import Scraping
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.closed_loop import closed_loop
from admitperf.simulator.traffic.traffic import Answer, OpenLoop, Traffic
from admitperf.simulator.traffic.workload import (
    Kind,
    Phase,
    plan_hash,
    poisson,
    together,
)
from admitperf.simulator.virtual_clock import VirtualClock

__all__ = [
    "Answer",
    "Arrival",
    "Driven",
    "End",
    "Engine",
    "EngineModel",
    "FirstToken",
    "Fleet",
    "Kind",
    "OpenLoop",
    "Phase",
    "Refused",
    "Scraping",
    "Setting",
    "Traffic",
    "VirtualClock",
    "closed_loop",
    "plan_hash",
    "poisson",
    "run",
    "serve",
    "stream",
    "together",
]
