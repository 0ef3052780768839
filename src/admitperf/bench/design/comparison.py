"""A whole benchmark compared: checks, claims and verdicts of every arm.

Nothing of a run is computed here: its numbers are its summary's, what its log shows is
the report's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from admitperf.bench.callers.metrics import installed
from admitperf.bench.design.claims import (
    Cell,
    Claim,
    Explored,
    Pooled,
    Standing,
    standings,
)
from admitperf.bench.design.design import Design, told
from admitperf.bench.design.guard import Guard, identical, others, twins
from admitperf.bench.design.guards import guards
from admitperf.bench.design.measures import METRICS, Better, Measure
from admitperf.bench.design.results import (
    GOODPUT,
    Experiment,
    ResultsError,
    Run,
    finite,
    number_at,
    value,
)
from admitperf.reports.comparison.statistics import ALPHA, Interval, t_interval
from admitperf.reports.comparison.verdict import Word
from admitperf.reports.wording import number, plural, printable, share

SCHEMA = 1
"""Number of the JSON format."""

_SHORTER = 0.95  # plain choice: a tail within 5 % of another is as long

NOISE_FLOOR = "the arms are the same policy: this is the noise floor"
NO_NOISE = "the arms are identical by construction: this shows no noise"


@dataclass(frozen=True, slots=True)
class Point:
    """What an arm came to at one load.

    Attributes:
        load: multiple of capacity.
        n: blocks.
        mean: of the metric over them.
        interval: t, 95 %, over the blocks; None below 2. It holds what blocks differ
            by, which pairs cancel: claims are judged by differences.
    """

    load: float
    n: int
    mean: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Curve:
    """One arm over all loads.

    Attributes:
        arm: its name.
        points: by load.
    """

    arm: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """An arm against the baseline.

    Attributes:
        arm: its name.
        policy: name of its policy; null = not said.
        parameters, provenance: of that, and where their values come from.
        twin: whether it is the baseline again: what it shows is noise.
        identical: whether it is simulated and each of its numbers is the baseline's
            very own: then it does not even show noise.
        verdict: better, worse, equivalent, inconclusive or void.
        headline: what the two claims come to, in words; of a void arm, that no claim
            is made.
        gain: pooled over the loads from 1.2x; null = none ran.
        no_harm: pooled over the loads up to 0.8x; null = none ran.
        cells: every load by itself, exploratory.
        says: what it comes to, in sentences.
    """

    arm: str
    policy: str | None
    parameters: dict[str, Any]
    provenance: dict[str, Any]
    twin: bool
    identical: bool
    verdict: Word
    headline: str
    gain: Pooled | None
    no_harm: Pooled | None
    cells: tuple[Explored, ...]
    says: tuple[str, ...]

    @property
    def standing(self) -> Standing:
        """Its claims."""
        return Standing(self.arm, self.gain, self.no_harm, self.cells)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A benchmark, compared.

    Attributes:
        experiment: its name.
        workload, client: what was asked, and by whom, in a line; null = not said.
        window: from when to when a call must begin to be scored, in s; null = not said,
            or it differs.
        slo: where it comes from and its classes, as stated; empty = not said.
        metric: what is compared.
        declared: what the claims were set on before any run.
        exploratory: whether the metric is another one: then nothing is claimed,
            whatever the verdicts read.
        share: whether the metric is a share; if it is none, the design's margin is a
            fraction of the baseline's mean.
        better: "higher" or "lower": which way the metric improves. Differences are
            turned so that an improvement is above 0.
        simulated: whether any number comes from a simulated engine.
        partial: whether it was ended early, or planned runs are not there.
        capacity: what the loads are multiples of, with a 95 % interval, as stated;
            empty = not said.
        design: as planned.
        curves: one for each arm, the baseline last: means over blocks.
        arms: one for each but the baseline.
        checks: asked before the numbers.
        plan: what the design can show, in sentences.
        left_out: what was left out, in sentences.
        notices: what a reader should know before believing the numbers.
    """

    experiment: str
    workload: str | None
    client: str | None
    window: tuple[float, float] | None
    slo: dict[str, Any]
    metric: str
    declared: str
    exploratory: bool
    share: bool
    better: Better
    simulated: bool
    partial: bool
    capacity: dict[str, Any]
    design: Design
    curves: tuple[Curve, ...]
    arms: tuple[Compared, ...]
    checks: tuple[Guard, ...]
    plan: tuple[str, ...]
    left_out: tuple[str, ...]
    notices: tuple[str, ...]

    def against(self, claim: Claim, only: Sequence[str] = ()) -> Iterator[str]:
        """Why a claim of some arms is not supported, each with its arm.

        Args:
            claim: of each arm.
            only: names of the arms that are asked; empty = all but A/A arms.
        """
        asked = [one for one in self.arms if not only or one.arm in only]
        judged = [one for one in asked if only or not one.twin]
        for one in judged or asked:
            yield from (f"{one.arm}: {why}" for why in self._against(one, claim))

    def _against(self, one: Compared, claim: Claim) -> Iterator[str]:
        if self.exploratory:
            yield (
                f"exploratory: the claims were set on {self.declared}, and"
                f" {self.metric} was chosen afterwards"
            )
        if one.twin:
            yield NO_NOISE if one.identical else NOISE_FLOOR
        elif one.verdict == "void":
            yield from self._void(one)
        else:
            yield from one.standing.against(claim, self.metric)
        if _refused_all(one):
            yield _REFUSED_ALL

    def _void(self, one: Compared) -> Iterator[str]:
        for check in self.checks:
            if one.arm in check.voids:
                said = " ".join(check.says)
                where = f"check {check.number}, {check.name}: {check.answer}"
                yield f"void: {where}. {said}"

    def to_dict(self) -> dict[str, Any]:
        """As plain dicts and lists, ready for JSON."""
        plain = asdict(self)
        for made, one in zip(plain["arms"], self.arms, strict=True):
            for name in ("gain", "no_harm"):
                found: Pooled | None = getattr(one, name)
                if found is not None:
                    made[name] |= {
                        "rises": found.rises,
                        "falls": found.falls,
                        "not_worse": found.not_worse,
                        "equivalent": found.equivalent,
                    }
        return plain


