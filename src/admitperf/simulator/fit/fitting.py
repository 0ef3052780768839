"""A profile from recorded runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import combinations
from statistics import mean
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from admitperf.core.errors import ConfigError
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.fit.observations import (
    FOREIGN_CORES,
    disturbances,
    observed,
)
from admitperf.simulator.fit.priors import Prior, taken_from
from admitperf.simulator.fit.recorded import Recorded
from admitperf.simulator.fit.regression import Fit, regressed
from admitperf.simulator.profile import (
    MEASURED,
    SIMULATED,
    Profile,
    Provenance,
    unfit,
)

SIZES = tuple(
    field.name
    for field in fields(EngineModel)
    if not field.name.endswith("_ms")
    and not field.name.startswith(("ms_per_", "noise"))
)
"""Fields of an `EngineModel` that say what an engine is, not what its steps cost."""

_NOTHING_MS = 1e-8
"""A cost this small is none: 100,000 tokens of it are a microsecond."""

_DIGITS = 5
"""Significant ones of a fitted coefficient; runs know three at most."""


LEAST_REQUESTS = 10
"""Requests of all runs together that a profile can rest on: four costs and a noise are
asked for, and each request gives two times. Plain choice."""


def fitted(
    runs: Sequence[Recorded],
    *,
    name: str,
    base: Profile | None = None,
    sizes: Mapping[str, object] | None = None,
    machine: str | None = None,
) -> Profile:
    """The profile of the engine that some runs were recorded on.

    Args:
        runs: what was recorded; one that is to be predicted later is not among them.
        name: of the profile.
        base: stands in where the runs say nothing, as ratios of costs and as sizes;
            None = the default prior.
        sizes: what the engine is, by `EngineModel` field, over what the runs say.
        machine: what the runs were recorded on, in words.

    Raises:
        ConfigError: the runs do not say what the engine is or what a step costs,
            contradict each other, or have fewer requests than `LEAST_REQUESTS`.
    """
    known = _known(runs, base, sizes or {})
    if faults := [*_too_few(runs), *_twice(runs), *_too_long(runs, known)]:
        raise ConfigError(f"profile {name}", faults)
    told = [observed(run) for run in runs]
    prior = Prior() if base is None else taken_from(base.engine, _called(base))
    try:
        with np.errstate(all="raise"):
            fit = regressed(
                [one.rows for one in told], prior, sum(one.left_out for one in told)
            )
        engine = EngineModel(**known, **_costs(fit))
    except (ArithmeticError, LinAlgError, RuntimeError):
        why = "no costs of steps explain the times of the runs"
        raise ConfigError(f"profile {name}", [why]) from None
    except ValueError as error:
        raise ConfigError(f"profile {name}", [str(error)]) from None
    provenance = _provenance(runs, fit, prior, machine)
    return Profile(
        name=name, engine=engine, provenance=provenance, residuals=fit.residuals
    )


def _too_few(runs: Sequence[Recorded]) -> Iterator[str]:
    """Runs in which hardly anything happened: any costs would explain them."""
    count = sum(len(run.asked) for run in runs)
    if count < LEAST_REQUESTS:
        yield (
            f"{count} usable requests are in the runs, and {LEAST_REQUESTS} are the"
            " least"
        )


def _twice(runs: Sequence[Recorded]) -> Iterator[str]:
    """Runs that are one: their likeness would be taken for certainty."""
    for one, other in combinations(runs, 2):
        if one.asked == other.asked:
            yield f"{one.name} and {other.name} are the same run"


def _too_long(runs: Sequence[Recorded], known: Mapping[str, Any]) -> Iterator[str]:
    """Runs whose engine cannot have been of the sizes stated."""
    try:
        longest = EngineModel(**known, step_ms=1.0).longest_tokens
    except ValueError as error:
        yield str(error)
        return
    for run in runs:
        one = max(run.asked, key=lambda one: one.input_tokens + one.output_tokens)
        if one.input_tokens + one.output_tokens > longest:
            yield (
                f"{run.name}: request {one.id} had {one.input_tokens} +"
                f" {one.output_tokens} tokens, and an engine of the sizes stated"
                f" takes {longest}"
            )


def _known(
    runs: Sequence[Recorded], base: Profile | None, sizes: Mapping[str, object]
) -> dict[str, Any]:
    """What the engine is: as said, else as the runs say, else as the base has it."""
    known: dict[str, Any] = {} if base is None else _sizes(base.engine)
    faults = unfit(sizes)
    for name in SIZES:
        said = {repr(r.engine[name]): r for r in runs if name in r.engine}
        if name in sizes:
            known[name] = sizes[name]
        elif len(said) > 1:
            both = ", ".join(f"{value} in {run.name}" for value, run in said.items())
            faults.append(f"{name} is {both}: say which with --engine {name}=N")
        elif said:
            known[name] = next(iter(said.values())).engine[name]
    faults += [
        f"the runs do not say {name}: say it with --engine {name}=N"
        for name in ("max_num_seqs", "kv_blocks")
        if name not in known and not any(fault.startswith(name) for fault in faults)
    ]
    if faults:
        raise ConfigError("the engine", faults)
    return known


def _called(base: Profile) -> str:
    return f"{base.name} ({base.stamp})" if base.simulated else base.name


def _sizes(model: EngineModel) -> dict[str, Any]:
    return {name: getattr(model, name) for name in SIZES}


def _costs(fit: Fit) -> dict[str, Any]:
    costs: dict[str, Any] = {name: _rounded(cost) for name, cost in fit.costs.items()}
    return costs | {"noise": fit.noise, "noise_steps": fit.noise_steps}


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") if value > _NOTHING_MS else 0.0


def _provenance(
    runs: Sequence[Recorded], fit: Fit, prior: Prior, machine: str | None
) -> Provenance:
    dates = sorted({run.date for run in runs if run.date})
    versions = sorted({run.versions for run in runs if run.versions})
    return Provenance(
        source=SIMULATED if any(run.simulated for run in runs) else MEASURED,
        runs=tuple(run.name for run in runs),
        date=None if not dates else " to ".join(dict.fromkeys((dates[0], dates[-1]))),
        machine=machine,
        versions="; ".join(versions) or None,
        identified=fit.identified,
        priors={
            name: prior.words(name) for name in fit.costs if name not in fit.identified
        },
        notes=tuple(_notes(runs)),
    )


def _notes(runs: Sequence[Recorded]) -> Iterator[str]:
    if simulated := [run.name for run in runs if run.simulated]:
        names = ", ".join(simulated)
        yield f"SIMULATED: no hardware gave these times, but simulated engines: {names}"
    for run in runs:
        yield from _run_notes(run)


def _run_notes(run: Recorded) -> Iterator[str]:
    """What to know of a run that a profile rests on."""
    if run.replicas > 1:
        yield (
            f"{run.name} is of {run.replicas} engines, and does not say which of"
            " them answered: the costs are those of one that did the work of all"
        )
    if not run.timed:
        yield f"{run.name} says when requests began and ended, not when tokens came"
    if left := sum(run.left_out.values()):
        yield f"{left} requests of {run.name} are left out"
    if spans := disturbances(run):
        lost_s = sum(to_s - from_s for from_s, to_s in spans)
        yield f"{lost_s:.0f} s of {run.name} are left out: other processes ran then"
    elif run.foreign:
        cores = mean(one.cores for one in run.foreign)
        if cores > FOREIGN_CORES:
            yield f"other processes took {cores:.1f} cores throughout {run.name}"
