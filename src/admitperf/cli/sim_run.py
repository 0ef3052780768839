"""`admitperf sim run`."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from admitperf.cli import colour
from admitperf.cli.bounds import BOUNDS
from admitperf.cli.duration import Duration, seconds_of
from admitperf.cli.layout import row, wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.runs.slo import Slo
from admitperf.reports.wording import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admitperf.bench.simulation import Asked, Ran
    from admitperf.reports.report import RunReport
    from admitperf.simulator.fleet import Routing

SCHEMA = 1
_DEFAULT_FOR_S = 600.0
_LONGEST_S = 31 * 86400.0
_DEFAULT_PATH = "run.jsonl"
_LONGEST_LOOK_S = 60.0
_WIDTH = 79


class _Interval(Duration):
    """A time between looks; one over a minute is milliseconds without their unit."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Reads the option; a fault is a usage error."""
        seconds = seconds_of(str(value))
        if seconds is not None and seconds > _LONGEST_LOOK_S:
            most = f"is over {_LONGEST_LOOK_S:g} s: a bare number is seconds"
            self.fail(f"{value!r} {most}; 250ms is written 250ms", param, ctx)
        return super().convert(value, param, ctx)


class _Options(TypedDict):
    """The options as click hands them over."""

    name: str
    policy: str
    parameters: tuple[str, ...]
    rate_per_s: float | None
    load: float | None
    for_s: float | None
    count: int | None
    workload: tuple[str, ...]
    divisor: int | None
    client: str
    replicas: int
    routing: "Routing"
    seed: int
    interval_s: float
    oracle: bool
    slo: Slo | None
    experiment: str | None
    path: str | None
    force: bool
    as_json: bool


