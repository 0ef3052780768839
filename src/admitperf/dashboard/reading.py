"""Everything the pages show, read by `reports` and `bench`, as plain documents."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from admitperf.bench.design.comparison import compare
from admitperf.bench.design.results import read_experiment
from admitperf.bench.pages import document as bench_document
from admitperf.dashboard import cache
from admitperf.reports.comparison import experiments, sides
from admitperf.reports.comparison.comparison import compare_all
from admitperf.reports.files.discover import discover
from admitperf.reports.files.tail import tail
from admitperf.reports.pages import comparison_document
from admitperf.reports.pages.document import document
from admitperf.reports.report import Report, reported
from admitperf.reports.runs import browse
from admitperf.reports.runs.log import Log
from admitperf.reports.runs.slo import Slo
from admitperf.reports.series.series import series

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the dashboard was started on.

    Attributes:
        path: a log, or a folder with logs in it.
        slo: bounds in place of the logs' own, as `--slo` takes them; "" = none.
        warmup: what is left out at the beginning of each run; "" = nothing.
    """

    path: str
    slo: str = ""
    warmup: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """A document, and where its rows are.

    Attributes:
        made: the document.
        rows: the decisions as Parquet; None when none were asked for or could be kept.
    """

    made: Document
    rows: Path | None


def overview(asked: Asked) -> Document:
    """The report on every run below the path.

    Raises:
        LogError: nothing could be read; each argument says why of one file.
    """
    with discover([asked.path]) as found:
        only = [one.path for one in found.logs]
    if len(only) == 1 and not found.unread:  # a look at it is to read it once
        return whole(asked, only).made
    return _read(asked, [asked.path], "overview", lambda _, made: document(made)).made


def whole(asked: Asked, paths: Sequence[str]) -> Read:
    """The report on some files with each run over time, and its decisions as rows.

    Raises:
        LogError: as for `overview`.
    """

    def make(log: Log, made: Report) -> Document:
        return document(made, None, series(log, made))

    return _read(asked, paths, "whole", make, rows=True)


def listed(asked: Asked) -> Document:
    """The experiments below the path and their arms, with what is missing.

    Raises:
        LogError: as for `overview`.
    """

    def make(_: Log, made: Report) -> Document:
        return experiments.document(experiments.listed(made.runs), made.files)

    return _read(asked, [asked.path], "listed", make).made


def compared(asked: Asked, experiment: str, baseline: str | None) -> Document:
    """Every arm of an experiment against its baseline.

    Args:
        asked: where the logs are.
        experiment: its name, as the headers have it.
        baseline: the arm to compare with; None = the one that refuses nothing.

    Raises:
        LogError: as for `overview`.
        ArmsError: there is not one baseline, or no other arm.
    """

    def make(_: Log, made: Report) -> Document:
        arms = sides.of_experiment(made.runs, experiment, baseline)
        return comparison_document.document(compare_all(*arms), made.files)

    return _read(asked, [asked.path], ["compared", experiment, baseline], make).made


def benchmark(folder: Path) -> Document:
    """The verdicts of a benchmark that left its results in a folder.

    Raises:
        AdmitPerfError: they cannot be read or compared.
    """
    found = read_experiment(folder)
    return bench_document.document(compare(found), runs=found.runs)


def benchmarks(path: Path) -> list[Path]:
    """The folders of benchmarks at a path or right below it."""
    if not path.is_dir():
        return []
    places = (path, *sorted(path.iterdir()))
    return [one for one in places if (one / "experiment.json").is_file()]


def growing(asked: Asked) -> list[str]:
    """The plain logs below the path, the one written last first."""
    with discover([asked.path]) as found:
        plain = [one for one in found.logs if one.compression is None]
        by_time = [(one.real.stat().st_mtime_ns, one.path) for one in plain]
    return [path for _, path in sorted(by_time, reverse=True)]


def end_of(asked: Asked, path: str) -> tuple[Document, int, int]:
    """The report on the end of a log, by the same code as on a whole one.

    Returns:
        The document, how many bytes it is of, and how many the log has.

    Raises:
        LogError: there is no record in it yet.
        OSError: it has gone.
    """
    slo = Slo.parsed(asked.slo) if asked.slo else None
    with tempfile.TemporaryDirectory(prefix="admitperf-") as folder:
        copy = Path(folder) / Path(path).name
        shown, size = tail(Path(path), copy)
        with reported([str(copy)], slo) as (log, made):
            return document(made, None, series(log, made)), shown, size


def _read(
    asked: Asked,
    paths: Sequence[str],
    how: object,
    make: Callable[[Log, Report], Document],
    *,
    rows: bool = False,
) -> Read:
    """What is kept of these logs, or else what is made of them now and kept.

    Args:
        asked: bounds and warm-up.
        paths: the logs.
        how: tells what is made from what else is made of the same logs.
        make: the document.
        rows: whether its decisions are to be browsed.
    """
    said = [how, asked.slo, asked.warmup]
    name = _name(paths, said)
    held = cache.read(name)
    if held is None:
        slo = Slo.parsed(asked.slo) if asked.slo else None
        with reported(paths, slo, warmup=asked.warmup or None) as (log, made):
            held = make(log, made)
            if name == _name(paths, said):  # else it grew while it was read
                cache.write(
                    name, held, partial(browse.write, log, made) if rows else None
                )
    return Read(held, cache.decisions(name))


def _name(paths: Sequence[str], said: Sequence[object]) -> str:
    """The cache's name for the files behind some paths, as they are now."""
    with discover(paths) as found:
        return cache.key([one.real for one in found.logs], [*said, found.unread])
