"""The records of the runs, by cell, arm and block.

A record is one run, one JSON line, plain or in gzip. Records of the stage `screen` were
for tuning: they count towards the cost, and nothing is judged by them.
"""

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, Self

from benchmarks.sessions import cells
from benchmarks.sessions.arms import PER_METRIC
from benchmarks.sessions.cells import CLIENTS, LOADS, Cell

Row = Mapping[str, Any]

RECORDS = Path(__file__).parent / "records"

STAGES = ("screen", "final", "shift", "extra")
ENGINES = tuple(cells.ENGINES)
SIZES = ("x0.4", "x2", "x4")
SHIFTED = (*SIZES, "weka")
HARM = 0.8
"""The load at which no harm may be done. Protocol, like all names here."""

OF_METRIC = ("gate_cell", *PER_METRIC)
"""Arms that are tuned for each metric: two each, `gate_one:count` and so on."""

MODES = {"shed": "count", "protect": "work"}
"""The ledger's two modes, and the metric each is for."""

ARMS = (
    "none",
    *OF_METRIC,
    "protect",
    "shed",
    "aimd",
    "aimd_shed",
    "thin_protect",
    "thin_shed",
)
SPEAKS_FOR = {("session_ledger", "in_flight"), ("memoryless", "in_flight")}
"""Gates of a policy that held when a slot was free, which speaks for admission: an
accident of the frozen code. They are counted nowhere."""

FREE = ("gate_cell", "thin_protect", "thin_shed", "vllm_queued_tokens")
"""Arms whose parameters follow the cell or the block: they stand in no contest of one
parameter set."""


class EvidenceError(ValueError):
    """The records contradict each other, or cannot be read."""


def read(folder: Path = RECORDS) -> list[Row]:
    """The records of every stage; those in gzip before plain ones.

    Raises:
        EvidenceError: a file is damaged.
    """
    rows: list[Row] = []
    for stage in STAGES:
        for name in (f"{stage}.jsonl.gz", f"{stage}.jsonl"):
            if (folder / name).exists():
                rows.extend(_lines(folder / name))
                break
    return rows


def _lines(path: Path) -> Iterator[Row]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines)
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise EvidenceError(f"{path.name} is damaged: {error}") from error


@dataclass(frozen=True, slots=True)
class Evidence:
    """All records, and those that are judged by cell, arm and block.

    Attributes:
        rows: all, the screen's among them.
        runs: a record for each block of each arm of each cell.
    """

    rows: tuple[Row, ...]
    runs: Mapping[Cell, Mapping[str, Mapping[int, Row]]]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Self:
        """Sorts records.

        Raises:
            EvidenceError: one run stands there twice.
        """
        kept = tuple(rows)
        runs: dict[Cell, dict[str, dict[int, Row]]] = {}
        for row in kept:
            if row["stage"] == "screen":
                continue
            cell = Cell(row["mix"], row["engine"], row["client"], row["load"])
            blocks = runs.setdefault(cell, {}).setdefault(row["arm"], {})
            if blocks.setdefault(row["block"], row) is not row:
                said = f"{row['arm']}, {cell}, block {row['block']}"
                raise EvidenceError(f"{said}: stands in the records twice")
        return cls(kept, runs)

    def grid(self, loads: Sequence[float] = LOADS) -> list[Cell]:
        """The main cells that were run, at some loads."""
        every = (
            Cell("final", engine, client, load)
            for engine in ENGINES
            for client in CLIENTS
            for load in loads
        )
        return [cell for cell in every if cell in self.runs]

    def shift(self) -> list[Cell]:
        """The cells of the shift test."""
        return self.chosen(lambda cell: cell.mix in SHIFTED)

    def chosen(self, wanted: Callable[[Cell], bool]) -> list[Cell]:
        """Any cells, in an order of their own."""
        return sorted(cell for cell in self.runs if wanted(cell))

    def arms(self, some: Sequence[Cell]) -> list[str]:
        """The arms of the protocol's table that ran in all of these cells."""
        names = [name for arm in ARMS for name in (arm, f"{arm}:count", f"{arm}:work")]
        return [name for name in names if some and self.everywhere(name, some)]

    def everywhere(self, arm: str, some: Sequence[Cell]) -> bool:
        """Whether an arm ran in all of these cells."""
        return all(arm in self.runs[cell] for cell in some)

    def named(self, arm: str, metric: str) -> str:
        """The name under which an arm's runs for a metric stand."""
        return f"{arm}:{metric}" if arm in OF_METRIC else arm

    def of_arm(self, arm: str, some: Iterable[Cell]) -> list[Row]:
        """All its runs in some cells."""
        return [
            row
            for cell in some
            for _, row in sorted(self.runs.get(cell, {}).get(arm, {}).items())
        ]

    def mean(self, arm: str, cell: Cell, key: str) -> float | None:
        """Over the blocks that know it; None = there is none."""
        blocks = self.runs.get(cell, {}).get(arm, {})
        return mean_of(tuple(blocks.values()), key)

    def over(self, arm: str, some: Sequence[Cell], key: str) -> float | None:
        """The mean of the cells' means; None = the arm lacks one of them."""
        means = [self.mean(arm, cell, key) for cell in some]
        known = [one for one in means if one is not None]
        return fmean(known) if known and len(known) == len(means) else None


def base(arm: str) -> str:
    """An arm's name without the metric it is tuned for."""
    return arm.partition(":")[0]


def one_set(arm: str) -> bool:
    """Whether an arm has one parameter set for all cells."""
    return base(arm) not in FREE


# ------------------------------------------------------- what a row of a table shows


def part(rows: Sequence[Row], key: str) -> float | None:
    """Good tasks of those offered, `short` or `long` ones; None = there were none."""
    good, offered = (sum(row[key][place] for row in rows) for place in (0, 1))
    return good / offered if offered else None


def per_task(rows: Sequence[Row], key: str) -> float | None:
    """How many of something there were for each task offered."""
    offered = sum(row["offered"] for row in rows)
    return sum(row.get(key, 0) for row in rows) / offered if offered else None


def mean_of(rows: Sequence[Row], key: str) -> float | None:
    """The mean of what is known."""
    known = [row[key] for row in rows if row[key] is not None]
    return fmean(known) if known else None


def middle_of(rows: Sequence[Row], key: str) -> float | None:
    """The middle one of what is known: percentiles of runs are never averaged."""
    known = [row[key] for row in rows if row[key] is not None]
    return median(known) if known else None


def parameters(row: Row) -> str:
    """`kv_threshold (threshold=0.9)`."""
    told = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
    return f"{row['policy']} ({told})" if told else str(row["policy"])


def sets(rows: Iterable[Row]) -> list[str]:
    """The parameter sets of some runs, each once, in their order."""
    return list(dict.fromkeys(map(parameters, rows)))


def held(rows: Iterable[Row]) -> dict[str, float]:
    """In what share of decisions each gate held that may speak for a refusal."""
    counts: dict[str, int] = defaultdict(int)
    decisions = 0
    for row in rows:
        decisions += row["decisions"]
        for gate, (_, n) in row["gates"].items():
            if (row["policy"], gate) not in SPEAKS_FOR:
                counts[gate] += n
    return {gate: n / decisions if decisions else 0.0 for gate, n in counts.items()}