_REFUSED_ALL = "it refused everything"


def _refused_all(one: Compared) -> bool:
    return any(said.startswith("It refused everything") for said in one.says)


# ------------------------------------------------------------------------ compare


def compare(experiment: Experiment, metric: str | None = None) -> Verdicts:
    """Compares every arm of an experiment with its baseline.

    Args:
        experiment: with logs.
        metric: what is compared; None = what the experiment says.

    Raises:
        ResultsError: there is no such metric, or nothing to compare.
    """
    metric = metric or experiment.metric
    measure = _measure(metric)
    cells, unknown = _cells(experiment, metric)
    asked = guards(experiment, cells, is_share=measure.share)
    found = _standings(experiment, cells, measure)
    still = [
        arm
        for arm in twins(experiment)
        if identical([cell for cell in cells if cell.arm == arm], experiment)
    ]
    arms = tuple(
        _compared(
            experiment,
            found.get(arm) or Standing(arm, None, None, ()),
            asked,
            metric,
            still=arm in still,
        )
        for arm in others(experiment)
    )
    return Verdicts(
        experiment=experiment.name,
        workload=_text(experiment.stated.get("workload")),
        client=_text(experiment.stated.get("client")),
        window=_window(experiment),
        slo=_plain(experiment.stated.get("slo")),
        metric=metric,
        declared=experiment.declared,
        exploratory=metric != experiment.declared,
        share=measure.share,
        better=measure.better,
        simulated=experiment.simulated,
        partial=experiment.partial,
        capacity=_plain(experiment.stated.get("capacity")),
        design=experiment.design,
        curves=tuple(_curves(experiment, metric)),
        arms=arms,
        checks=asked,
        plan=tuple(told(experiment.design, _spread(arms), metric)),
        left_out=_sentences(experiment.stated.get("left_out")),
        notices=(
            *_sentences(experiment.stated.get("notices")),
            *unknown,
            *_unsteady(experiment),
            *experiment.problems,
        ),
    )


