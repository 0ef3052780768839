"""`admitperf sim fit`, `admitperf sim check` and `admitperf sim profiles`."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from admitperf.cli.layout import row, wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.cli.replacing import replaced
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.wording import number, plural, printable

if TYPE_CHECKING:
    from admitperf.simulator.fit.checking import Line, Table
    from admitperf.simulator.profile import Profile

_FAILED = 1
_MOST_DIGITS = 18  # of a whole number that a person types
_MOST_PER_S = 1e6
_COSTS = 24  # columns before the value of a cost
_SIMULATED = "SIMULATED: the column 'simulated' is an engine in virtual time."
_GUESSED: Mapping[str, str] = {
    "step_ms": "runs of one client and of several, such as `vllm bench serve"
    " --max-concurrency 1` and `8`, both with --save-result --save-detailed",
    "ms_per_prefill_token": "a run of one client whose prompts are of many lengths,"
    " such as `vllm bench serve --max-concurrency 1 --random-range-ratio 0.9` with"
    " --save-result --save-detailed",
}
"""Costs that no profile should be without, and the run that would give each."""


class _FitOptions(TypedDict):
    """The options of `fit` as click hands them over."""

    output: str
    name: str | None
    base: str | None
    sizes: tuple[tuple[str, object], ...]
    machine: str | None
    as_json: bool


def _size(
    _ctx: click.Context, _param: click.Parameter, told: tuple[str, ...]
) -> tuple[tuple[str, object], ...]:
    """`max_num_seqs=8` as a field of an `EngineModel` and its value."""
    from admitperf.simulator.fit.fitting import SIZES

    sizes: list[tuple[str, object]] = []
    for one in told:
        name, equals, value = one.partition("=")
        if not equals or name not in SIZES:
            raise click.BadParameter(f"{one}: is no FIELD=VALUE of {', '.join(SIZES)}")
        if name in dict(sizes):
            raise click.BadParameter(f"{name} is said twice")
        sizes.append((name, _value(value)))
    return tuple(sizes)


def _value(text: str) -> object:
    """A number, true, false or none, else the text itself."""
    words: dict[str, object] = {"true": True, "false": False, "none": None}
    whole = text.isdecimal() and len(text) <= _MOST_DIGITS
    return words.get(text.lower(), int(text) if whole else text)


def _capacity(
    _ctx: click.Context, _param: click.Parameter, per_s: float | None
) -> float | None:
    """Requests a second that an engine can have."""
    if per_s is None or 1 / _MOST_PER_S <= per_s <= _MOST_PER_S:
        return per_s
    between = f"{1 / _MOST_PER_S:g} to {_MOST_PER_S:g}"
    raise click.BadParameter(f"{per_s:g} is not in the range of {between}.")


@click.command("fit")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="profile.json",
    show_default=True,
    help="Where the profile goes; what is there is replaced.",
)
@click.option("--name", metavar="NAME", help="Of the profile.  [default: as its file]")
@click.option(
    "--from",
    "base",
    metavar="PROFILE",
    help="A profile whose ratios and sizes stand in where the runs say nothing.",
)
@click.option(
    "--engine",
    "sizes",
    metavar="FIELD=VALUE",
    multiple=True,
    callback=_size,
    help="What the engine is, such as max_num_seqs=8, over what the runs say; may be"
    " given again.",
)
@click.option("--machine", metavar="WORDS", help="What the runs were recorded on.")
@click.option("--json", "as_json", is_flag=True, help="Print the profile as well.")
def fit(runs: tuple[str, ...], **options: Unpack[_FitOptions]) -> None:
    """Fit an engine's costs to recorded runs, and write a profile.

    RUN is a run of the load generator, a decision log whose outcomes have ttft_ms,
    e2e_ms and output_tokens, or what `vllm bench serve --save-result --save-detailed`
    wrote.

    A coefficient that the runs do not determine is drawn to the ratio of --from, or of
    the default prior, and the profile says which ones were. A run that is to be
    predicted must not be among those fitted.

    Exit code 2 when a run cannot be read or does not say what the engine is.
    """
    try:
        made = _fitted(runs, options)
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    replaced(options["output"], made.text())
    warnings = list(_warnings(made, based=options["base"] is not None))
    for line in warnings:
        click.echo(line, err=True)
    if options["as_json"]:
        click.echo(made.text(), nl=False)
        return
    for line in (*_profile_lines(made), *_spaced(warnings)):
        click.echo(line)
    click.echo(f"\nwritten: {printable(options['output'])}")


def _fitted(paths: tuple[str, ...], options: _FitOptions) -> "Profile":
    from admitperf.reports.extra import needed

    needed("scipy.optimize")
    from admitperf.simulator.fit.fitting import fitted
    from admitperf.simulator.fit.read import read
    from admitperf.simulator.profile import profile

    base = None if options["base"] is None else profile(options["base"])
    return fitted(
        [read(path) for path in paths],
        name=options["name"] or Path(options["output"]).stem,
        base=base,
        sizes=dict(options["sizes"]),
        machine=options["machine"],
    )


def _warnings(made: "Profile", *, based: bool) -> Iterator[str]:
    """What the runs do not say though predictions rest on it; lines of 80 columns."""
    for name, help_ in _GUESSED.items():
        if name in made.provenance.priors:
            said = (
                f"WARNING: {name} does not come from the runs; it is"
                f" {made.provenance.priors[name]}. What helps: {help_}"
            )
            said += "." if based else ", or --from with a profile of a like engine."
            yield from wrapped(said, "", "  ")


def _spaced(lines: Iterable[str]) -> Iterator[str]:
    """The lines with an empty one before them; none when there are none."""
    found = list(lines)
    yield from ["", *found] if found else ()


def _profile_lines(made: "Profile") -> Iterator[str]:
    told, left = made.provenance, made.residuals
    yield f"{printable(made.name)}: {made.stamp}"
    yield ""
    for name in ("front_ms", "step_ms", *_PER, "noise"):
        value = number(getattr(made.engine, name))
        yield from row(name, f"{value}{_from_where(made, name)}", column=_COSTS + 2)
    if left is not None:
        yield ""
        yield from wrapped(_residual_words(made), "  ", "  ")
    for note in told.notes:
        yield from wrapped(note, "  ", "  ")


_PER = ("ms_per_resident_token", "ms_per_prefill_token", "ms_per_sequence")


def _from_where(made: "Profile", name: str) -> str:
    if name == "noise":
        return f", one factor for {made.engine.noise_steps} steps"
    if name in made.provenance.priors:
        return f", {made.provenance.priors[name]}"
    return ", from the runs" if name in made.provenance.identified else ""


def _residual_words(made: "Profile") -> str:
    left, runs = made.residuals, len(made.provenance.runs)
    if left is None:
        return ""
    known = "are taken" if runs == 1 else "were seen"
    return (
        f"{plural(left.observations, 'observation')} of"
        f" {plural(runs, 'run')}, {left.left_out} left out:"
        f" half are within {left.median_abs_fraction:.0%} of the model, 95 in 100"
        f" within {left.p95_abs_fraction:.0%}, their sum within"
        f" {abs(left.sum_fraction):.1%}. Whole runs {known} to differ by"
        f" {left.run_to_run:.0%}."
    )


class _CheckOptions(TypedDict):
    """The options of `check` as click hands them over."""

    capacity_per_s: float | None
    repeats: int
    strict: bool
    as_json: bool


@click.command("check")
@click.argument("profile", metavar="PROFILE")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--capacity",
    "capacity_per_s",
    metavar="PER_S",
    type=float,
    callback=_capacity,
    help="Requests a second the engine can end; says which rule holds.  [default: what"
    " the model drains]",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Simulations of each run.",
)
@click.option("--strict", is_flag=True, help="Exit 1 when a rule does not hold.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
def check(
    profile: str, runs: tuple[str, ...], **options: Unpack[_CheckOptions]
) -> None:
    """Hold a profile against recorded runs: what was, and what the model makes of it.

    The requests of a run are sent through the simulated engine as they were sent, with
    the answers as long as they were, and it is looked at when the real one was. A run
    that the profile was fitted to proves little.

    Exit code 0 also when rules do not hold, unless --strict; 2 when something cannot be
    read.
    """
    try:
        tables = list(_tables(profile, runs, options))
    except (AdmitPerfError, ValueError) as error:
        raise UnreadableInput(printable(str(error))) from None
    if options["as_json"]:
        plain = [asdict(one) | {"ok": one.ok, "verdict": one.verdict} for one in tables]
        whole = {"simulated": True, "tables": plain}
        click.echo(json.dumps(whole, indent=2, allow_nan=False))
    else:
        lines = (line for one in tables for line in _table_lines(one))
        click.echo("\n".join([_SIMULATED, "", *lines]))
    if options["strict"] and not all(table.ok for table in tables):
        sys.exit(_FAILED)


def _tables(
    name: str, paths: tuple[str, ...], options: _CheckOptions
) -> Iterator["Table"]:
    from admitperf.simulator.fit.checking import checked
    from admitperf.simulator.fit.read import read
    from admitperf.simulator.profile import profile

    made = profile(name)
    runs = [read(path) for path in paths]
    for run in runs:
        yield checked(
            made,
            run,
            repeats=options["repeats"],
            capacity_per_s=options["capacity_per_s"],
        )


def _table_lines(table: "Table") -> Iterator[str]:
    yield from wrapped(_load_words(table))
    for caution in _cautions(table):
        yield from wrapped(caution, "  ", "  ")
    yield _head("simulated log" if table.log_simulated else "real")
    yield from (_line(one) for one in table.lines)
    if table.refused:
        yield from wrapped(f"{table.refused} requests were refused or never fit.", "  ")
    yield from wrapped(f"{table.verdict}.", "  ", "  ")
    yield ""


def _cautions(table: "Table") -> Iterator[str]:
    """What to know before reading a table."""
    if table.log_simulated:
        yield f"SIMULATED: {table.run} is of a simulated engine; nothing here is real."
    if table.profile_simulated:
        yield f"SIMULATED: {table.profile} was fitted to simulated runs."
    if table.fitted:
        yield "The profile was fitted to this run."
    if table.differences:
        yield f"WARNING: {'; '.join(table.differences)}. The run's are used."


def _head(real: str) -> str:
    """The head of a table; a long name of its first numbers leans to the left."""
    left = "  metric" + f"{real:>19}"
    return f"{left}{'simulated':>11}  {'middle 90 %':17}rule"


def _line(one: "Line") -> str:
    settled = one.low is None or one.high is None
    spread = "--" if settled else f"{number(one.low)} to {number(one.high)}"
    return (
        f"  {one.metric:16}{number(one.real):>9}{number(one.simulated):>11}"
        f"  {spread:17}{one.rule:19}{'ok' if one.ok else 'MISS'}"
    )


def _load_words(table: "Table") -> str:
    said = f"{table.run} by {table.profile}, {plural(table.repeats, 'repeat')}: "
    if table.load is None:
        return said + "who asks waits for the answer before asking again"
    capacity = f"{number(table.capacity_per_s)} a second ({table.capacity_from})"
    return f"{said}load {table.load:.2f} of {capacity}"


@click.command("profiles")
@click.option("--json", "as_json", is_flag=True, help="Print them whole, as JSON.")
def profiles(*, as_json: bool) -> None:
    """List the profiles that come with AdmitPerf, and where their numbers come from.

    Measured ones were fitted to recorded runs. The others are arithmetic on published
    numbers: nobody has held them against a real engine.
    """
    from admitperf.simulator.profile import profile, shipped

    made = [profile(name) for name in shipped()]
    if as_json:
        plain: dict[str, Any] = {"profiles": [one.document() for one in made]}
        click.echo(json.dumps(plain, indent=2, allow_nan=False))
        return
    for one in made:
        click.echo("\n".join(_listed(one)))


def _listed(made: "Profile") -> Iterator[str]:
    engine, told = made.engine, made.provenance
    yield f"{printable(made.name)}"
    said = made.stamp
    if told.runs:
        said += f": {plural(len(told.runs), 'run')} of {told.date}"
    yield from row("from", said)
    yield from row("engine", told.versions or "not stated")
    yield from row("machine", told.machine or "not stated")
    yield from row(
        "sizes",
        f"max_num_seqs {engine.max_num_seqs}, {engine.kv_tokens} tokens of KV cache",
    )
    for note in told.notes[:1]:
        yield from row("note", note)
    yield ""
