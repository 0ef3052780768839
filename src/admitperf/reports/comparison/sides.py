"""Which arms are compared, and which of them is the baseline."""

from collections.abc import Sequence
from dataclasses import replace

from admitperf.reports.comparison.arms import Arm, ArmsError, arms, experiments
from admitperf.reports.report import RunReport
from admitperf.reports.wording import printable


def of_experiment(
    runs: Sequence[RunReport],
    experiment: str,
    baseline: str | None = None,
    only: Sequence[str] = (),
) -> tuple[Arm, ...]:
    """The arms of one experiment, the baseline last.

    Args:
        runs: of any experiments.
        experiment: its name, as in the headers.
        baseline: label or policy of the arm to take; None = the one that refuses
            nothing by design.
        only: labels or policies of the arms to compare with it; empty = all.

    Raises:
        ArmsError: there is no such experiment, no such arm, or not one baseline.
    """
    found = {one.name: one.arms for one in experiments(runs)}
    if not found.get(experiment):
        names = ", ".join(printable(name) for name in found if name) or "none"
        said = f"no run names the experiment {printable(experiment)}; found: {names}"
        raise ArmsError(said)
    chosen, others = against(found[experiment], baseline)
    return (*(_only(others, only) if only else others), chosen)


def two(
    sides: Sequence[tuple[str, Sequence[RunReport]]], baseline: str | None = None
) -> tuple[Arm, Arm]:
    """Two arms that were named by path, the baseline last.

    Args:
        sides: of both, the path and its runs.
        baseline: path, label or policy of the one to take; None = the one that refuses
            nothing by design, and of two such ones the second.

    Raises:
        ArmsError: a path does not hold exactly one arm, or none is the baseline.
    """
    first, second = (_one(path, runs) for path, runs in sides)
    paths = [path for path, _ in sides]
    if first.label == second.label:
        first, second = (
            replace(arm, label=printable(f"{arm.label} in {path}"))
            for arm, path in zip((first, second), paths, strict=True)
        )
    if baseline in paths:
        at = paths.index(str(baseline))
        return (second, first) if at == 0 else (first, second)
    if baseline is None and first.baseline and second.baseline:
        return first, second
    chosen, (other,) = against((first, second), baseline)
    return other, chosen


def against(
    found: Sequence[Arm], baseline: str | None = None
) -> tuple[Arm, tuple[Arm, ...]]:
    """The baseline among some arms, and the others.

    Args:
        found: two or more arms.
        baseline: label or policy of the one to take; None = the one that refuses
            nothing by design.

    Raises:
        ArmsError: there is not exactly one, or no other arm.
    """
    if baseline is None:
        chosen = [arm for arm in found if arm.baseline]
    else:
        chosen = [arm for arm in found if arm.label == baseline]
        chosen = chosen or [arm for arm in found if arm.policy == baseline]
    labels = ", ".join(arm.label for arm in found)
    if not chosen and baseline is None:
        raise ArmsError(
            "no arm refuses nothing by design: run no_admission as an arm, or name one"
            f" of {labels} with --baseline"
        )
    if len(chosen) != 1:
        raise ArmsError(f"{_which(chosen, baseline)}: --baseline takes one of {labels}")
    others = tuple(arm for arm in found if arm is not chosen[0])
    if not others:
        raise ArmsError(f"there is nothing to compare {labels} with: one arm only")
    return chosen[0], others


def _only(found: Sequence[Arm], only: Sequence[str]) -> tuple[Arm, ...]:
    known = {name for arm in found for name in (arm.label, arm.policy)}
    for name in only:
        if name not in known:
            labels = ", ".join(arm.label for arm in found)
            raise ArmsError(f"no arm is called {printable(name)}: there are {labels}")
    return tuple(arm for arm in found if {arm.label, arm.policy} & set(only))


def _one(path: str, runs: Sequence[RunReport]) -> Arm:
    """The one arm that a path holds."""
    found = arms(runs)
    if len(found) == 1:
        return found[0]
    if not found:
        said = "holds samples of an engine: nothing was decided, nothing is compared"
        raise ArmsError(f"{printable(path)} {said}")
    labels = ", ".join(arm.label for arm in found)
    raise ArmsError(
        f"{printable(path)} holds {len(found)} arms ({labels}): give one arm a path,"
        " or --experiment NAME"
    )


def _which(chosen: Sequence[Arm], baseline: str | None) -> str:
    if baseline is not None:
        many = "several arms are" if chosen else "no arm is"
        return f"{many} called {printable(baseline)}"
    return f"{len(chosen)} arms refuse nothing by design"
