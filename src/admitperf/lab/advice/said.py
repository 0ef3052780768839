"""What is said of one policy that was tried, in sentences."""

from collections.abc import Iterator

from admitperf.lab.advice.advice import Tried
from admitperf.lab.advice.trial import (
    BY_RANGE,
    COULD,
    COULD_NOT,
    DID_NOT,
    KEPT_LOW,
    Trial,
)
from admitperf.reports.questions.seen import MOST_OF
from admitperf.reports.runs.patterns import Reach
from admitperf.reports.wording import number, printable, share


def needs(tried: Tried) -> str:
    """What it requires, and on how many decisions this log carried it."""
    if not tried.needs:
        return "no signal and no fact"
    offered = max(one.carried.of for one in tried.needs)
    whole = [one.name for one in tried.needs if one.carried.n == offered]
    part = [
        f"{one.name} {share(one.carried.n, offered)}"
        for one in tried.needs
        if 0 < one.carried.n < offered
    ]
    none = [one.name for one in tried.needs if not one.carried.n]
    said = [f"{', '.join(whole)}: on all {offered}"] * bool(whole)
    said += part
    said += [f"{', '.join(none)}: on 0 of {offered}"] * bool(none)
    return printable("; ".join(said))


def defaults(tried: Tried) -> str:
    """Its parameters where nothing is given, as it would be configured."""
    said = (f"{name}={_plain(value)}" for name, value in tried.defaults.items())
    return printable(", ".join(said)) or "none"


def verdict(tried: Tried) -> str:
    """Whether it could have fired, and on how many."""
    trial = tried.trial
    if trial.word == BY_RANGE:
        more = f" ({trial.why})" if trial.why else ""
        return f"{BY_RANGE}: {'; '.join(map(_range, trial.reaches))}{more}"
    why = printable(trial.why or _nearest(trial.reaches))
    return f"{_SAID.get(trial.word, trial.word)}{_fired(trial)}: {why}"


_SAID = {
    COULD_NOT: f"INERT: it {COULD_NOT}",
    DID_NOT: f"it {DID_NOT}, on too few decisions to say that it could not",
    KEPT_LOW: f"it {DID_NOT}, on signals {KEPT_LOW}, which is no proof",
}


def _fired(trial: Trial) -> str:
    if trial.word != COULD:
        return ""
    if trial.fired is None:
        return f" ({_nearest(trial.reaches)})"
    return f", on {share(trial.fired.n, trial.fired.of)}"


def _range(reach: Reach) -> str:
    """How far a signal went towards the gate of a policy that remembers."""
    gate = f"{reach.signal} reached {number(reach.nearest)}: its gate at"
    if reach.true.n:
        passed = share(reach.true.n, reach.true.of)
        return f"{gate} {number(reach.bound)} was passed on {passed}"
    near = "never near" if reach.nearest < MOST_OF * reach.bound else "not passed"
    return f"{gate} {number(reach.bound)} was {near}"


def _nearest(reaches: tuple[Reach, ...]) -> str:
    return "; ".join(_reaches(reaches))


def _reaches(reaches: tuple[Reach, ...]) -> Iterator[str]:
    for one in reaches:
        gate = f"{printable(one.signal)} {one.op} {number(one.bound)}"
        if one.true.n:
            yield f"{gate} held on {share(one.true.n, one.true.of)}"
        else:
            yield f"{gate} never held (n {one.true.of}), {_short(one)}"


def _short(one: Reach) -> str:
    reached = f"{printable(one.signal)} reached {number(one.nearest)}"
    if not one.distance:
        return f"{reached}, the bound itself"
    return f"{reached}, {number(one.distance)} short"


def _plain(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return str(value)
