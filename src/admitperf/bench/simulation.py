"""One policy in front of a simulated engine: the run behind `admitperf sim run`."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admitperf._version import __version__
from admitperf.bench.demo.demo import WALL_S
from admitperf.bench.offered import (
    CAPACITY_SEED,
    MOST_REQUESTS,
    Note,
    Offered,
    Plan,
    Told,
    offered,
)
from admitperf.bench.place import name_run, telling
from admitperf.core.digest import blake2b
from admitperf.core.notice import hushed
from admitperf.core.policy import Policy
from admitperf.policies import load
from admitperf.reports.wording import number, plural
from admitperf.simulator import Arrival, Scraping, Setting, Traffic, VirtualClock, run
from admitperf.simulator.capacity import Capacity
from admitperf.simulator.fleet import Routing
from admitperf.simulator.profile import Profile
from admitperf.simulator.traffic.sessions import Sessions

MADE_BY = "admitperf sim run"
"""A note in each log."""

SIMULATED = (
    "SIMULATED: an engine in virtual time; no number here was measured on hardware."
)

ORACLE = (
    "ORACLE: the policy was told how long each answer would be, as max_output_tokens;"
    " no host can know that."
)

TOLD_EVERY = 500
"""Requests between two reports of progress. Plain choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be run.

    Attributes:
        profile: the engine.
        policy: name of an installed one.
        parameters: its parameters.
        workload: "chat", "agents", or the files of a trace.
        divisor: of a trace's token counts; None = what makes most calls fit.
        rate_per_s: requests, or sessions that begin, a second; None = by `load`.
        load: multiple of the measured capacity.
        lasts_s: how long they come; None = by `count`.
        count: how many come.
        replicas, routing: engines, and who gets a request.
        seed: of all chance.
        scrape_interval_s: between two looks at the engines.
        oracle: policies are told how long answers will be.
        slo: deadlines in ms by name; None = no SLO.
        experiment: what the run belongs to, as its repeat `r<seed>`; None = nothing.
    """

    profile: Profile
    policy: str
    parameters: Mapping[str, object]
    workload: tuple[str, ...]
    divisor: int | None
    rate_per_s: float | None
    load: float
    lasts_s: float | None
    count: int
    replicas: int
    routing: Routing
    seed: int
    scrape_interval_s: float
    oracle: bool
    slo: Mapping[str, float] | None
    experiment: str | None = None

    @property
    def run(self) -> str | None:
        """The name of the repeat; None = it is none."""
        return f"r{self.seed}" if self.experiment else None

    def stamps(self) -> Iterator[str]:
        """What has to stand over everything made of it."""
        if self.oracle:
            yield ORACLE
        yield SIMULATED


@dataclass(frozen=True, slots=True)
class Ran:
    """What was run.

    Attributes:
        asked: as given.
        offered: the workload.
        capacity: of one engine.
        rate_per_s: requests, or sessions that began, a second.
        lasts_s: how long they came.
        plan: the traffic.
        path: the log.
    """

    asked: Asked
    offered: Offered
    capacity: Capacity
    rate_per_s: float
    lasts_s: float
    plan: Plan
    path: Path

    @property
    def load(self) -> float:
        """The rate as a multiple of the capacity."""
        return self.rate_per_s / (self.capacity.sessions_per_s * self.asked.replicas)

    def opening(self) -> Iterator[str]:
        """What was done, in paragraphs."""
        yield _told_engine(self.asked)
        yield self._told_capacity()
        yield self._told_load()

    def notes(self) -> dict[str, Note]:
        """What the log says of the run."""
        asked = self.asked
        return {
            **({"oracle": True} if asked.oracle else {}),
            "made_by": MADE_BY,
            "simulated": True,
            **_profile_notes(asked.profile),
            "engine": "admitperf simulator",
            "engine_version": __version__,
            "replicas": asked.replicas,
            "routing": asked.routing,
            "scrape_interval_s": asked.scrape_interval_s,
            "workload": self.offered.words(),
            "client": self.offered.client(),
            **self.offered.notes(),
            "plan": self.plan.hash,
            "seed": asked.seed,
            "capacity_per_s": round(self.capacity.requests_per_s * asked.replicas, 4),
            # the rate in the log is that of calls, and a refusal ends a session
            ("session_load" if self.offered.noun == "session" else "load"): round(
                self.load, 3
            ),
            "ignore_eos": False,
        }

    def _told_capacity(self) -> str:
        one = self.capacity
        who = "agent" if self.offered.noun == "session" else "client"
        said = (
            f"Measured first, without a policy: {plural(one.clients, who)} in a"
            f" closed loop get {number(one.requests_per_s)} answers a second (n"
            f" {one.answers}), which is the capacity"
        )
        if self.asked.replicas > 1:
            said += f" of one engine; {self.asked.replicas} have as many times that"
        if self.offered.noun == "session":
            said += (
                f"; with {number(one.calls)} calls a session that is"
                f" {number(one.sessions_per_s)} sessions a second"
            )
        return said + "."

    def _told_load(self) -> str:
        nouns = plural(self.plan.count, self.offered.noun)
        said = (
            f"Offered, {number(self.load)}x of that: {nouns}, {number(self.rate_per_s)}"
            f" a second over {number(self.lasts_s)} s (seed {self.asked.seed})."
            f" {self.offered.words()}. The client {self.offered.client()}."
        )
        traffic = self.plan.traffic
        if isinstance(traffic, Sessions):
            said += (
                f" Of the sessions {traffic.finished} were finished, {traffic.refused}"
                f" ended by a refusal, and {traffic.cut} by the end of the run."
            )
        return said


def simulate(asked: Asked, path: Path, told: Told, planned: Told) -> Ran:
    """Runs it, and writes its log.

    Args:
        asked: what.
        path: where the log goes; what is there is replaced.
        told: called now and then.
        planned: called once with how much will be asked, before any of it is made.

    Raises:
        AdmitPerfError: the policy cannot be had so, a trace is none, or the log cannot
            be written.
        ValueError: nothing of the workload fits into the engine, or too much is asked.
    """
    cls: type[Policy] = load(asked.policy)
    cls(**asked.parameters)  # a fault is said before time is spent
    made = _planned(asked, path, told, planned)
    clock = VirtualClock(WALL_S)
    setting = Setting(
        model=asked.profile.engine,
        replicas=asked.replicas,
        routing=asked.routing,
        scraping=Scraping(interval_s=asked.scrape_interval_s),
        seed=asked.seed,
        oracle=asked.oracle,
    )
    reserved: dict[str, Any] = {
        "clock": clock,
        "log": path,
        "notes": made.notes(),
        "raw": "reference",
        "reports_outcomes": True,
        "slo": asked.slo,
        "experiment": asked.experiment,
        "run": asked.run,
    }
    with hushed(), cls(**reserved, **asked.parameters) as policy:
        run(policy, clock, _Told(made.plan.traffic, made.lasts_s, told), setting)
    name_run(path, f"{asked.policy}-{made.plan.hash}-{_mark(asked)}-seed{asked.seed}")
    return made


def _mark(asked: Asked) -> str:
    """Tells apart runs of one policy that meet the same traffic."""
    how = (asked.profile.name, sorted(asked.parameters.items()), asked.replicas)
    seen = (asked.routing, asked.scrape_interval_s, asked.oracle, asked.slo)
    return blake2b(repr((how, seen)).encode(), digest_size=4).hexdigest()


def _planned(asked: Asked, path: Path, told: Told, planned: Told) -> Ran:
    model = asked.profile.engine
    told("reading the workload")
    workload = offered(asked.workload, model, asked.divisor)
    told("measuring capacity")
    capacity = workload.capacity(model, CAPACITY_SEED)
    rate_per_s = asked.rate_per_s
    if rate_per_s is None:
        rate_per_s = asked.load * capacity.sessions_per_s * asked.replicas
    lasts_s = asked.lasts_s
    if lasts_s is None:
        lasts_s = asked.count / rate_per_s
    requests = workload.requests(rate_per_s, lasts_s)
    rate = f"{number(rate_per_s)} {workload.noun}s a second over {number(lasts_s)} s"
    nothing = f"nothing comes: {rate}"
    if round(requests) < 1:
        raise ValueError(nothing)
    _refuse_more(requests, lasts_s)
    _make_room(path)
    told("")
    planned(_told_plan(workload, requests, rate))
    plan = workload.plan(rate_per_s, lasts_s, asked.seed, told)
    if not plan.count:
        raise ValueError(nothing)
    return Ran(asked, workload, capacity, rate_per_s, lasts_s, plan, path)


def _refuse_more(requests: float, lasts_s: float) -> None:
    if round(requests) > MOST_REQUESTS:
        most_s = math.floor(0.99 * lasts_s * MOST_REQUESTS / requests)
        raise ValueError(
            f"{round(requests):,} requests are planned and {MOST_REQUESTS:,} is the"
            f" most: give fewer --requests, or a shorter time, such as --for {most_s}s"
        )


def _make_room(path: Path) -> None:
    with telling(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def _told_plan(workload: Offered, requests: float, rate: str) -> str:
    if workload.noun == "session":
        return (
            f"Planned: {rate}, and those under way at the start; in all at most about"
            f" {round(requests):,} calls."
        )
    return f"Planned: {round(requests):,} requests, {rate}."


class _Told:
    """Traffic that says how far it is."""

    def __init__(self, traffic: Traffic, lasts_s: float, told: Told) -> None:
        self._traffic = traffic
        self._lasts_s = lasts_s
        self._told = told
        self._n = 0

    def first(self) -> Iterable[Arrival]:
        """As the traffic's."""
        return self._traffic.first()

    def after(self, arrival: Arrival, at_s: float, *, ok: bool) -> Iterable[Arrival]:
        """As the traffic's."""
        self._n += 1
        if self._n % TOLD_EVERY == 0:
            done = f"{self._n} requests, {at_s:.0f} of {self._lasts_s:.0f} s"
            self._told(f"simulating: {done}")
        return self._traffic.after(arrival, at_s, ok=ok)


