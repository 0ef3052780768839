"""One policy in front of a simulated engine: the run behind `admitperf sim run`."""

import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admitperf._version import __version__
from admitperf.bench.callers.callers import Callers, Plan, planned
from admitperf.bench.callers.client import Client
from admitperf.bench.demo.demo import WALL_S
from admitperf.bench.place import name_run, telling
from admitperf.bench.workloads import Workload, workload
from admitperf.core.digest import blake2b
from admitperf.core.notes import Note
from admitperf.core.notice import hushed
from admitperf.core.policy import Policy
from admitperf.policies import load
from admitperf.reports.wording import number, plural
from admitperf.simulator import (
    Answer,
    Arrival,
    Scraping,
    Setting,
    Traffic,
    VirtualClock,
    run,
)
from admitperf.simulator.capacity import Capacity, of_requests, of_sessions
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.fleet import Routing
from admitperf.simulator.profile import Profile
from admitperf.simulator.traffic.sessions import first_calls, longest_s

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

MADE_EVERY = 10_000
"""Calls made between two of them."""

CAPACITY_SEED = 1
"""Of the traffic that measures capacity, which repeats share: each has another seed,
and meets the same engine with the same capacity."""

MOST_REQUESTS = 5_000_000
"""Requests of a run; more would not fit into the memory of most machines, at 1.6 kB
each. Plain choice."""

Told = Callable[[str], None]
"""Is told how far it is."""

LONGEST_S = 31 * 86400.0
"""Virtual seconds of a run, which is looked at all the while. Plain choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be run.

    Attributes:
        profile: the engine.
        policy: name of an installed one.
        parameters: its parameters.
        workload: the name of one, and the files of the trace it replays; or those of
            a trace alone.
        divisor: of a trace's token counts; None = what makes most calls fit.
        client: what a caller does who is refused.
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
    client: Client
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
        workload: what was offered.
        capacity: of one engine.
        rate_per_s: requests, or sessions that began, a second.
        lasts_s: how long they came.
        plan: what came when.
        callers: who asked it.
        path: the log.
    """

    asked: Asked
    workload: Workload
    capacity: Capacity
    rate_per_s: float
    lasts_s: float
    plan: Plan
    callers: Callers
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
            "workload": self.workload.words(),
            "client": asked.client.words(self.workload.noun),
            **self.workload.notes(),
            "plan": self.plan.hash,
            "seed": asked.seed,
            "capacity_per_s": round(self.capacity.requests_per_s * asked.replicas, 4),
            # the rate in the log is that of calls, and a refusal ends a session
            ("session_load" if self.workload.noun == "session" else "load"): round(
                self.load, 3
            ),
            "ignore_eos": False,
        }

    def _told_capacity(self) -> str:
        one = self.capacity
        who = "agent" if self.workload.noun == "session" else "client"
        said = (
            f"Measured first, without a policy: {plural(one.clients, who)} in a"
            f" closed loop get {number(one.requests_per_s)} answers a second (n"
            f" {one.answers}), which is the capacity"
        )
        if self.asked.replicas > 1:
            said += f" of one engine; {self.asked.replicas} have as many times that"
        if self.workload.noun == "session":
            said += (
                f"; with {number(one.calls)} calls a session that is"
                f" {number(one.sessions_per_s)} sessions a second"
            )
        return said + "."

    def _told_load(self) -> str:
        offered, noun = self.workload, self.workload.noun
        nouns = plural(len(self.plan.begun), noun)
        said = (
            f"Offered, {number(self.load)}x of that: {nouns}, {number(self.rate_per_s)}"
            f" a second over {number(self.lasts_s)} s (seed {self.asked.seed})."
            f" {offered.words()}. {offered.scaling()} The client"
            f" {self.asked.client.words(noun)}."
        )
        if noun == "session":
            said += f" Of the sessions {self._told_fates()}."
        return said

    def _told_fates(self) -> str:
        fates = self.callers.tally()
        told = [
            f"{fates[fate]} {how}"
            for fate, how in _FATES.items()
            if fates[fate] or fate in _ALWAYS
        ]
        return f"{', '.join(told[:-1])}, and {told[-1]}"


_FATES = {
    "finished": "were finished",
    "refused": "ended by a refusal",
    "failed": "by an answer that failed",
    "undone": "by a caller out of patience",
    "cut": "by the end of the run",
}
_ALWAYS = ("finished", "refused", "cut")
"""Fates that are told of even when no session met with them."""


def simulate(asked: Asked, path: Path, told: Told, said: Told) -> Ran:
    """Runs it, and writes its log.

    Args:
        asked: what.
        path: where the log goes. It is written beside it under a hidden name, and takes
            the place of what is there when it is whole.
        told: called now and then.
        said: called once with how much will be asked, before any of it is made.

    Raises:
        AdmitPerfError: the policy cannot be had so, a trace is none, or the log cannot
            be written.
        ValueError: nothing of the workload fits into the engine, or too much is asked.
    """
    cls: type[Policy] = load(asked.policy)
    cls(**asked.parameters)  # a fault is said before time is spent
    with _whole(path) as part:
        made = _planned(asked, path, told, said)
        _simulate(cls, made, part, told)
    return made


