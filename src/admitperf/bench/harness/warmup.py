"""The warm-up that all runs of an experiment leave out, measured once."""

import math
from collections.abc import Iterable
from dataclasses import replace

from admitperf.bench.design.steady import mser5
from admitperf.bench.harness.calibrate import Calibration, scoring
from admitperf.bench.harness.config import Config
from admitperf.bench.harness.run import Setup, callers, plan
from admitperf.bench.harness.target import Arm
from admitperf.core.clock import SYSTEM

WARMUP_LOAD = 0.8
"""Multiple of the capacity at which the warm-up is looked for. Origin: the method's
note, C3."""

WARMUP_MOST = 1 / 3
"""Of a run, the most that warm-up takes. Origin: the benchmark's contract."""


def warmed(config: Config, setup: Setup) -> tuple[Calibration, float]:
    """The calibration with the cut that all runs share.

    By MSER-5 on how many calls of the baseline are under way in each second, at 0.8x,
    in a block of its own.

    Returns:
        It, and how long that run took in seconds of the wall.
    """
    began_ns, told_so_far = SYSTEM.monotonic_ns(), setup.calibration
    whole = replace(told_so_far, scored_s=(0.0, told_so_far.lasts_s))
    looking = replace(setup, calibration=whole)
    made = plan(looking, WARMUP_LOAD * whole.capacity.per_s, 0)
    asking = callers(looking, made, 0)
    setup.target.drive(
        Arm(name=setup.baseline, policy="no_admission"),
        None,
        asking,
        seed=setup.seed,
        notes={},
        slo=None,
        run="warm-up",
        experiment=setup.experiment,
        until_s=whole.until_s,
    )
    spans = [
        (one.due_s, one.due_s + (one.e2e_ms or 0.0) / 1e3)
        for one in asking.records()
        if one.due_s is not None
    ]
    took_s = (SYSTEM.monotonic_ns() - began_ns) / 1e9
    cut_s = config.warmup_s
    if cut_s is None:
        cut_s = float(mser5(_under_way(spans, whole.lasts_s)))
    cut_s = min(cut_s, math.floor(whole.lasts_s * WARMUP_MOST))
    left_s = told_so_far.lasts_s - told_so_far.scored_s[1]
    return scoring(told_so_far, cut_s, left_s), took_s


def _under_way(spans: Iterable[tuple[float, float]], lasts_s: float) -> list[float]:
    """How many spans hold the middle of each second."""
    counts = [0.0] * int(lasts_s)
    for begin_s, end_s in spans:
        for second in range(math.ceil(begin_s - 0.5), math.ceil(end_s - 0.5)):
            if 0 <= second < len(counts):
                counts[second] += 1
    return counts
