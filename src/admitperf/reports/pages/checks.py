"""Whether a log supports a claim: what `report --check` asks.

Each check is answered with ok, no, or that it cannot be asked. One "no" and the log
supports no claim. What cannot be asked does not fail by itself: a log without outcomes
still shows what a policy refused.
"""

from dataclasses import dataclass
from typing import Literal

from admitperf.reports.pages.items import FEWEST_REPORTED
from admitperf.reports.quantile import FEWEST_FOR_P95
from admitperf.reports.ratio import Share
from admitperf.reports.report import Report, RunReport
from admitperf.reports.runs.finding import MOST_BLIND
from admitperf.reports.runs.log import Files
from admitperf.reports.wording import counted, plural, printable, share

Answer = Literal["ok", "no", "cannot be asked"]
OK: Answer = "ok"
NO: Answer = "no"
NOT_ASKED: Answer = "cannot be asked"

MOST_LOST = 0.001
"""The brief's largest share of records lost."""
MOST_UNUSABLE = 0.01
"""Plain choice: the largest share of lines that cannot be used; one torn end for each
file is always allowed."""
SHORT_OUTPUT = 0.5
"""Plain choice: below this share of the tokens asked for, outputs are short."""


@dataclass(frozen=True, slots=True)
class Check:
    """One condition.

    Attributes:
        name: what is asked.
        answer: "ok", "no" or "cannot be asked".
        says: one sentence with the numbers.
    """

    name: str
    answer: Answer
    says: str


@dataclass(frozen=True, slots=True)
class RunChecks:
    """The checks of one run.

    Attributes:
        policy, experiment, name: whose run it is, as its header says; None = not said.
        ids: its run ids.
        passed: whether no check is answered with "no".
        checks: in the order they are asked.
    """

    policy: str | None
    experiment: str | None
    name: str | None
    ids: tuple[str, ...]
    passed: bool
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """The checks of a whole report.

    Attributes:
        passed: whether every run and the lines passed.
        runs: one for each run.
        lines: whether the files could be used.
    """

    passed: bool
    runs: tuple[RunChecks, ...]
    lines: Check


def check(report: Report) -> Checked:
    """Asks every run of a report, and its files."""
    runs = tuple(map(_run, report.runs))
    lines = _lines(report.files)
    passed = bool(runs) and all(run.passed for run in runs) and lines.answer != NO
    return Checked(passed, runs, lines)


def _run(run: RunReport) -> RunChecks:
    header, asked = run.header, checks(run)
    return RunChecks(
        policy=header.get("policy"),
        experiment=header.get("experiment"),
        name=header.get("name"),
        ids=run.ids,
        passed=all(one.answer != NO for one in asked),
        checks=asked,
    )


def checks(run: RunReport) -> tuple[Check, ...]:
    """What one run is asked."""
    answers = (
        ("fired, or a baseline", _fired(run)),
        ("records lost", _lost(run)),
        ("decided blind", _blind(run)),
        ("outcomes reported", _reported(run)),
        ("enough for a p95", _samples(run)),
        ("no record twice", _repeated(run)),
        ("outputs as long as asked", _outputs(run)),
    )
    return tuple(Check(name, answer, says) for name, (answer, says) in answers)


_Answered = tuple[Answer, str]


def _fired(run: RunReport) -> _Answered:
    word, said = run.finding.word, run.finding.says
    if run.basis == "samples":
        return NO, f"{word}: these are samples of an engine; no policy governed."
    told = " ".join(said[: _SENTENCES.get(word, 1)])
    if word == "LIVE" and not run.answers.acted_enforced:
        return NO, f"{word}: {told} None of its refusals was enforced."
    return (OK if word in ("LIVE", "BASELINE") else NO), f"{word}: {told}"


# How much of the finding a check repeats: how near it came belongs to INERT.
_SENTENCES = {"INERT": 3, "SHADOW": 2, "UNKNOWN": 2}


def _lost(run: RunReport) -> _Answered:
    lost = run.faults.lost_decisions
    others = sum(run.faults.lost.values()) - lost.n
    said = f"{share(lost.n, lost.of)} decisions"
    said += f" and {plural(others, 'other record')}" if others else ""
    return _at_most(MOST_LOST, lost, f"{said} lost; at most 0.1 % may be.", others)


def _at_most(most: float, part: Share, said: str, others: int = 0) -> _Answered:
    """No more than a share, the other lost records counted like decisions."""
    return (OK if part.n + others <= most * (part.of + others) else NO), said


def _blind(run: RunReport) -> _Answered:
    blind = run.faults.blind
    said = f"{share(blind.n, blind.of)} decisions made blind; at most 1 % may be."
    return _at_most(MOST_BLIND, blind, said)


def _reported(run: RunReport) -> _Answered:
    reported = run.cost.reported
    if not _has_outcomes(run):
        return NOT_ASKED, "No outcome was reported: nothing is said of latency."
    said = f"{share(reported.n, reported.of)} let in have an outcome; 99 % are needed."
    return (OK if reported.n >= FEWEST_REPORTED * reported.of else NO), said


def _has_outcomes(run: RunReport) -> bool:
    return run.cost.goodput is not None


def _samples(run: RunReport) -> _Answered:
    n = run.cost.ttft_ms.n
    if not _has_outcomes(run):
        return NOT_ASKED, "No outcome was reported: no p95 is given."
    said = f"{n} ok outcomes carry ttft_ms; {FEWEST_FOR_P95} are needed."
    return (OK if n >= FEWEST_FOR_P95 else NO), said


def _repeated(run: RunReport) -> _Answered:
    if not run.faults.repeated:
        return OK, "No decision and no outcome stands in the log twice."
    return NO, f"In the log more than once: {counted(run.faults.repeated)}."


def _outputs(run: RunReport) -> _Answered:
    output = run.cost.output
    if output is None or output.share is None:
        return NOT_ASKED, "No outcome says both what was asked for and what came."
    said = (
        f"{share(output.got_tokens, output.asked_tokens)} of the tokens asked for came"
        f" (n {output.n})"
    )
    if output.share >= SHORT_OUTPUT:
        return OK, f"{said}."
    if run.answers.acted:
        return OK, f"{said}: short, and it fired all the same."
    return NO, f"{said}, so the load stayed below plan and nothing had to be refused."


def _lines(files: Files) -> Check:
    unusable = sum(files.unusable.values())
    name = "lines used"
    if files.cut:
        ends = "; ".join(f"{path} ends early: {why}" for path, why in files.cut.items())
        return Check(name, NO, printable(f"{ends}."))
    if not unusable:
        return Check(name, OK, f"{files.lines} of {files.lines} lines were used.")
    said = f"{share(unusable, files.lines)} lines could not be used"
    where = f", the first at {printable(files.first[0])}" if files.first else ""
    few = unusable <= max(MOST_UNUSABLE * files.lines, len(files.paths))
    return Check(name, OK if few else NO, f"{said}{where}.")
