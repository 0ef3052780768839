"""What is said of one policy that was tried, in sentences."""

from collections.abc import Iterator

from admitperf.lab.advice.advice import Tried
from admitperf.lab.advice.trial import COULD, COULD_NOT, DID_NOT
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
    if trial.word == COULD_NOT:
        why = printable(trial.why or _nearest(trial.reaches))
        return f"INERT: it {trial.word}: {why}"
    if trial.word == DID_NOT:
        why = printable(trial.why or _nearest(trial.reaches))
        return f"it {trial.word}, on too few decisions to say that it could not: {why}"
    if trial.fired is None or trial.word != COULD:
        return f"{trial.word}: {printable(trial.why or _nearest(trial.reaches))}"
    fired = share(trial.fired.n, trial.fired.of)
    return f"{trial.word}, on {fired}: {_nearest(trial.reaches)}"


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
