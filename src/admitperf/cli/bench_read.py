"""`admitperf bench read`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from admitperf.cli.bounds import BOUNDS
from admitperf.cli.reading import end_unread
from admitperf.core.errors import LogError
from admitperf.reports.runs.slo import Slo

if TYPE_CHECKING:
    from admitperf.bench.interchange.judged import Judged


class _Options(TypedDict):
    """The options as click hands them over."""

    slo: Slo | None
    calls: Path | None
    as_json: bool


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--slo",
    type=BOUNDS,
    help="Bounds in ms, such as ttft_ms=1500,stall_ms=500 (also e2e_ms).  [default: an"
    " answer is enough]",
)
@click.option(
    "--calls",
    metavar="FILE.jsonl",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the calls, a line each, as a benchmark of ours writes them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def command(files: tuple[str, ...], **options: Unpack[_Options]) -> None:
    """Read the result files of other benchmarks, and judge them by our own rules.

    A FILE is what one of these wrote, told by what is in it: vllm bench serve
    (--save-result --save-detailed), GuideLLM (benchmarks.json), AIPerf
    (profile_export.jsonl), inference-perf (per_request_lifecycle_metrics.json); of the
    last two also the summary, which holds no single request.

    Goodput is over all that were offered: what was refused or failed, or ended with
    the run, counts as not met. What a file does not say is named.

    Exit code 2 when a FILE could not be read; the others are shown all the same.
    """
    judged, faults = [], []
    for file in files:
        try:
            judged += [(file, one) for one in _judged(file, options["slo"])]
        except LogError as error:
            faults.append(error)
    if options["calls"] is not None:
        _write(options["calls"], [one for _, one in judged])
    if options["as_json"]:
        click.echo(json.dumps(_document(judged), indent=2, allow_nan=False))
    else:
        _show(judged)
    end_unread(faults)


def _judged(file: str, slo: Slo | None) -> "list[Judged]":
    from admitperf.bench.interchange.judged import judge
    from admitperf.bench.interchange.read import read

    bounds = dict(slo.everyone or {}) if slo is not None else {}
    return [judge(run, bounds) for run in read(Path(file))]


def _document(judged: "list[tuple[str, Judged]]") -> dict[str, object]:
    from admitperf.bench.interchange.judged import SCHEMA

    runs = [{"file": file, **one.document()} for file, one in judged]
    return {"schema": SCHEMA, "runs": runs}


def _show(judged: "list[tuple[str, Judged]]") -> None:
    from admitperf.bench.interchange.page import text

    click.echo("\n".join(text(one, file) for file, one in judged), nl=False)


def _write(path: Path, judged: "list[Judged]") -> None:
    """Writes the calls of all runs, one after the other.

    Raises:
        click.FileError: they cannot be written.
    """
    from admitperf.bench.interchange.judged import call_lines
    from admitperf.core.record import dumps

    lines = [dumps(one) for run in judged for one in call_lines(run.run)]
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from None
