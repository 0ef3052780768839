"""How fast `report --html` is, how big its file, how much memory: with targets.

Each row is `admitperf report LOG --html FILE` as a process of its own, from start to
exit. Run it on a quiet machine; the load beside each row says how quiet it was.

    python benchmarks/html.py           the table
    python benchmarks/html.py --quick   smaller logs, once each, for CI
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from machine import machine
from reports import DECISIONS, PROGRAM, write

MOST_S = 5.0
MOST_MB = 1.5
"""The brief's, for `DECISIONS`."""
MOST_PEAK_MB = 550
"""Plain choice: what reading takes, and 150 MB for the engine that draws."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: the file's size, seconds, peak memory, and the load meanwhile.

    `text_s` is what the same log takes as text: the rest is the page's.
    """

    what: str
    decisions: int
    size_mb: float
    text_s: float
    wall_s: float
    most_s: float | None
    peak_mb: float
    load: float

    @property
    def missed(self) -> list[str]:
        """The targets that were not met."""
        late = ["time"] if self.most_s and self.wall_s > self.most_s else []
        fat = ["size"] if self.size_mb > MOST_MB else []
        return [*late, *fat, *["memory"] * (self.peak_mb > MOST_PEAK_MB)]


def run_once(*args: str) -> tuple[float, float]:
    """Wall seconds and peak megabytes of a command in a process of its own."""
    # The peak of children only grows, so each run is the only child of a fresh parent.
    code = (
        "import resource, subprocess, sys, time\n"
        "start = time.perf_counter()\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "took = time.perf_counter() - start\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(took, used.ru_maxrss / 1024)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, sys.executable, "-c", PROGRAM, *args],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    return float(told[0]), float(told[1])


def measured(what: str, path: Path, decisions: int, rounds: int) -> Row:
    """The median time over some rounds, and the largest peak."""
    print(f"  {what} …", file=sys.stderr, flush=True)
    page = path.with_suffix(".html")
    text = [run_once("report", str(path))[0] for _ in range(rounds)]
    html = [run_once("report", str(path), "--html", str(page)) for _ in range(rounds)]
    return Row(
        what=what,
        decisions=decisions,
        size_mb=page.stat().st_size / 1e6,
        text_s=statistics.median(text),
        wall_s=statistics.median(wall for wall, _ in html),
        most_s=MOST_S if decisions == DECISIONS else None,
        peak_mb=max(peak for _, peak in html),
        load=os.getloadavg()[0],
    )


def measure_all(folder: Path, *, quick: bool) -> list[Row]:
    """Every row, in order."""
    rounds, rows = 1 if quick else 5, []
    most = DECISIONS // 10 if quick else DECISIONS
    for what, decisions, facts in (
        ("without facts", most, False),
        ("with facts and calls", most, True),
        ("small", 1000, True),
    ):
        path = folder / f"{what.replace(' ', '-')}.jsonl"
        write(path, decisions, facts=facts)
        rows.append(measured(what, path, decisions, rounds))
    return rows


def table(rows: list[Row]) -> str:
    """The rows as text."""
    head = f"{'log':<22}{'decisions':>11}{'file MB (target)':>18}{'text s':>8}"
    head += f"{'html s (target)':>17}{'peak MB (target)':>19}{'load':>6}"
    made = [head, "-" * len(head)]
    for row in rows:
        took = f"{row.wall_s:.2f}" + (f" ({row.most_s:g})" if row.most_s else "")
        told = f"{row.what:<22}{row.decisions:>11,}"
        told += f"{f'{row.size_mb:.2f} ({MOST_MB:g})':>18}{row.text_s:>8.2f}{took:>17}"
        told += f"{f'{row.peak_mb:.0f} ({MOST_PEAK_MB:g})':>19}{row.load:>6.1f}"
        missed = f"  MISSED {', '.join(row.missed)}" if row.missed else ""
        made.append(told + missed)
    return "\n".join(made)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small logs, once each")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="admitperf-bench-") as folder:
        rows = measure_all(Path(folder), quick=chosen.quick)
    if chosen.json:
        told = [{**asdict(row), "missed": row.missed} for row in rows]
        print(json.dumps({"machine": machine("duckdb"), "rows": told}, indent=1))
        return
    print("; ".join(f"{key} {value}" for key, value in machine("duckdb").items()))
    often = "once each" if chosen.quick else "median of 5, largest peak"
    print(f"`admitperf report LOG --html FILE` as a process; {often}")
    print(table(rows))


if __name__ == "__main__":
    main()
