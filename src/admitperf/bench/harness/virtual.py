"""A simulated engine as the target of a benchmark: virtual time, one process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from admitperf._version import __version__
from admitperf.bench.demo.demo import WALL_S
from admitperf.bench.harness.target import Arm
from admitperf.bench.place import name_run
from admitperf.bench.simulation import provenance
from admitperf.core.errors import ConfigError
from admitperf.core.notes import Note
from admitperf.core.notice import hushed
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.policies import load
from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.engine.page import page
from admitperf.simulator.fleet import Routing
from admitperf.simulator.loop import Driven, Setting, run
from admitperf.simulator.profile import Profile, unfit
from admitperf.simulator.scraper import Scraping
from admitperf.simulator.traffic.traffic import Traffic
from admitperf.simulator.virtual_clock import VirtualClock

SCRAPE_INTERVAL_S = 0.25
"""Between two looks at the engines, as `admitperf sim run`'s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTarget:
    """Engines of a profile in virtual time.

    Attributes:
        profile: the engine.
        engine: sizes that differ from the profile's, such as `max_num_seqs`.
        replicas, routing: engines, and who gets a request.
        scrape_interval_s: between two looks at them.
    """

    simulated = True  # no field: it is of every one
    profile: Profile
    engine: Mapping[str, object] = field(default_factory=dict)
    replicas: int = 1
    routing: Routing = "least"
    scrape_interval_s: float = SCRAPE_INTERVAL_S

    @property
    def model(self) -> EngineModel:
        """One engine, with the sizes that differ."""
        given: dict[str, Any] = dict(self.engine)
        return replace(self.profile.engine, **given)

    def faults(self) -> list[str]:
        """Everything that is wrong with the sizes, in words."""
        known = [f.name for f in fields(EngineModel)]
        unknown = [
            f"engine.{name} is unknown" for name in self.engine if name not in known
        ]
        wrong = unknown or [f"engine.{fault}" for fault in unfit(self.engine)]
        if wrong:
            return wrong
        try:
            self.model  # noqa: B018  made to see whether it can be
        except ValueError as error:
            return [f"engine: {error}"]
        return []

    def notes(self) -> dict[str, Note]:
        """What it is; what differs from the profile stands beside it."""
        told = self.profile.provenance
        changed = ", ".join(f"{name}={value}" for name, value in self.engine.items())
        return {
            "simulated": True,
            "profile": self.profile.name,
            "profile_source": provenance(self.profile),
            "model": told.versions or self.profile.name,
            "hardware": told.machine or "a simulated engine",
            "engine": "admitperf simulator",
            "engine_version": __version__,
            **({"engine_changed": changed} if changed else {}),
            "replicas": self.replicas,
            "routing": self.routing,
            "scrape_interval_s": self.scrape_interval_s,
            "ignore_eos": False,
        }

    def reading(self) -> Reading:
        """The page of engines with nothing to do."""
        engines = [Engine(self.model) for _ in range(self.replicas)]
        return Reading(page(*engines), taken_ns=0, interval_s=self.scrape_interval_s)

    def drive(  # noqa: PLR0913  as the protocol
        self,
        arm: Arm,
        log: Path | None,
        traffic: Traffic,
        *,
        seed: int,
        notes: Mapping[str, Note],
        slo: Mapping[str, object] | None,
        run: str,
        experiment: str,
        until_s: float,
    ) -> Driven:
        """Drives traffic through an arm's policy; same bytes for the same seed.

        Raises:
            AdmitPerfError: the policy cannot be had so, or the log cannot be written.
            ValueError: a request can never fit into the engine.
        """
        clock = VirtualClock(WALL_S)
        reserved: dict[str, Any] = {
            "clock": clock,
            "notes": dict(notes),
            "raw": "reference",
            "reports_outcomes": True,
            "slo": slo or None,
            "provenance": dict(arm.provenance),
        }
        if log is not None:
            reserved |= {"log": log, "experiment": experiment, "run": run}
        with hushed(), load(arm.policy)(**reserved, **arm.parameters) as policy:
            driven = self._run(policy, clock, traffic, seed, until_s)
        if log is not None:
            name_run(log, f"{experiment}-{arm.name}-{run}")
        return driven

    def _run(
        self,
        policy: Policy,
        clock: VirtualClock,
        traffic: Traffic,
        seed: int,
        until_s: float,
    ) -> Driven:
        setting = Setting(
            model=self.model,
            replicas=self.replicas,
            routing=self.routing,
            scraping=Scraping(interval_s=self.scrape_interval_s),
            seed=seed,
        )
        return run(policy, clock, traffic, setting, until_s)

    def longest_tokens(self) -> int:
        """Most tokens of a prompt and its answer."""
        return self.model.longest_tokens

    def probe(self) -> None:
        """Virtual time does not drift."""


def virtual(
    profile: Profile,
    engine: Mapping[str, object],
    **how: Any,  # noqa: ANN401
) -> VirtualTarget:
    """A simulated target whose sizes an engine can have.

    Args:
        profile: the engine.
        engine: sizes that differ from the profile's.
        how: as the attributes of `VirtualTarget`.

    Raises:
        ConfigError: they cannot be had; lists every fault.
    """
    made = VirtualTarget(profile=profile, engine=engine, **how)
    if faults := made.faults():
        raise ConfigError("target", faults)
    return made
