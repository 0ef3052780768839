"""Shows that the verdicts of `bench compare` keep their word, on our own engine.

    python benchmarks/method_engine.py            the table, some minutes
    python benchmarks/method_engine.py --quick    fewer blocks, half a minute; exits 1
                                                  where the page shows something else
    python benchmarks/method_engine.py --write    put it on docs/statistics.md
    python benchmarks/method_engine.py --json

`method.py` asks a toy cluster thousands of times. This asks the simulated engine that
benchmarks run on: batches, chunked prefill, a KV cache, scraped signals, steps whose
time scatters. Each block is one plan, met by every arm at every load through the same
callers and the same score as in `admitperf bench`; some hundred blocks are the
population whose means are the truth. Experiments of a few blocks are drawn from it, and
`admitperf.bench.design.claims`, the rule of `bench compare`, judges each.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.callers.client import client
from admitperf.bench.callers.score import score
from admitperf.bench.callers.slo import Slo
from admitperf.bench.design.claims import Cell, Standing, standings
from admitperf.core.notice import hushed
from admitperf.policies import load as policy_class
from admitperf.simulator import Scraping, Setting, VirtualClock, run, stream
from admitperf.simulator.capacity import of_requests
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.traffic.sessions import Beginning, Call, Session, UnderWay

PAGE = Path(__file__).parent.parent / "docs" / "statistics.md"
BEGIN = "<!-- table: benchmarks/method_engine.py -->"
END = "<!-- end of the engine's table -->"

SEED = 20_261
EXPERIMENTS = (6, 8, 20)
"""Blocks in an experiment: the least, the default, and where power is high."""

BLOCKS, QUICK_BLOCKS = 240, 24
DRAWS, QUICK_DRAWS = 2_000, 200
LOADS = (0.8, 1.2, 1.5)

CALLS = 300
"""Calls of a run that are planned at any load, on average."""

ARRIVAL_CV = 1.5
"""Bursty; the gaps are gamma."""

TTFT_FACTOR = 5.0
"""Of the unloaded p95: the rule of benchmarks."""

ENGINE = EngineModel(
    max_num_seqs=16,
    kv_blocks=1_200,
    step_ms=20.0,
    ms_per_prefill_token=0.1,
    ms_per_sequence=0.5,
    front_ms=3.0,
    noise=0.05,
)
"""A small engine, so that a run takes milliseconds; its steps scatter by a
twentieth."""

SCRAPING = Scraping(interval_s=0.1)


@dataclass(frozen=True, slots=True)
class Arm:
    """Who stands before the engine.

    Attributes:
        name: of the arm in this table.
        policy, parameters: what is built.
        machine: which draw of the engine's scatter it meets.
        own_plan: whether it meets a plan of its own: pairs in name only.
    """

    name: str
    policy: str
    parameters: Mapping[str, Any]
    machine: int = 0
    own_plan: bool = False


BASELINE = Arm("baseline", "no_admission", {})
ARMS = (
    BASELINE,
    Arm("again", "no_admission", {}, machine=1),
    Arm("own plan", "no_admission", {}, machine=1, own_plan=True),
    Arm("bound", "queue_depth", {"max_waiting": 2}, machine=1),
    Arm("loose bound", "queue_depth", {"max_waiting": 8}, machine=1),
    Arm("tight cap", "in_flight_cap", {"max_in_flight": 10}, machine=1),
)
SAID = {
    "again": "A/A, one plan",
    "own plan": "A/A, own plans",
    "loose bound": "a queue bound, loose",
    "bound": "a queue bound, tight",
    "tight cap": "a cap too tight",
}
"""The arms in the order of the table."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one arm in experiments of one size.

    Attributes:
        arm: as the table says it.
        blocks, draws: in each experiment; experiments.
        gain, harm: the true mean differences, above capacity and below.
        sd: of the blocks' differences above capacity.
        covered: share of 95 % intervals that hold the true gain.
        rises: share in which the gain is claimed.
        harmless: share in which no harm is claimed.
        better, worse, equivalent: share of each verdict; the rest is inconclusive.
    """

    arm: str
    blocks: int
    draws: int
    gain: float
    harm: float
    sd: float
    covered: float
    rises: float
    harmless: float
    better: float
    worse: float
    equivalent: float


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """Two arms that are the baseline again, in one experiment.

    Attributes:
        blocks, draws: as in a row.
        any_gain: share in which either of them claims a gain.
    """

    blocks: int
    draws: int
    any_gain: float


# ------------------------------------------------------------------- simulation


def calls(seed: int, name: str, count: int) -> list[Session]:
    """Requests of one call each, with lognormal sizes."""
    chance = stream(seed, f"{name}/sizes")
    made = []
    for n in range(count):
        prompt = min(max(int(chance.lognormvariate(5.0, 0.8)), 8), 2_000)
        answer = min(max(int(chance.lognormvariate(2.8, 0.6)), 2), 120)
        call = Call(after=None, gap_s=0.0, input_tokens=prompt, output_tokens=answer)
        made.append(Session(f"{name}-{n}", (call,), max_output_tokens=answer))
    return made


def begun(per_s: float, seed: int) -> list[Beginning]:
    """A plan: so many requests that come in bursts."""
    chance = stream(seed, "gaps")
    shape = 1 / ARRIVAL_CV**2
    at_s, made = 0.0, []
    for one in calls(seed, "q", CALLS):
        at_s += chance.gammavariate(shape, 1 / (per_s * shape))
        made.append((at_s, one))
    return made


def goodput(arm: Arm, per_s: float, block: int, slo: Slo) -> float:
    """Of one run, over what was offered."""
    name = f"{arm.name}/{block}" if arm.own_plan else f"{block}"
    seed = stream(SEED, f"plan/{name}").getrandbits(40)
    offered = begun(per_s, seed)
    lasts_s = math.ceil(offered[-1][0]) + 1.0
    who = client("none")
    plan = planned(offered, lasts_s, (0.0, lasts_s), who, noun="request")
    asking = Callers(plan, who, seed)
    setting = Setting(
        model=ENGINE,
        scraping=SCRAPING,
        seed=stream(SEED, f"machine/{arm.machine}/{block}/{per_s}").getrandbits(40),
    )
    clock = VirtualClock(0.0)
    given = {"clock": clock, "reports_outcomes": True, **arm.parameters}
    with hushed(), policy_class(arm.policy)(**given) as policy:
        run(policy, clock, asking, setting)
    found = score(asking.records(), slo, unloaded_s=None).goodput
    return float(found or 0.0)


def capacity_per_s() -> float:
    """What the engine can carry of these requests."""
    asked = (UnderWay(one).arrival(0, 0.0) for one in calls(SEED, "capacity", 4_000))
    return of_requests(ENGINE, asked).requests_per_s


def deadlines(per_s: float) -> Slo:
    """Five times the p95 of the time to first token with next to no load."""
    quiet = _quiet(0.02 * per_s)
    return Slo(classes={"": {"ttft_ms": TTFT_FACTOR * quiet, "stall_ms": 500.0}})


def _quiet(per_s: float) -> float:
    offered = [(n / per_s, one) for n, one in enumerate(calls(SEED, "quiet", 200))]
    lasts_s = offered[-1][0] + 1.0
    who = client("none")
    plan = planned(offered, lasts_s, (0.0, lasts_s), who, noun="request")
    asking, clock = Callers(plan, who, SEED), VirtualClock(0.0)
    with hushed(), policy_class("no_admission")(clock=clock) as policy:
        run(policy, clock, asking, Setting(model=ENGINE, scraping=SCRAPING, seed=SEED))
    p95 = score(asking.records(), Slo(), unloaded_s=None).ttft_served_ms["p95"]
    return float(p95 or 0.0)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One block at every load, for a process of its own."""

    block: int
    per_s: float
    slo: Slo


