"""What the gateway costs, beside no gateway at all and beside `vllm-router` (Rust).

    python benchmarks/gateway.py            everything, about ten minutes
    python benchmarks/gateway.py --quick    one short round, to see that it runs
    python benchmarks/gateway.py --only posts streams --rounds 3
    python benchmarks/gateway.py --write    the same, and docs/results/gateway.md
    python benchmarks/gateway.py --overload-s 600    a longer overload

Client and engine are `wire.py`: bare sockets, each a process of its own. The gateway
runs with everything on: a policy that reads the engine's page each 0.25 s, the log, an
SLO. `vllm-router` only routes; it is installed from PyPI into a folder of its own under
`.cache`, and its rows are left out, with the reason, where that fails. The arms take
turns inside a round, figures are medians of the rounds, and "added" is the median of
the differences to `direct` in the same round.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, cast

from machine import machine
from run import cpu_ticks
from wire import Answers, Caller, Open, Streams, ask, caller, closed, run

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "gateway.md"
ROUTER = ROOT / ".cache" / "vllm-router"
DIRECT, OTHER, OURS = "direct", "vllm-router", "admitperf"
START_S = 30.0
LONG = 1_000_000
"""Events of a stream that outlasts every run."""

POLICY = ("--policy", "dual_gate", "--param", "max_waiting=100000")
OVERLOADED = ("--policy", "in_flight_cap", "--param", "max_in_flight=40")
LARGE_BYTES = 1 << 20
IDLE_MS = 3_600_000
PARTS = 50
"""Looks at the memory during the overload; it grew from the third fifth to the last."""

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to the engine.

    Attributes:
        name: as the table has it.
        port: where to ask.
        pid: of the process between; None = nothing is.
    """

    name: str
    port: int
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long and how large each measurement is."""

    seconds: float = 5.0
    warm_s: float = 1.0
    connections: int = 16
    per_s: int = 200
    streams: int = 200
    beside: int = 40
    large: int = 20
    idle: int = 1000
    overload_per_s: int = 300
    overload_s: float = 60.0


# --------------------------------------------------------------------- processes


def free_port() -> int:
    """A port nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def process(
    *words: str | Path, said: IO[bytes] | int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block."""
    made = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said, cwd=ROOT)
    try:
        yield made
    finally:
        made.terminate()
        try:
            made.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            made.kill()
            made.communicate()


@contextmanager
def engine() -> Iterator[Arm]:
    """The engine of `wire.py`."""
    with process(sys.executable, Path(__file__).parent / "wire.py") as made:
        yield Arm(DIRECT, int(cast("IO[bytes]", made.stdout).readline()))


def answers(port: int, path: str) -> bool:
    """Whether a GET brings 200."""
    asked = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        asked.request("GET", path)
        return asked.getresponse().status == 200
    except OSError:
        return False
    finally:
        asked.close()


@contextmanager
def between(name: str, path: str, port: int, *words: str | Path) -> Iterator[Arm]:
    """A gateway that is ready; `path` says so with 200.

    Raises:
        RuntimeError: it does not get ready.
    """
    with (
        tempfile.TemporaryFile() as said,
        process(*words, said=said) as made,
    ):
        until_s = time.monotonic() + START_S
        while not answers(port, path):
            if made.poll() is not None or time.monotonic() > until_s:
                said.seek(0)
                raise RuntimeError(f"{name} does not start: {said.read()[-2000:]!r}")
            time.sleep(0.1)
        yield Arm(name, port, made.pid)


@contextmanager
def ours(upstream: int, log: Path, *policy: str) -> Iterator[Arm]:
    """The gateway of this package, with everything on."""
    port = free_port()
    call = "from admitperf.cli import main; main()"
    words = ["--upstream", f"http://127.0.0.1:{upstream}", "--log", str(log)]
    words += ["--listen", f"127.0.0.1:{port}", "--slo", "ttft_ms=1500", *policy]
    with between(
        OURS, "/ready", port, sys.executable, "-c", call, "gateway", *words
    ) as arm:
        yield arm


def router() -> Path:
    """The program `vllm-router`, installed when it is absent.

    Raises:
        RuntimeError: it cannot be installed; says why.
    """
    program = ROUTER / "bin" / "vllm-router"
    if not program.exists():
        venv = [sys.executable, "-m", "venv", str(ROUTER)]
        pip = [str(ROUTER / "bin" / "python"), "-m", "pip", "install", "-q", OTHER]
        for words in (venv, pip):
            done = subprocess.run(words, capture_output=True, check=False)
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip().split("\n")[-1]
                raise RuntimeError(f"{OTHER} cannot be installed: {said}")
    return program


@contextmanager
def theirs(upstream: int) -> Iterator[Arm]:
    """The router of the vLLM project."""
    port = free_port()
    words = ["--worker-urls", f"http://127.0.0.1:{upstream}", "--port", str(port)]
    words += ["--policy", "round_robin", "--log-level", "error"]
    words += ["--max-concurrent-requests", "100000"]
    words += ["--prometheus-port", str(free_port())]
    with between(OTHER, "/health", port, router(), *words) as arm:
        yield arm


def cpu_s(pid: int | None) -> float:
    """Seconds of CPU a process has used; 0 without one."""
    if pid is None:
        return 0.0
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    ticks = stat.rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def rss_kb(pid: int | None) -> float:
    """Resident memory of a process; 0 without one."""
    if pid is None:
        return 0.0
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


# ------------------------------------------------------------------ measurements


def at(ranked: Sequence[float], fraction: float) -> float:
    """A quantile of sorted values, by nearest rank; nan of none."""
    if not ranked:
        return float("nan")
    return ranked[min(len(ranked) - 1, int(fraction * len(ranked)))]


def spread(seen: Answers) -> Figures:
    """Middle and tail of how long answers took, and how many were not 200."""
    ranked = sorted(seen.took_ms)
    return {"p50": at(ranked, 0.5), "p99": at(ranked, 0.99), "failed": seen.failed}


async def posts(arm: Arm, sizes: Sizes) -> Figures:
    """Small requests as fast as they go, over connections that stay."""
    await closed(arm.port, sizes.connections, sizes.warm_s)
    cpu = cpu_s(arm.pid)
    seen = await closed(arm.port, sizes.connections, sizes.seconds)
    done = max(1, len(seen.took_ms))
    used_us = (cpu_s(arm.pid) - cpu) / done * 1e6
    return {"per_s": done / seen.lasted_s, **spread(seen), "cpu_us": used_us}


async def paced(arm: Arm, sizes: Sizes) -> Figures:
    """Small requests at a rate that keeps nothing busy."""
    request = ask()
    await Open(arm.port, lambda _: request).run(sizes.per_s, sizes.warm_s)
    seen = await Open(arm.port, lambda _: request).run(sizes.per_s, sizes.seconds)
    return spread(seen)


async def streams(arm: Arm, sizes: Sizes) -> Figures:
    """Events of many streams: how late each came, and what it cost."""
    opened = Streams()
    await opened.start(arm.port, sizes.streams, ask(events=LONG), span_s=1.0)
    await asyncio.sleep(sizes.warm_s)
    first, cpu = len(opened.delays.late_ns), cpu_s(arm.pid)
    await asyncio.sleep(sizes.seconds)
    late = opened.delays.late_ns[first:]
    used_us = (cpu_s(arm.pid) - cpu) / max(1, len(late)) * 1e6
    opened.close()
    ranked = sorted(ns / 1e6 for ns in late)
    marks = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
    found = {name: at(ranked, q) for name, q in marks.items()}
    return {**found, "cpu_us": used_us, "ended": opened.ended}


async def large(arm: Arm, sizes: Sizes) -> Figures:
    """A body of 1 MB now and then, beside streams that it may stall."""
    opened, took, stalls = Streams(), Answers(), []
    request = ask(prompt="words " * (LARGE_BYTES // 6))
    await opened.start(arm.port, sizes.beside, ask(events=LONG), span_s=0.5)
    one = await caller(arm.port)
    for place in range(sizes.large + 2):
        begin_ns = time.monotonic_ns()
        status = await answered(one, request)
        if place > 1:
            took.add(status, begin_ns)
            await asyncio.sleep(0.04)
            end_ns = time.monotonic_ns()
            stalls.append(opened.delays.worst_ms(begin_ns, end_ns))
        await asyncio.sleep(0.2)
    opened.close()
    one.out.close()
    return {**spread(took), "stall": at(sorted(stalls), 0.5)}


async def answered(one: Caller, request: bytes) -> int:
    """The status of one answer."""
    end = asyncio.get_running_loop().create_future()
    one.ask(request, end.set_result)
    return int(await asyncio.wait_for(end, 30))


async def idle(arm: Arm, sizes: Sizes) -> Figures:
    """Memory of streams in which nothing comes, and of such with a body of 1 MB."""
    await closed(arm.port, sizes.connections, sizes.warm_s)
    opened = Streams()
    small = ask(events=LONG, every_ms=IDLE_MS)
    heavy = ask(events=LONG, every_ms=IDLE_MS, prompt="words " * (LARGE_BYTES // 6))
    await opened.start(arm.port, 100, small, span_s=0.5)
    start_kb = rss_kb(arm.pid)
    await opened.start(arm.port, sizes.idle, small, span_s=sizes.idle / 500)
    await asyncio.sleep(1.0)
    idle_kb = rss_kb(arm.pid)
    await opened.start(arm.port, sizes.beside, heavy, span_s=sizes.beside / 20)
    await asyncio.sleep(1.0)
    heavy_kb = rss_kb(arm.pid)
    opened.close()
    await asyncio.sleep(0.5)
    return {
        "kb_each": (idle_kb - start_kb) / sizes.idle,
        "kb_large": (heavy_kb - idle_kb) / sizes.beside,
        "ended": opened.ended,
    }


MEASURES: Mapping[str, Callable[[Arm, Sizes], object]] = {
    "posts": posts,
    "paced": paced,
    "streams": streams,
    "large": large,
    "idle": idle,
}


async def overloaded(arm: Arm, sizes: Sizes) -> tuple[Answers, list[float]]:
    """More than the cap lets in, half of it streams, no two alike; and the memory."""
    opened = Open(arm.port, _different)
    task = asyncio.ensure_future(opened.run(sizes.overload_per_s, sizes.overload_s))
    seen = []
    while not task.done():
        await asyncio.wait({task}, timeout=sizes.overload_s / PARTS)
        seen.append(rss_kb(arm.pid))
    return task.result(), seen


def _different(place: int) -> bytes:
    prompt = f"Question {place}. " + "Say it. " * 30
    return ask(prompt=prompt, events=10 if place % 2 else None)


def overload(upstream: int, sizes: Sizes) -> Figures:
    """Overload of the gateway alone: what it grows by, loses and leaks."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "gateway.jsonl"
        with ours(upstream, log, *OVERLOADED) as arm:
            seen, memory_kb = run(overloaded(arm, sizes))
            asked = HTTPConnection("127.0.0.1", arm.port, timeout=5)
            asked.request("GET", "/metrics")
            page = asked.getresponse().read().decode()
            asked.close()
        kinds = [json.loads(line).get("k") for line in log.open(encoding="utf-8")]
    offered = sum(seen.statuses.values())
    fifth = PARTS // 5
    before_kb = statistics.median(memory_kb[2 * fifth : 3 * fifth])
    return {
        "offered": offered,
        "served": len(seen.took_ms),
        "refused": seen.statuses.get(503, 0),
        "other": seen.failed - seen.statuses.get(503, 0),
        "missing_in_log": offered - kinds.count("decision"),
        "lost_by_metrics": total(page, "lost_records"),
        "leases_after": total(page, "leases"),
        "rss_kb": memory_kb[-1],
        "grew_kb": statistics.median(memory_kb[-fifth:]) - before_kb,
    }


def total(page: str, word: str) -> float:
    """The sum of the samples whose name has this in it; nan when there is none."""
    lines = [line for line in page.splitlines() if line and line[0] != "#"]
    found = [
        float(line.rpartition(" ")[2])
        for line in lines
        if word in line.partition("{")[0].partition(" ")[0]
    ]
    return sum(found) if found else float("nan")


# ------------------------------------------------------------------------- table


@dataclass
class Found:
    """What was measured.

    Attributes:
        rounds: figures of each round, by (measure, arm).
        steal: percent of CPU stolen while a measure ran, each round.
        skipped: arms that were not measured, and why.
        overload: of the gateway; empty when it was not asked for.
        lasted_s: how long that was.
    """

    rounds: dict[tuple[str, str], list[Figures]] = field(default_factory=dict)
    steal: dict[str, list[float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    overload: Figures = field(default_factory=dict)
    lasted_s: float = 0.0

    def median(self, what: str, arm: str, figure: str) -> float:
        """Of the rounds."""
        return statistics.median(r[figure] for r in self.rounds[what, arm])

    def added(self, what: str, arm: str, figure: str) -> float:
        """What an arm adds to the direct way: median of the rounds' differences."""
        pairs = zip(self.rounds[what, arm], self.rounds[what, DIRECT], strict=True)
        return statistics.median(a[figure] - b[figure] for a, b in pairs)

    def of(self, what: str) -> list[str]:
        """The arms a measure has, in order."""
        return [arm for measure, arm in self.rounds if measure == what]


def measure(what: str, arms: Sequence[Arm], sizes: Sizes, found: Found) -> None:
    """One measure of every arm."""
    all_ticks, stolen = cpu_ticks()
    for arm in arms:
        print(f"  {what} {arm.name} …", file=sys.stderr, flush=True)
        figures = cast("Figures", run(MEASURES[what](arm, sizes)))  # type: ignore[arg-type]
        found.rounds.setdefault((what, arm.name), []).append(figures)
    now_ticks, now_stolen = cpu_ticks()
    steal = 100 * (now_stolen - stolen) / max(1.0, now_ticks - all_ticks)
    found.steal.setdefault(what, []).append(steal)


@contextmanager
def started(names: Sequence[str], first: Arm, found: Found) -> Iterator[list[Arm]]:
    """Fresh processes of these arms; those that do not start are noted."""
    with ExitStack() as stack:
        log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "log.jsonl"
        makers = {
            DIRECT: lambda: first,
            OTHER: lambda: stack.enter_context(theirs(first.port)),
            OURS: lambda: stack.enter_context(ours(first.port, log, *POLICY)),
        }
        arms = []
        for name in names:
            try:
                arms.append(makers[name]())
            except RuntimeError as why:
                found.skipped[name] = str(why)
        yield arms


def measure_all(asked: argparse.Namespace, sizes: Sizes) -> Found:
    """Every round of every measure."""
    found = Found()
    timed = [what for what in asked.only if what in MEASURES and what != "idle"]
    with engine() as first:
        if timed:
            with started(asked.arms, first, found) as arms:
                for _ in range(asked.rounds):
                    for what in timed:
                        measure(what, arms, sizes, found)
        for _ in range(asked.rounds if "idle" in asked.only else 0):
            # Memory that was used once is used again: only a fresh process grows.
            between = [name for name in asked.arms if name != DIRECT]
            with started(between, first, found) as arms:
                measure("idle", arms, sizes, found)
        if "overload" in asked.only and OURS in asked.arms:
            print("  overload …", file=sys.stderr, flush=True)
            found.lasted_s = sizes.overload_s
            found.overload = overload(first.port, sizes)
    return found


COLUMNS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "posts": ("small posts, 16 connections", ("per_s", "p50", "cpu_us"), ()),
    "paced": ("200 requests/s, ms", ("p50", "p99"), ("p50", "p99")),
    "streams": (
        "200 streams x 25 events/s, ms",
        ("p50", "p99", "p99.9", "cpu_us"),
        ("p50", "p99"),
    ),
    "large": ("1 MB body beside streams, ms", ("p50", "stall"), ("p50", "stall")),
    "idle": ("1,000 idle streams, and 40 of 1 MB", ("kb_each", "kb_large"), ()),
}
"""Title of each measure, its figures, and those shown as a difference too."""

TARGETS: Mapping[tuple[str, str], float] = {
    ("paced", "added p50"): 0.7,
    ("streams", "added p50"): 0.5,
    ("streams", "added p99"): 3.0,
    ("streams", "cpu_us"): 60.0,
    ("large", "added p50"): 8.0,
    ("large", "added stall"): 3.0,
    ("idle", "kb_each"): 40.0,
    ("idle", "kb_large"): 256.0,
}
"""Upper limits for the gateway. Origin: the issue of the gateway; `kb_large` is a plain
choice: a body that was sent on is let go of, whatever the heap keeps."""

SHARE = 0.2
"""Least share of vllm-router's requests a second. Origin: the same issue."""


def figures(found: Found, what: str, arm: str) -> Figures:
    """The figures of one row, medians and differences."""
    _, names, differences = COLUMNS[what]
    told = {name: found.median(what, arm, name) for name in names}
    if arm == DIRECT:
        told.pop("cpu_us", None)
    for name in ("failed", "ended"):
        worst = max(r.get(name, 0.0) for r in found.rounds[what, arm])
        if worst:
            told[name] = worst
    if arm != DIRECT and (what, DIRECT) in found.rounds:
        told |= {f"added {n}": found.added(what, arm, n) for n in differences}
    if what == "posts" and arm == OURS and (what, OTHER) in found.rounds:
        told["share"] = told["per_s"] / found.median(what, OTHER, "per_s")
    return told


def missed(what: str, arm: str, told: Figures) -> list[str]:
    """The gateway's figures that miss their target."""
    if arm != OURS:
        return []
    over = [n for n in told if told[n] > TARGETS.get((what, n), float("inf"))]
    return over + ["share"] * (told.get("share", 1.0) < SHARE)


def cell(what: str, arm: str, name: str, value: float) -> str:
    """A figure, with the gateway's target."""
    if name == "share":
        return f"{100 * value:.0f} % of {OTHER} (>= {100 * SHARE:.0f})"
    top = TARGETS.get((what, name)) if arm == OURS else None
    shown = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{name} {shown}" + (f" (<= {top:g})" if top is not None else "")


def table(found: Found) -> Iterator[str]:
    """The rows, as Markdown."""
    yield "| | arm | figures (target) | missed | steal % |"
    yield "|---|---|---|---|--:|"
    for what, (title, _, _) in COLUMNS.items():
        steal = max(found.steal.get(what, [0.0]))
        for arm in found.of(what):
            told = figures(found, what, arm)
            cells = ", ".join(cell(what, arm, n, v) for n, v in told.items())
            over = ", ".join(missed(what, arm, told))
            yield f"| {title} | {arm} | {cells} | {over} | {steal:.1f} |"
    if found.overload:
        cells = ", ".join(f"{n} {v:,.0f}" for n, v in found.overload.items())
        yield f"| overload, {found.lasted_s:g} s | {OURS} | {cells} | | |"
    for arm, why in found.skipped.items():
        yield f"| every row | {arm} | skipped: {why} | | |"


def page(found: Found, asked: argparse.Namespace) -> str:
    """The page of the results."""
    where = "; ".join(f"{k} {v}" for k, v in machine("granian", "aiohttp").items())
    head = __doc__.partition("\n\n")
    about = head[2].partition("\n\n")[2].replace("`wire.py`", "`benchmarks/wire.py`")
    return "\n".join(
        [
            "# The gateway's speed",
            "",
            "Written by `python benchmarks/gateway.py --write`, not by hand.",
            "",
            about.strip(),
            "",
            f"{asked.rounds} rounds; {where}. All processes share the cores.",
            "`cpu_us` is the CPU of the process between, for each request or event.",
            "",
            *table(found),
            "",
        ]
    )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    every = [*MEASURES, "overload"]
    arms = [DIRECT, OTHER, OURS]
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--write", action="store_true", help="the page in docs/results")
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    parser.add_argument("--arms", nargs="+", choices=arms, default=arms)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of one measure")
    parser.add_argument("--overload-s", type=float, default=60.0)
    asked = parser.parse_args()
    sizes = Sizes(seconds=asked.seconds, overload_s=asked.overload_s)
    if asked.quick:
        asked.rounds = 1
        sizes = Sizes(seconds=1, warm_s=0.3, large=5, idle=200, overload_s=5)
    found = measure_all(asked, sizes)
    text = page(found, asked)
    print(text)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
