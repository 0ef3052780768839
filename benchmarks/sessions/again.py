"""Kept runs of our arms once more, with the policies as they are now.

The records are of the commit that froze the parameters. This says what has become of
those runs since; it changes no record.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean

from benchmarks.sessions import frozen
from benchmarks.sessions.cells import Cell
from benchmarks.sessions.runs import RECORDS, Job, Record, run_all
from benchmarks.sessions.stages import EXTRA, FINAL, Store

ARMS = ("protect", "shed", "aimd", "aimd_shed")
VALUES = ("count", "work", "wasted_share")


def jobs(arms: Sequence[str], blocks: Sequence[int]) -> list[Job]:
    """The main cells, and those in which one task has many calls open."""
    places: list[tuple[str, Cell]] = [("final", cell) for cell in FINAL]
    places += [("extra", cell) for cell in EXTRA if cell.mix == "fan-out"]
    return [
        Job(stage, cell, block, arm, *frozen.chosen(arm))
        for stage, cell in places
        for block in blocks
        for arm in arms
    ]


def told(arms: Sequence[str], blocks: Sequence[int]) -> Iterator[str]:
    """Means as recorded and now, by arm and mix.

    Raises:
        SystemExit: a run failed.
    """
    kept = {
        (one["mix"], one["engine"], one["client"], one["load"], one["block"], arm): one
        for stage in ("final", "extra")
        for one in Store(RECORDS / f"{stage}.jsonl.gz").records
        if (arm := one["arm"]) in arms
    }
    pairs: dict[tuple[str, str], list[tuple[Record, Record]]] = {}
    for group in run_all(jobs(arms, blocks)):
        if group.error:
            raise SystemExit(f"{group.jobs[0].key}: {group.error!r}")
        for job, now in zip(group.jobs, group.records, strict=True):
            then = kept.get((*job.cell, job.block, job.arm))
            if then is not None:
                pairs.setdefault((job.cell.mix, job.arm), []).append((then, now))
    yield "SIMULATED; as recorded -> with the policies of now"
    for (mix, arm), some in sorted(pairs.items()):
        means = (_change(some, name) for name in VALUES)
        alike = sum(_alike(then, now) for then, now in some)
        most = max(abs(now["count"] - then["count"]) for then, now in some)
        yield (
            f"{mix:8s} {arm:10s} {', '.join(means)}; {alike} of {len(some)} runs alike,"
            f" count of one moved by {most:.3f} at most"
        )


def _change(pairs: Sequence[tuple[Record, Record]], name: str) -> str:
    then, now = (fmean(one[place][name] for one in pairs) for place in (0, 1))
    return f"{name} {then:.3f} -> {now:.3f}"


def _alike(then: Record, now: Record) -> bool:
    return all(then[name] == now[name] for name in VALUES)
