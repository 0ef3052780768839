"""Prints what a decision costs, as a table. Not a test: nothing here passes or fails.

    python benchmarks/run.py            everything, about four minutes
    python benchmarks/run.py --quick    one short round, to see that it runs
    python benchmarks/run.py --json

Every row names its mode and rate, because they change the figure more than the code
does: after a sleep the caches are cold. Load and CPU steal are printed beside it, since
shared machines make the same run differ by 20 to 40 %. Figures are the median of five
runs; a row that misses its target says so.
"""

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from machine import machine

from admitperf import Policy, Reading
from admitperf.core.decision import Decision
from admitperf.core.series import Series
from admitperf.core.signals import ENGINE, KV_PRESSURE, QUEUE_DEPTH
from admitperf.core.snapshot import Snapshot
from admitperf.engines.exposition import parse
from admitperf.testing import FakeClock

PAGE = Path(__file__).parent.parent / "tests/data/cases/s-met-14/scrape_42k.txt"
SAME_READING = 5_000
"""Decisions on one reading: 4 readings a second at 20,000 decisions a second."""


class Gates(Policy):
    """Two gates, like most rules."""

    name = "gates"
    threshold: float = 0.9
    max_waiting: int = 32

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse over either bound."""
        if metrics.at_least(KV_PRESSURE, self.threshold):
            return self.reject("kv_pressure")
        if metrics.above(QUEUE_DEPTH, self.max_waiting):
            return self.defer("queue_depth")
        return self.admit()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        what, mode: what was timed, and how it was driven.
        figures: measured values by name.
        targets: upper limits for some of them.
        load, steal: 1-minute load and percent of CPU stolen meanwhile.
    """

    what: str
    mode: str
    figures: Mapping[str, float]
    targets: Mapping[str, float]
    load: float
    steal: float

    @property
    def missed(self) -> list[str]:
        """Figures over their target."""
        return [name for name, top in self.targets.items() if self.figures[name] > top]


def metrics_303() -> dict[str, float]:
    """A real engine's signals among 300 other series with labels."""
    others = {
        f'vllm:other_{i}_total{{engine="0",model_name="m"}}': float(i)
        for i in range(300)
    }
    label = '{engine="0",model_name="m"}'
    return {
        f"vllm:kv_cache_usage_perc{label}": 0.5,
        f"vllm:num_requests_waiting{label}": 3.0,
        f"vllm:num_requests_running{label}": 8.0,
        **others,
    }


def microseconds(taken_ns: list[int]) -> dict[str, float]:
    """p50, p99, p99.9 and the largest, in microseconds, by nearest rank."""
    ranked = sorted(taken_ns)
    last = len(ranked) - 1
    marks = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
    found = {
        name: ranked[min(last, int(q * len(ranked)))] / 1000
        for name, q in marks.items()
    }
    return {**found, "max": ranked[-1] / 1000}


