"""A whole experiment: calibrate, plan, run every arm over every block, write it down.

    ROOT/EXPERIMENT/experiment.json       design, calibration, how far it came
    ROOT/EXPERIMENT/ARM/x1.2-b3/          one run: see `harness.run`

What was run before and was made the same way is not run again, so an experiment that
was ended goes on where it stood.
"""

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from pickle import PicklingError
from pickle import dumps as pickled
from typing import Any, Protocol, Self

from admitperf import policies
from admitperf._version import __version__
from admitperf.bench.design.design import Design, faults, told, trimmed
from admitperf.bench.design.results import Experiment as Found
from admitperf.bench.design.results import findings, read_experiment
from admitperf.bench.harness.calibrate import (
    Calibration,
    calibrated,
    check_signals,
    fitted,
)
from admitperf.bench.harness.capacity import Capacity, capacity
from admitperf.bench.harness.config import FITTED, Config
from admitperf.bench.harness.executors import Here, cores, executor
from admitperf.bench.harness.first import KEY, First
from admitperf.bench.harness.run import (
    MADE_BY,
    Done,
    Job,
    Setup,
    Task,
    run_one,
    run_task,
    write,
)
from admitperf.bench.harness.target import Arm, Target
from admitperf.bench.harness.targets import opened
from admitperf.bench.harness.virtual import VirtualTarget
from admitperf.bench.harness.warmup import WARMUP_LOAD, warmed
from admitperf.bench.place import telling
from admitperf.bench.workloads import workload
from admitperf.bench.workloads.workload import Workload
from admitperf.core.clock import SYSTEM
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.policies.parts.compose.composition import Composition
from admitperf.policies.parts.compose.shape import PARTS
from admitperf.policies.parts.compose.written import LEFT_OUT, replaced
from admitperf.reports.wording import number, plural

STATED = "experiment.json"


class ExperimentError(AdmitPerfError, ValueError):
    """An experiment cannot be run, or not into this folder."""


class Progress(Protocol):
    """Is told how far it is."""

    def stage(self, what: str) -> None:
        """Something that takes a while begins."""
        ...

    def ran(self, done: Done, n: int, of: int, left_s: float) -> None:
        """A run is over.

        Args:
            done: which.
            n: runs that are over.
            of: runs in all.
            left_s: how long the rest may take, in seconds.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An experiment that is ready to run.

    Attributes:
        config: as given.
        setup: what its runs share.
        design: what is run, after the budget.
        arms: by name, parameters fitted.
        rates: beginnings a second by load.
        left_out: what the budget left out, in sentences.
        first: what was planned before the first run.
    """

    config: Config
    setup: Setup
    design: Design
    arms: Mapping[str, Arm]
    rates: Mapping[float, float]
    left_out: tuple[str, ...]
    first: First

    @property
    def departed(self) -> str | None:
        """What is not as it was before the first run, in one line; None = nothing."""
        metric = self.config.metric
        if not (found := [*self.first.departures(self.design, metric)]):
            return None
        return (
            f"planned first ({self.first.hash}) were {'; '.join(found)}: a design that"
            " changes once runs are there cannot win, and the verdict will be void"
        )

    def jobs(self) -> list[Job]:
        """Every run, in the order of the design."""
        return list(self._jobs())

    def said(self) -> Iterator[str]:
        """What is planned, in sentences."""
        yield from _told_calibration(self.setup)
        yield from told(self.design, None, self.config.metric)
        yield from self.left_out

    def _jobs(self) -> Iterator[Job]:
        order = 0
        for load, block in self.design.cells():
            for position, name in enumerate(self.design.order(load, block)):
                yield Job(
                    arm=self.arms[name],
                    load=load,
                    rate_per_s=self.rates[load],
                    block=block,
                    position=position,
                    order=order,
                    name=_run_name(self.arms, name, load, block),
                    twin=self.design.aa and name == self.design.again,
                )
                order += 1


