"""How fast logs are read, and with how much memory: a table with targets.

Each row is `admitperf report LOG` as a process of its own, from start to exit. Run it
on a quiet machine; the load beside each row says how quiet it was.

    python benchmarks/reports.py           the table
    python benchmarks/reports.py --big     with ten million lines (3 GB of disk)
    python benchmarks/reports.py --quick   smaller logs, once each, for CI
"""

import argparse
import gzip
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from machine import machine

from admitperf._version import __version__

DECISIONS = 300_000
"""With outcomes and readings about 570,000 lines."""

READING_EVERY = 60

DIRTY_EVERY = 1000
"""One line of so many is damaged in the dirty log."""

BIG_COPIES = 18
PROGRAM = "from admitperf.cli import main; main()"
START_US = 1_790_000_000_000_000
HEADER = {
    "k": "run",
    "schema": 1,
    "run": "RUN",
    "t_us": START_US,
    "wall_us": START_US,
    "pid": 4242,
    "version": __version__,
    "python": "3.11.7",
    "policy": "dual_gate",
    "class": "admitperf.policies.dual_gate:DualGate",
    "params": {"threshold": 0.9, "max_waiting": 32},
    "taxonomy": {"unit": "request", "setting": "online", "baseline": False},
    "requires": ["kv_pressure", "queue_depth"],
    "slo": {"ttft_ms": 1500, "stall_ms": 500},
    "enforce": 1.0,
    "on_blind": "degrade",
    "preset": "default",
    "raw": "auto",
    "reports_outcomes": True,
    "provenance": {"threshold": "default", "max_waiting": "default"},
    "experiment": None,
    "name": None,
    "notes": None,
    "config": "3804b05e3212b391",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: seconds, megabytes, what they may be, and the load meanwhile.

    `cpu_s` is what both cores spent: half of it is the time on an idle machine.
    """

    what: str
    lines: int
    size_mb: float
    wall_s: float
    most_s: float | None
    cpu_s: float
    peak_mb: float
    most_mb: float | None
    load: float

    @property
    def missed(self) -> list[str]:
        """The targets that were not met."""
        late = ["time"] if self.most_s and self.wall_s > self.most_s else []
        fat = self.most_mb is not None and self.peak_mb > self.most_mb
        return [*late, "memory"] if fat else late


# ----------------------------------------------------------------------- the log


class Engine:
    """A made-up engine whose KV and queue wander, and what our writer says of it.

    Args:
        facts: whether the host passes the facts of its requests.
    """

    def __init__(self, *, facts: bool) -> None:
        self.chance = random.Random(1)  # noqa: S311  a log that is the same each time
        self.facts = facts
        self.t_us, self.seq = START_US, 0
        self.kv, self.waiting, self.running = 0.5, 3.0, 20.0

    def lines(self, decisions: int) -> Iterator[str]:
        """A log of so many decisions, with readings and with most of their outcomes."""
        yield json.dumps(HEADER, separators=(",", ":"))
        open_calls: list[tuple[int, int]] = []
        for number in range(decisions):
            self.t_us += self.chance.randint(500, 9500)
            if number % READING_EVERY == 0:
                self._move()
                yield self._reading(number // READING_EVERY + 1)
            self.seq += 1
            refused = self.kv >= 0.9 and self.waiting > 32
            yield self._decision(number, refused=refused)
            if not refused:
                open_calls.append((self.seq, number))
            if len(open_calls) > 50:
                place = self.chance.randrange(len(open_calls))
                yield self._outcome(*open_calls.pop(place))

    def _move(self) -> None:
        step = self.chance.uniform(-0.05, 0.05)
        self.kv = min(1.0, max(0.0, self.kv + step))
        self.waiting = float(max(0, int(self.waiting) + self.chance.randint(-5, 5)))
        self.running = float(self.chance.randint(10, 64))

    def _reading(self, number: int) -> str:
        whole = "true" if number % 300 == 1 else "false"
        return (
            f'{{"k":"reading","run":"RUN","id":{number},"t_us":{self.t_us},'
            f'"whole":{whole},"raw":{{'
            f'"vllm:num_requests_running{{engine=\\"0\\"}}":{self.running},'
            f'"vllm:num_requests_waiting{{engine=\\"0\\"}}":{self.waiting},'
            f'"vllm:kv_cache_usage_perc{{engine=\\"0\\"}}":{self.kv}}},"signals":{{'
            f'"kv_pressure":{{"value":{self.kv},"source":"vllm_kv_cache_usage_perc'
            ' max","age_ms":12},"gpu_util":{"value":null,"absent":"no source"}}}'
        )

    def _decision(self, number: int, *, refused: bool) -> str:
        roll = self.chance.randint
        full = "true" if self.kv >= 0.9 else "false"
        gates = f'["kv_pressure",{self.kv},">=",0.9,{full}]'
        if self.kv >= 0.9:
            over = "true" if refused else "false"
            gates += f',["queue_depth",{self.waiting},">",32.0,{over}]'
        signals = facts = ""
        if self.facts:
            tokens, asked = roll(50, 8000), roll(16, 1024)
            counts = f'"input_tokens":{tokens},"max_output_tokens":{asked}'
            call = f'"logical_id":"{number // 2:09d}","attempt":{number % 2}'
            signals, facts = f",{counts}", f'"facts":{{{call},{counts},"stream":true}},'
        said = '"verdict":"admit","reason":null,"admitted":true,"enforced":true,'
        said += '"status":200,'
        if refused:
            said = '"verdict":"defer","reason":"queue_depth","admitted":false,'
            said += '"enforced":true,"status":503,"retry_after_ms":1200.0,'
            said += '"estimate_ms":1200.0,"wait":"measured",'
        return (
            f'{{"k":"decision","run":"RUN","seq":{self.seq},"t_us":{self.t_us},'
            f'"reading":{number // READING_EVERY + 1},"id":"call-{number:09d}",{said}'
            f'"signals":{{"kv_pressure":{self.kv},"queue_depth":{self.waiting},'
            f'"running":{self.running},"oldest_wait_s":{roll(0, 99) / 100},'
            f'"in_flight":{roll(0, 90)}{signals}}},"gates":[{gates}],{facts}'
            f'"age_ms":{roll(0, 260)},"decide_us":{roll(3, 40)}}}'
        )

    def _outcome(self, of: int, number: int) -> str:
        roll = self.chance.randint
        self.seq += 1
        ok = self.chance.random() < 0.97
        ended = '"ok":true' if ok else '"ok":false'
        error = "" if ok else '"error":"upstream reset",'
        return (
            f'{{"k":"outcome","run":"RUN","seq":{self.seq},"t_us":{self.t_us},'
            f'"of":{of},"id":"call-{number:09d}",{ended},"admitted":true,'
            f'"ttft_ms":{roll(4000, 200000) / 100},"max_gap_ms":{roll(10, 600)}.5,'
            f'"e2e_ms":{roll(4000, 20000)}.25,"output_tokens":{roll(16, 1024)},'
            f'{error}"open_ms":{roll(100, 9000)}}}'
        )


def write(path: Path, decisions: int, *, facts: bool = False) -> int:
    """Writes a clean log; how many lines it has."""
    count = 0
    with path.open("w", encoding="ascii") as file:
        for line in Engine(facts=facts).lines(decisions):
            file.write(line.replace('"RUN"', '"k3f9x2ab01"', 1) + "\n")
            count += 1
    return count


def damage(clean: Path, dirty: Path) -> None:
    """Copies a log, cutting the end off one line in `DIRTY_EVERY`."""
    with clean.open("rb") as source, dirty.open("wb") as file:
        for number, line in enumerate(source):
            cut = number % DIRTY_EVERY == DIRTY_EVERY - 1
            file.write(line[:-17] + b"\n" if cut else line)


def pack(clean: Path, packed: Path) -> None:
    """Packs a log as the writer does when it rotates."""
    with clean.open("rb") as source, gzip.open(packed, "wb", compresslevel=1) as file:
        shutil.copyfileobj(source, file, 1 << 20)


def multiply(clean: Path, big: Path, copies: int) -> None:
    """A log of several processes, each with the lines of a clean one."""
    with big.open("wb") as file:
        for copy in range(copies):
            name = f'"k3f9x2ab{copy:02d}"'.encode()
            with clean.open("rb") as source:
                for line in source:
                    file.write(line.replace(b'"k3f9x2ab01"', name, 1))


# ------------------------------------------------------------------- measurement


def run_once(path: Path) -> tuple[float, float, float]:
    """Wall and CPU seconds and peak megabytes of a report in a process of its own."""
    # The peak of children only grows, so each run is the only child of a fresh parent.
    code = (
        "import resource, subprocess, sys, time\n"
        "start = time.perf_counter()\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "took = time.perf_counter() - start\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)\n"
    )
    report = [sys.executable, "-c", PROGRAM, "report", "--json", str(path)]
    told = subprocess.run(
        [sys.executable, "-c", code, *report],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    return float(told[0]), float(told[1]), float(told[2])


def measured(
    what: str,
    path: Path,
    lines: int,
    targets: tuple[float | None, float | None],
    rounds: int,
) -> Row:
    """The median time over some rounds, and the largest peak."""
    print(f"  {what} …", file=sys.stderr, flush=True)
    told = [run_once(path) for _ in range(rounds)]
    return Row(
        what=what,
        lines=lines,
        size_mb=path.stat().st_size / 1e6,
        wall_s=statistics.median(wall for wall, _, _ in told),
        most_s=targets[0],
        cpu_s=statistics.median(cpu for _, cpu, _ in told),
        peak_mb=max(peak for _, _, peak in told),
        most_mb=targets[1],
        load=os.getloadavg()[0],
    )


def measure_all(folder: Path, *, quick: bool, big: bool) -> list[Row]:
    """Every row, in order."""
    rounds = 1 if quick else 5
    decisions = DECISIONS // 10 if quick else DECISIONS
    clean, dirty = folder / "clean.jsonl", folder / "dirty.jsonl"
    packed, small = folder / "clean.jsonl.gz", folder / "small.jsonl"
    told = folder / "facts.jsonl"
    lines = write(clean, decisions)
    with_facts = write(told, decisions, facts=True)
    few = write(small, 1000, facts=True)
    damage(clean, dirty)
    pack(clean, packed)
    rows = [
        measured("clean", clean, lines, (2.0, 400), rounds),
        measured("with facts and calls", told, with_facts, (None, 400), rounds),
        measured("dirty, 1 line in 1,000", dirty, lines, (10.0, 400), rounds),
        measured(".gz", packed, lines, (3.0, 400), rounds),
        measured("small", small, few, (0.5, None), rounds),
    ]
    if big:
        large = folder / "big.jsonl"
        multiply(clean, large, BIG_COPIES)
        rows.append(measured("big", large, lines * BIG_COPIES, (30.0, 1300), 1))
    return rows


def table(rows: list[Row]) -> str:
    """The rows as text."""
    head = f"{'log':<24}{'lines':>11}{'MB':>8}{'s (target)':>14}{'CPU s':>8}"
    head += f"{'peak MB (target)':>19}"
    made = [f"{head}{'load':>6}", "-" * (len(head) + 6)]
    for row in rows:
        took = f"{row.wall_s:.2f}" + (f" ({row.most_s:g})" if row.most_s else "")
        most = "" if row.most_mb is None else f" ({row.most_mb:g})"
        told = f"{row.what:<24}{row.lines:>11,}{row.size_mb:>8.1f}{took:>14}"
        told += f"{row.cpu_s:>8.2f}{f'{row.peak_mb:.0f}{most}':>19}{row.load:>6.1f}"
        missed = f"  MISSED {', '.join(row.missed)}" if row.missed else ""
        made.append(told + missed)
    return "\n".join(made)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small logs, once each")
    parser.add_argument("--big", action="store_true", help="ten million lines too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="admitperf-bench-") as folder:
        rows = measure_all(Path(folder), quick=chosen.quick, big=chosen.big)
    if chosen.json:
        told = [{**asdict(row), "missed": row.missed} for row in rows]
        print(json.dumps({"machine": machine("duckdb"), "rows": told}, indent=1))
        return
    print("; ".join(f"{key} {value}" for key, value in machine("duckdb").items()))
    print("`admitperf report --json LOG` as a process; median of 5 runs, largest peak")
    print(table(rows))


if __name__ == "__main__":
    main()
