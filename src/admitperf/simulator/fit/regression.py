"""The costs of a step from rows of observations, with priors where rows say little.

Non-negative least squares of relative errors, made robust by the weights of soft L1,
and shrunk towards ratios of the coefficients. Needs numpy and scipy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from admitperf.simulator.fit.nnls import nnls
from admitperf.simulator.fit.observations import COEFFICIENTS, Row
from admitperf.simulator.fit.priors import Prior
from admitperf.simulator.profile import Residuals

Floats = NDArray[np.float64]

_ROUNDS = 15
"""Of reweighting; the estimates stand still in their fifth digit after about ten."""

_FRONT, _STEP, _RESIDENT, _PREFILL, _SEQUENCE = range(5)

HICCUP = 0.3
"""A step this part of what it should take was delivered late together with the one
before it: the two are one row. A plain choice, as is the next."""

MOST_TOGETHER = 8
"""Rows put into one above which that one is left out: what came in such a burst does
not say any more which tokens were made together."""

STALL = 3.0
"""Over this many times what it should take, a row is a stall of something else."""

WINDOW_ROWS = 64
"""Rows whose sum tells how much of the scatter does not average out: about a second of
steps here, longer than what one slow prompt or one other process's turn takes."""

SURE = 0.5
"""A coefficient is identified when what the rows leave open of it is at most this part
of what the prior leaves open."""

LEAST_SCATTER = 0.02
"""Relative scatter below which rows are not believed: clocks and deliveries err."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What the rows say.

    Attributes:
        costs: by coefficient, in milliseconds.
        identified: those the rows determine.
        noise: sigma of the lognormal factor of steps.
        noise_steps: steps in a row that share one.
        residuals: how far the rows are from the model.
    """

    costs: dict[str, float]
    identified: tuple[str, ...]
    noise: float
    noise_steps: int
    residuals: Residuals


@dataclass(slots=True)
class _Rows:
    paid: Floats
    took: Floats
    steps: Floats
    alone: NDArray[np.bool_]
    run: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Row], run: int = 0) -> "_Rows":
        return cls(
            np.array([row.paid for row in rows]),
            np.array([row.took_ms for row in rows]),
            np.array([row.steps for row in rows]),
            np.array([row.alone for row in rows]),
            np.full(len(rows), run),
        )

    def only(self, kept: NDArray[np.bool_]) -> "_Rows":
        return _Rows(
            self.paid[kept],
            self.took[kept],
            self.steps[kept],
            self.alone[kept],
            self.run[kept],
        )


def regressed(runs: Sequence[Sequence[Row]], prior: Prior, left_out: int) -> Fit:
    """The costs that explain the rows of some runs.

    Args:
        runs: the rows of each run, in the order of time.
        prior: what is believed of the ratios before any row is seen.
        left_out: stretches of the runs without a row.

    Raises:
        ValueError: there are no rows.
    """
    told = [rows for rows in runs if rows]
    parts = [_Rows.of(rows, run) for run, rows in enumerate(told)]
    if not parts:
        raise ValueError("nothing in the runs says how long a step takes")
    costs = _Solver(_joined(parts), prior).solved()[0]
    smooth = [_smoothed(part, costs) for part in parts]
    parts = [part.only(_calm(part, costs, bursts)) for part, bursts in smooth]
    left_out += sum(len(part.took) for part, _ in smooth)
    whole = _joined(parts)
    costs, sure = _Solver(whole, prior, _drag(parts, costs)).solved()
    costs = _with_the_mean_kept(costs, parts)
    noise, noise_steps = _noise(parts, costs)
    return Fit(
        {name: float(costs[n]) for n, name in enumerate(COEFFICIENTS)},
        tuple(name for n, name in enumerate(COEFFICIENTS) if sure[n]),
        noise,
        noise_steps,
        _residuals(parts, costs, left_out - len(whole.took)),
    )


def _joined(parts: Sequence[_Rows]) -> _Rows:
    return _Rows(
        np.concatenate([part.paid for part in parts]),
        np.concatenate([part.took for part in parts]),
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.alone for part in parts]),
        np.concatenate([part.run for part in parts]),
    )


