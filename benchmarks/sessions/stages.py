"""The stages of PROTOCOL.md: what the screen chooses, and what the final runs are."""

import gzip
import json
import os
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from benchmarks.sessions import frozen, mix
from benchmarks.sessions.arms import GRIDS, METRIC, METRICS, PER_METRIC, THIN, Choice
from benchmarks.sessions.cells import CLIENTS, ENGINES, LOAD, LOADS, Cell, calibrated
from benchmarks.sessions.runs import Job, Place, Record, place_of, run_all

TRAINING_BLOCKS = 2
BLOCKS = 8

SCREEN = [Cell("train", engine, one, LOAD) for engine in ENGINES for one in CLIENTS]
GATE_CELLS = [
    Cell("train", engine, one, load)
    for engine in ENGINES
    for one in CLIENTS
    for load in LOADS
]
"""The request gates are screened at every load: one of them is tuned per cell."""

FINAL = [cell._replace(mix="final") for cell in GATE_CELLS]
CONTROLLED = [cell._replace(mix="final") for cell in SCREEN]

SHIFT = [
    Cell(name, "kv", client, LOAD)
    for name in (*mix.SHIFTS, "weka")
    for client in CLIENTS
]
EXTRA = [
    *(
        Cell("final", engine, one, LOAD)
        for one in ("deaf", "polls")
        for engine in ENGINES
    ),
    *(Cell("burst", engine, "patient", LOAD) for engine in ENGINES),
    Cell("no_final", "kv", "patient", LOAD),
    *(Cell(name, "kv", one, LOAD) for name in ("fan-out", "short") for one in CLIENTS),
]

TUNED_AS = {"deaf": "impatient", "polls": "patient"}
"""Whose parameters of `gate_cell` those clients meet that are in no training run."""

ALONE = ("vllm_queued_tokens",)
"""Arms of which the best in each cell is taken, and which have no one set."""

DEADLINES_OFF = {"patience": 100.0}
"""Of the memoryless twins: the ledger's deadline is a task's. Held to it call by call
they kill most tasks they let in, and would be too easy to beat."""


# ---------------------------------------------------------------------------- records


class Store:
    """The records of a stage, in gzip.

    Args:
        path: of the file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: list[Record] = []
        self._cut = False
        if path.exists():
            self.records, self._cut = _whole(path)

    def add(self, records: Iterable[Record]) -> None:
        """Keeps some, on the disk too."""
        if self._cut:
            self.settle()
        made = list(records)
        self.records += made
        self._path.parent.mkdir(exist_ok=True)
        with gzip.open(self._path, "at", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in made)

    def refuse_stale(self) -> None:
        """Says when loads mean something else by now than in what is kept.

        Raises:
            SystemExit: they do.
        """
        for one in self.records:
            engine = calibrated(one["engine"], one["mix"])
            if one["capacity_per_s"] != round(engine.per_s, 6):
                raise SystemExit(f"{self._path}: of another capacity, move it away")

    def settle(self) -> None:
        """Writes all anew, in an order that does not depend on who was first."""
        self.records.sort(key=_order)
        text = "".join(json.dumps(one) + "\n" for one in self.records)
        self._path.parent.mkdir(exist_ok=True)
        whole = self._path.with_suffix(f".{os.getpid()}")
        with whole.open("wb") as file:
            file.write(gzip.compress(text.encode(), mtime=0))
            file.flush()
            os.fsync(file.fileno())
        whole.replace(self._path)
        self._cut = False

    def forget(self, arms: Sequence[str]) -> None:
        """Drops the records of some arms."""
        self.records = [one for one in self.records if one["arm"] not in arms]
        self.settle()


def _whole(path: Path) -> tuple[list[Record], bool]:
    """Its whole lines, and whether it was cut off, which is said."""
    kept: list[Record] = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                kept.append(json.loads(line))  # noqa: PERF401  kept when the rest fails
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        said = f"{path.name}: {len(kept)} records kept, the rest dropped ({error})"
        print(said, file=sys.stderr)
        return kept, True
    return kept, False


def move_away(path: Path) -> None:
    """Keeps a stage's old records under a name with the time; nothing if none are."""
    if path.exists():
        at = time.strftime("%Y%m%d-%H%M%S")
        path.rename(path.with_name(f"{path.name}.{at}.old"))


