"""`admitperf bench run`, which is what `admitperf bench CONFIG.yaml` means."""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from admitperf.cli.bounds import BOUNDS
from admitperf.cli.duration import Duration, spoken
from admitperf.cli.layout import wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.core.declared import plain
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.reports.runs.slo import Slo
from admitperf.reports.wording import printable

if TYPE_CHECKING:
    from admitperf.bench.design.results import Experiment as Found
    from admitperf.bench.harness.config import Config
    from admitperf.bench.harness.experiment import Planned
    from admitperf.bench.harness.run import Done

_INTERRUPTED = 130  # 128 + SIGINT
_LONGEST_S = 31 * 86400.0
_WIDTH = 79
_ROUGH_S = 90.0
_LONGEST_NAME = 90  # of an arm: it names a folder
_LINES = 20  # of progress where there is no terminal


class _Options(TypedDict):
    """The options as click hands them over."""

    config: str | None
    preset: str | None
    profile: str | None
    url: str | None
    metrics_url: str | None
    engine: tuple[str, ...]
    workload: str | None
    trace: tuple[str, ...]
    policies: tuple[str, ...]
    loads: str | None
    rates: str | None
    blocks: int | None
    client: str | None
    calls: int | None
    for_s: float | None
    slo: Slo | None
    experiment: str | None
    root: str | None
    budget_s: float | None
    jobs: int | None
    executor: str | None
    seed: int | None
    aa: bool
    redo: tuple[str, ...]
    plan_only: bool
    as_json: bool
    checking: bool


@click.command("run")
@click.argument("config", metavar="[CONFIG.yaml]", required=False)
@click.option("--preset", metavar="NAME", help="A benchmark that comes along.")
@click.option(
    "--profile",
    metavar="P",
    help="A simulated engine: a name that `admitperf sim profiles` lists, or a file.",
)
@click.option("--url", metavar="URL", help="A server, in place of a profile.")
@click.option("--metrics-url", metavar="URL", help="Its metrics.  [default: /metrics]")
@click.option(
    "--engine",
    metavar="K=V",
    multiple=True,
    help="A size of the simulated engine that differs, such as max_num_seqs=16.",
)
@click.option(
    "--workload",
    metavar="NAME",
    help="What is asked: see `admitperf bench workloads`.  [default: tool-tight]",
)
@click.option(
    "--trace",
    metavar="FILE",
    multiple=True,
    help="Replay the workload from a recorded trace; may be given again.",
)
@click.option(
    "--policy",
    "policies",
    metavar="NAME[:K=V,...]",
    multiple=True,
    help="An arm: an installed policy and its parameters, such as"
    " queue_depth:max_waiting=8; a value with commas stands in brackets, `fitted` as"
    " a value takes what follows from the calibration. May be given again;"
    " no_admission is always there.",
)
@click.option(
    "--loads",
    metavar="X,...",
    help="Multiples of the measured capacity.  [default: 0.5,0.8,1,1.2,1.5,2]",
)
@click.option(
    "--rates", metavar="R,...", help="Beginnings a second, in place of loads."
)
@click.option(
    "--blocks",
    type=click.IntRange(1, 1000),
    help="Repeats of each load, each with traffic of its own.  [default: 8]",
)
@click.option(
    "--client",
    metavar="NAME",
    help="What refused callers do: see `admitperf bench clients`.  [default: none]",
)
@click.option(
    "--calls",
    metavar="N",
    type=click.IntRange(10, 1_000_000),
    help="Calls of a run at capacity, which says how long it is.  [default: 600]",
)
@click.option(
    "--for", "for_s", type=Duration(1, _LONGEST_S), help="How long a run is, instead."
)
@click.option(
    "--slo",
    type=BOUNDS,
    help="Deadlines in ms, such as ttft_ms=1500,stall_ms=500.  [default: from the"
    " latency without load]",
)
@click.option("--experiment", metavar="NAME", help="Its name, and its folder's.")
@click.option("--root", metavar="DIR", help="Where experiments are.")
@click.option(
    "--budget",
    "budget_s",
    type=Duration(1, _LONGEST_S),
    help="Leave out what does not fit into this time, and say what.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 10_000),
    help="Processes; a server is always driven by one.  [default: one a core]",
)
@click.option(
    "--executor", type=click.Choice(["local", "ray"]), help="Who runs the runs."
)
@click.option("--seed", type=click.IntRange(min=0), help="Of all chance.  [default: 1]")
@click.option("--aa", is_flag=True, help="Also try the baseline against itself.")
@click.option(
    "--redo",
    metavar="BLOCK",
    multiple=True,
    help="Run a block again for every arm, such as x1.5-b3: its runs are removed"
    " first. May be given again.",
)
@click.option("--plan-only", is_flag=True, help="Say what would be run, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Exit 1 unless every arm is shown to be better.",
)
def command(**options: Unpack[_Options]) -> None:
    """Run a benchmark: every policy before one engine, at several loads.

    First the engine is measured without a policy: what it supplies, how fast it is
    alone, what it can carry. From that follow deadlines and rates. Then every policy
    meets the same blocks of traffic, in random order, and what comes out is held
    against no policy at all. Options stand over what the file says.

    What was run before is not run again: an experiment that was ended with Ctrl-C goes
    on where it stood.

    Exit code 1 when --check finds a claim that is not supported, 2 when something is
    wrong with what was asked, 130 when it was ended with Ctrl-C.
    """
    try:
        config = _config(options)
        whole, found = _ran(config, options)
    except (AdmitPerfError, ValueError) as error:
        raise UnreadableInput(printable(str(error))) from None
    except KeyboardInterrupt:
        click.echo("ended before anything was run", err=True)
        sys.exit(_INTERRUPTED)
    if whole is False:
        where = printable(str(config.folder))
        click.echo(
            f"ended early: {where} is marked partial; the same goes on", err=True
        )
        sys.exit(_INTERRUPTED)
    if found is not None:
        _compare(found, options)


