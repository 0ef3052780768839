"""The seven reporting items of the survey, asked of one run. Liveness comes first.

Each is answered with pass, fail, or that the log does not carry the fact; then one
sentence names the numbers, or what to record and how. A run can be sound and still not
carry an item: the log knows nothing of hardware that nobody told it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from admitperf.reports.pages import stated
from admitperf.reports.pages.repeats import FEWEST, middle_and_range, repeats
from admitperf.reports.report import RunReport
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.runs.gates import Gate
from admitperf.reports.runs.planned import Planned
from admitperf.reports.runs.slo import FROM_OPTION
from admitperf.reports.wording import number, plural, printable, share

Answer = Literal["pass", "fail", "not carried"]
PASS: Answer = "pass"  # noqa: S105  a word, not a secret
FAIL: Answer = "fail"
NOT_CARRIED: Answer = "not carried"

MOST_OFF_LOAD = 0.05
"""How far the measured multiple of capacity may lie from the stated one, as a fraction
of it: the brief's tolerance for equal load."""
FEWEST_REPORTED = 0.99
"""The brief's least share of let-in attempts with an outcome."""
_MOST_GATES = 3  # plain choice: what one sentence bears


@dataclass(frozen=True, slots=True)
class Item:
    """One reporting item of one run.

    Attributes:
        name: as in the terms.
        answer: "pass", "fail", or "not carried": this log does not carry the fact.
        says: one sentence: the numbers, or what to record and how.
    """

    name: str
    answer: Answer
    says: str


def items(run: RunReport, runs: Sequence[RunReport] = ()) -> tuple[Item, ...]:
    """The seven items of a run.

    Args:
        run: the run they are asked of.
        runs: all runs of the report, for repeats and for the baseline.
    """
    answers = (
        ("signal liveness", _liveness(run, runs)),
        ("capacity-relative load", _load(run)),
        ("calibrated deadlines", _deadlines(run)),
        ("repeats and spread", _repeats(repeats(run, runs), run)),
        ("parameter provenance", _provenance(run)),
        ("metric definition", _metric(run)),
        ("full configuration", _configuration(run, runs)),
    )
    return tuple(Item(name, answer, says) for name, (answer, says) in answers)


def tally(
    some: Sequence[RunReport], runs: Sequence[RunReport] = ()
) -> dict[str, dict[str, int]]:
    """How many of some runs answer each item how: by item, by answer.

    Args:
        some: the repeats of an arm.
        runs: as for `items`.
    """
    counted: dict[str, dict[str, int]] = {}
    for run in some:
        for item in items(run, runs):
            own = counted.setdefault(item.name, {})
            own[item.answer] = own.get(item.answer, 0) + 1
    return counted


_Answered = tuple[Answer, str]


# --------------------------------------------------------------------- liveness


def _liveness(run: RunReport, runs: Sequence[RunReport]) -> _Answered:
    word, answers = run.finding.word, run.answers
    if word == "BASELINE":
        return PASS, "It refuses nothing by design: there is nothing to fire."
    if word == "UNKNOWN":
        return NOT_CARRIED, run.finding.says[0]
    saw = _saw(run)
    if answers.acted:
        fired = "It would have fired" if word == "SHADOW" else "It fired"
        said = f"{fired} on {share(answers.acted, answers.offered)}"
        if answers.held.n:
            said += f", {answers.held.n} held first, with the gates as last asked"
        return PASS, f"{said}; {saw}." if saw else f"{said}; {_UNRECORDED}."
    if saw:
        said = f"It never fired on {answers.offered}; {saw}"
        if (where := _fired_above(run, runs)) is not None:
            return PASS, f"{said}. Below capacity it need not, and {where}."
        return FAIL, f"{said}."
    return NOT_CARRIED, f"It never fired on {answers.offered}; {_UNRECORDED}."


def _fired_above(run: RunReport, runs: Sequence[RunReport]) -> str | None:
    """Where the same policy fired past capacity, for a run that was below it."""
    load = stated.positive(run, "load")
    if load is None or load >= 1:
        return None
    same = [one for one in runs if _arm(one) == _arm(run)]
    above = [one for one in same if (stated.positive(one, "load") or 0.0) > 1]
    fired = sum(one.finding.word == "LIVE" for one in above)
    if not fired:
        return None
    return f"it fired in {fired} of {plural(len(above), 'run')} above it"


def _arm(run: RunReport) -> tuple[object, ...]:
    """Whose run it is; one of no experiment is like no other."""
    if not run.header.get("experiment"):
        return (id(run),)
    return tuple(str(run.header.get(name)) for name in _ARM)


_ARM = ("experiment", "policy", "config", "params")