def _order(one: Record) -> tuple[object, ...]:
    where = (one[name] for name in ("stage", "mix", "engine", "client", "load"))
    said = json.dumps(one["parameters"], sort_keys=True)
    return (*where, one["block"], one["arm"], said)


def made(jobs: Sequence[Job], store: Store, *, by_set: bool) -> bool:
    """Runs those jobs of which there is no record; says on stderr how far it is.

    A place whose arms could not all be run is left out whole, and said.

    Args:
        jobs: in the order in which they are to be run.
        store: what there is, and where new records go.
        by_set: whether an arm may stand in a place more than once, with other
            parameters.

    Returns:
        Whether all could be run.
    """
    store.refuse_stale()
    known: dict[Place, list[Record]] = {}
    for one in store.records:
        known.setdefault(place_of(one), []).append(one)
    left = [
        job for job in jobs if not _stands(job, known.get(job.place, ()), by_set=by_set)
    ]
    begin_s, done, failed = time.monotonic(), 0, False
    total = len(left)
    print(f"{len(jobs) - total} of {len(jobs)} runs are kept", file=sys.stderr)
    for group in run_all(left, known):
        if group.error:
            failed = True
            print(f"{group.jobs[0].key}: {group.error!r}", file=sys.stderr)
        store.add(group.records)
        done += len(group.jobs)
        left_s = (time.monotonic() - begin_s) / done * (total - done)
        told = f"{done}/{total} runs, {left_s / 60:.1f} min left"
        cell, block = group.jobs[0].place
        print(f"{told}, {cell.label} block {block}", file=sys.stderr)
    store.settle()
    return not failed


def _stands(job: Job, known: Sequence[Record], *, by_set: bool) -> bool:
    said = {**job.parameters, **job.engine}
    for one in known:
        if one["arm"] == job.arm and one["stage"] == job.stage:
            alike = job.like is not None or one["parameters"] == said
            if alike and one["policy"] == job.policy:
                return True
            if not by_set:
                raise SystemExit(f"{job.key}: stands there as {one['parameters']}")
    return False


# ------------------------------------------------------------------------------- screen


def screen_jobs(arms: Sequence[str]) -> list[Job]:
    """Every parameter set of these arms on the training pool."""
    return [
        Job("screen", cell, block, arm, *choice)
        for cell in GATE_CELLS
        for block in range(1, TRAINING_BLOCKS + 1)
        for arm in arms
        if cell in SCREEN or arm == "gate_one"
        for choice in GRIDS[arm]
    ]


Means = Mapping[Cell, Mapping[str, float]]
"""Of a metric, by cell and by arm with parameter set."""


def choose(
    records: Sequence[Record],
) -> tuple[dict[str, Choice], dict[str, dict[str, Choice]]]:
    """Each arm's one set, and the best in each cell of those tuned there."""
    kept = {_name(one): _choice(one) for one in records}
    arms = {one["arm"] for one in records}
    chosen: dict[str, Choice] = {}
    cells: dict[str, dict[str, Choice]] = {}
    for metric in METRICS:
        means = _means(records, metric)
        for arm in sorted(arms - set(ALONE)):
            if METRIC.get(arm, metric) == metric:
                name = f"{arm}:{metric}" if arm in PER_METRIC else arm
                chosen[name] = kept[_least_regret(means, arm)]
        for cell in means:
            place = cells.setdefault(cell.label.partition("/")[2], {})
            for name, arm in (
                ("gate_cell", "gate_one"),
                *((one, one) for one in ALONE),
            ):
                best = _best(means[cell], arm)
                if best:
                    place[f"{name}:{metric}"] = kept[best]
    return chosen, cells


def regrets(records: Sequence[Record]) -> str:
    """Worst-cell regret of what was chosen, in hundredths, and what was."""
    chosen, _ = choose(records)
    lines = []
    for name, choice in chosen.items():
        arm, _, told = name.partition(":")
        metric = told or METRIC.get(arm, "count")
        means = _means(records, metric)
        regret = _regret(means, _name({"arm": arm, **_plain(choice)}))
        said = {**choice.parameters, **choice.engine}
        lines.append(f"{name:22s} {metric:5s} regret {100 * regret:5.1f}  {said}")
    return "\n".join(lines)


