"""The first check of a comparison: the policy fired in every repeat."""

from collections.abc import Iterator

from admitperf.reports.comparison.arms import Arm, Contest
from admitperf.reports.comparison.guard import Answered, few
from admitperf.reports.pages import stated
from admitperf.reports.pages.checks import NO, NOT_ASKED, OK, Answer
from admitperf.reports.report import RunReport
from admitperf.reports.wording import plural


def fired(contest: Contest) -> Answered:
    """Whether each run of the policy is LIVE, and each of the baseline a baseline.

    Below capacity, when the runs state it, nothing need fire. Two baselines against
    each other show the noise, and nothing can.
    """
    arm, baseline = contest.sides
    if arm.baseline:
        return OK, ("Both refuse nothing by design: this shows the noise alone.",)
    rows = [*_liveness(arm), *_liveness(baseline)]
    if all(row[0] == OK for row in rows):
        answer: Answer = OK
    else:
        answer = NO if any(row[0] == NO for row in rows) else NOT_ASKED
    faults = {word: said for bad, word, said in reversed(rows) if bad != OK}
    return answer, (*few(faults.values()), _words(arm), _words(baseline))


def _words(arm: Arm) -> str:
    rows = [(run.finding.word, run.answers) for run in arm.runs]
    if len({(word, one.refused, one.held.n) for word, one in rows}) == 1:
        of = sum(one.offered for _, one in rows)
        n = sum(one.refused for _, one in rows)
        held = sum(one.held.n for _, one in rows)
        also = f", held {held}" if held else ""
        repeats = plural(len(rows), "repeat")
        return f"{arm.label}: {rows[0][0]} in {repeats}, refused {n} of {of}{also}."
    told = (
        f"{name} {word} ({one.refused} of {one.offered} refused"
        + (f", {one.held.n} held)" if one.held.n else ")")
        for name, (word, one) in zip(arm.names, rows, strict=True)
    )
    return f"{arm.label}: {', '.join(told)}."


def _liveness(arm: Arm) -> Iterator[tuple[Answer, str, str]]:
    """Of each run the answer, its finding's word, and what is wrong with it."""
    wanted = "BASELINE" if arm.baseline else "LIVE"
    for name, run in zip(arm.names, arm.runs, strict=True):
        word, said = run.finding.word, run.finding.says
        told = f"{arm.label} {name} is {word}: {' '.join(said[: _SENTENCES[word]])}"
        if word == "UNKNOWN":
            yield NOT_ASKED, word, told
        elif _as_wanted(wanted, run):
            yield OK, word, ""
        elif word == "LIVE":
            yield NO, word, f"{told} None of its refusals was enforced."
        else:
            yield NO, word, told


def _as_wanted(wanted: str, run: RunReport) -> bool:
    word = run.finding.word
    if word == "INERT":
        return wanted == "LIVE" and _below_capacity(run)
    return word == wanted and (word != "LIVE" or run.answers.acted_enforced > 0)


# How much of the finding is repeated: how near it came belongs to INERT.
_SENTENCES = {"INERT": 3, "SHADOW": 2, "UNKNOWN": 2, "LIVE": 1, "BASELINE": 1}


def _below_capacity(run: RunReport) -> bool:
    """Whether the run says that its load was below capacity: nothing need fire."""
    loads = [stated.positive(run, name) for name in ("load", "peak_load")]
    known = [load for load in loads if load is not None]
    return bool(known) and max(known) < 1