def _block(asked: _Asked) -> list[Cell]:
    """The cells of one block: every arm at every load, beside the baseline."""
    made = []
    for load in LOADS:
        values = {
            arm.name: goodput(arm, load * asked.per_s, asked.block, asked.slo)
            for arm in ARMS
        }
        made += [
            Cell(arm.name, load, asked.block, values[arm.name], values[BASELINE.name])
            for arm in ARMS
            if arm is not BASELINE
        ]
    return made


def population(n: int, jobs: int) -> list[list[Cell]]:
    """So many blocks."""
    per_s = capacity_per_s()
    slo = deadlines(per_s)
    asked = [_Asked(block, per_s, slo) for block in range(1, n + 1)]
    if jobs == 1:
        return list(map(_block, asked))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_block, asked, chunksize=4))


# ---------------------------------------------------------------------- judging


def rows(blocks: Sequence[Sequence[Cell]], draws: int) -> Iterator[Row]:
    """Every arm in experiments of every size, each arm alone."""
    for name, said in SAID.items():
        own = [[cell for cell in block if cell.arm == name] for block in blocks]
        (whole,) = standings([cell for block in own for cell in block])
        for size in EXPERIMENTS:
            yield _row(said, whole, size, [*_drawn(own, size, draws)])


def _drawn(
    blocks: Sequence[Sequence[Cell]], size: int, draws: int
) -> Iterator[list[Standing]]:
    """Experiments of so many blocks; within one no block comes twice."""
    chance = stream(SEED, f"draws/{size}")
    for _ in range(draws):
        chosen = chance.sample(blocks, size)
        yield standings([cell for block in chosen for cell in block])


