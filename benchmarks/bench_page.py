"""Runs the benchmark that comes along as a demo, and writes its page.

    python benchmarks/bench_page.py            the page of `make bench-demo`, printed
    python benchmarks/bench_page.py --write    put it into docs/results, with its plot
    python benchmarks/bench_page.py --preset sessions    another one, much longer
    python benchmarks/bench_page.py --preset a10-4seq    beside what a talk showed

What was run before in `--root` is not run again; an empty folder times all of it.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev

from machine import machine

from admitperf.bench.design.comparison import Verdicts, compare
from admitperf.bench.design.results import Run, read_experiment
from admitperf.bench.harness.config import parsed, preset
from admitperf.bench.harness.experiment import STATED, Experiment
from admitperf.bench.harness.run import Done
from admitperf.bench.pages import page
from admitperf.bench.pages.middles import INFINITE, offered_p95
from admitperf.bench.pages.plot import plot
from admitperf.reports.wording import NOT_KNOWN

RESULTS = Path(__file__).parent.parent / "docs" / "results"
PAGES = {"tool-tight": "bench-demo", "sessions": "bench-sessions"}
TITLES = {
    "a10-4seq": "Four sequences on an A10: the talk's example, simulated",
    "tool-tight": "Benchmark demo: quick agents before a small engine",
    "sessions": "Benchmark of long agent sessions",
}

NOT_SHOWN = "not shown"
PUBLISHED = {
    "KV pressure at most": "0.5 %",
    "queue at most": "24",
    "p95 TTFT of those served, without a policy": "2.5 s, +-0.7 s over 2 runs",
    "p95 TTFT of those offered, without a policy": NOT_SHOWN,
    "p95 TTFT of those served, with the bound": "1.0 s",
    "p95 TTFT of those offered, with the bound": NOT_SHOWN,
    "admitted with the bound": "63 %",
    "goodput": "equal",
}
"""What the talk showed; sizes of requests and length of runs were not published."""


class Told:
    """A line on stderr now and then."""

    def stage(self, what: str) -> None:
        """Something begins."""
        print(what, file=sys.stderr)

    def ran(self, done: Done, n: int, of: int, left_s: float) -> None:
        """A run is over."""
        if n % 20 == 0 or n == of:
            print(f"{done.job.place} {n}/{of}, {left_s:.0f} s left", file=sys.stderr)


def ran(name: str, root: Path) -> tuple[Verdicts, dict[str, object], Sequence[Run]]:
    """A preset's comparison, what its experiment says of itself, and its runs."""
    config = parsed(preset(name) | {"root": str(root)}, name)
    with Experiment(config, Told()) as experiment:
        experiment.run(experiment.planned())
    stated: dict[str, object] = json.loads((config.folder / STATED).read_text("utf-8"))
    found = read_experiment(config.folder)
    return compare(found, None), stated, found.runs


def beside(runs: Sequence[Run]) -> Iterator[str]:
    """What the simulated engine gave, beside what the talk showed of a real one."""
    given = dict(zip(PUBLISHED, _given(runs), strict=True))
    yield "| | the talk, an A10 | here, SIMULATED |"
    yield "|---|---|---|"
    for name, shown in PUBLISHED.items():
        yield f"| {name} | {shown} | {given[name]} |"
    yield ""
    yield (
        "Sizes of answers and the length of runs were not published: the preset chooses"
        " them so that a queue of that kind can form. That a KV threshold cannot fire,"
        " and how much is admitted, follows; how long the tail is does not."
    )


def _given(runs: Sequence[Run]) -> Iterator[str]:
    bare = [run for run in runs if run.arm == "no_admission"]
    bound = [run for run in runs if run.arm == "queue_depth"]
    yield f"{100 * _most(runs, 'kv_pressure'):.2f} %"
    yield f"{_most(runs, 'queue_depth'):.0f}"
    for arm in (bare, bound):
        p95_s = [run.summary["ttft_served_ms"]["p95"] / 1e3 for run in arm]
        yield f"{fmean(p95_s):.2f} s, SD {stdev(p95_s):.2f} s over {len(p95_s)} runs"
        yield _all_offered(arm)
    admitted = [1 - run.summary["refused_share"] for run in bound]
    yield f"{100 * fmean(admitted):.0f} %"
    good = [fmean(run.summary["goodput"] for run in arm) for arm in (bare, bound)]
    yield f"{good[0]:.3f} without, {good[1]:.3f} with the bound, by the SLO below"


def _all_offered(arm: Sequence[Run]) -> str:
    """Of the middle run, over every call."""
    found = offered_p95(arm)
    if found == float("inf"):
        return (
            f"{INFINITE}: more than one in 20 refused, or not served when a run ended"
        )
    return NOT_KNOWN if found is None else f"{found / 1e3:.2f} s, the middle run"


def _most(runs: Sequence[Run], name: str) -> float:
    logs = [run.log for run in runs if run.log]
    seen = [one.spread.high for log in logs for one in log.signals if one.name == name]
    return max(value for value in seen if value is not None)


def lines(
    name: str, made: Verdicts, stated: dict[str, object], runs: Sequence[Run]
) -> Iterator[str]:
    """The page."""
    where = machine()
    yield f"# {TITLES.get(name, name)}"
    yield ""
    yield "Written by `python benchmarks/bench_page.py --write`, not by hand."
    yield (
        "**SIMULATED**: an engine in virtual time; no number here was measured on"
        " hardware."
    )
    yield ""
    yield f"    admitperf bench --preset {name}"
    yield ""
    yield (
        f"All of it took {float(str(stated['seconds'])):.0f} s ({where['cores']} cores,"
        f" {where['cpu']}, Python {where['python']}, {where['date']})."
    )
    yield ""
    if name == "a10-4seq":
        yield from beside(runs)
        yield ""
    yield f"![Goodput against load]({PAGES.get(name, name)}.svg)"
    yield ""
    yield "```text"
    yield page.text(made, runs).rstrip()
    yield "```"


def main() -> None:
    """Prints the page, or writes it."""
    parser = argparse.ArgumentParser(description="The page of a benchmark.")
    parser.add_argument("--preset", default="tool-tight", help="which one")
    parser.add_argument("--root", type=Path, default=Path("experiments"))
    parser.add_argument("--write", action="store_true", help="into docs/results")
    asked = parser.parse_args()
    made, stated, runs = ran(asked.preset, asked.root)
    text = "\n".join(lines(asked.preset, made, stated, runs)) + "\n"
    if not asked.write:
        print(text)
        return
    RESULTS.mkdir(exist_ok=True)
    name = PAGES.get(asked.preset, asked.preset)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    plot(made, RESULTS / f"{name}.svg")


if __name__ == "__main__":
    main()