def _standings(
    of: Experiment, cells: Sequence[Cell], measure: Measure
) -> dict[str, Standing]:
    """How each arm stands; those that were planned first are one family of gains."""
    same, found = twins(of), dict[str, Standing]()
    planned = (of.first or of.design).claiming
    given = of.design.margin, measure.better
    families = [
        ([cell for cell in cells if cell.arm not in same], len({*planned} - {*same})),
        *(([cell for cell in cells if cell.arm == arm], 1) for arm in same),
    ]
    for own, family in families:
        judged = standings(own, *given, share=measure.share, family=family)
        found |= {one.arm: one for one in judged}
    return found


def _measure(metric: str) -> Measure:
    if metric in METRICS:
        return METRICS[metric]
    known = installed()
    if metric in known:
        return Measure(known[metric].better, share=False)
    names = ", ".join([*METRICS, *known])
    raise ResultsError(f"no metric is called {printable(metric)}: there are {names}")


def _cells(of: Experiment, metric: str) -> tuple[list[Cell], list[str]]:
    """Every block both arms have a number for, and what has none, in sentences."""
    base = {
        (run.load, run.block): value(run, metric) for run in of.of(of.design.baseline)
    }
    if not base:
        baseline = printable(of.design.baseline)
        raise ResultsError(f"there is no run of the baseline {baseline}")
    if len({run.arm for run in of.runs}) == 1:
        raise ResultsError("there are runs of the baseline only: nothing to compare")
    cells, lacking = [], []
    for run in of.runs:
        ours, theirs = value(run, metric), base.get((run.load, run.block))
        if ours is None:
            lacking.append(run.name)
        elif theirs is not None and run.arm != of.design.baseline:
            cells.append(Cell(run.arm, run.load, run.block, ours, theirs))
    if not cells:
        raise ResultsError(f"no block has {printable(metric)} in two arms")
    n = f"{plural(len(lacking), 'run')} without {metric}, such as"
    return cells, [f"{n} {lacking[0]}." for _ in lacking[:1]]


def _compared(
    of: Experiment,
    found: Standing,
    asked: Sequence[Guard],
    metric: str,
    *,
    still: bool,
) -> Compared:
    void = any(found.arm in check.voids for check in asked)
    twin = found.arm in twins(of)
    runs = of.of(found.arm)
    stated = runs[0].manifest if runs else {}
    headline = f"{NOISE_FLOOR} ({found.headline})" if twin else found.headline
    if still:
        headline = NO_NOISE
    if metric != of.declared:
        headline = f"exploratory: {headline}"
    return Compared(
        arm=found.arm,
        policy=_text(stated.get("policy")),
        parameters=_plain(stated.get("parameters")),
        provenance=_plain(stated.get("provenance")),
        twin=twin,
        identical=still,
        verdict="void" if void else "inconclusive" if still else found.word,
        headline="a check failed, so no claim is made" if void else headline,
        gain=found.gain,
        no_harm=found.no_harm,
        cells=found.cells,
        says=tuple(_says(of, found, metric, void=void)),
    )


def _curves(of: Experiment, metric: str) -> Iterator[Curve]:
    for arm in (*others(of), of.design.baseline):
        points = []
        for load in sorted({run.load for run in of.of(arm)}):
            own = [value(run, metric) for run in of.of(arm) if run.load == load]
            known = [one for one in own if one is not None]
            if known:
                interval = t_interval(known) if len(known) > 1 else None
                points.append(Point(load, len(known), fmean(known), interval))
        yield Curve(arm, tuple(points))


def _window(of: Experiment) -> tuple[float, float] | None:
    windows = {
        tuple(map(finite, given))
        for run in of.runs
        if isinstance(given := run.manifest.get("scored_s"), list)
    }
    window = windows.pop() if len(windows) == 1 else ()
    match window:
        case (float(begins), float(ends)):
            return begins, ends
    return None


def _text(given: object) -> str | None:
    return printable(str(given)) if given else None


def _plain(given: object) -> dict[str, Any]:
    return dict(given) if isinstance(given, dict) else {}


def _sentences(given: object) -> tuple[str, ...]:
    many = given if isinstance(given, list) else []
    return tuple(printable(str(said)) for said in many)


def _spread(arms: Sequence[Compared]) -> float | None:
    """The largest SD that a gain's differences have; None = no arm has one."""
    spreads = [
        one.gain.statistics.sd
        for one in arms
        if one.gain is not None and one.gain.statistics.sd is not None
    ]
    return max(spreads, default=None)


