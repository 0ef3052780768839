"""Trying parameters on the training pool, side by side."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from benchmarks.sessions.arms import Choice, choices
from benchmarks.sessions.cells import Cell
from benchmarks.sessions.runs import Job, Record, found, place_of, run_all

from admitperf.core.digest import blake2b
from admitperf.policies.parts.live import elephants

KEPT = Path(__file__).parents[2] / ".cache" / "sessions" / "try.jsonl"
AGAIN = ("session_ledger", "session_aimd", "memoryless")
"""Policies that are still written: what was kept of them is not believed."""

PARTS = ("mix.py", "cells.py", "controls.py", "runs.py")

SHOWN = ("count", "work", "wasted_share")


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        arm: as asked for.
        choice: its parameters.
    """

    arm: str
    choice: Choice

    @property
    def label(self) -> str:
        """Its name with what was set."""
        said = {**self.choice.parameters, **self.choice.engine}
        told = ",".join(f"{name}={value}" for name, value in said.items())
        return f"{self.arm} {told}".strip()


def rows(arms: Sequence[str], told: Sequence[str]) -> list[Row]:
    """Each arm with each combination of the values that its policy knows.

    Raises:
        SystemExit: a parameter is of none of them.
    """
    values: dict[str, list[object]] = {}
    for one in told:
        name, _, value = one.partition("=")
        values.setdefault(name, []).append(_read(value))
    made = [row for arm in arms for row in _rows(arm, values)]
    known = {name for row in made for name in found(row.choice.policy).declared()}
    if unknown := sorted(set(values) - known):
        raise SystemExit(f"no arm has {', '.join(unknown)}")
    return list({row.label: row for row in made}.values())


def _rows(arm: str, values: Mapping[str, Sequence[object]]) -> Iterator[Row]:
    for choice in choices(arm):
        known = found(choice.policy).declared()
        own = {name: some for name, some in values.items() if name in known}
        for cell in product(*own.values()):
            parameters = {**choice.parameters, **dict(zip(own, cell, strict=True))}
            yield Row(arm, choice._replace(parameters=parameters))


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def tried(
    asked: Sequence[Row], cells: Sequence[Cell], blocks: int, *, fresh: bool = False
) -> list[Record]:
    """The records of every row in every cell, those that were kept included."""
    jobs = [
        Job("try", cell, block, row.label, *row.choice)
        for cell in cells
        for block in range(1, blocks + 1)
        for row in asked
    ]
    code = _code()
    kept = {} if fresh else _kept(code)
    made = [kept[job.key] for job in jobs if job.key in kept]
    for group in run_all(job for job in jobs if job.key not in kept):
        if group.error:
            raise group.error
        _keep(code, zip(group.jobs, group.records, strict=True))
        made += group.records
        print(f"{len(made)} of {len(jobs)} runs", file=sys.stderr)
    return made


def _code() -> str:
    """What makes a run what it is, beside the policies that are still written."""
    live = Path(elephants.__file__).parent
    paths = [*map(Path(__file__).with_name, PARTS), *sorted(live.glob("*.py"))]
    text = b"".join(path.read_bytes() for path in paths)
    return blake2b(text, digest_size=8).hexdigest()


def _kept(code: str) -> dict[str, Record]:
    if not KEPT.exists():
        return {}
    found: dict[str, Record] = {}
    for number, line in enumerate(KEPT.read_text().splitlines(), 1):
        try:
            made_by, key, record = json.loads(line)
        except ValueError:
            print(f"{KEPT}: line {number} is cut off, and left out", file=sys.stderr)
            continue
        if made_by == code:
            found[key] = record
    return found


def _keep(code: str, made: Iterable[tuple[Job, Record]]) -> None:
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with KEPT.open("a") as file:
        for job, record in made:
            if record["policy"] not in AGAIN:
                file.write(json.dumps([code, job.key, record]) + "\n")


def table(asked: Sequence[Row], cells: Sequence[Cell], made: Sequence[Record]) -> str:
    """Count, work and wasted share by cell, in hundredths, and the worst regret.

    Regret is against the best row of this table.
    """
    means = _means(made)
    best = {
        (cell, n): max(means[row.label, cell][n] for row in asked)
        for cell in cells
        for n in (0, 1)
    }
    width = min(90, max(len(row.label) for row in asked))
    names = [f"{c.engine[:4]}/{c.client[:3]}/{c.load:g}" for c in cells]
    lines = [
        f"{'SIMULATED; count work wasted, in %':{width}s} | "
        + " | ".join(f"{name:^14s}" for name in names)
        + " | mean count work | worst regret count work"
    ]
    for row in asked:
        found_ = [means[row.label, cell] for cell in cells]
        told = " | ".join(
            f"{100 * c:4.1f} {100 * w:4.1f} {100 * x:4.1f}" for c, w, x in found_
        )
        mean = [sum(one[n] for one in found_) / len(cells) for n in (0, 1)]
        worst = [
            max(best[cell, n] - means[row.label, cell][n] for cell in cells)
            for n in (0, 1)
        ]
        lines.append(
            f"{row.label[:width]:{width}s} | {told} |"
            f"  {100 * mean[0]:5.1f} {100 * mean[1]:5.1f} |"
            f"  {100 * worst[0]:5.1f} {100 * worst[1]:5.1f}"
        )
    return "\n".join(lines)


def _means(made: Iterable[Record]) -> dict[tuple[str, Cell], list[float]]:
    """Of each row in each cell, over the blocks."""
    some: dict[tuple[str, Cell], list[Record]] = {}
    for one in made:
        some.setdefault((one["arm"], place_of(one)[0]), []).append(one)
    return {
        key: [sum(one[name] or 0.0 for one in ones) / len(ones) for name in SHOWN]
        for key, ones in some.items()
    }


def gates(made: Iterable[Record]) -> str:
    """How often each gate of each row was asked and held, and what was refused."""
    lines = []
    for one in made:
        where = f"{one['engine']}/{one['client']}/{one['load']:g} b{one['block']}"
        lines.append(f"{where} {one['arm']}: {one['gates']} refused {one['refused']}")
    return "\n".join(sorted(lines))