_UNRECORDED = (
    "it recorded no comparison, so compare what SIGNAL.read(metrics) gives, or use"
    " metrics.gate(name, value, bound)"
)


def _saw(run: RunReport) -> str:
    """Each gate's range and how often it was true; of several also all at once."""
    gates = [gate for gate in run.gates if gate.evaluated]
    said = [_gate(gate) for gate in gates[:_MOST_GATES]]
    if len(gates) > _MOST_GATES:
        said.append(f"{len(gates) - _MOST_GATES} more gates")
    if run.together is not None:
        said.append(f"all at once on {share(run.together.n, run.together.of)}")
    return ", ".join(said)


def _gate(gate: Gate) -> str:
    low, high = number(gate.value_low), number(gate.value_high)
    true = f"was true on {gate.true} of {gate.evaluated}"
    return f"{gate_text(gate)} saw {low} to {high} and {true}"


# ------------------------------------------------------------------------- load


def _load(run: RunReport) -> _Answered:
    rate = run.load.rate_per_s
    capacity = stated.positive(run, "capacity_per_s")
    planned, reached = (stated.positive(run, n) for n in ("load", "load_reached"))
    if planned is not None and reached is not None and capacity is not None:
        return _reached(run, planned, reached, capacity)
    if capacity is None:
        if planned is None:
            return NOT_CARRIED, 'Record notes={"capacity_per_s": 12.5}, as measured.'
        said = f"{number(planned)} times capacity is stated and cannot be checked"
        return PASS, f'{said}: record notes={{"capacity_per_s": 12.5}}.'
    if rate is None:
        return NOT_CARRIED, f"There is no rate to divide by {number(capacity)}/s."
    return _multiple(run, rate, capacity)


def _multiple(run: RunReport, rate: float, capacity: float) -> _Answered:
    """What a rate is of the capacity, against the load and the peak that are stated."""
    planned, peak = stated.positive(run, "load"), stated.positive(run, "peak_load")
    times, n = rate / capacity, run.load.calls or run.load.attempts
    said = (
        f"{number(rate)}/s (n {n}) is {times:.2f} times the capacity of"
        f" {number(capacity)}/s"
    )
    if planned is not None and abs(times / planned - 1) > _tolerance(n):
        return FAIL, f"{said}, but {number(planned)} times is stated."
    if times > 1:
        return PASS, f"{said}."
    if peak is not None and peak > 1:
        return PASS, f"{said} on average; {number(peak)} times is stated at its peak."
    return PASS, f"{said}: not past it, where admission has little to do."


def _reached(
    run: RunReport, planned: float, reached: float, capacity: float
) -> _Answered:
    """What a plan offered; its rate is that of sessions, which may have many calls."""
    n = _arrivals(run)
    said = (
        f"The plan (n {n}) offers {number(reached)} times the measured capacity, which"
        f" is {number(capacity)} calls/s; {number(planned)} times is stated"
    )
    if abs(reached / planned - 1) > _tolerance(n):
        return FAIL, f"{said}."
    return PASS, f"{said}."


def _arrivals(run: RunReport) -> int:
    """How many arrivals a rate rests on, as far as the log says."""
    if run.planned is not None:
        return run.planned.sessions.of
    return run.load.calls or run.load.attempts


def _tolerance(n: int) -> float:
    """What a planned rate may be off: the brief's 5 %, and the chance of arrivals.

    Two standard errors of a count of `n` random arrivals, which for small n is more.
    """
    return max(MOST_OFF_LOAD, 2 / math.sqrt(max(n, 1)))


# -------------------------------------------------------------------- deadlines


def _deadlines(run: RunReport) -> _Answered:
    paid = run.cost
    if not paid.slo_origin:
        return NOT_CARRIED, 'No SLO is declared: record slo={"ttft_ms": 1500}.'
    slo = printable(paid.slo)
    if paid.slo_origin == FROM_OPTION:
        return NOT_CARRIED, f"{slo} come from {FROM_OPTION}, and no log says how."
    if paid.ok_alone:
        said = f"{paid.ok_alone} of {paid.ok.n} ok are of a class without bounds"
        return FAIL, f"{said} ({slo})."
    how = stated.text(run, "slo_from")
    if how is None:
        record = 'record notes={"slo_from": "5x unloaded TTFT"}'
        return NOT_CARRIED, f"How {slo} were set is not said: {record}."
    return PASS, f"{slo}, set from: {how}."


# ---------------------------------------------------------------------- repeats