def median_of(runs: int, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Each figure's median over runs."""
    rounds = [measure() for _ in range(runs)]
    return {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}


@contextmanager
def fresh_log() -> Iterator[Path]:
    """A path in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "decisions.jsonl"


def warm(calls: int, *, log: bool = True, plain: bool = False) -> dict[str, float]:
    """As fast as it goes, on the same reading for a while."""
    raw = metrics_303()
    taken: list[int] = []
    with fresh_log() as path:
        policy = Gates(log=path if log else None)
        metrics: Reading | dict[str, float] = raw
        for i in range(calls):
            if i % SAME_READING == 0:
                metrics = dict(raw) if plain else Reading(raw)
            rid = f"req-{i}"
            start = time.perf_counter_ns()
            policy(metrics, request_id=rid)
            taken.append(time.perf_counter_ns() - start)
        policy.close()
    return microseconds(taken)


def warm_with_outcomes(calls: int) -> dict[str, float]:
    """The same with every outcome reported, so that the ledger's signals are live."""
    reading, taken = Reading(metrics_303(), age_s=-60.0), []
    with fresh_log() as path:
        policy = Gates(log=path, reports_outcomes=True)
        for i in range(calls):
            rid = f"req-{i}"
            start = time.perf_counter_ns()
            policy(reading, request_id=rid, tenant="a", input_tokens=512)
            taken.append(time.perf_counter_ns() - start)
            policy.outcome(rid, ok=True, ttft_ms=400.0)
        policy.close()
    return microseconds(taken)


def paced(calls: int, per_s: int) -> dict[str, float]:
    """One call each 1/per_s seconds, asleep in between: caches are cold."""
    raw, taken = metrics_303(), []
    with fresh_log() as path:
        policy = Gates(log=path)
        reading, due = Reading(raw), time.perf_counter()
        for i in range(calls):
            due += 1 / per_s
            time.sleep(max(0.0, due - time.perf_counter()))
            if i % (per_s // 4) == 0:
                reading = Reading(raw)
            rid = f"req-{i}"
            start = time.perf_counter_ns()
            policy(reading, request_id=rid)
            taken.append(time.perf_counter_ns() - start)
        policy.close()
    return microseconds(taken)


def flood(per_s: int, seconds: float) -> dict[str, float]:
    """Decisions at a rate for a while: how many are missing from the log."""
    raw = metrics_303()
    total = int(per_s * seconds)
    with fresh_log() as path:
        policy = Gates(log=path)
        reading, start = Reading(raw), time.perf_counter()
        for i in range(total):
            if i % 50 == 0:
                ahead = i / per_s - (time.perf_counter() - start)
                if ahead > 0:
                    time.sleep(ahead)
            if i % (per_s // 4) == 0:
                reading = Reading(raw)
            policy(reading)
        took = time.perf_counter() - start
        policy.close()
        kept = sum(1 for line in path.open() if '"k":"decision"' in line)
    return {"lost": total - kept, "per_s": total / took, "rss_mb": rss_mb()}


def stalled_disk(per_s: int, seconds: float) -> dict[str, float]:
    """A reader that sleeps on a pipe: what arrives, and what a call costs meanwhile."""
    taken: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        pipe = Path(folder) / "pipe"
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        policy, raw = Gates(log=pipe), metrics_303()
        total, got = int(per_s * (seconds + 1)), bytearray()
        taker = threading.Thread(target=_take, args=(end, got, seconds, total))
        taker.start()
        due, reading = time.perf_counter(), Reading(raw)
        for i in range(total):
            due += 1 / per_s
            time.sleep(max(0.0, due - time.perf_counter()))
            if i % (per_s // 4) == 0:
                reading = Reading(raw)
            start = time.perf_counter_ns()
            policy(reading)
            taken.append(time.perf_counter_ns() - start)
        policy.flush(5.0)
        taker.join(10)
        policy.close()
        os.close(end)
    lost = total - got.count(b'"k":"decision"')
    return {"lost": lost, **microseconds(taken), "rss_mb": rss_mb()}


def _take(end: int, got: bytearray, asleep_s: float, total: int) -> None:
    time.sleep(asleep_s)
    os.set_blocking(end, True)
    give_up = time.monotonic() + 15
    while got.count(b'"k":"decision"') < total and time.monotonic() < give_up:
        got.extend(os.read(end, 1 << 16))


def rss_mb() -> float:
    """Resident memory of this process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def collections_by_log(calls: int) -> dict[str, float]:
    """Garbage collections with the log less those without, every request ended."""

    def count(*, log: bool) -> list[int]:
        with fresh_log() as path:
            # A clock that stands still: what the ledger keeps is the same both times.
            policy = Gates(log=path if log else None, clock=FakeClock())
            reading = Reading(metrics_303(), taken_ns=0)
            policy(reading)
            policy.flush()
            gc.collect()
            before = [generation["collections"] for generation in gc.get_stats()]
            for i in range(calls):
                policy.outcome(policy(reading, request_id=f"r{i}").request_id)
            after = [generation["collections"] for generation in gc.get_stats()]
            policy.close()
        return [b - a for a, b in zip(before, after, strict=True)]

    without, with_log = count(log=False), count(log=True)
    return {
        f"gen{n}": max(0, b - a)
        for n, (a, b) in enumerate(zip(without, with_log, strict=True))
    }


def line_bytes() -> dict[str, float]:
    """Mean length of a decision line that carries tenant, session and token counts."""
    with fresh_log() as path:
        policy = Gates(log=path, reports_outcomes=True)
        raw = metrics_303()
        for i in range(400):
            if i % 40 == 0:
                reading = Reading(
                    {**raw, "kv_pressure": 0.5 + i / 800, "queue_depth": i / 10}
                )
            policy(
                reading,
                request_id=f"8f14e45f-ceea-467f-a0e6-{i:012d}",
                tenant="team-search",
                session=f"session-{i % 50}",
                input_tokens=2168,
                max_output_tokens=512,
            )
        policy.close()
        lines = [line for line in path.open() if '"k":"decision"' in line]
    return {"bytes": sum(map(len, lines)) / len(lines)}


def page(times: int) -> dict[str, float]:
    """A full page of a real size: parsing it, and the signals from it."""
    body = PAGE.read_text()
    parsed_ns, read_ns = [], []
    for _ in range(times):
        start = time.perf_counter_ns()
        found = parse(body)
        middle = time.perf_counter_ns()
        series = Series(found)
        for signal in ENGINE:
            signal.find(series)
        read_ns.append(time.perf_counter_ns() - middle)
        parsed_ns.append(middle - start)
    return {
        "parse_ms": statistics.median(parsed_ns) / 1e6,
        "signals_ms": statistics.median(read_ns) / 1e6,
    }


def import_ms(times: int) -> dict[str, float]:
    """Wall milliseconds that `import admitperf` adds to a bare interpreter.

    The least of several, since what a busy machine adds is not ours.
    """

    def least(code: str) -> float:
        taken = []
        for _ in range(times):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            taken.append(time.perf_counter() - start)
        return min(taken) * 1000

    return {"added_ms": least("import admitperf") - least("pass")}


def cpu_ticks() -> tuple[float, float]:
    """(all, stolen) CPU time so far, from /proc/stat; zeros where there is none."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0, 0.0
    return sum(map(float, fields[:8])), float(fields[7])


def row(
    what: str,
    mode: str,
    targets: Mapping[str, float],
    measure: Callable[[], dict[str, float]],
) -> Row:
    """Measures one row, with the machine's state beside it."""
    print(f"  {what} ({mode}) …", file=sys.stderr, flush=True)
    total, stolen = cpu_ticks()
    figures = measure()
    now_total, now_stolen = cpu_ticks()
    steal = 100 * (now_stolen - stolen) / max(1.0, now_total - total)
    return Row(what, mode, figures, targets, os.getloadavg()[0], steal)


def measure_all(*, quick: bool) -> list[Row]:
    """Every row, in order."""
    runs = 1 if quick else 5
    calls = 5_000 if quick else 60_000
    slow = 500 if quick else 3_000
    seconds = 1.0 if quick else 10.0
    hot = {"p50": 5.0, "p99": 15.0, "p99.9": 150.0}
    cold = {"p50": 40.0, "p99": 120.0, "p99.9": 500.0}
    return [
        row(
            "no log",
            "warm",
            {},
            lambda: median_of(runs, lambda: warm(calls, log=False)),
        ),
        row("reading", "warm", hot, lambda: median_of(runs, lambda: warm(calls))),
        row(
            "reading, facts, live ledger",
            "warm",
            {},
            lambda: median_of(runs, lambda: warm_with_outcomes(calls)),
        ),
        row(
            "plain dict of 303",
            "warm",
            {"p50": 20.0},
            lambda: median_of(runs, lambda: warm(calls // 3, plain=True)),
        ),
        row(
            "reading",
            "paced 1,000/s",
            cold,
            lambda: median_of(runs, lambda: paced(slow, 1000)),
        ),
        row(
            "log",
            f"50,000/s for {seconds:g} s",
            {"lost": 0},
            lambda: flood(50_000, seconds),
        ),
        row(
            "log, disk stalled",
            "1,000/s, 3 s asleep",
            {"lost": 0, "p99.9": 500.0},
            lambda: stalled_disk(1000, 0.5 if quick else 3.0),
        ),
        row(
            "collections caused by the log",
            "200,000 decisions",
            {"gen0": 0, "gen1": 0, "gen2": 0},
            lambda: collections_by_log(calls if quick else 200_000),
        ),
        row("decision line", "with facts", {"bytes": 700}, line_bytes),
        row(
            "page of 42 kB",
            "warm",
            {"parse_ms": 3.0, "signals_ms": 1.0},
            lambda: page(20 if quick else 200),
        ),
        row(
            "import admitperf",
            "fresh process",
            {"added_ms": 40},
            lambda: import_ms(3 if quick else 15),
        ),
    ]


def table(rows: list[Row]) -> str:
    """The rows as text."""
    head = f"{'what':<30}{'mode':<22}{'figures (target)':<62}{'load':>5}{'steal':>7}"
    lines = [head, "-" * len(head)]
    for r in rows:
        told = "  ".join(_figure(r, name) for name in r.figures)
        missed = f"  MISSED {', '.join(r.missed)}" if r.missed else ""
        lines.append(
            f"{r.what:<30}{r.mode:<22}{told:<62}{r.load:>5.1f}{r.steal:>6.1f}%{missed}"
        )
    return "\n".join(lines)


def _figure(r: Row, name: str) -> str:
    top = f" ({r.targets[name]:g})" if name in r.targets else ""
    return (
        f"{name} {r.figures[name]:,.3g}{top}"
        if r.figures[name] < 1000
        else (f"{name} {r.figures[name]:,.0f}{top}")
    )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    rows = measure_all(quick=chosen.quick)
    if chosen.json:
        told = [{**asdict(r), "missed": r.missed} for r in rows]
        print(json.dumps({"machine": machine(), "rows": told}, indent=1))
        return
    print("; ".join(f"{key} {value}" for key, value in machine().items()))
    print("times in microseconds unless named otherwise; median of 5 runs")
    print(table(rows))


if __name__ == "__main__":
    main()
