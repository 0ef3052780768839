"""Shows that the method of `compare` keeps its word, on arms whose truth is known.

    python benchmarks/method.py            the table of docs/statistics.md, a minute
    python benchmarks/method.py --quick    fewer draws, seconds
    python benchmarks/method.py --write    put the table on that page
    python benchmarks/method.py --json

A block is one trace met by two arms on a small simulated cluster: some slots, a queue
in front, arrivals in bursts. Thousands of blocks are simulated, so that the true mean
difference is known; then comparisons of 3, 5, 6 and 8 of them are drawn, and the rule
of `admitperf.reports.comparison.verdict`, the one `compare` uses, judges each.
The simulation is about the method, not about policies: it has no KV cache and no
batching.
"""

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from admitperf.reports.comparison.verdict import MARGIN, Paired, in_family

PAGE = Path(__file__).parent.parent / "docs" / "statistics.md"
BEGIN, END = "<!-- table: benchmarks/method.py -->", "<!-- end of the table -->"

SEED = 20_260
PAIRS = (3, 5, 6, 8)
ARMS = 3
"""Arms of the experiment that shows Holm's procedure."""

BLOCKS, QUICK_BLOCKS = 24_000, 3_000
MOST_DRAWS, QUICK_DRAWS = 3_000, 500

REQUESTS = 300
SLOTS = 8
SERVICE_CV = 0.5
ARRIVAL_CV = 3.0
"""Bursty, as agents are; the gaps are gamma."""

SLO_WAIT = 2.0
"""The longest wait for a slot that meets the SLO, in mean service times."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Two arms with a known difference.

    Attributes:
        name: as the table says it.
        load: arrivals over what the slots can serve.
        arm, baseline: the longest expected wait each lets in; infinity refuses no one.
        own_trace: whether each arm meets a trace of its own: pairs in name only.
    """

    name: str
    load: float
    arm: float
    baseline: float
    own_trace: bool = False


