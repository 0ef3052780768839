"""The benchmark on a real vLLM 0.32 on a processor: what did admission control do?

    python benchmarks/bench_vllm.py                runs it, and writes the page
    python benchmarks/bench_vllm.py --blocks 1     a trial: one block, no page
    python benchmarks/bench_vllm.py --page FOLDER  the page, of runs that are there

Two servers of one small model, with 8 slots and 47 blocks of 32 tokens, so that its KV
cache fills before its slots do. One has vLLM's own limit on the requests inside. Each
of four arms meets the same six blocks of traffic at 1.5 times the capacity, in random
order: nothing, a bound on the queue, a threshold on the KV cache, and vLLM's own limit.

Needs what `infra/vllm/build.sh` installs, and two quiet cores for about twelve minutes.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from machine import machine

from admitperf.bench.design.comparison import Compared, Verdicts, compare
from admitperf.bench.design.results import (
    EXPERIMENT,
    Run,
    findings,
    read_experiment,
)
from admitperf.bench.design.results import Experiment as Results
from admitperf.bench.harness.config import parsed
from admitperf.bench.harness.experiment import Experiment
from admitperf.bench.harness.run import MANIFEST, SUMMARY, Done
from admitperf.bench.pages import page
from admitperf.bench.pages.middles import offered_p95, served_p95, spelled
from admitperf.bench.pages.plot import plot
from admitperf.core.clock import SYSTEM
from admitperf.reports.pages.checks import NO, OK

ROOT = Path(__file__).parent.parent
BUILT = ROOT / ".cache" / "vllm"
RESULTS = ROOT / "docs" / "results"

BLOCKS, LOAD, LASTS_S = 6, 1.5, 12.0
SLOTS, KV_BLOCKS, BLOCK_SIZE = 8, 48, 32  # vLLM keeps one block for itself
INSIDE = SLOTS + 2
"""vLLM's own limit: its slots, and two that wait. Plain choice: a queue as short as a
deadline of half a second leaves room for."""

START_S = 240.0
SIZES = {"input_tokens": [64, 256], "output_tokens": [32, 128]}
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}
SERVE = (
    *("--served-model-name", "tiny", "--host", "127.0.0.1", "--dtype", "float32"),
    *("--max-model-len", "1024", "--max-num-seqs", str(SLOTS), "--enforce-eager"),
    *("--block-size", str(BLOCK_SIZE), "--num-gpu-blocks-override", str(KV_BLOCKS)),
    "--enable-prompt-tokens-details",
)


# ------------------------------------------------------------------------ the engine


@contextmanager
def served(log: Path, *more: str) -> Iterator[str]:
    """Address of a vLLM that has served nothing yet; it and its children end."""
    port = free_port()
    command = [BUILT / "venv" / "bin" / "vllm", "serve", BUILT / "tiny"]
    command += ["--port", str(port), *SERVE, *more]
    with log.open("wb") as out:
        child = subprocess.Popen(
            list(map(str, command)),
            env=os.environ | ENVIRONMENT,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(child, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        end(child)


def free_port() -> int:
    """A port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


def wait_for(
    child: "subprocess.Popen[bytes]",
    port: int,
    log: Path,
    path: str = "/health",
    within_s: float = START_S,
) -> None:
    """Waits until a server is ready; ends this script when it never is.

    Args:
        child: the server.
        port: its port.
        log: what it prints.
        path: that it answers with 200 once it is ready.
        within_s: seconds it may take.
    """
    pause, until_ns = threading.Event(), SYSTEM.monotonic_ns() + within_s * 1e9
    while not is_ready(port, path):
        if child.poll() is not None or SYSTEM.monotonic_ns() > until_ns:
            sys.exit(f"no server; the end of {log} says why")
        pause.wait(0.1)


def is_ready(port: int, path: str) -> bool:
    """Whether a server says that it is."""
    connection = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def end(child: "subprocess.Popen[bytes]") -> None:
    """Ends a server and its workers, which are a group of their own."""
    for what in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, what)
        with suppress(subprocess.TimeoutExpired):
            child.wait(10)


# --------------------------------------------------------------------------- running