# -------------------------------------------------------------------- the profile


def provenance(profile: Profile) -> str:
    """Where a profile's numbers come from, in a few words."""
    told = profile.provenance
    if profile.simulated:
        runs = plural(len(told.runs), "run")
        return f"{profile.stamp}, fitted to {runs} with simulated ones, not measured"
    if not profile.measured:
        return f"{told.source}, not held against a real engine"
    date = f" of {told.date}" if told.date else ""
    machine = f" on {told.machine}" if told.machine else ""
    return f"{told.source} in {plural(len(told.runs), 'run')}{date}{machine}"


def _told_engine(asked: Asked) -> str:
    said = f"Profile {asked.profile.name}: {provenance(asked.profile)}."
    versions, left = asked.profile.provenance.versions, asked.profile.residuals
    if versions:
        said += f" It stands for {versions}."
    if left is not None:
        said += f" Half of its steps are within {left.median_abs_fraction:.0%}."
    if asked.replicas > 1:
        said += f" {asked.replicas} engines of it, routed by {asked.routing}."
    return said


def _profile_notes(profile: Profile) -> dict[str, Note]:
    told = profile.provenance
    return {
        "profile": profile.name,
        "profile_source": provenance(profile),
        "model": told.versions,
        "hardware": told.machine,
    }