def _simulate(cls: type[Policy], made: Ran, part: Path, told: Told) -> None:
    """Runs what is planned, and writes its log to `part`."""
    asked, clock = made.asked, VirtualClock(WALL_S)
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
        "log": part,
        "notes": made.notes(),
        "raw": "reference",
        "reports_outcomes": True,
        "slo": asked.slo,
        "experiment": asked.experiment,
        "run": asked.run,
    }
    with hushed(), cls(**reserved, **asked.parameters) as policy:
        run(policy, clock, _Told(made.callers, made.lasts_s, told), setting)
    name_run(part, f"{asked.policy}-{made.plan.hash}-{_mark(asked)}-seed{asked.seed}")


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file beside another one, whose place it takes when all went well.

    It is made at once, so that a path nothing can be written to is said before time is
    spent. Two runs into one file each have their own, and the later one replaces all
    of the earlier one's.

    Raises:
        DemoError: the file cannot be written.
    """
    with telling(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.resolve()  # a link stays, and what it leads to is replaced
        part = there.with_name(f".{there.name}.{secrets.token_hex(8)}.part")
        part.touch(exist_ok=False)
    try:
        yield part
        with telling(path):
            part.replace(there)
    finally:
        part.unlink(missing_ok=True)


def _mark(asked: Asked) -> str:
    """Tells apart runs of one policy that meet the same traffic."""
    how = (asked.profile.name, sorted(asked.parameters.items()), asked.replicas)
    seen = (asked.routing, asked.scrape_interval_s, asked.oracle, asked.slo)
    return blake2b(repr((how, seen)).encode(), digest_size=4).hexdigest()


def _planned(asked: Asked, path: Path, told: Told, said: Told) -> Ran:
    model = asked.profile.engine
    told("reading the workload")
    name, *trace = asked.workload
    offered = workload(name, trace=trace, divisor=asked.divisor)
    offered = offered.fitting(model.longest_tokens)
    told("measuring capacity")
    capacity = _capacity(offered, model)
    rate_per_s = asked.rate_per_s
    if rate_per_s is None:
        rate_per_s = asked.load * capacity.sessions_per_s * asked.replicas
    lasts_s = asked.lasts_s
    if lasts_s is None:
        lasts_s = asked.count / rate_per_s
    if lasts_s > LONGEST_S:
        raise ValueError(_too_long(asked.count, rate_per_s, offered.noun))
    requests = _requests(offered, rate_per_s, lasts_s)
    rate = f"{number(rate_per_s)} {offered.noun}s a second over {number(lasts_s)} s"
    nothing = f"nothing comes: {rate}"
    if round(requests) < 1:
        raise ValueError(nothing)
    _refuse_more(requests, lasts_s)
    told("")
    said(_told_plan(offered, requests, rate))
    plan = _plan(asked, offered, rate_per_s, lasts_s, told)
    if not plan.begun:
        raise ValueError(nothing)
    callers = Callers(plan, asked.client, asked.seed, until_s=lasts_s)
    return Ran(asked, offered, capacity, rate_per_s, lasts_s, plan, callers, path)


def _capacity(offered: Workload, model: EngineModel) -> Capacity:
    """What one engine can carry of it."""
    pool = offered.pool()
    if offered.noun == "session":
        return of_sessions(model, pool, CAPACITY_SEED)
    return of_requests(model, first_calls(pool, CAPACITY_SEED))


def _requests(offered: Workload, rate_per_s: float, lasts_s: float) -> float:
    """About how many calls a run may ask, also of sessions that began before it."""
    if offered.noun == "request":
        return rate_per_s * lasts_s
    pool = offered.pool()
    calls = sum(len(session.calls) for session in pool) / len(pool)
    return rate_per_s * (longest_s(pool) + lasts_s) * calls


def _plan(
    asked: Asked, offered: Workload, rate_per_s: float, lasts_s: float, told: Told
) -> Plan:
    told(f"making {offered.noun}s")
    begun = offered.begun(rate_per_s, lasts_s, asked.seed)
    told(f"naming the plan: {len(begun):,} {offered.noun}s")
    window_s = (0.0, lasts_s)
    return planned(begun, lasts_s, window_s, asked.client, noun=offered.noun)


def _refuse_more(requests: float, lasts_s: float) -> None:
    if round(requests) > MOST_REQUESTS:
        most_s = math.floor(0.99 * lasts_s * MOST_REQUESTS / requests)
        raise ValueError(
            f"{round(requests):,} requests are planned and {MOST_REQUESTS:,} is the"
            f" most: give fewer --requests, or a shorter time, such as --for {most_s}s"
        )


def _too_long(count: int, rate_per_s: float, noun: str) -> str:
    most = math.floor(LONGEST_S * rate_per_s)
    instead = f"at most {most:,} --requests" if most else "another --rate or --load"
    return (
        f"{plural(count, noun)} at {number(rate_per_s)} a second take"
        f" {count / rate_per_s / 86400:,.0f} days and {LONGEST_S / 86400:.0f} are the"
        f" most: give {instead}"
    )


def _told_plan(offered: Workload, requests: float, rate: str) -> str:
    if offered.noun == "session":
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

    def first(self) -> Iterator[Arrival]:
        """As the traffic's."""
        for number_of, arrival in enumerate(self._traffic.first(), 1):
            if number_of % MADE_EVERY == 0:
                self._told(f"preparing calls: {number_of:,}")
            yield arrival

    def after(self, arrival: Arrival, at_s: float, answer: Answer) -> Iterable[Arrival]:
        """As the traffic's."""
        self._n += 1
        if self._n % TOLD_EVERY == 0:
            done = f"{self._n} requests, {at_s:.0f} of {self._lasts_s:.0f} s"
            self._told(f"simulating: {done}")
        return self._traffic.after(arrival, at_s, answer)


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