def document(url: str, limited: str, root: Path, lasts_s: float) -> dict[str, Any]:
    """The benchmark as a configuration says it."""
    return {
        "experiment": "vllm-0.32-cpu",
        "root": str(root),
        "target": {"kind": "http", "url": url},
        "workload": {"name": "chat", "parameters": SIZES},
        "arms": [
            {"policy": "no_admission"},
            {"policy": "queue_depth", "parameters": {"max_waiting": "fitted"}},
            {
                "policy": "kv_threshold",
                "parameters": {"threshold": 0.90},
                "provenance": {"threshold": "default"},
            },
            {"policy": "no_admission", "name": "vllm_limit", "url": limited},
        ],
        "loads": [LOAD],
        "blocks": BLOCKS,
        "lasts_s": lasts_s,
    }


class Progress:
    """Says how far it is, a line each."""

    def stage(self, what: str) -> None:
        """Something that takes a while begins."""
        print(what, flush=True)

    def ran(self, done: Done, n: int, of: int, left_s: float) -> None:
        """A run is over."""
        good = "-" if done.goodput is None else f"{done.goodput:.3f}"
        where = f"{n} of {of}  {done.job.arm.name} {done.job.place}"
        print(f"{where}: goodput {good}, {left_s:.0f} s left", flush=True)


def run(root: Path, blocks: int, lasts_s: float) -> Path:
    """Runs it; the experiment's folder."""
    root.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        print("starting two servers", flush=True)
        url = stack.enter_context(served(root / "vllm.log"))
        limit = ("--max-num-queued-reqs", str(INSIDE))
        limited = stack.enter_context(served(root / "vllm-limit.log", *limit))
        config = parsed(document(url, limited, root, lasts_s), "bench_vllm")
        with Experiment(config, Progress()) as experiment:
            planned = experiment.planned()
            for said in planned.said():
                print(said, flush=True)
            few = replace(planned.design, blocks=min(blocks, BLOCKS))
            if not experiment.run(replace(planned, design=few)):
                sys.exit(130)
    return config.folder


# ------------------------------------------------------------------------- the page


def written(folder: Path) -> Path:
    """Writes the page, its plot and the results it rests on; the page."""
    results = read_experiment(folder)
    made = compare(results)
    where = machine()
    place = RESULTS / f"{where['date']}-{made.experiment}"
    shutil.rmtree(place, ignore_errors=True)
    for path in kept(folder):
        copy = place / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    (place / EXPERIMENT).write_text(stated(results), encoding="utf-8")
    plot(made, place / "goodput.svg")
    text = "\n".join(document_lines(made, results, where, place.name))
    found = place.with_suffix(place.suffix + ".md")
    found.write_text(text + "\n", encoding="utf-8")
    return found


def kept(folder: Path) -> Iterator[Path]:
    """The files that numbers come from; logs are left out, they are large."""
    yield folder / EXPERIMENT
    yield from sorted(folder.glob(f"*/x*/{MANIFEST}"))
    yield from sorted(folder.glob(f"*/x*/{SUMMARY}"))


def stated(results: Results) -> str:
    """experiment.json with what the logs say, so that it can be judged without them.

    Where it was run is nobody else's folder.
    """
    found = results.stated.get("findings") or findings(results.runs)
    config = {**(results.stated.get("config") or {}), "root": None}
    told = {**results.stated, "config": config, "findings": found}
    return json.dumps(told, indent=2, allow_nan=False) + "\n"


def document_lines(
    made: Verdicts, results: Results, where: Mapping[str, object], name: str
) -> Iterator[str]:
    """The page, line by line."""
    target = results.stated["target"]
    yield f"# Four ways to say no to a real {target['engine']}, on a processor"
    yield from ("", "<!-- written by benchmarks/bench_vllm.py, nothing by hand -->", "")
    yield from setting(results, where)
    yield from ("", *measured(results))
    image = f"![Goodput of each arm, with 95 % intervals]({name}/goodput.svg)"
    for title, lines in (
        ("What came out", [*verdicts(made, results), "", image]),
        ("Which signal moved", moved(made, results)),
        ("What does not hold", misses(made)),
        ("What is not asked", not_asked(made)),
        ("All of it", ["```text", page.text(made, results.runs).rstrip("\n"), "```"]),
    ):
        yield from ("", f"## {title}", "", *lines)
    yield ""
    yield (
        f"Manifests and summaries of all {len(results.runs)} runs are in `{name}/`,"
        " and what their logs say in its experiment.json: `admitperf bench compare"
        f" docs/results/{name}` judges them. `make bench-vllm` makes it again."
    )