@click.command("run")
@click.option(
    "--profile",
    "name",
    metavar="P",
    required=True,
    help="The engine: a name that `admitperf sim profiles` lists, or a file.",
)
@click.option("--policy", metavar="NAME", required=True, help="An installed policy.")
@click.option(
    "--param",
    "parameters",
    metavar="K=V",
    multiple=True,
    help="A parameter of the policy, such as max_waiting=12; may be given again.",
)
@click.option(
    "--rate",
    "rate_per_s",
    metavar="R",
    type=click.FloatRange(0, 1e6, min_open=True),
    help="Requests a second; of agents, sessions that begin.",
)
@click.option(
    "--load",
    metavar="X",
    type=click.FloatRange(0, 1000, min_open=True),
    help="The same as a multiple of the capacity, which is measured first.  [default:"
    " 1]",
)
@click.option(
    "--for",
    "for_s",
    type=Duration(0.001, _LONGEST_S),
    help="How long they come, such as 90s, 5m or 1h30m; 5,000,000 requests are the"
    " most.  [default: 10m]",
)
@click.option(
    "--requests",
    "count",
    metavar="N",
    type=click.IntRange(1, 100_000_000),
    help="So many of them, instead of a time.",
)
@click.option(
    "--workload",
    metavar="NAME|TRACE",
    multiple=True,
    help="What is asked: a name that `admitperf bench workloads` lists, or a file of a"
    " recorded trace, plain or .gz. Given again it adds files: to the trace, or those"
    " that a name replays.  [default: chat]",
)
@click.option(
    "--token-divisor",
    "divisor",
    metavar="N",
    type=click.IntRange(1, 10_000),
    help="Divides all token counts of a TRACE.  [default: the least of 1, 2, 4 ... 512"
    " with which 95 in 100 calls fit the engine]",
)
@click.option(
    "--client",
    metavar="NAME",
    default="none",
    show_default=True,
    help="What a refused caller does: none, patient, impatient, deaf, cancel or undo.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Engines of the profile.",
)
@click.option(
    "--routing",
    type=click.Choice(["least", "turns", "session"]),
    default="least",
    show_default=True,
    help="Which engine gets a request: the least busy, in turns, or by its session.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Of all chance but the capacity's; the same seed writes the same bytes.",
)
@click.option(
    "--scrape-interval",
    "interval_s",
    type=_Interval(0.01, _LONGEST_LOOK_S),
    default=0.25,
    show_default=True,
    help="Between two looks at the engines, such as 250ms; a bare number is seconds.",
)
@click.option(
    "--oracle",
    is_flag=True,
    help="Tell the policy how long each answer will be. Stamped on every output.",
)
@click.option(
    "--slo",
    type=BOUNDS,
    help="Deadlines in ms, such as ttft_ms=1500,stall_ms=500 (also e2e_ms).",
)
@click.option(
    "--experiment",
    metavar="NAME",
    help="Makes it a repeat, r<seed>, of one arm of an experiment, for `admitperf"
    " compare --experiment NAME`.",
)
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    help="The log: about 1 kB a request, and up to 2 kB a look at an engine."
    "  [default: run.jsonl; with --experiment, experiments/NAME/POLICY/r<seed>.jsonl]",
)
@click.option("--force", is_flag=True, help="Replace FILE when it is there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(**options: Unpack[_Options]) -> None:
    """Put a policy before a simulated engine, in virtual time.

    The policy is the installed one, and meets what a host would show it: the engine's
    page as a scraper read it, late, and the facts of each request. Who is refused does
    what --client says: as a rule it does not come again, and in a session of an agent
    nothing follows a refusal. The log is that of a real run, and says that it is
    simulated. First comes what is planned, then what came of it in five lines; the
    page of `admitperf report` ends the output.

    Two policies are compared over several seeds: give all runs one --experiment, and
    each seed to every policy. The capacity is the same in all of them.

    Exit code 2 when an option is wrong, or FILE cannot be written.
    """
    from admitperf.reports.extra import needed

    try:
        needed("duckdb")  # said before time is spent on a run
        ran = _ran(_asked(options), options)
    except (AdmitPerfError, ValueError) as error:
        raise UnreadableInput(printable(str(error))) from None
    _show(ran, as_json=options["as_json"])


def _asked(options: _Options) -> "Asked":
    from admitperf.bench.callers.client import client
    from admitperf.bench.simulation import Asked
    from admitperf.simulator.profile import profile

    _refuse_both(options)
    for_s = options["for_s"]
    if for_s is None and options["count"] is None:
        for_s = _DEFAULT_FOR_S
    return Asked(
        profile=profile(options["name"]),
        policy=options["policy"],
        parameters=_parameters(options["policy"], options["parameters"]),
        workload=options["workload"] or ("chat",),
        divisor=options["divisor"],
        client=client(options["client"]),
        rate_per_s=options["rate_per_s"],
        load=options["load"] or 1.0,
        lasts_s=for_s,
        count=options["count"] or 0,
        replicas=options["replicas"],
        routing=options["routing"],
        seed=options["seed"],
        scrape_interval_s=options["interval_s"],
        oracle=options["oracle"],
        slo=options["slo"].everyone if options["slo"] else None,
        experiment=options["experiment"],
    )


def _refuse_both(options: _Options) -> None:
    """Two options that say the same thing are a mistake, and so is no name."""
    from admitperf.core.settings import Settings

    if options["rate_per_s"] is not None and options["load"] is not None:
        raise click.UsageError("--rate and --load both say how much: choose one")
    for name, much in (("--rate", options["rate_per_s"]), ("--load", options["load"])):
        if much is not None and not math.isfinite(much):
            raise click.UsageError(f"{name} {much} is no number")
    if options["for_s"] is not None and options["count"] is not None:
        raise click.UsageError("--for and --requests both say how long: choose one")
    for fault in Settings(experiment=options["experiment"]).faults():
        raise click.UsageError(f"--{printable(fault)}")


def _parameters(policy: str, told: tuple[str, ...]) -> dict[str, object]:
    """The policy's parameters; their names and ranges are checked by the policy."""
    from admitperf.core.settings import RESERVED
    from admitperf.policies import load
    from admitperf.policies.parts.compose.written import typed

    known, parameters = load(policy).declared(), dict[str, object]()
    for one in told:
        name, equals, text = one.partition("=")
        if not (equals and name):
            raise click.UsageError(f"--param {one}: write NAME=VALUE")
        if name in RESERVED:
            raise click.UsageError(f"--param {one}: is a setting, not a parameter")
        if name in parameters:
            raise click.UsageError(f"--param {one}: {name} is given twice")
        parameters[name] = typed(known.get(name), text)
    return parameters


def _ran(asked: "Asked", options: _Options) -> "Ran":
    from admitperf.bench.simulation import simulate

    def planned(what: str) -> None:
        """Before the first request is made, and after all that can be wrong."""
        if not options["as_json"]:
            for paragraph in (*asked.stamps(), what):
                click.echo("\n".join(wrapped(paragraph)) + "\n")
        elif sys.stderr is not None and sys.stderr.isatty():
            click.echo(what, err=True)

    path = Path(options["path"] or _usual_path(asked))
    _refuse_place(path, force=options["force"])
    try:
        return simulate(asked, path, _progress, planned)
    finally:
        _progress("")


def _refuse_place(path: Path, *, force: bool) -> None:
    """Says so when a log is not to go where it was told to."""
    from admitperf.bench.place import telling

    with telling(path):
        what = path.stat() if path.exists() else None
    if what is None:
        return
    if not path.is_file():
        said = "is no plain file; a log is read again when it is written"
        raise UnreadableInput(printable(f"{path}: {said}"))
    if what.st_size and not force:
        said = "is there and not empty; name another file with -o, or add --force"
        raise UnreadableInput(printable(f"{path}: {said}"))


def _usual_path(asked: "Asked") -> str:
    if asked.experiment is None:
        return _DEFAULT_PATH
    return f"experiments/{asked.experiment}/{asked.policy}/{asked.run}.jsonl"


def _progress(what: str) -> None:
    """One line on a terminal, written over; nothing anywhere else."""
    if sys.stderr is None or not sys.stderr.isatty():
        return
    click.echo(f"\r{what[:_WIDTH]:<{_WIDTH}}\r", nl=False, err=True)


def _show(ran: "Ran", *, as_json: bool) -> None:
    from admitperf.core.errors import LogError
    from admitperf.reports.pages import render
    from admitperf.reports.pages.document import document
    from admitperf.reports.report import report

    try:
        page = report([str(ran.path)])
    except LogError as error:
        raise UnreadableInput(printable(str(error))) from None
    if as_json:
        told = {**_plain(ran), "report": document(page)}
        click.echo(json.dumps(told, indent=2, allow_nan=False))
        return
    for line in _first_lines(page.runs[0], ran.path):
        click.echo(line)
    click.echo("")
    for paragraph in ran.opening():
        click.echo("\n".join(wrapped(paragraph)) + "\n")
    colour.echo(render.text(page))
    click.echo("")
    for stamp in ran.asked.stamps():
        click.echo("\n".join(wrapped(stamp)))
    click.echo(f"log: {printable(str(ran.path))}")


def _first_lines(run: "RunReport", path: Path) -> "Iterator[str]":
    """What came of it, for who reads no further."""
    from admitperf.reports.pages.headline import goodput
    from admitperf.reports.wording import number, share

    ttft, answers = run.cost.ttft_ms, run.answers
    p95 = "n<20" if ttft.withheld else f"{number(ttft.p95)} ms"
    times = f"p50 {number(ttft.p50)} ms, p95 {p95}, n {ttft.n} served"
    yield from row("finding", f"{run.finding.word}: {run.finding.says[0]}")
    yield from row("goodput", goodput(run))
    yield from row("refused", f"{share(answers.refused, answers.offered)} attempts")
    yield from row("TTFT", times if ttft.n else "nothing was served")
    yield from row("log", str(path))


def _plain(ran: "Ran") -> dict[str, Any]:
    """The run as plain data."""
    asked, capacity = ran.asked, ran.capacity
    return {
        "schema": SCHEMA,
        "simulated": True,
        "oracle": asked.oracle,
        "stamps": list(asked.stamps()),
        "profile": asked.profile.document(),
        "capacity": {
            "requests_per_s": capacity.requests_per_s,
            "clients": capacity.clients,
            "answers": capacity.answers,
            "calls_a_session": capacity.calls,
            "engines": asked.replicas,
        },
        "rate_per_s": ran.rate_per_s,
        "rate_counts": f"{ran.workload.noun}s",
        "load": ran.load,
        "lasts_s": ran.lasts_s,
        "count": len(ran.plan.begun),
        "notes": ran.notes(),
        "log": str(ran.path),
    }