def _run_name(arms: Mapping[str, Arm], name: str, load: float, block: int) -> str:
    """Reports take two runs of one policy and one name for one run: tell them apart."""
    one, place = arms[name], f"x{load:g}-b{block}"
    same = [
        other.name
        for other in arms.values()
        if (other.policy, other.parameters) == (one.policy, one.parameters)
    ]
    return place if same[0] == name else f"{place}-{name}"


# ------------------------------------------------------------------------ what of


def made_workload(config: Config, engine: Target) -> Workload:
    """The workload of a configuration, as far as it fits into the engine.

    Raises:
        AdmitPerfError: there is none of its name, a trace is none, or nothing fits.
    """
    told = config.workload
    paths = [Path(one) for one in told.trace]
    given: dict[str, Any] = dict(told.parameters)
    try:
        made = workload(told.name, trace=paths, divisor=told.divisor, **given)
    except TypeError as error:
        raise ConfigError("workload.parameters", [str(error)]) from None
    longest = engine.longest_tokens()
    return made if longest is None else made.fitting(longest)


# -------------------------------------------------------------------- calibration


def _told_calibration(setup: Setup) -> Iterator[str]:
    told_so_far = setup.calibration
    one = told_so_far.capacity
    noun = one.unit
    yield (
        f"Capacity without a policy: {number(one.per_s)} {noun}s a second (95 %"
        f" interval {number(one.low)} to {number(one.high)}, n {one.n}),"
        f" {number(one.calls_per_s)} calls a second."
    )
    for name, limits in told_so_far.slo.classes.items():
        alone = told_so_far.alone.get(name)
        p95 = f"; unloaded p95 {number(alone.p95_ms)} ms, n {alone.n}" if alone else ""
        bounds = ", ".join(f"{key} {number(value)}" for key, value in limits.items())
        yield f"SLO {name or 'of every call'}: {bounds}{p95}."
    first_s, end_s = told_so_far.scored_s
    yield (
        f"A run: {noun}s begin over {number(told_so_far.lasts_s)} s; those from"
        f" {number(first_s)} to {number(end_s)} s are scored."
    )


# ------------------------------------------------------------------------ planning


def _fitted(arm: Arm, values: Mapping[str, float]) -> Arm:
    """The arm with the parameters that follow from the calibration.

    Raises:
        ConfigError: one does not.
    """

    def fit(name: str, value: object) -> object:
        if value != FITTED:
            return value
        if name in values:
            return values[name]
        known = ", ".join(values)
        raise ConfigError(f"arm {arm.name}", [f"{name} cannot be fitted; {known} can"])

    parameters, words = _changed(arm, fit), dict(arm.provenance)
    for name, value in arm.parameters.items():
        if parameters[name] != value:
            words[name] = "fitted"
        else:
            words.setdefault(name, "given")
    return replace(arm, parameters=parameters, provenance=words)


def _changed(arm: Arm, change: Callable[[str, object], object]) -> dict[str, object]:
    """An arm's parameters with other values, those of a composition's parts too."""
    whole = issubclass(policies.load(arm.policy), Composition)
    made = dict[str, object]()
    for name, value in arm.parameters.items():
        if not (whole and name == PARTS):
            made[name] = change(name, value)
        elif FITTED in str(value):
            made[name] = replaced(value, change)
        else:
            made[name] = value
    return {name: value for name, value in made.items() if value is not LEFT_OUT}


def _design(config: Config, arms: Sequence[Arm], loads: tuple[float, ...]) -> Design:
    """The design of a configuration.

    Raises:
        ConfigError: it cannot win; says why.
    """
    made = Design(
        arms=tuple(arm.name for arm in arms),
        loads=loads,
        blocks=config.blocks,
        baseline=next(arm.name for arm in arms if arm.policy == "no_admission"),
        margin=config.margin,
        seed=config.seed,
        aa=config.aa,
    )
    if made.aa:
        made = replace(made, arms=(*made.arms, made.again))
    if wrong := faults(made):
        raise ConfigError("design", wrong)
    return made


def _seqs(engine: Target) -> int | None:
    if isinstance(engine, VirtualTarget):
        return engine.model.max_num_seqs * engine.replicas
    return None


# --------------------------------------------------------------------- experiment


