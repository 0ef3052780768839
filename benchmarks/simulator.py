"""How fast a policy before a simulated engine is: a table with targets, and a figure.

Each row is a process of its own, kept on one core: the policy, its decision log and the
scraper's readings included. What is made before (the requests, the capacity) is timed
apart. Run it on a quiet machine; the load beside each row says how quiet it was.

    python benchmarks/simulator.py           the table, about two minutes
    python benchmarks/simulator.py --big     with a million requests
    python benchmarks/simulator.py --quick   small, once each, for CI
    python benchmarks/simulator.py --write   docs/simulator-speed.md, and its figure

Agent sessions are those of WEKA's trace: ADMITPERF_SHARED names the folder that holds
traces/weka_cc_sessions.part*.jsonl. Without it made-up ones take their place, and the
row says so.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path

from machine import machine

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.callers.client import client
from admitperf.bench.workloads import workload
from admitperf.core.notice import hushed
from admitperf.policies import load
from admitperf.simulator import (
    Arrival,
    EngineModel,
    Kind,
    OpenLoop,
    Phase,
    Scraping,
    Setting,
    Traffic,
    VirtualClock,
    poisson,
    run,
    together,
)
from admitperf.simulator.capacity import of_requests, of_sessions

MODEL = EngineModel(
    max_num_seqs=256,
    max_num_batched_tokens=8192,
    kv_blocks=27_000,
    max_model_len=32_768,
    front_ms=5.0,
    step_ms=9.0,
    ms_per_resident_token=3e-5,
    ms_per_prefill_token=0.04,
    ms_per_sequence=0.02,
    noise=0.05,
)
"""An engine of the size of an A100-40GB with a model of 7B, by plain choice: it stays
the same so that figures can be compared over time."""

LOAD = 1.5
AGENT_LOAD = 2.0
HOUR_S = 3_600.0
SCRAPE_S = 0.25
REQUESTS = 100_000
DECADES = (100, 1_000, 10_000, 100_000)
GROUPS = 40
"""Groups of requests that share the beginning of their prompts. Plain choice."""

SHARED_TOKENS = 400
FIGURE = "simulator-speed.svg"
DOCS = Path(__file__).parent.parent / "docs"
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement.

    Attributes:
        what: was run.
        requests: decisions of the policy.
        wall_s, cpu_s: of the run, policy and log included.
        most_s: what the wall time may be; None = no target.
        before_s: to make the requests and to measure the capacity.
        virtual_s: time that passed in the simulation.
        peak_mb: largest memory of the process.
        log_mb: size of the log.
        load: 1-minute load meanwhile.
        said: what else there is to know.
    """

    what: str
    requests: int
    wall_s: float
    cpu_s: float
    most_s: float | None
    before_s: float
    virtual_s: float
    peak_mb: float
    log_mb: float
    load: float
    said: str = ""

    @property
    def missed(self) -> bool:
        """Whether it took longer than it may."""
        return self.most_s is not None and self.wall_s > self.most_s

    @property
    def us_a_request(self) -> float:
        """Microseconds for each decision and all that follows it."""
        return self.wall_s / self.requests * 1e6


# ------------------------------------------------------------------- what is run

Made = tuple[Traffic, float, str]
"""Traffic, the seconds it lasts, and what else there is to know."""


def chat_kind(name: str = "chat", prefix_tokens: int = 0) -> Kind:
    """Requests with about 200 tokens of answer."""
    return Kind(
        name=name,
        input_tokens=(100 + prefix_tokens, 900 + prefix_tokens),
        output_tokens=(50, 350),
        max_output_tokens=512,
        prefix_tokens=prefix_tokens,
    )


def chat(count: int) -> Made:
    """Requests that have nothing in common."""
    kind = chat_kind()
    rate = LOAD * of_requests(MODEL, kind.at(repeat(0.0), 1)).requests_per_s
    asked = together(_at(kind, count, rate))
    return OpenLoop(asked), count / rate, ""