def setting(results: Results, where: Mapping[str, object]) -> Iterator[str]:
    """What was measured, on what."""
    target = results.stated["target"]
    told = [run.manifest.get("instrument") or {} for run in results.runs]
    first = ", and goes first" if all(one.get("realtime") for one in told) else ""
    yield (
        f"{where['date']}. {target['engine']} {target['engine_version']}, its build for"
        f" processors, with a model of 19.3 million random weights, on"
        f" {target['hardware']}. AdmitPerf {where['admitperf']}, Python"
        f" {where['python']}. The instrument runs on the same cores{first}; the server"
        " that is not asked idles."
    )
    yield ""
    yield (
        f"{SLOTS} slots and {KV_BLOCKS - 1} blocks of {BLOCK_SIZE} tokens, so the KV"
        " cache fills before the slots do, and vLLM preempts. No number here carries"
        " over to a GPU: what was refused, by which signal, and what that was worth"
        " under one and the same load does."
    )


def measured(results: Results) -> Iterator[str]:
    """What it could carry, and how long all of it took."""
    told = results.stated["calibration"]
    capacity, limits = told["capacity"], told["slo"].get("", {})
    between = f"{capacity['low']:.2f} to {capacity['high']:.2f}"
    slo = ", ".join(f"{name} {value:g}" for name, value in limits.items())
    yield (
        f"Measured first, without a policy: {capacity['per_s']:.2f} requests a second"
        f" (95 % interval {between}), and from the latency without load an SLO of"
        f" {slo}."
        f" Then {LOAD:g} times that rate, for {told['lasts_s']:g} s a run. It took"
        f" {results.stated['seconds'] / 60:.0f} minutes."
    )
    yield ""
    yield from own_servers(results)


def own_servers(results: Results) -> Iterator[str]:
    """Which arms stand before another server than the one that was measured first."""
    own = {run.arm for run in results.runs if run.manifest.get("url")}
    for arm in sorted(own):
        yield (
            f"`{arm}` is a second server, started alike but for its limit. Capacity,"
            " latency without load, SLO and the probe before each run are the first"
            " server's only: whether the second drifts, or was as fast without its"
            " limit, was not asked."
        )


def verdicts(made: Verdicts, results: Results) -> Iterator[str]:
    """A row for each arm; the baseline first."""
    yield f"| arm | goodput | gain | verdict | refused | {' | '.join(TAILS)} |"
    yield f"|---|---|---|---|---|{'---|' * len(TAILS)}"
    base = made.design.baseline
    yield f"| `{base}` | {goodput(made, base)} | | | {shares(results, base)} |"
    for one in made.arms:
        yield (
            f"| `{one.arm}`{given(one)} | {goodput(made, one.arm)} | {gain(one)}"
            f" | {one.verdict} | {shares(results, one.arm)} |"
        )
    yield ""
    yield (
        "Time to first token of the middle run. Among those offered a call counts as"
        " infinite that was refused, or not served when its run ended."
    )


def goodput(made: Verdicts, arm: str) -> str:
    """Its mean over the blocks."""
    points = [p for curve in made.curves if curve.arm == arm for p in curve.points]
    return f"{points[0].mean:.3f}" if points else "not known"


def given(one: Compared) -> str:
    """Its parameters, and where they come from."""
    told = (
        f"{name}={value} ({one.provenance.get(name, 'default')})"
        for name, value in one.parameters.items()
    )
    said = ", ".join(told)
    if not said:
        return f" max-num-queued-reqs={INSIDE}" if one.arm == "vllm_limit" else ""
    return f" {said}"


def gain(one: Compared) -> str:
    """The mean difference, with its interval."""
    if one.gain is None or one.gain.statistics.mean is None:
        return "not asked"
    found = one.gain.statistics
    between = found.interval
    said = f"{found.mean:+.3f}"
    if between is None:
        return said
    return f"{said} ({between.low:+.3f} to {between.high:+.3f})"


def shares(results: Results, arm: str) -> str:
    """What it refused, by policy or engine, and how long the first token took."""
    runs = results.of(arm)
    offered = sum(run.summary["offered"] for run in runs)
    ended = [run.summary["ended"] for run in runs]
    refused = sum(one.get("refused", 0) for one in ended)
    errors = sum((run.summary.get("errors") or {}).get("n", 0) for run in runs)
    refused += sum(one.get("failed", 0) for one in ended) - errors
    return f"{refused} of {offered} | {' | '.join(tails(runs))}"