class _Solver:
    """Least squares by reweighting.

    Args:
        rows: what was observed.
        prior: on the ratios.
        drag: rows that say as much as one independent row does.
    """

    def __init__(self, rows: _Rows, prior: Prior, drag: float = 1.0) -> None:
        self._rows = rows
        self._prior = prior
        self._drag = drag

    def solved(self) -> tuple[Floats, NDArray[np.bool_]]:
        """The coefficients, and which of them the rows alone determine."""
        costs, speeds = self._start(), np.ones(int(self._rows.run.max()) + 1)
        for _ in range(_ROUNDS):
            rows, target = self._rows_of(costs, speeds)
            found = nnls(rows, target)
            costs = np.maximum(found[: len(costs)], 1e-9)
            speeds = found[len(costs) :]
        return costs, self._sure(costs, speeds)

    def _rows_of(self, costs: Floats, speeds: Floats) -> tuple[Floats, Floats]:
        """Observations and beliefs as one set of rows; of costs, then of speeds.

        A run is as much slower than all as its speed is over 1: that adds so much of
        what is modelled. To keep it above 0, 1 is added on both sides.
        """
        weighted, target, modelled = self._weighted(costs, speeds)
        believed, hoped = self._believed(costs)
        runs = np.arange(len(speeds))
        slower = np.where(self._rows.run[:, None] == runs, modelled[:, None], 0.0)
        rows = np.block(
            [
                [weighted, slower],
                [believed, np.zeros((len(believed), len(runs)))],
                [np.zeros((len(runs), len(costs))), np.eye(len(runs)) / RUN_TO_RUN],
            ]
        )
        ones = np.full(len(runs), 1 / RUN_TO_RUN)
        return rows, np.concatenate([target + modelled, hoped, ones])

    def _start(self) -> Floats:
        """The prior's ratios, at the scale of the rows."""
        guess = self._prior.start()
        ratios = np.array([guess[name] for name in COEFFICIENTS])
        return ratios * float(np.median(self._rows.took / (self._rows.paid @ ratios)))

    def _weighted(self, costs: Floats, speeds: Floats) -> tuple[Floats, Floats, Floats]:
        """The rows in units of their scatter, far ones held to a straight line.

        What they paid, what they took, and what is modelled for them.
        """
        modelled = self._rows.paid @ costs
        off = self._rows.took / modelled - speeds[self._rows.run]
        scatter = max(float(np.median(np.abs(off))) * 1.4826, LEAST_SCATTER)
        drag = np.where(self._rows.alone, 1.0, self._drag)
        weight = (1.0 + (off / scatter) ** 2) ** -0.25
        weight = weight / (scatter * modelled * np.sqrt(drag))
        return (
            self._rows.paid * weight[:, None],
            self._rows.took * weight,
            (modelled * weight),
        )

    def _believed(self, costs: Floats) -> tuple[Floats, Floats]:
        """The prior as rows: each says what one coefficient is beside another."""
        rows, hoped = np.zeros((4, 5)), np.zeros(4)
        front_ms, front_sd_ms = self._prior.front_ms, self._prior.front_sd_ms
        rows[0, _FRONT], hoped[0] = 1 / front_sd_ms, front_ms / front_sd_ms
        for n, (at, (beside, ratio)) in enumerate(self._prior.ratios.items(), 1):
            place, other = COEFFICIENTS.index(at), COEFFICIENTS.index(beside)
            width = self._prior.spread(at) * ratio * costs[other]
            rows[n, place], rows[n, other] = 1 / width, -ratio / width
        return rows, hoped

    def _sure(self, costs: Floats, speeds: Floats) -> NDArray[np.bool_]:
        weighted, _, modelled = self._weighted(costs, speeds)
        runs = np.arange(len(speeds))
        slower = np.where(self._rows.run[:, None] == runs, modelled[:, None], 0.0)
        told = np.hstack([weighted * self._width(costs), slower])
        known = told.T @ told
        known[len(costs) :, len(costs) :] += np.eye(len(runs)) / RUN_TO_RUN**2
        held, far = np.linalg.eigh(known)
        spread = (far**2) @ (1.0 / np.maximum(held, 1e-12))
        return np.asarray(np.sqrt(spread[: len(costs)]) <= SURE)

    def _width(self, costs: Floats) -> Floats:
        """How far off the prior may be, in each coefficient's unit."""
        prior = self._prior
        widths = {
            at: prior.spread(at) * ratio * costs[COEFFICIENTS.index(beside)]
            for at, (beside, ratio) in prior.ratios.items()
        }
        widths["front_ms"] = prior.front_sd_ms
        widths["ms_per_prefill_token"] = costs[_PREFILL]
        return np.array([widths[name] for name in COEFFICIENTS])


def _smoothed(rows: _Rows, costs: Floats) -> tuple[_Rows, NDArray[np.int64]]:
    """Puts rows that were delivered late together into one, and says how many were.

    Deliveries are only ever late: a short row after a long one makes up for it.
    """
    modelled = rows.paid @ costs
    short = (rows.took < HICCUP * modelled) & ~rows.alone
    short[0] = False
    group = np.cumsum(~short) - 1
    size = int(group[-1]) + 1
    took, steps = np.zeros(size), np.zeros(size)
    paid, alone = np.zeros((size, 5)), np.zeros(size, dtype=bool)
    np.add.at(took, group, rows.took)
    np.add.at(steps, group, rows.steps)
    np.add.at(paid, group, rows.paid)
    np.logical_or.at(alone, group, rows.alone)
    run = np.full(size, rows.run[0])
    return _Rows(paid, took, steps, alone, run), np.bincount(group)