def _repeats(same: Sequence[RunReport], run: RunReport) -> _Answered:
    if not run.header.get("experiment"):
        record = 'experiment="pilot", run="r1"'
        return NOT_CARRIED, f"No experiment is named, so record {record}."
    runs = f"{plural(len(same), 'run')} of this policy and configuration"
    said = f"{runs} in experiment {printable(str(run.header['experiment']))}"
    if len(same) < FEWEST:
        return FAIL, f"{said} in this report; {FEWEST} are the least to show a spread."
    return PASS, f"{said}; {_spread(same)}."


def _spread(same: Sequence[RunReport]) -> str:
    """How far the repeats came out apart, in goodput, else in refusals."""
    good = [run.goodput.value for run in same if run.goodput is not None]
    known = [value for value in good if value is not None]
    if len(known) == len(same):
        return f"goodput {middle_and_range(known)}"
    refused = [run.answers.refused / max(run.answers.offered, 1) for run in same]
    return f"refused {middle_and_range(refused)} of offered, goodput not in every log"


# ------------------------------------------------------------------- provenance


def _provenance(run: RunReport) -> _Answered:
    params = run.header.get("params")
    if not isinstance(params, dict):
        return NOT_CARRIED, "The log names no parameters: it has no run header."
    if not params:
        return PASS, "It has no parameters."
    origin = run.header.get("provenance")
    words = origin if isinstance(origin, dict) else {}
    unstated = [name for name in params if words.get(name, "unstated") == "unstated"]
    if unstated:
        names = printable(", ".join(unstated))
        how = f'provenance={{"{printable(unstated[0])}": "fitted"}}'
        said = f"{len(unstated)} of {len(params)} do not say where from ({names})"
        return FAIL, f"{said}: record {how}, or inherited or default."
    each = ", ".join(f"{name} {words[name]}" for name in params)
    return PASS, f"{len(params)} of {len(params)} say where from: {printable(each)}."


# ----------------------------------------------------------------------- metric


def _metric(run: RunReport) -> _Answered:
    good, reported = run.goodput, run.cost.reported
    if run.planned is not None:
        return _planned_metric(run, run.planned)
    if run.basis == "samples":
        return NOT_CARRIED, "No request stood behind a sample, so there is no goodput."
    if good is None:
        return NOT_CARRIED, (
            "No outcome was reported, so there is no goodput: call"
            " policy.outcome(rid, ok=..., ttft_ms=...)."
        )
    what = "attempts" if run.cost.requests is None else "calls"
    met = "met the SLO" if run.cost.slo_origin else "ended well, with no SLO declared"
    said = f"goodput {good.n} of {good.of} is {what} that {met}, of those offered"
    said += "; a refusal counts as a miss"
    if reported.n < FEWEST_REPORTED * reported.of:
        missing = f"only {share(reported.n, reported.of)} let in have an outcome"
        return FAIL, f"{said}, but {missing}."
    return PASS, f"{said}."


def _planned_metric(run: RunReport, plan: Planned) -> _Answered:
    met = (
        "met the SLO" if run.cost.slo_origin else "were answered, with no SLO declared"
    )
    return PASS, (
        f"goodput {plan.goodput.n} of {plan.goodput.of} is planned calls that {met} on"
        " the user's clock, of those the plan offered; one refused or never asked"
        " counts as a miss."
    )


# ---------------------------------------------------------------- configuration


def _configuration(run: RunReport, runs: Iterable[RunReport]) -> _Answered:
    known = {name: stated.text(run, name) for name in stated.CONFIGURATION}
    known["SLO"] = printable(run.cost.slo) or None
    if known["baseline"] is None:
        known["baseline"] = _baseline(run, runs)
    if stated.simulated(run):
        known["hardware"] = known["hardware"] or "a simulated engine"
    missing = [name for name, value in known.items() if value is None]
    if not missing:
        said = ", ".join(f"{name} {value}" for name, value in known.items())
        return PASS, f"{said}."
    first = next((name for name in missing if name != "SLO"), None)
    record = f'notes={{"{first}": "..."}}' if first else 'slo={"ttft_ms": 1500}'
    said = f"{len(known) - len(missing)} of {len(known)} are stated"
    how = f"{said}: record {', '.join(missing)} in the way of {record}."
    return (NOT_CARRIED if len(missing) == len(known) else FAIL), how


def _baseline(run: RunReport, runs: Iterable[RunReport]) -> str | None:
    """The run itself when it is one, else one of its experiment in this report."""
    if run.finding.word == "BASELINE":
        return printable(str(run.header.get("policy", "itself")))
    experiment = run.header.get("experiment")
    found = (
        printable(str(other.header.get("policy")))
        for other in runs
        if experiment and other.header.get("experiment") == experiment
        if other.finding.word == "BASELINE"
    )
    return next(found, None)