def _unsteady(of: Experiment) -> Iterator[str]:
    """Runs below capacity whose latency has a trend."""
    below = [run for run in of.runs if run.load in of.design.below]
    ps = [
        p for run in below if (p := number_at(run.manifest, "trend", "p")) is not None
    ]
    trending = sum(p < ALPHA for p in ps)
    if trending > 2 * ALPHA * len(ps):
        runs = plural(len(ps), "run")
        yield (
            f"The time to first token has a trend in {trending} of {runs} at 0.8x or"
            f" less, where chance gives {number(round(ALPHA * len(ps), 1))}: they had"
            " not settled."
        )


# --------------------------------------------------------------------------- says


def _says(of: Experiment, found: Standing, metric: str, *, void: bool) -> Iterator[str]:
    """What a policy did and what came of it, the most important first."""
    runs = of.of(found.arm)
    yield from _refusals(of, runs)
    if void or found.gain is None or found.gain.statistics.mean is None:
        return
    mean, tails = found.gain.statistics.mean, _tails(of, found.arm, found.gain)
    if mean < 0 and tails is not None and tails[0] < _SHORTER * tails[1]:
        yield (
            f"It lost although the p95 time to first token of those served fell from"
            f" {number(tails[1])} to {number(tails[0])} ms (middle run above"
            " capacity): a tail of those served leaves out everyone who was turned"
            " away. That is no win."
        )
    early = _first_half(of, found.arm, found.gain)
    if metric == GOODPUT and early is not None and found.arm not in twins(of):
        yield (
            f"Of what began in the first half of the window the difference in goodput"
            f" is {early:+.3f}: without a policy goodput above capacity hangs on how"
            " long a run lasts."
        )


def _refusals(of: Experiment, runs: Sequence[Run]) -> Iterator[str]:
    if runs and all(map(_refused_each, runs)):
        n = plural(len(runs), "run")
        yield f"It refused everything that was asked, in {n}: that serves nobody."
        return
    for name, loads in (("Above", of.design.above), ("Below", of.design.below)):
        own = [run for run in runs if run.load in loads]
        if offered := _total(own, "offered"):
            yield f"{name} capacity {_turned_away(own, offered)} calls offered."


def _turned_away(runs: Sequence[Run], offered: int) -> str:
    """Of attempts and of calls; by its engine, where that has a limit of its own."""
    by_engine = _total(runs, "ended", "failed") - _total(runs, "errors", "n")
    lost = _total(runs, "ended", "refused") + by_engine
    if by_engine and not _total(runs, "refusals"):
        return f"its engine refused {share(lost, offered)}"
    refused = share(_total(runs, "refusals"), _total(runs, "attempts"))
    return f"it refused {refused} attempts, and in the end {share(lost, offered)}"


def _refused_each(run: Run) -> bool:
    """Whether nothing was served, and every attempt refused."""
    served = _total([run], "ended", "answered") + _total([run], "ended", "cancelled")
    refusals, attempts = (_total([run], name) for name in ("refusals", "attempts"))
    return not served and 0 < attempts == refusals


def _total(runs: Sequence[Run], *names: str) -> int:
    return round(sum(number_at(run.summary, *names) or 0.0 for run in runs))


def _first_half(of: Experiment, arm: str, gain: Pooled) -> float | None:
    """The mean difference over the loads of a gain; None when it is not known."""
    base = {(run.load, run.block): run for run in of.of(of.design.baseline)}
    both = [
        [number_at(one.summary, "half", "goodput") for one in (run, other)]
        for run in of.of(arm)
        if run.load in gain.loads and (other := base.get((run.load, run.block)))
    ]
    known = [a - b for a, b in both if a is not None and b is not None]
    return fmean(known) if known and len(known) == len(both) else None


def _tails(of: Experiment, arm: str, gain: Pooled) -> tuple[float, float] | None:
    """The middle run's p95 of those served, of the arm and of the baseline."""
    both = [
        [
            p95
            for run in of.of(name)
            if run.load in gain.loads
            and (p95 := number_at(run.summary, "ttft_served_ms", "p95")) is not None
        ]
        for name in (arm, of.design.baseline)
    ]
    return (median(both[0]), median(both[1])) if all(both) else None