# ------------------------------------------------------------------ configuration


def _config(options: _Options) -> "Config":
    from admitperf.bench.harness.config import parsed, preset, read

    if options["config"] and options["preset"]:
        raise click.UsageError("CONFIG.yaml and --preset both say what: choose one")
    if options["profile"] and options["url"]:
        raise click.UsageError("--profile and --url both say which engine: choose one")
    told: dict[str, Any] = {}
    where = "options"
    if options["config"]:
        where = options["config"]
        told = read(Path(where))
    elif options["preset"]:
        where = f"preset {options['preset']}"
        told = preset(options["preset"])
    return parsed(_over(told, options), where)


def _over(told: dict[str, Any], options: _Options) -> dict[str, Any]:
    """A document with what the options say in its place."""
    told = told | _plain(options)
    for name, more in (("target", _target(options)), ("workload", _workload(options))):
        inner = told.get(name)
        if more and (inner is None or isinstance(inner, dict)):
            told[name] = (inner or {}) | more
    if options["policies"]:
        told["arms"] = [_arm(text) for text in options["policies"]]
        _tell_apart(told["arms"])
    return told


def _plain(options: _Options) -> dict[str, Any]:
    slo = options["slo"]
    said = {
        "loads": _numbers("--loads", options["loads"]),
        "rates_per_s": _numbers("--rates", options["rates"]),
        "blocks": options["blocks"],
        "client": options["client"],
        "calls": options["calls"],
        "lasts_s": options["for_s"],
        "slo": dict(slo.everyone or {}) if slo else None,
        "experiment": options["experiment"],
        "root": options["root"],
        "jobs": options["jobs"],
        "executor": options["executor"],
        "seed": options["seed"],
        "aa": options["aa"] or None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _target(options: _Options) -> dict[str, Any]:
    said: dict[str, Any] = {
        name: options[name]
        for name in ("profile", "url", "metrics_url")
        if options[name]
    }
    if options["url"]:
        said["kind"] = "http"
    elif options["profile"]:
        said["kind"] = "sim"
    if options["engine"]:
        said["engine"] = dict(_pairs("--engine", options["engine"]))
    return said


def _workload(options: _Options) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if options["workload"]:
        said["name"] = options["workload"]
    if options["trace"]:
        said["trace"] = list(options["trace"])
    return said


def _arm(text: str) -> dict[str, Any]:
    """An arm as `name:param=v,param=v` says it."""
    from admitperf.policies.parts.compose.written import read, strange

    _, colon, rest = text.partition(":")
    if colon and not rest.strip():
        raise click.UsageError(f"--policy {text}: nothing follows the colon")
    try:
        policy, given = read(text, ",")
        faults = strange(policy, given)
    except ConfigError as error:
        faults = error.faults
    if faults:
        raise UnreadableInput(printable(f"--policy {text}: {'; '.join(faults)}"))
    return {"policy": policy, "parameters": given}


def _tell_apart(arms: list[dict[str, Any]]) -> None:
    """Gives arms of one policy a name each, by their parameters."""
    policies = [arm["policy"] for arm in arms]
    for arm in arms:
        if policies.count(arm["policy"]) > 1 and arm["parameters"]:
            told = arm["parameters"].items()
            said = "-".join(f"{name}={_in_a_name(value)}" for name, value in told)
            arm["name"] = f"{arm['policy']}-{said}"[:_LONGEST_NAME]


def _in_a_name(value: object) -> str:
    """A value without what has no place in the name of a folder."""
    return re.sub(r"[^\w.=:+-]+", "_", str(value)).strip("_")


def _pairs(option: str, told: Iterable[str]) -> Iterable[tuple[str, object]]:
    for one in told:
        name, equals, text = one.partition("=")
        if not (equals and name):
            raise click.UsageError(f"{option} {one}: write NAME=VALUE")
        yield name, plain(text)


def _numbers(option: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option} {text}: write numbers, 0.8,1.2") from None


# ------------------------------------------------------------------------ running


def _ran(config: "Config", options: _Options) -> "tuple[bool | None, Found | None]":
    """Whether all of it was run, None = it was only planned; and what came of it."""
    from admitperf.bench.harness.experiment import Experiment
    from admitperf.reports.extra import needed

    needed("duckdb")  # said before time is spent on runs
    progress = _Progress()
    with Experiment(config, progress) as experiment:
        planned = experiment.planned(options["budget_s"])
        progress.stage("")
        if planned.departed:
            click.echo(printable(planned.departed), err=True)
        if options["plan_only"]:
            _show_plan(planned, as_json=options["as_json"])
            return None, None
        if not options["as_json"]:
            _paragraphs(_opening(planned))
        whole = experiment.run(planned, options["redo"])
        progress.stage("")
        return whole, experiment.found


def _opening(planned: "Planned") -> Iterable[str]:
    setup = planned.setup
    if setup.target.simulated:
        told = planned.config.target
        virtual = told.kind == "sim" and told.over == "virtual"
        where = "an engine in virtual time" if virtual else "a simulated engine"
        yield f"SIMULATED: {where}; no number here was measured on hardware."
    yield f"{setup.workload.words()}. {setup.workload.scaling()}"
    yield f"The client {setup.client.words(setup.workload.noun)}."
    yield from planned.said()
    yield (
        f"{planned.design.runs} runs into {planned.config.folder}. Planned first:"
        f" {planned.first.hash}."
    )


def _show_plan(planned: "Planned", *, as_json: bool) -> None:
    if not as_json:
        _paragraphs(_opening(planned))
        return
    plain = {
        "schema": 1,
        "runs": planned.design.runs,
        "planned_first": planned.first.document(),
        "departed": planned.departed,
        "said": list(_opening(planned)),
        "left_out": list(planned.left_out),
        "calibration": planned.setup.calibration.document(),
        "order": [
            {"arm": job.arm.name, "load": job.load, "block": job.block}
            for job in planned.jobs()
        ],
    }
    click.echo(json.dumps(plain, indent=2, allow_nan=False))


def _paragraphs(said: Iterable[str]) -> None:
    for paragraph in said:
        click.echo("\n".join(wrapped(paragraph)) + "\n")


def _compare(found: "Found", options: _Options) -> None:
    from admitperf.cli.bench_compare import shown

    try:
        shown(
            found,
            root=found.folder.parent,
            metric=None,  # the experiment's own
            only=(),
            plots=(),
            checking=options["checking"],
            claim="better",
            as_json=options["as_json"],
            html=None,
        )
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None


def rough(left_s: float) -> str:
    """An estimate: whole seconds, from a minute and a half on whole minutes."""
    if left_s < _ROUGH_S:
        return spoken(max(1, round(left_s)))
    return spoken(60 * round(left_s / 60))


class _Progress:
    """One line on a terminal, written over; a few lines anywhere else."""

    def __init__(self) -> None:
        self._live = sys.stderr is not None and sys.stderr.isatty()

    def stage(self, what: str) -> None:
        """Something that takes a while begins; empty = nothing does."""
        if self._live:
            click.echo(f"\r{what[:_WIDTH]:<{_WIDTH}}\r", nl=False, err=True)
        elif what:
            click.echo(what, err=True)

    def ran(self, done: "Done", n: int, of: int, left_s: float) -> None:
        """A run is over."""
        left = f", {rough(left_s)} left" if left_s and n < of else ""
        said = f"{done.job.arm.name} {done.job.place} ({n} of {of} runs{left})"
        if self._live:
            self.stage(said)
        elif n == of or n * _LINES // of > (n - 1) * _LINES // of:
            click.echo(said, err=True)
