"""Which experiments there are: their arms, their repeats, and what is missing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from admitperf.reports.comparison import score
from admitperf.reports.comparison.arms import Arm, Experiment, experiments, name_of
from admitperf.reports.comparison.design import FEWEST_ASKED
from admitperf.reports.pages import stated
from admitperf.reports.pages.columns import aligned
from admitperf.reports.pages.comparison_page import files_read, titled
from admitperf.reports.pages.headline import stamps
from admitperf.reports.pages.layout import row
from admitperf.reports.quantile import nearest_rank
from admitperf.reports.report import RunReport
from admitperf.reports.runs.log import Files
from admitperf.reports.wording import NOT_KNOWN, number, plural, printable

SCHEMA = 1
"""Number of the JSON format."""

UNNAMED = "no experiment named"


@dataclass(frozen=True, slots=True)
class Goodput:
    """The goodput of an arm's repeats, of offered.

    Attributes:
        n: repeats that have one.
        low, middle, high: the lowest, the middle one by nearest rank, the highest.
    """

    n: int
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class ListedArm:
    """One arm.

    Attributes:
        label: the policy, and what tells it from another arm of the same policy.
        policy: its name.
        baseline: whether it refuses nothing by design.
        repeats: their names; `#2` where the second has none.
        findings: how many repeats are LIVE, INERT and so on.
        goodput: None when no repeat has outcomes.
    """

    label: str
    policy: str
    baseline: bool
    repeats: tuple[str, ...]
    findings: dict[str, int]
    goodput: Goodput | None


@dataclass(frozen=True, slots=True)
class ListedExperiment:
    """One experiment.

    Attributes:
        name: as in the headers; None = the runs name no experiment.
        simulated: whether any outcome comes from a simulated engine.
        oracle: whether a policy was told how long answers would be.
        loads: multiples of capacity that the runs state, ascending. Repeats of an arm
            are of all of them: `bench compare` keeps them apart.
        arms: in the order they began.
        missing: what a comparison would lack, in sentences.
    """

    name: str | None
    simulated: bool
    oracle: bool
    loads: tuple[float, ...]
    arms: tuple[ListedArm, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether a comparison would lack nothing, and the runs name an experiment."""
        return self.name is not None and not self.missing


def listed(runs: Iterable[RunReport]) -> tuple[ListedExperiment, ...]:
    """The experiments of some runs, in the order they began; runs of none last."""
    return tuple(map(_experiment, experiments(runs)))


def document(found: Sequence[ListedExperiment], files: Files) -> dict[str, Any]:
    """The list as plain dicts and lists, ready for strict JSON."""
    return {
        "schema": SCHEMA,
        "experiments": [asdict(one) for one in found],
        "files": asdict(files),
    }


def text(found: Sequence[ListedExperiment], files: Files) -> str:
    """The list as plain text, with a line end."""
    parts = [line for one in found for line in (*_page(one), "")]
    return "\n".join([*parts, *files_read(files)]) + "\n"


def _experiment(one: Experiment) -> ListedExperiment:
    return ListedExperiment(
        name=None if one.name is None else printable(one.name),
        simulated=any(stated.simulated(run) for arm in one.arms for run in arm.runs),
        oracle=any(stated.oracle(run) for arm in one.arms for run in arm.runs),
        loads=tuple(sorted(_loads(one))),
        arms=tuple(map(_arm, one.arms)),
        missing=tuple(_missing(one)),
    )


def _arm(arm: Arm) -> ListedArm:
    return ListedArm(
        label=arm.label,
        policy=arm.policy,
        baseline=arm.baseline,
        repeats=arm.names,
        findings=dict(Counter(run.finding.word for run in arm.runs).most_common()),
        goodput=_goodput(arm),
    )


def _loads(one: Experiment) -> set[float]:
    runs = (run for arm in one.arms for run in arm.runs)
    return {load for run in runs if (load := stated.positive(run, "load")) is not None}


def _goodput(arm: Arm) -> Goodput | None:
    shares = map(score.met, arm.runs)
    values = sorted(one.value for one in shares if one and one.value is not None)
    if not values:
        return None
    return Goodput(len(values), values[0], nearest_rank(values, 0.5), values[-1])


# ---------------------------------------------------------------------- missing


def _missing(one: Experiment) -> Iterator[str]:
    if one.name is None:
        yield "the runs name no experiment: pass experiment= and run="
    if not one.arms:
        yield "runs that decided on requests: these are samples of an engine"
        return
    baselines = sum(arm.baseline for arm in one.arms)
    if not baselines:
        yield "a baseline: no arm refuses nothing by design"
    elif len(one.arms) == baselines:
        yield "an arm to compare with the baseline"
    names = dict.fromkeys(
        name for arm in one.arms for run in arm.runs if (name := name_of(run))
    )
    for arm in one.arms:
        yield from _missing_in(arm, list(names))


def _missing_in(arm: Arm, names: Sequence[str]) -> Iterator[str]:
    there = Counter(map(name_of, arm.runs))
    absent = [name for name in names if name not in there]
    if absent:
        yield f"{', '.join(absent)} in {arm.label}"
    for name, n in there.items():
        if name is not None and n > 1:
            yield f"one {name} in {arm.label}: it stands there {n} times"
    if len(arm.runs) < FEWEST_ASKED:
        had = plural(len(arm.runs), "repeat")
        yield f"repeats of {arm.label}: {had}, and a verdict takes {FEWEST_ASKED}"
    blank = sum(score.met(run) is None for run in arm.runs)
    if blank:
        yield f"outcomes in {blank} of {plural(len(arm.runs), 'repeat')} of {arm.label}"


# ------------------------------------------------------------------------- page


def _page(one: ListedExperiment) -> Iterator[str]:
    yield from titled(UNNAMED if one.name is None else one.name)
    for word, said in stamps(simulated=one.simulated, oracle=one.oracle):
        yield from row(word, said)
    if one.arms:
        head = ["arm", "repeats", "finding", "lowest", "median", "highest goodput"]
        yield from aligned([head, *map(_cells, one.arms)])
    if len(one.loads) > 1:
        every = ", ".join(f"{number(load)}x" for load in one.loads)
        said = f"{every} of capacity in every arm: bench compare keeps them apart"
        yield from row("loads", said)
    for said in one.missing:
        yield from row("missing", printable(said))


def _cells(arm: ListedArm) -> list[str]:
    found = ", ".join(f"{word} {n}" for word, n in arm.findings.items())
    numbers = [NOT_KNOWN] * 3
    if arm.goodput is not None:
        spread = arm.goodput
        numbers = [f"{one:.3f}" for one in (spread.low, spread.middle, spread.high)]
    return [arm.label, str(len(arm.repeats)), found, *numbers]
