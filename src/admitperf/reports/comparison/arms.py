"""Runs become arms, arms become experiments: by what the headers declare.

An arm is a policy of an experiment; a policy that stands there with two configurations
is two arms. A run's name says which repeat it is. Paths say nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from admitperf.core.errors import AdmitPerfError
from admitperf.reports.report import RunReport
from admitperf.reports.wording import printable

NO_HEADER = "unknown policy"


class ArmsError(AdmitPerfError, ValueError):
    """The runs do not make two arms that could be compared."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One policy, with one configuration, in every repeat.

    Attributes:
        label: the policy, and what tells it from another arm of the same policy.
        policy: its name, as in the header.
        runs: the repeats, in the order they began.
    """

    label: str
    policy: str
    runs: tuple[RunReport, ...]

    @property
    def baseline(self) -> bool:
        """Whether it refuses nothing by design, as every header says."""
        return all(
            (run.header.get("taxonomy") or {}).get("baseline") is True
            for run in self.runs
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Each repeat's name; `#2` where the second has none."""
        return tuple(
            name_of(run) or f"#{place}" for place, run in enumerate(self.runs, start=1)
        )


@dataclass(frozen=True, slots=True)
class Experiment:
    """Runs that claim the same conditions.

    Attributes:
        name: as in the header; None = the runs name no experiment.
        arms: in the order they began.
    """

    name: str | None
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """One block: the same plan, met by both arms.

    Attributes:
        name: the repeat's name.
        arm, baseline: the two runs.
    """

    name: str
    arm: RunReport
    baseline: RunReport


@dataclass(frozen=True, slots=True)
class Contest:
    """An arm against a baseline.

    Attributes:
        arm, baseline: the two.
        paired_by: "name", or "order" when the repeats have no names in common.
        pairs: repeats that stand opposite each other.
        unpaired: what could not be paired, and why, in sentences.
    """

    arm: Arm
    baseline: Arm
    paired_by: Literal["name", "order"]
    pairs: tuple[Pair, ...]
    unpaired: tuple[str, ...]

    @property
    def sides(self) -> tuple[Arm, Arm]:
        """Both arms, the baseline last."""
        return self.arm, self.baseline


def name_of(run: RunReport) -> str | None:
    """Which repeat a run is; None when its header does not say."""
    name = run.header.get("name")
    return printable(str(name)) if name else None


def experiments(runs: Iterable[RunReport]) -> tuple[Experiment, ...]:
    """The experiments of some runs, in the order they began; runs of none last."""
    found: dict[str | None, list[RunReport]] = {}
    for run in runs:
        found.setdefault(run.header.get("experiment") or None, []).append(run)
    named = sorted(found, key=lambda name: name is None)
    return tuple(Experiment(name, arms(found[name])) for name in named)


def arms(runs: Sequence[RunReport]) -> tuple[Arm, ...]:
    """The arms of some runs, in the order they began.

    What a policy watched without governing is no arm: its runs are left out.
    """
    policies: dict[str, dict[str, list[RunReport]]] = {}
    for run in runs:
        if run.basis == "requests":
            configs = policies.setdefault(_policy(run), {})
            configs.setdefault(str(run.header.get("config")), []).append(run)
    return tuple(
        Arm(label, policy, tuple(same))
        for policy, configs in policies.items()
        for label, same in zip(_labels(policy, configs), configs.values(), strict=True)
    )


def contest(arm: Arm, baseline: Arm) -> Contest:
    """Pairs the repeats of two arms: by name, or in order when no name is shared."""
    ours, theirs = _by_name(arm), _by_name(baseline)
    shared = [name for name in theirs if name in ours]
    if shared:
        pairs = tuple(Pair(name, ours[name], theirs[name]) for name in shared)
        return Contest(arm, baseline, "name", pairs, _alone(arm, baseline))
    both = zip(arm.runs, baseline.runs, strict=False)
    made = (Pair(f"#{place}", *two) for place, two in enumerate(both, start=1))
    return Contest(arm, baseline, "order", tuple(made), _surplus(arm, baseline))


def _policy(run: RunReport) -> str:
    return printable(str(run.header.get("policy") or NO_HEADER))


def _labels(policy: str, configs: dict[str, list[RunReport]]) -> list[str]:
    """The policy, and the settings in which its configurations differ."""
    if len(configs) == 1:
        return [policy]
    told = [_settings(same[0]) for same in configs.values()]
    differ = [
        name
        for name in dict.fromkeys(name for one in told for name in one)
        if len({str(one.get(name)) for one in told}) > 1
    ]
    labels = [
        " ".join([policy, *(f"{name}={one[name]}" for name in differ if name in one)])
        for one in told
    ]
    if len(set(labels)) < len(labels):
        labels = [f"{policy} config={config[:8]}" for config in configs]
    return list(map(printable, labels))


def _settings(run: RunReport) -> dict[str, object]:
    named = {name: run.header.get(name) for name in ("enforce", "on_blind", "preset")}
    return {**(run.header.get("params") or {}), **named, "slo": run.cost.slo or "none"}


def _by_name(arm: Arm) -> dict[str, RunReport]:
    """Repeats whose name no other repeat of the arm has."""
    named = Counter(map(name_of, arm.runs))
    return {
        name: run
        for run in arm.runs
        if (name := name_of(run)) is not None and named[name] == 1
    }


def _alone(arm: Arm, baseline: Arm) -> tuple[str, ...]:
    """Every repeat that has no partner by name, and why."""
    said: list[str] = []
    for one, other in ((arm, baseline), (baseline, arm)):
        named, partners = Counter(map(name_of, one.runs)), set(map(name_of, other.runs))
        for name, n in named.items():
            if name is None:
                said.append(f"{one.label}: {n} without a name")
            elif n > 1:
                said.append(f"{one.label}: {name} stands there {n} times")
            elif name not in partners:
                said.append(f"{name} is missing in {other.label}")
    return tuple(said)


def _surplus(arm: Arm, baseline: Arm) -> tuple[str, ...]:
    if len(arm.runs) == len(baseline.runs):
        return ()
    sides = " and ".join(f"{one.label} {len(one.runs)}" for one in (arm, baseline))
    return (f"the arms have unequal numbers of repeats: {sides}",)