class Experiment:
    """One experiment from its configuration to its folder.

    Args:
        config: what.
        progress: is told how far it is.
    """

    def __init__(self, config: Config, progress: Progress) -> None:
        self._config = config
        self._progress = progress
        self._path = config.folder / STATED
        self._began_ns = SYSTEM.monotonic_ns()
        self._stated: dict[str, Any] = {}
        self._redone: dict[str, int] = {}
        self.found: Found | None = None
        """All runs as read back, with their logs; None until they are all there."""
        self._spent_s = 0.0  # by earlier starts
        self._plans: dict[str, str] = {}
        self._open = ExitStack()
        self._engine = self._open.enter_context(opened(config.target))
        wall = not isinstance(self._engine, VirtualTarget)
        self._runs = Here() if wall else executor(config.executor, config.jobs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runs.close()
        self._open.close()

    def planned(self, budget_s: float | None = None) -> Planned:
        """Calibrates, or goes by what was measured before, and plans.

        Args:
            budget_s: for all runs together; None = whatever it takes.

        Raises:
            AdmitPerfError: something is missing, cannot win, or does not fit.
        """
        config = self._config
        _design(
            config, config.arms, config.loads or (2.0,)
        )  # said before time is spent
        before = self._before()
        offered = made_workload(config, self._engine)
        self._progress.stage("checking signals")
        check_signals(self._engine, _without_fitted(config.arms))
        calibration, took_s = self._calibration(before, offered)
        setup = self._setup(offered, calibration)
        if math.isnan(took_s):
            self._measured(setup)
            self._progress.stage("looking for the warm-up")
            calibration, took_s = warmed(config, setup)
            setup = replace(setup, calibration=calibration)
            self._stated["seconds_per_run"] = took_s
            self._measured(setup)
        return self._planned(setup, budget_s, took_s)

    def run(self, planned: Planned, redo: Sequence[str] = ()) -> bool:
        """Runs what is planned and not there; whether all of it is.

        Args:
            planned: by `planned`.
            redo: blocks, as `x1.5-b3`, whose runs are removed first, for every arm.

        Returns:
            False = it was ended by Ctrl-C: what is there can be read and is marked.

        Raises:
            ExperimentError: a block that is to be run again is none.
        """
        jobs = planned.jobs()
        self._forget(redo, {job.place for job in jobs})
        self._state(planned, partial=True)
        try:
            ran = self._ran(planned, jobs)
            if ran or not (self._stated.get("capacity") or {}).get("after"):
                self._again(planned)
            self._state(planned, partial=False)
            self._judge()
        except KeyboardInterrupt:
            self._runs.close()
            self._state(planned, partial=True)
            return False
        finally:
            _sweep(self._config.folder)
        return True

    def _forget(self, redo: Sequence[str], known: set[str]) -> None:
        """Removes the runs of blocks; all arms', so that they meet it alike again."""
        folder = self._config.folder
        for place in dict.fromkeys(redo):
            if place not in known:
                said = f"--redo {place}: is none of the blocks, such as {min(known)}"
                raise ExperimentError(said)
            for gone in folder.glob(f"*/{place}"):
                with telling(gone):
                    shutil.rmtree(gone)
            self._redone[place] = self._redone.get(place, 0) + 1

    def _judge(self) -> None:
        """Reads the logs once and writes down what they say of each run."""
        found = read_experiment(self._config.folder)
        self._write({"findings": findings(found.runs)})
        self.found = replace(found, stated=dict(self._stated))

    def _before(self) -> dict[str, Any] | None:
        """What an earlier start of this experiment measured; None = there was none.

        Raises:
            ExperimentError: another experiment is there.
        """
        try:
            told = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            told = None
        if not isinstance(told, dict) or told.get("made_by") != MADE_BY:
            raise ExperimentError(f"{self._path}: is no experiment's")
        self._stated = told
        self._spent_s = float(told.get("seconds") or 0.0)
        self._redone = dict(told.get("redone") or {})
        if self._stated.get("basis") != self._config.basis():
            raise ExperimentError(
                f"{self._config.folder}: holds an experiment of another target,"
                " workload, client, SLO or seed: name another with --experiment"
            )
        return self._stated

    def _calibration(
        self, before: Mapping[str, Any] | None, offered: Workload
    ) -> tuple[Calibration, float]:
        if before is not None:
            took_s = before.get("seconds_per_run")  # absent before the warm-up is known
            known = Calibration.read(before["calibration"])
            return known, math.nan if took_s is None else float(took_s)
        given = self._config, self._engine, offered, self._runs, self._progress.stage
        return calibrated(*given), math.nan

    def _setup(self, offered: Workload, calibration: Calibration) -> Setup:
        config = self._config
        return Setup(
            experiment=config.experiment,
            folder=config.folder,
            basis=config.basis(),
            target=self._engine,
            workload=offered,
            client=config.client,
            calibration=calibration,
            claims=(),  # before a design is known there are none
            baseline=next(a.name for a in config.arms if a.policy == "no_admission"),
            deadlines=config.deadlines,
            gpu_cost_per_hour=config.gpu_cost_per_hour,
            seed=config.seed,
        )

    def _planned(self, setup: Setup, budget_s: float | None, took_s: float) -> Planned:
        config = self._config
        per_s = setup.calibration.capacity.per_s
        values = fitted(
            setup.calibration,
            _seqs(self._engine),
            config.target.scrape_interval_s,
            config.target.replicas,
        )
        arms = {arm.name: _fitted(arm, values) for arm in config.arms}
        loads = config.loads or tuple(
            round(rate / per_s, 3) for rate in config.rates_per_s
        )
        design = _design(config, tuple(arms.values()), loads)
        if design.aa:
            arms[design.again] = replace(arms[design.baseline], name=design.again)
        left_out: list[str] = []
        if budget_s is not None:
            each_s = took_s * self._slower(design.loads)
            design, left_out = trimmed(design, each_s, budget_s)
        rates = config.rates_per_s or tuple(load * per_s for load in loads)
        first = self._first(design, setup)
        return Planned(
            config=config,
            setup=replace(setup, claims=first.claims()),
            design=design,
            arms=arms,
            rates=dict(zip(loads, rates, strict=True)),
            left_out=tuple(left_out),
            first=first,
        )

    def _first(self, design: Design, setup: Setup) -> First:
        """As it was before the first run: of this start, unless an earlier one said."""
        if KEY in self._stated:
            return First.read(self._stated[KEY])
        told = setup.calibration
        asked = {
            "workload": self._config.document()["workload"],
            "client": asdict(setup.client),
            "slo": told.document()["slo"],
            "window": {"lasts_s": told.lasts_s, "scored_s": told.scored_s},
        }
        return First.of(design, self._config.metric, asked)

    def _passed_s(self) -> float:
        return (SYSTEM.monotonic_ns() - self._began_ns) / 1e9

    def _slower(self, loads: Sequence[float]) -> float:
        """How much longer a run takes than the one for the warm-up, on average.

        Virtual time costs what happens in it, and several runs go on at once.
        """
        if not isinstance(self._engine, VirtualTarget):
            return 1.0
        lanes = self._config.jobs or cores()
        return sum(loads) / len(loads) / WARMUP_LOAD / lanes

    def _ran(self, planned: Planned, jobs: Sequence[Job]) -> int:
        """Runs them; how many were not there before."""
        began_ns, new = SYSTEM.monotonic_ns(), 0
        with self._runner(planned.setup) as each:
            for n, done in enumerate(each(jobs), 1):
                new += not done.again
                self._plans[done.job.place] = done.plan
                took_s = (SYSTEM.monotonic_ns() - began_ns) / 1e9
                left_s = took_s / new * (len(jobs) - n) if new else 0.0
                self._progress.ran(done, n, len(jobs), left_s)
        return new

    @contextmanager
    def _runner(
        self, setup: Setup
    ) -> Iterator[Callable[[Sequence[Job]], Iterator[Done]]]:
        """How runs are run: here by a call, elsewhere with the setup in a file."""
        if isinstance(self._runs, Here):
            yield lambda jobs: self._runs.each(partial(run_one, setup), jobs)
            return
        with tempfile.TemporaryDirectory(prefix="admitperf-") as folder:
            path = Path(folder) / "setup"
            path.write_bytes(_sent(setup))
            yield lambda jobs: self._runs.each(
                run_task, [Task(str(path), job) for job in jobs]
            )

    def _again(self, planned: Planned) -> None:
        """Measures the capacity again, with other seeds."""
        self._progress.stage("measuring capacity again")
        setup = planned.setup
        before = setup.calibration.capacity
        after = capacity(self._engine, setup.workload, self._runs, before)
        self._stated["capacity"] = _capacity(before, after)

    def _measured(self, setup: Setup) -> None:
        """Writes what was measured: no later start measures it again."""
        self._write({**self._basics(setup), "partial": True})

    def _basics(self, setup: Setup) -> dict[str, Any]:
        told_so_far = setup.calibration
        there = (self._stated.get("capacity") or {}).get("after")
        return {
            "schema": 1,
            "made_by": MADE_BY,
            "version": __version__,
            "experiment": setup.experiment,
            "basis": setup.basis,
            "config": self._config.document(),
            "workload": setup.workload.words(),
            "scaling": setup.workload.scaling(),
            "synthetic": setup.workload.synthetic,
            "client": setup.client.words(setup.workload.noun),
            "calibration": told_so_far.document(),
            "capacity": {**_capacity(told_so_far.capacity, None), "after": there},
            "slo": {
                "from": told_so_far.slo_from,
                "classes": told_so_far.document()["slo"],
            },
            "target": setup.target.notes(),
            "simulated": setup.target.simulated,
        }

    def _state(self, planned: Planned, *, partial: bool) -> None:
        """Writes experiment.json: what is planned, and how far it came."""
        design = planned.design
        self._stated.pop("findings", None)  # of runs that may be others now
        self._write(
            {
                **self._basics(planned.setup),
                KEY: planned.first.document(),
                "metric": self._config.metric,
                "design": asdict(design),
                "arms": {name: asdict(arm) for name, arm in planned.arms.items()},
                "rates_per_s": {f"{load:g}": r for load, r in planned.rates.items()},
                "order": {
                    f"x{load:g}-b{block}": list(design.order(load, block))
                    for load, block in design.cells()
                },
                "plans": dict(sorted(self._plans.items())),
                "said": list(planned.said()),
                "left_out": list(planned.left_out),
                "notices": [*self._notices()],
                "partial": partial,
            }
        )

    def _notices(self) -> Iterator[str]:
        for place, n in self._redone.items():
            yield f"{place} was run again for every arm, {plural(n, 'time')}."

    def _write(self, told: Mapping[str, Any]) -> None:
        seconds = round(self._spent_s + self._passed_s(), 3)
        self._stated |= {**told, "redone": self._redone, "seconds": seconds}
        with telling(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        write(self._path, self._stated)


def _sent(setup: Setup) -> bytes:
    """The setup as other processes read it.

    Raises:
        ExperimentError: something of it cannot be sent, as a plug-in's may not.
    """
    try:
        return pickled(setup)
    except (PicklingError, AttributeError, TypeError) as error:
        why = " ".join(str(error).split())
        said = f"cannot be sent to other processes ({why}): use --jobs 1"
        raise ExperimentError(f"{setup.workload.name}: {said}") from None


def _capacity(before: Capacity, after: Capacity | None) -> dict[str, Any]:
    """As a comparison reads it."""
    again = None
    if after is not None:
        again = {"per_s": after.per_s, "low": after.low, "high": after.high}
    return {
        "unit": before.unit,
        "per_s": before.per_s,
        "low": before.low,
        "high": before.high,
        "after": again,
    }


def _without_fitted(arms: Iterable[Arm]) -> Iterator[Arm]:
    """The arms with defaults in place of what is yet to be fitted."""
    for arm in arms:
        kept = _changed(arm, lambda _, value: LEFT_OUT if value == FITTED else value)
        yield replace(arm, parameters=kept)


def _sweep(folder: Path) -> None:
    """Removes the folders of runs that were not finished."""
    for part in folder.glob("*/.x*.part"):
        with suppress(OSError):
            shutil.rmtree(part)