def prefixed(count: int) -> Made:
    """Requests in groups, each with a beginning of its own; the cache takes part."""
    kinds = [chat_kind(f"group-{n}", SHARED_TOKENS) for n in range(GROUPS)]
    rate = LOAD * of_requests(MODEL, _in_turns(kinds)).requests_per_s
    asked = together(*(_at(kind, count // GROUPS, rate / GROUPS) for kind in kinds))
    return OpenLoop(asked), count / rate, f"{GROUPS} groups"


def _at(kind: Kind, count: int, rate_per_s: float) -> Iterator[Arrival]:
    phases = [Phase(lasts_s=count / rate_per_s, rate_per_s=rate_per_s)]
    return kind.at(poisson(phases, 1, kind.name), 1)


def _in_turns(kinds: Sequence[Kind]) -> Iterator[Arrival]:
    each = [kind.at(repeat(0.0), 1) for kind in kinds]
    while True:
        for one in each:
            yield next(one)


def agents(lasts_s: float) -> Made:
    """Agent sessions at twice the capacity."""
    shared = os.environ.get("ADMITPERF_SHARED", "")
    found = Path(shared, "traces").glob("weka_cc_sessions.part*.jsonl")
    names = sorted(map(str, found)) if shared else []
    first, *more = names or ["agents"]
    offered = workload(first, trace=more).fitting(MODEL.longest_tokens)
    capacity = of_sessions(MODEL, offered.pool(), 1)
    begun = offered.begun(AGENT_LOAD * capacity.sessions_per_s, lasts_s, 1)
    none = client("none")
    plan = planned(begun, lasts_s, (0.0, lasts_s), none)
    notes = offered.notes()
    said = "made up; set ADMITPERF_SHARED for the trace"
    if names:
        said = (
            f"token counts / {notes['token_divisor']}, {notes['calls_left_out']} of"
            f" {notes['calls']} calls over {MODEL.longest_tokens} tokens left out"
        )
    return Callers(plan, none, 1, until_s=lasts_s), lasts_s, said


MAKERS: dict[str, Callable[[int], Made]] = {
    "chat": chat,
    "prefix": prefixed,
    "agents": agents,
}


def measured(what: str, size: int, interval_s: float) -> Row:
    """Makes traffic and runs it, in this process."""
    start = time.perf_counter()
    traffic, lasts_s, said = MAKERS[what](size)
    before_s = time.perf_counter() - start
    with tempfile.TemporaryDirectory(prefix="admitperf-bench-") as folder:
        path = Path(folder) / "run.jsonl"
        wall, cpu = time.perf_counter(), time.process_time()
        _run(traffic, path, interval_s)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        requests = path.read_bytes().count(b'{"k":"decision"')
        log_mb = path.stat().st_size / 1e6
    return Row(
        what=what,
        requests=requests,
        wall_s=wall,
        cpu_s=cpu,
        most_s=None,
        before_s=before_s,
        virtual_s=lasts_s,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        log_mb=log_mb,
        load=os.getloadavg()[0],
        said=said,
    )


def _run(traffic: Traffic, path: Path, interval_s: float) -> None:
    clock = VirtualClock(1_767_225_600.0)
    setting = Setting(model=MODEL, scraping=Scraping(interval_s=interval_s), seed=1)
    with (
        hushed(),
        load("queue_depth")(
            clock=clock, log=path, raw="reference", reports_outcomes=True
        ) as policy,
    ):
        run(policy, clock, traffic, setting)


# ------------------------------------------------------------------- measurement


def apart(
    told: str,
    job: tuple[str, int, float],
    most_s: float | None = None,
    rounds: int = 1,
) -> Row:
    """The median of some rounds, each a process of its own on one core."""
    print(f"  {told} …", file=sys.stderr, flush=True)
    rows = [_process(job) for _ in range(rounds)]
    middle = statistics.median(row["wall_s"] for row in rows)
    row = next((row for row in rows if row["wall_s"] == middle), rows[0])
    peak_mb = max(row["peak_mb"] for row in rows)
    return Row(**{**row, "what": told, "most_s": most_s, "peak_mb": peak_mb})


def _process(job: tuple[str, int, float]) -> dict[str, float]:
    words = [sys.executable, __file__, "--job", *map(str, job)]
    ran = subprocess.run(words, check=True, capture_output=True, text=True)
    row: dict[str, float] = json.loads(ran.stdout)
    return row


def measure_all(*, quick: bool, big: bool) -> tuple[list[Row], list[Row]]:
    """The rows with targets, and those over three decades or more."""
    count = 2_000 if quick else REQUESTS
    lasts_s = HOUR_S / 12 if quick else HOUR_S
    rounds = 1 if quick else ROUNDS
    most = (None, None, None) if quick else (15.0, 30.0, 20.0)
    rows = [
        apart("chat, 1.5x", ("chat", count, SCRAPE_S), most[0], rounds),
        apart("prefix cache, 1.5x", ("prefix", count, SCRAPE_S), most[1], rounds),
        apart(
            f"agents, {lasts_s / 60:.0f} min, 2x",
            ("agents", int(lasts_s), SCRAPE_S),
            most[2],
            rounds,
        ),
    ]
    if not quick:
        rows += [
            apart("chat, read every 50 ms", ("chat", count, 0.05)),
            apart("chat, read every 5 s", ("chat", count, 5.0)),
        ]
    decades = DECADES[:2] if quick else DECADES
    decades += (1_000_000,) if big else ()
    return rows, [
        apart(f"{size:,} requests", ("chat", size, SCRAPE_S), None, rounds)
        for size in decades
    ]


def exponent(rows: Sequence[Row]) -> float:
    """How wall time grows with requests: 1 = linear, by least squares of logarithms."""
    x = [math.log(row.requests) for row in rows]
    y = [math.log(row.wall_s) for row in rows]
    return statistics.linear_regression(x, y).slope


# ------------------------------------------------------------------------ output


HEAD = (
    "run",
    "requests",
    "s (target)",
    "CPU s",
    "us each",
    "virtual s",
    "before s",
    "peak MB",
    "log MB",
    "load",
)


def cells(row: Row) -> list[str]:
    """One row as text."""
    target = "" if row.most_s is None else f" ({row.most_s:g})"
    return [
        row.what,
        f"{row.requests:,}",
        f"{row.wall_s:.2f}{target}" + (" MISSED" if row.missed else ""),
        f"{row.cpu_s:.2f}",
        f"{row.us_a_request:.0f}",
        f"{row.virtual_s:,.0f}",
        f"{row.before_s:.1f}",
        f"{row.peak_mb:.0f}",
        f"{row.log_mb:.1f}",
        f"{row.load:.1f}",
    ]


def table(rows: Sequence[Row]) -> str:
    """The rows for a terminal."""
    lines = [list(HEAD), *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    made = [
        "  ".join(
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    made.insert(1, "-" * len(made[0]))
    return "\n".join(made)


def markdown(rows: Sequence[Row]) -> str:
    """The rows for the documentation."""
    lines = [HEAD, ["---", *["--:"] * (len(HEAD) - 1)], *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def write(rows: Sequence[Row], decades: Sequence[Row]) -> None:
    """Puts the tables and the figure into the documentation."""
    page = DOCS / "simulator-speed.md"
    text = page.read_text(encoding="utf-8")
    where = "; ".join(f"{key} {value}" for key, value in machine().items())
    said = [f"{row.what}: {row.said}." for row in rows if row.said]
    told = [
        f"Measured on {where}. Median of {ROUNDS}, largest peak.",
        markdown([*rows, *decades]),
        " ".join(said),
        f"Wall time grows with requests to the power of {exponent(decades):.2f}.",
    ]
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    middle = "\n\n".join(told)
    page.write_text(f"{before}{BEGIN}\n\n{middle}\n\n{END}{after}", encoding="utf-8")
    _draw(decades, DOCS / FIGURE)


def _draw(decades: Sequence[Row], path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415  only who writes the page needs it

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "admitperf"
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt  # noqa: PLC0415  as above

    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    requests = [row.requests for row in decades]
    each_s = decades[-1].wall_s / decades[-1].requests
    axes.loglog(
        requests,
        [n * each_s for n in requests],
        "--",
        color="0.6",
        label=f"{each_s * 1e6:.0f} µs a request",
    )
    axes.loglog(requests, [row.wall_s for row in decades], "o-", label="measured")
    axes.set_xlabel("requests offered, at 1.5x of capacity")
    axes.set_ylabel("wall time in s, one core")
    axes.grid(visible=True, which="major", color="0.9")
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small, once each")
    parser.add_argument("--big", action="store_true", help="a million requests too")
    parser.add_argument("--write", action="store_true", help="write the docs' page")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.job:
        _on_one_core()
        what, size, interval_s = chosen.job
        print(json.dumps(asdict(measured(what, int(size), float(interval_s)))))
        return
    rows, decades = measure_all(quick=chosen.quick, big=chosen.big)
    if chosen.write:
        write(rows, decades)
    if chosen.json:
        told = [{**asdict(row), "missed": row.missed} for row in (*rows, *decades)]
        print(json.dumps({"machine": machine(), "rows": told}, indent=1))
        return
    print("; ".join(f"{key} {value}" for key, value in machine().items()))
    print("a policy, its log and an engine in virtual time, on one core; median")
    print(table([*rows, *decades]))
    for row in rows:
        if row.said:
            print(f"{row.what}: {row.said}")
    print(f"wall time grows with requests to the power of {exponent(decades):.2f}")


def _on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


if __name__ == "__main__":
    main()