TAILS = ("TTFT p95 of those offered", "TTFT p95 of those served")
"""What was not served counts as infinite in the first; the second is never alone."""


def tails(runs: Sequence[Run]) -> Iterator[str]:
    """Both, of the middle run."""
    for found in (offered_p95(runs), served_p95(runs)):
        known = found is not None and found != float("inf")
        yield f"{found:.0f} ms" if known else spelled(found)


def moved(made: Verdicts, results: Results) -> Iterator[str]:
    """What the policies saw of the engine, over all decisions of an arm."""
    names = ("queue_depth", "kv_pressure", "running", "preemptions")
    yield f"| arm | {' | '.join(names)} | preempted |"
    yield f"|---|{'---|' * (len(names) + 1)}"
    for arm in (made.design.baseline, *(one.arm for one in made.arms)):
        cells = " | ".join(span(results.of(arm), name) for name in names)
        yield f"| `{arm}` | {cells} | {preempted(results.of(arm))} |"
    yield ""
    yield "Median and range over all decisions, and requests preempted in all runs."
    for one in made.arms:
        gates = [
            gate for run in results.of(one.arm) if run.log for gate in run.log.gates
        ]
        if held := sum(gate.true for gate in gates):
            evaluated = sum(gate.evaluated for gate in gates)
            yield f"The gate of `{one.arm}` held in {held} of {evaluated} decisions."


def span(runs: Sequence[Run], name: str) -> str:
    """Middle median, and lowest and highest value, of a signal over runs."""
    found = [
        one.spread
        for run in runs
        if run.log
        for one in run.log.signals
        if one.name == name and one.spread.n
    ]
    lows = [spread.low for spread in found if spread.low is not None]
    highs = [spread.high for spread in found if spread.high is not None]
    middles = sorted(spread.p50 for spread in found if spread.p50 is not None)
    if not (lows and highs and middles):
        return "not supplied"
    return f"{middles[len(middles) // 2]:.3g} ({min(lows):.3g} to {max(highs):.3g})"


def preempted(runs: Sequence[Run]) -> str:
    """Requests that lost their place, over runs."""
    told = [(run.manifest.get("instrument") or {}).get("preemptions") for run in runs]
    known = [n for n in told if n is not None]
    return str(sum(known)) if known else "not known"


def misses(made: Verdicts) -> Iterator[str]:
    """Checks that fail, and gains that were not shown."""
    failed = [check for check in made.checks if check.answer == NO]
    short = [one for one in made.arms if one.verdict != "better"]
    for check in failed:
        yield f"- check {check.number}, {check.name}: {' '.join(check.says)}"
    yield from (f"- `{one.arm}` is {one.verdict}: {one.headline}." for one in short)
    yield from (f"- {said}" for said in made.notices)
    if not (failed or short):
        yield "No check fails, and the gain of every arm is shown."


def not_asked(made: Verdicts) -> Iterator[str]:
    """What the design left open."""
    yield "- Whether admission control does harm below capacity: one load was run."
    for check in made.checks:
        if check.answer not in (OK, NO):
            yield f"- check {check.number}, {check.name}: {' '.join(check.says)}"


# ------------------------------------------------------------------------------ main


def options() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="fewer: a trial")
    parser.add_argument("--seconds", type=float, default=LASTS_S, help="of a run")
    parser.add_argument("--root", type=Path, help="where runs go; a new folder")
    parser.add_argument("--page", type=Path, help="write the page of this folder")
    given = parser.parse_args()
    if not (BUILT / "venv" / "ready").exists():
        parser.error("there is no vLLM: sh infra/vllm/build.sh")
    return given


def main() -> None:
    """Runs it, and writes the page."""
    asked = options()
    folder = asked.page
    if folder is None:
        root = asked.root or Path(mkdtemp(prefix="admitperf-vllm-"))
        print(f"runs go to {root}", flush=True)
        folder = run(root, asked.blocks, asked.seconds)
    if asked.blocks < BLOCKS:
        results = read_experiment(folder)
        print(page.text(compare(results), results.runs))
        return
    print(f"wrote {written(folder)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