def _row(
    said: str, whole: Standing, size: int, seen: Sequence[Sequence[Standing]]
) -> Row:
    gain, harm = _differences(whole)
    truth = fmean(gain)
    each = [one for (one,) in seen]
    return Row(
        arm=said,
        blocks=size,
        draws=len(each),
        gain=truth,
        harm=fmean(harm),
        sd=stdev(gain),
        covered=_share(_holds(one, truth) for one in each),
        rises=_share(one.gain is not None and one.gain.rises for one in each),
        harmless=_share(
            one.no_harm is not None and one.no_harm.not_worse for one in each
        ),
        better=_share(one.word == "better" for one in each),
        worse=_share(one.word == "worse" for one in each),
        equivalent=_share(one.word == "equivalent" for one in each),
    )


def _differences(one: Standing) -> tuple[Sequence[float], Sequence[float]]:
    if one.gain is None or one.no_harm is None:
        raise ValueError("a population has loads on both sides of capacity")
    return one.gain.statistics.differences, one.no_harm.statistics.differences


def _holds(one: Standing, truth: float) -> bool:
    interval = one.gain.statistics.interval if one.gain else None
    return interval is not None and interval.low <= truth <= interval.high


def _share(held: Iterator[bool]) -> float:
    found = list(held)
    return sum(found) / len(found)


def families(blocks: Sequence[Sequence[Cell]], draws: int) -> Iterator[FamilyRow]:
    """How often either of two arms that are the baseline again claims a gain."""
    names = ("again", "own plan")
    own = [[cell for cell in block if cell.arm in names] for block in blocks]
    for size in EXPERIMENTS:
        seen = [*_drawn(own, size, draws)]
        claimed = (any(one.gain and one.gain.rises for one in two) for two in seen)
        yield FamilyRow(size, len(seen), _share(map(bool, claimed)))


# --------------------------------------------------------------------- printing


def table(found: Sequence[Row], family: Sequence[FamilyRow], blocks: int) -> str:
    """Both tables, in Markdown."""
    head = "| arm | true gain | SD | true difference at 0.8x | blocks | draws | covered"
    lines = [
        f"{blocks} blocks of {CALLS} calls at each of {_LOADS}.",
        "",
        f"{head} | gain | no harm | better | worse | equivalent |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *map(_line, found),
        "",
        "| two A/A arms | draws | any gain claimed, after Holm |",
        "|---|---|---|",
        *(
            f"| {one.blocks} blocks | {one.draws} | {one.any_gain:.3f} |"
            for one in family
        ),
    ]
    return "\n".join(lines)


_LOADS = ", ".join(f"{load:g}x" for load in LOADS)


def _line(one: Row) -> str:
    shares = (
        one.covered, one.rises, one.harmless, one.better, one.worse, one.equivalent,
    )  # fmt: skip
    return (
        f"| {one.arm} | {one.gain:+.3f} | {one.sd:.3f} | {one.harm:+.3f} | {one.blocks}"
        f" | {one.draws} | {' | '.join(f'{share:.3f}' for share in shares)} |"
    )


def written(page: str, made: str) -> str:
    """The page with this table in place of its own."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


FAR = 4.0
"""Standard errors: chance alone goes that far in one row of some thousand."""

_ROUNDED = 0.0005  # what three digits leave open


def apart(blocks: Sequence[Sequence[Cell]], page: str) -> Iterator[str]:
    """Where the page's true gains are not those of these blocks, in sentences.

    Below capacity differences are few and large, and nothing is asked of them.

    Args:
        blocks: some of the population, run anew.
        page: with the table.
    """
    shown = dict(_shown(page))
    for name, said in SAID.items():
        own = [cell for block in blocks for cell in block if cell.arm == name]
        (whole,) = standings(own)
        found = fmean(whole.gain.statistics.differences) if whole.gain else math.nan
        gain, sd = shown.get(said, (math.nan, math.nan))
        error = sd * math.sqrt(1 / len(blocks) + 1 / BLOCKS)
        if not abs(found - gain) <= FAR * error + _ROUNDED:
            yield f"{said}: true gain {found:+.3f} here, {gain:+.3f} on the page"


def _shown(page: str) -> Iterator[tuple[str, tuple[float, float]]]:
    """Of each arm the true gain and the SD."""
    _, _, rest = page.partition(BEGIN)
    for line in rest.partition(END)[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in SAID.values():
            yield cells[0], (float(cells[1]), float(cells[2]))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer blocks")
    parser.add_argument("--write", action="store_true", help="put it on the page")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    count, draws = (QUICK_BLOCKS, QUICK_DRAWS) if asked.quick else (BLOCKS, DRAWS)
    blocks = population(count, asked.jobs)
    found, family = [*rows(blocks, draws)], [*families(blocks, draws)]
    page = PAGE.read_text(encoding="utf-8")
    made = table(found, family, count)
    if asked.write:
        PAGE.write_text(written(page, made), encoding="utf-8")
    if asked.json:
        plain = {"rows": list(map(asdict, found)), "families": [*map(asdict, family)]}
        print(json.dumps(plain, indent=2))
    else:
        print(made)
    if asked.quick and (off := [*apart(blocks, page)]):
        sys.exit("\n".join(off))


if __name__ == "__main__":
    main()