def _plain(choice: Choice) -> Record:
    parameters = {**choice.parameters, **choice.engine}
    return {"policy": choice.policy, "parameters": parameters}


def _name(one: Record) -> str:
    return f"{one['arm']} {json.dumps(one['parameters'], sort_keys=True)}"


def _choice(one: Record) -> Choice:
    told = dict(one["parameters"])
    engine = {n: told.pop(n) for n in ("max_num_queued_tokens",) if n in told}
    return Choice(one["policy"], told, engine)


def _means(records: Iterable[Record], metric: str) -> Means:
    some: dict[Cell, dict[str, list[float]]] = {}
    for one in records:
        cell, _ = place_of(one)
        some.setdefault(cell, {}).setdefault(_name(one), []).append(one[metric])
    return {
        cell: {name: sum(ones) / len(ones) for name, ones in sets.items()}
        for cell, sets in some.items()
    }


def _of(means: Mapping[str, float], arm: str) -> list[str]:
    return [name for name in means if name.partition(" ")[0] == arm]


def _best(means: Mapping[str, float], arm: str) -> str | None:
    return max(_of(means, arm), key=means.__getitem__, default=None)


def _regret(means: Means, name: str) -> float:
    """Of the cells in which all arms were screened, the worst."""
    return max(_lost(means[cell], name) for cell in SCREEN if cell in means)


def _lost(means: Mapping[str, float], name: str) -> float:
    return max(means.values()) - means[name]


def _least_regret(means: Means, arm: str) -> str:
    """The set with the smallest worst regret, of equals the one with the least sum."""
    cells = [cell for cell in SCREEN if cell in means]

    def lost(name: str) -> tuple[float, float]:
        every = [_lost(means[cell], name) for cell in cells]
        return round(max(every), 9), sum(every)

    return min(_of(means[cells[0]], arm), key=lost)


# -------------------------------------------------------------------------------- final


STAGES = {"final": FINAL, "shift": SHIFT, "extra": EXTRA}


def final_jobs(stage: str) -> list[Job]:
    """All runs of a stage, but those whose traces are not there."""
    places = [(cell, 1 + n) for cell in STAGES[stage] for n in range(BLOCKS)]
    jobs = [
        job for cell, n in places if _there(cell) for job in arm_jobs(stage, cell, n)
    ]
    if stage == "extra":
        places = [(cell, 1 + n) for cell in CONTROLLED for n in range(BLOCKS)]
        jobs += [job for cell, n in places for job in control_jobs(cell, n)]
    return jobs


@cache
def _there(cell: Cell) -> bool:
    if cell.mix != "weka" or (mix.shared() / mix.RECORDED).exists():
        return True
    path = mix.shared() / mix.RECORDED
    print(f"left out {cell.label}: no {path}; set {mix.SHARED}", file=sys.stderr)
    return False


def arm_jobs(stage: str, cell: Cell, block: int) -> Iterator[Job]:
    """All arms of PROTOCOL.md's table in one place."""
    client = TUNED_AS.get(cell.client, cell.client)
    where = (cell.engine, client, cell.load)
    yield Job(stage, cell, block, "none", "no_admission")
    for metric in METRICS:
        name = f"gate_cell:{metric}"
        yield Job(stage, cell, block, name, *frozen.chosen_in(name, *where))
        for arm in PER_METRIC:
            name = f"{arm}:{metric}"
            yield Job(stage, cell, block, name, *frozen.chosen(name))
    for arm in METRIC:
        yield Job(stage, cell, block, arm, *frozen.chosen(arm))
    for arm, like in THIN.items():
        yield Job(stage, cell, block, arm, "thinned", like=like)


def control_jobs(cell: Cell, block: int) -> Iterator[Job]:
    """The twins that remember nothing, and the engine's own limit."""
    for arm in ("protect", "shed"):
        told = {**frozen.chosen(arm).parameters, **DEADLINES_OFF}
        yield Job("extra", cell, block, f"memoryless_{arm}", "memoryless", told)
    for metric in METRICS:
        name = f"{ALONE[0]}:{metric}"
        choice = frozen.chosen_in(name, cell.engine, cell.client, cell.load)
        yield Job("extra", cell, block, name, *choice)