SCENARIOS = (
    Scenario("identical, 1.2x", 1.2, SLO_WAIT, SLO_WAIT),
    Scenario("identical, 0.8x", 0.8, SLO_WAIT, SLO_WAIT),
    Scenario("identical, own traces", 1.2, SLO_WAIT, SLO_WAIT, own_trace=True),
    Scenario("a small gain, 1.2x", 1.2, SLO_WAIT, 1.02 * SLO_WAIT),
    Scenario("a large gain, 1.2x", 1.2, SLO_WAIT, math.inf),
    Scenario("a loss, 1.2x", 1.2, 0.9 * SLO_WAIT, SLO_WAIT),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one scenario at one number of pairs.

    Attributes:
        scenario: its name.
        pairs: in each comparison.
        draws: comparisons.
        truth: the true mean difference, over all blocks.
        sd: standard deviation of the paired differences.
        covered: share of the 95 % intervals that hold the truth.
        better, worse, equivalent: share of each verdict; the rest is inconclusive.
        error: standard error of a share of one half, over the draws.
    """

    scenario: str
    pairs: int
    draws: int
    truth: float
    sd: float
    covered: float
    better: float
    worse: float
    equivalent: float
    error: float


# ------------------------------------------------------------------- simulation


def blocks(scenario: Scenario, n: int, seed: int, arms: int = 1) -> Floats:
    """Goodput of offered of each block: one row an arm, the baseline last.

    Every arm of a block meets the same arrivals and the same sizes. Each runs on a
    machine of its own mood: 2 % of jitter on every service, drawn anew.
    """
    rng = np.random.default_rng([seed, SCENARIOS.index(scenario), n])
    traces = [_trace(scenario.load, n, rng)] * (arms + 1)
    if scenario.own_trace:
        traces[-1] = _trace(scenario.load, n, rng)
    limits = [scenario.arm] * arms + [scenario.baseline]
    both = zip(traces, limits, strict=True)
    return np.stack([_goodput(*trace, limit, rng) for trace, limit in both])


def _trace(load: float, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """When requests arrive and how long each keeps a slot, one column a block."""
    shape, gap = 1 / ARRIVAL_CV**2, 1 / (load * SLOTS)
    gaps = rng.gamma(shape, gap / shape, (REQUESTS, n))
    sizes = rng.gamma(1 / SERVICE_CV**2, SERVICE_CV**2, (REQUESTS, n))
    return np.cumsum(gaps, axis=0), sizes


def _goodput(
    arrivals: Floats, sizes: Floats, limit: float, rng: np.random.Generator
) -> Floats:
    """Slots with one queue: refused are those who would wait longer than the limit."""
    n = arrivals.shape[1]
    free, every = np.zeros((SLOTS, n)), np.arange(n)
    met = np.zeros(n)
    for now, size in zip(arrivals, sizes, strict=True):
        slot = np.argmin(free, axis=0)
        begins = np.maximum(free[slot, every], now)
        let_in = begins - now <= limit
        met += let_in & (begins - now <= SLO_WAIT)
        took = size * (1 + 0.02 * rng.standard_normal(n))
        free[slot, every] = np.where(let_in, begins + took, free[slot, every])
    return np.asarray(met / len(arrivals))


# ---------------------------------------------------------------------- judging


def rows(n_blocks: int, most_draws: int, seed: int = SEED) -> Iterator[Row]:
    """The table: every scenario at every number of pairs."""
    for scenario in SCENARIOS:
        arm, baseline = blocks(scenario, n_blocks, seed)
        for pairs in PAIRS:
            yield _row(scenario, arm, baseline, pairs, most_draws)


def _row(
    scenario: Scenario, arm: Floats, baseline: Floats, pairs: int, most: int
) -> Row:
    differences = arm - baseline
    truth = float(differences.mean())
    draws = min(most, len(arm) // pairs)
    seen = [
        Paired.of(
            arm[start : start + pairs].tolist(),
            baseline[start : start + pairs].tolist(),
        )
        for start in range(0, draws * pairs, pairs)
    ]
    return Row(
        scenario=scenario.name,
        pairs=pairs,
        draws=draws,
        truth=truth,
        sd=float(differences.std(ddof=1)),
        covered=_share(_holds(one, truth) for one in seen),
        better=_share(one.word == "better" for one in seen),
        worse=_share(one.word == "worse" for one in seen),
        equivalent=_share(one.word == "equivalent" for one in seen),
        error=0.5 / math.sqrt(draws),
    )


def _holds(one: Paired, truth: float) -> bool:
    return one.interval is not None and one.interval.low <= truth <= one.interval.high


def _share(held: Iterator[bool]) -> float:
    found = list(held)
    return sum(found) / len(found)


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """False alarms among several identical arms and their baseline.

    Attributes:
        pairs, draws: as in a row.
        alone: share of experiments in which some arm is better, each judged alone.
        raised: the same after Holm's procedure.
    """

    pairs: int
    draws: int
    alone: float
    raised: float


def families(n_blocks: int, most_draws: int, seed: int = SEED) -> Iterator[FamilyRow]:
    """How often one of several identical arms is called better."""
    *arms, baseline = blocks(SCENARIOS[0], n_blocks, seed + 1, ARMS)
    for pairs in PAIRS:
        draws = min(most_draws, n_blocks // pairs)
        alone = raised = 0
        for start in range(0, draws * pairs, pairs):
            part = slice(start, start + pairs)
            base = baseline[part].tolist()
            seen = [Paired.of(arm[part].tolist(), base, _NO_MARGIN) for arm in arms]
            alone += any(one.word == "better" for one in seen)
            raised += any(one.word == "better" for one in in_family(seen))
        yield FamilyRow(pairs, draws, alone / draws, raised / draws)


_NO_MARGIN = 1e-9
"""The margin alone keeps most false alarms away; here the p must do it."""


# --------------------------------------------------------------------- printing


def table(found: Sequence[Row], family: Sequence[FamilyRow]) -> str:
    """Both tables, in Markdown."""
    head = "| arms | true difference | SD | pairs | draws | covered | better | worse"
    lines = [
        f"{head} | equivalent | error |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *map(_line, found),
        "",
        f"| {ARMS} identical arms | draws | any better, each alone | after Holm |",
        "|---|---|---|---|",
        *(
            f"| {one.pairs} pairs | {one.draws} | {one.alone:.3f} | {one.raised:.3f} |"
            for one in family
        ),
    ]
    return "\n".join(lines)


def _line(one: Row) -> str:
    truth = f"{one.truth:+.3f}".replace("-0.000", "0.000").replace("+0.000", "0.000")
    return (
        f"| {one.scenario} | {truth} | {one.sd:.3f} | {one.pairs}"
        f" | {one.draws} | {one.covered:.3f} | {one.better:.3f} | {one.worse:.3f}"
        f" | {one.equivalent:.3f} | {one.error:.3f} |"
    )


def written(page: str, made: str) -> str:
    """The page with the table in its place."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def measured(*, quick: bool = False) -> tuple[list[Row], list[FamilyRow]]:
    """Both tables' rows."""
    sizes = (QUICK_BLOCKS, QUICK_DRAWS) if quick else (BLOCKS, MOST_DRAWS)
    return list(rows(*sizes)), list(families(*sizes))


def main() -> None:
    """Prints the table, or puts it on the page."""
    parser = argparse.ArgumentParser(description="Proof of the method of compare.")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--write", action="store_true", help=f"put it on {PAGE.name}")
    asked = parser.parse_args()
    found, family = measured(quick=asked.quick)
    if asked.json:
        plain: Mapping[str, object] = {
            "seed": SEED,
            "margin": MARGIN,
            "rows": [asdict(one) for one in found],
            "families": [asdict(one) for one in family],
        }
        print(json.dumps(plain, indent=2, allow_nan=False))
        return
    print(table(found, family))
    if asked.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(written(page, table(found, family)), encoding="utf-8")


if __name__ == "__main__":
    main()