def _calm(rows: _Rows, costs: Floats, bursts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows are neither a stall nor the burst after one."""
    calm = rows.took <= STALL * (rows.paid @ costs)
    return np.asarray(calm & (bursts <= MOST_TOGETHER))


def _windows(rows: _Rows, costs: Floats, sizes: Floats, size: float) -> Floats:
    """Taken over modelled in stretches of about one size, 1 being the run's mean."""
    place = ((np.cumsum(sizes) - sizes) // size).astype(int)
    group = np.unique(place, return_inverse=True)[1]
    took, modelled = (
        np.bincount(group, rows.took),
        np.bincount(group, rows.paid @ costs),
    )
    full = modelled >= np.median(modelled) / 2
    return np.asarray((took / modelled)[full] * modelled.sum() / took.sum())


def _scatter(
    parts: Sequence[_Rows], costs: Floats, size: float, *, by_rows: bool = False
) -> tuple[float, int]:
    """Standard deviation of taken over modelled in windows, and how many there are."""
    working = [part.only(~part.alone) for part in parts]
    found = [
        _windows(w, costs, np.ones(len(w.took)) if by_rows else w.steps, size)
        for w in working
        if len(w.took)
    ]
    off = np.concatenate(found) if found else np.zeros(0)
    return (float(np.std(off)), len(off)) if len(off) > 1 else (0.0, len(off))


def _drag(parts: Sequence[_Rows], costs: Floats) -> float:
    """How many rows say as much as one: those near each other err together."""
    alone, _ = _scatter(parts, costs, 1, by_rows=True)
    together, count = _scatter(parts, costs, WINDOW_ROWS, by_rows=True)
    if count < FEWEST_WINDOWS or alone == 0.0:
        return 1.0
    return max(1.0, WINDOW_ROWS * (together / alone) ** 2)


def _with_the_mean_kept(costs: Floats, parts: Sequence[_Rows]) -> Floats:
    """The costs, so that the steps take as long in all as they did.

    What is robust looks at the middle; an engine's throughput is about the sum. Runs
    count alike, however long they are.
    """
    factors = _speeds(parts, costs)
    if not len(factors):
        return costs
    kept = costs * float(np.exp(np.mean(np.log(factors))))
    kept[_FRONT] = costs[_FRONT]
    return kept


def _speeds(parts: Sequence[_Rows], costs: Floats) -> Floats:
    """For each run with steps, what it took over what is modelled."""
    working = [part.only(~part.alone) for part in parts]
    return np.array(
        [w.took.sum() / (w.paid @ costs).sum() for w in working if len(w.took)]
    )


NOISE_STEPS = (16, 64, 256)
"""Lengths that are tried for the stretch of steps which share one factor."""

SCALES = (16, 64, 256, 1024)
"""Steps over which sums are compared: long ones, since queues grow from what does not
average out. A single step scatters more than the factor then says."""

FEWEST_WINDOWS = 4
"""Of a scale, for its scatter to count."""


def _noise(parts: Sequence[_Rows], costs: Floats) -> tuple[float, int]:
    """The factor's sigma and its stretch, whose sums scatter as the rows' do."""
    seen = [(steps, *_scatter(parts, costs, steps)) for steps in SCALES]
    seen = [one for one in seen if one[2] >= FEWEST_WINDOWS and one[1] > 0.0]
    if not seen:
        return 0.0, 16
    best = (np.inf, 0.0, 16)
    for stretch in NOISE_STEPS:
        shape = np.log([min(1.0, (stretch / steps) ** 0.5) for steps, _, _ in seen])
        sizes = np.log([scatter for _, scatter, _ in seen]) - shape
        best = min(best, (float(np.var(sizes)), float(np.exp(sizes.mean())), stretch))
    return round(float(np.sqrt(np.log1p(best[1] ** 2))), 4), best[2]


RUN_TO_RUN, RUN_TO_RUN_RUNS = 0.08, 2
"""What is believed of the scatter between runs, and how many runs that belief weighs.

On one machine, minutes apart and with nothing else running, vLLM's steps took 0.94 to
1.07 times what they have in common in four runs, and 0.94 to 1.30 times in nine others.
"""


def _run_to_run(parts: Sequence[_Rows], costs: Floats) -> float:
    """Scatter of the runs' speeds, drawn to the belief while there are few."""
    speeds = np.log(_speeds(parts, costs))
    off = speeds - (speeds.mean() if len(speeds) else 0.0)
    believed = RUN_TO_RUN_RUNS * RUN_TO_RUN**2
    known = RUN_TO_RUN_RUNS + max(len(speeds) - 1, 0)
    return float(np.sqrt((believed + float((off**2).sum())) / known))


def _residuals(parts: Sequence[_Rows], costs: Floats, left_out: int) -> Residuals:
    rows = _joined(parts)
    off = np.abs(rows.took / (rows.paid @ costs) - 1.0)
    return Residuals(
        observations=len(rows.took),
        left_out=left_out,
        median_abs_fraction=round(float(np.median(off)), 4),
        p95_abs_fraction=round(float(np.quantile(off, 0.95)), 4),
        sum_fraction=round(float(rows.took.sum() / (rows.paid @ costs).sum() - 1.0), 4),
        run_to_run=round(_run_to_run(parts, costs), 4),
    )
