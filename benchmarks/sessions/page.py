"""The page of the evidence, docs/results/sessions.md: generated, never edited."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import machine
from benchmarks.sessions import plain, plots, tables
from benchmarks.sessions.arms import GRIDS, METRICS, PER_METRIC
from benchmarks.sessions.cells import CLIENTS, LOAD, Cell, calibrated
from benchmarks.sessions.checks import checks
from benchmarks.sessions.evidence import (
    ENGINES,
    MODES,
    RECORDS,
    SHIFTED,
    Evidence,
    EvidenceError,
    Row,
    read,
)
from benchmarks.sessions.judged import (
    ABOVE,
    HARM,
    MARGIN,
    Answer,
    aims,
    better_gate,
    blocks,
    difference,
    falsifiers,
    gains,
    place_of,
    pooled,
)
from benchmarks.sessions.runs import LASTS, LASTS_S

RESULTS = Path(__file__).parents[2] / "docs" / "results"
ABOUT = "about.json"
MIXES = ("final", *SHIFTED, "fan-out", "short")
LEAST_TASKS = 10
"""Median task times that a run lasts at least. Protocol."""

CHART = "![{}](sessions-{}.svg)"


# -------------------------------------------------------------------------- about


def about(folder: Path = RECORDS) -> dict[str, Any]:
    """Where and when the final runs were made, and what all runs took.

    The final run calls it once, at its end, and `save`s it beside the records.
    """
    took: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for text in (folder / "cpu.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        own = took["+".join(line["stages"])]
        own[0] += line["runs"]
        own[1] = round(own[1] + line["cpu_s"], 3)
    return {
        "machine": machine("matplotlib", "scipy"),
        "spent": dict(took),
        "task_s": medians(),
    }


def medians() -> dict[str, float]:
    """Median unloaded task time on `kv`, in seconds, by mix; without absent traces."""
    made = {}
    for mix in MIXES:
        try:
            engine = calibrated("kv", mix)
        except FileNotFoundError:
            continue
        made[mix] = round(median(map(engine.task_s, engine.work.pool())), 1)
    return made


def save(folder: Path = RECORDS) -> None:
    """Writes `about.json` beside the records."""
    text = json.dumps(about(folder), indent=2)
    (folder / ABOUT).write_text(f"{text}\n", encoding="utf-8")


def write(folder: Path = RECORDS, results: Path = RESULTS) -> Path:
    """Makes the page and its figures from the records; the page's path.

    Raises:
        EvidenceError: something is not there or damaged; nothing is rewritten.
    """
    told = _told(folder)
    evidence = Evidence.of(read(folder))
    if not evidence.grid():
        raise EvidenceError("no final records: run `final` first")
    made = text(evidence, told)
    plots.draw(evidence, results)
    path = results / "sessions.md"
    path.write_text(made, encoding="utf-8")
    return path


def _told(folder: Path) -> Row:
    try:
        told: Row = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise EvidenceError(f"{ABOUT} is not there: run `final` first") from error
    except ValueError as error:
        raise EvidenceError(f"{ABOUT} is damaged: {error}") from error
    return told


def text(evidence: Evidence, told: Row) -> str:
    """The page.

    Args:
        evidence: what was run.
        told: as `about` has it.
    """
    lines = "\n".join(page(evidence, told))
    return lines.rstrip() + "\n"


# --------------------------------------------------------------------------- page


def page(evidence: Evidence, told: Row) -> Iterator[str]:
    """Its lines."""
    yield from _head(evidence, told)
    made, refuted = aims(evidence), falsifiers(evidence)
    unexpected = list(_no_gain_expected(evidence))
    yield from plain.short(evidence, made, refuted, unexpected)
    yield from _judged(evidence, made, refuted)
    yield from _figures()
    yield from _regrets(evidence)
    yield from _cells(evidence)
    yield from _liveness(evidence)
    yield from _situations(evidence)
    yield from _shifted(evidence)
    yield from _cost(evidence)
    yield from _parameters(evidence)
    yield from _lasted(told)
    yield from _checks(evidence, told)
    yield REPRODUCE
    yield from _cannot_see(evidence, told)


def _head(evidence: Evidence, told: Row) -> Iterator[str]:
    where = dict(told["machine"])
    cpu, cores, date = (where.pop(name) for name in ("cpu", "cores", "date"))
    versions = ", ".join(f"{name} {version}" for name, version in where.items())
    yield "# Whole agent sessions at the front door"
    yield ""
    yield "**SIMULATED**: an engine in virtual time; no number here was measured on"
    yield "hardware."
    yield ""
    yield "Written by `python -m benchmarks.sessions page`, not by hand."
    yield f"{date}, {cpu}, {cores} cores; {versions}."
    yield "What was run, why, and what counts as a win was written down before:"
    yield "`benchmarks/sessions/PROTOCOL.md`."
    yield ""
    yield "A task is one message of a user and the agent's calls after it."
    yield "*Count* is the share of offered tasks that ended within three times their"
    yield "unloaded duration; *work* is the same weighted by a task's tokens."
    yield f"Means are over {len(blocks(evidence))} blocks; brackets are 95 % intervals"
    yield "of the blocks' paired differences."
    yield ""


# ------------------------------------------------------------------- aims and claims


def _judged(
    evidence: Evidence, made: Sequence[Answer], refuted: Sequence[Answer]
) -> Iterator[str]:
    yield "## Aims"
    yield ""
    yield from tables.answered(made)
    yield "Beside aim 5: the elephant controls have the plain size rule (the largest"
    yield "context, share 0.3); `shed` has its own (most to finish, with a margin). So"
    yield "that comparison mixes what the ledger does with what the size rule does."
    yield "The memoryless twin charges each call's whole prompt as cold prefill and was"
    yield "not in the screen's grids."
    yield ""
    yield "### Gains that are claimed"
    yield ""
    claimed = gains(evidence)
    yield f"A gain holds when its mean is at least {MARGIN:g}, the sign-flip p is under"
    yield f"0.05, and so is the t test's after Holm over all {len(claimed)} gains here."
    yield "MDE is the smallest true difference that these blocks show with 80 % power."
    yield ""
    yield from tables.claimed(claimed)
    yield "### Both modes against every arm at 1.2x and more"
    yield ""
    yield "Exploratory where it is not in the table above."
    yield ""
    yield from tables.beside(evidence)
    yield "## What would have refuted it"
    yield ""
    for one in refuted:
        yield f"- {one.name}: {'YES' if one.yes else 'no'}. {' '.join(one.says)}"
    yield from _no_gain_expected(evidence)
    yield ""


def _no_gain_expected(evidence: Evidence) -> Iterator[str]:
    """Where a gain would have another cause, or was not thought possible."""
    grid = evidence.grid
    impatient = [cell for cell in grid(ABOVE) if cell.client == "impatient"]
    for words, cells, arms in (
        ("tasks of at most three calls", evidence.chosen(_by_mix("short")), FLAT),
        (f"{HARM:g}x, where nothing binds", grid((HARM,)), FLAT),
        ("impatient clients at 1.2x and more", impatient, ("gate_cell",)),
    ):
        for mode in MODES:
            for arm in arms:
                yield from _unexpected(evidence, mode, arm, words, cells)


FLAT = ("none", "gate_one")


def _unexpected(
    evidence: Evidence, mode: str, arm: str, words: str, cells: Sequence[Cell]
) -> Iterator[str]:
    metric = MODES[mode]
    best = better_gate(evidence, metric)
    other = best if arm == "gate_one" else evidence.named(arm, metric)
    _, found = pooled(evidence, mode, other, metric, cells)
    if found is not None:
        yield (
            f"- A gain of `{mode}` over `{other}` where none is expected, {words}:"
            f" {'YES' if found.rises else 'no'}."
            f" {difference(found.statistics)} on {metric}."
        )


# ------------------------------------------------------------------------- figures


def _figures() -> Iterator[str]:
    yield "## Figures"
    yield ""
    for name, words in FIGURES.items():
        yield words
        yield ""
        yield CHART.format(words.partition(":")[0].rstrip("."), name)
        yield ""


FIGURES = {
    "regret": "Regret of the arms with one parameter set: the worst cell and the mean.",
    "count": "Goodput by count over load, by engine and client.",
    "work": "Goodput by work over load, by engine and client.",
    "shift": "The shift test: parameters unchanged, first prompts of other sizes, and"
    " WEKA's sessions.",
    "length": "Goodput by length of task, arms as tuned for count.",
}


# -------------------------------------------------------------------------- tables


def _regrets(evidence: Evidence) -> Iterator[str]:
    yield "## Regret"
    yield ""
    yield "The best arm's mean in a cell, whichever arm that is, less the arm's own."
    yield "Only arms with one parameter set; the smallest worst cell first."
    yield ""
    for name, cells in (
        (f"{len(evidence.grid())} cells", evidence.grid()),
        ("the shift test", evidence.shift()),
    ):
        for metric in METRICS:
            yield f"### On {metric}, over {name}"
            yield ""
            yield from tables.regret(evidence, cells, metric)


def _cells(evidence: Evidence) -> Iterator[str]:
    yield f"## Cells at {LOAD:g}x"
    yield ""
    for metric in METRICS:
        yield f"### Goodput by {metric}"
        yield ""
        yield from tables.goodput(evidence, metric)
    yield "### Beside it"
    yield ""
    yield BESIDE
    yield ""
    for engine in ENGINES:
        yield f"#### {engine}"
        yield ""
        yield from tables.engine(evidence, engine)
    yield "### Both modes against `gate_one`, cell by cell"
    yield ""
    yield "Exploratory: nothing is adjusted for the number of cells."
    yield ""
    yield from tables.by_cell(evidence)


BESIDE = """Over both clients.
Wasted: of the tokens computed, those for tasks that did not complete.
Short, long: goodput by count of tasks of at most 15 calls, and of more.
TTFT p95: of served calls, the middle run.
Refusals, killed: refusals, and tasks let in and refused later, for each task offered.
Jain: the index of the four tenants' counts."""


def _liveness(evidence: Evidence) -> Iterator[str]:
    yield "## Liveness"
    yield ""
    yield "In what share of all decisions each gate held, that is spoke for a refusal;"
    yield "over all loads and both clients. `--` is a gate that was never asked."
    yield "A ledger gate that held is not always a refusal: a task may begin over it"
    yield "while the engine is idle. The ledger's `in_flight`, which held when a slot"
    yield "was free and so spoke for admission, is left out."
    yield ""
    yield from tables.liveness(evidence)
    yield "Why they refused, in refusals for each task offered:"
    yield ""
    yield from tables.refused(evidence)
    silent = list(tables.findings(evidence))
    if silent:
        yield "Runs in which an arm refused nothing:"
        yield ""
        yield from silent
        yield ""


def _situations(evidence: Evidence) -> Iterator[str]:
    for title, words, wanted in SITUATIONS:
        cells = evidence.chosen(wanted)
        if cells:
            yield f"## {title}"
            yield ""
            told = "; ".join(sorted({place_of(cell) for cell in cells}))
            yield f"{words} Cells: {told}."
            yield ""
            yield from tables.situation(evidence, cells)


def _controlled(cell: Cell) -> bool:
    return cell.mix == "final" and cell.client in CLIENTS and cell.load == LOAD


def _by_client(name: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.client == name


def _by_mix(name: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.mix == name


SITUATIONS: Sequence[tuple[str, str, Callable[[Cell], bool]]] = (
    (
        "Controls",
        (
            "`memoryless`: the ledger's gates of each request by itself, parameters as"
            " below; it charges the whole prompt of each call as cold prefill, and"
            " stood in no grid of the screen. `thin`: tasks let in by chance, as many"
            " as the ledger let in. `vllm_queued_tokens`: the engine's own limit."
        ),
        _controlled,
    ),
    (
        "Clients who may poll",
        "Every arm may be asked again every 2 s for as long as a patient client waits.",
        _by_client("polls"),
    ),
    (
        "Clients who ignore Retry-After",
        "They come back when they like.",
        _by_client("deaf"),
    ),
    ("Tasks that begin eight at a time", "The same mix, `burst`.", _by_mix("burst")),
    (
        "Sub-agents",
        "The synthetic `fan-out`: calls of a task at the same time.",
        _by_mix("fan-out"),
    ),
    (
        "Short tasks",
        "Tasks of at most three calls, where no gain is expected.",
        _by_mix("short"),
    ),
    (
        "Without the end of a session",
        "Nothing says which call is a task's last one.",
        _by_mix("no_final"),
    ),
)
"""A title, what it is, and its cells."""


def _shifted(evidence: Evidence) -> Iterator[str]:
    if not evidence.shift():
        return
    yield "## The shift test"
    yield ""
    yield f"Every parameter as it is, on `kv` at {LOAD:g}x: first prompts x0.4, x2 and"
    yield "x4, and WEKA's Claude Code sessions (`weka`). `unchanged` is the protocol's"
    yield "own mix."
    yield ""
    for metric in METRICS:
        yield f"### On {metric}"
        yield ""
        yield from tables.shift(evidence, metric)


def _cost(evidence: Evidence) -> Iterator[str]:
    yield "## What a decision costs"
    yield ""
    yield f"In microseconds, the middle run at {LOAD:g}x, in Python on the machine"
    yield "above while both cores ran; with what the harness counts beside it."
    yield ""
    yield from tables.cost(evidence)


def _parameters(evidence: Evidence) -> Iterator[str]:
    yield "## Parameters"
    yield ""
    yield "Frozen before the final runs, from the training pool."
    yield "Thinning has the share of tasks that the ledger let in, block by block."
    yield "The ledger and the window stand here with the defaults they had;"
    yield "`longest_wait_s` was no parameter then but the constant 10, and `in_flight`"
    yield "was 8: with that, tasks of `fan-out` lose most of their calls' work, so that"
    yield "it is 64 since."
    yield ""
    yield from tables.frozen(evidence)
    yield "`gate_cell` in each cell:"
    yield ""
    yield from tables.by_the_cell(evidence)


def _lasted(told: Row) -> Iterator[str]:
    """For how many median task times the runs lasted."""
    found = told.get("task_s")
    if not found:
        return
    yield "## How long runs are"
    yield ""
    yield "For how long tasks begin, and the median unloaded task time on `kv`."
    yield f"Where their ratio is under {LEAST_TASKS} runs fall short of the protocol."
    yield ""
    horizons = {mix: LASTS.get(mix, LASTS_S) for mix in found}
    rows = [(mix, horizons[mix], task_s) for mix, task_s in found.items()]
    if "final" in found:
        rows.append(("final, client `polls`", LASTS["polls"], found["final"]))
    made = (
        [mix, f"{lasts_s:g}", f"{task_s:g}", f"{lasts_s / task_s:.1f}", _enough(*one)]
        for mix, *one in rows
        for lasts_s, task_s in [one]
    )
    yield from tables.table(["mix", "horizon s", "task s", "ratio", ""], made)


def _enough(lasts_s: float, task_s: float) -> str:
    return "" if lasts_s >= LEAST_TASKS * task_s else "falls short"


def _checks(evidence: Evidence, told: Row) -> Iterator[str]:
    yield "## Cost and checks"
    yield ""
    yield from tables.spent(told)
    for name, bad in checks(evidence, told):
        yield f"- {name}: {'ok' if not bad else f'NO: {bad}'}."
    yield ""


REPRODUCE = """## How to reproduce

`make bench-sessions-evidence` runs the final stage again and writes this page:
`python -m benchmarks.sessions final --fresh`, about half an hour on two quiet cores,
then `page`. `final` alone keeps the records that exist; `--fresh` moves them away
first.
Seeds, parameters and records stand in `benchmarks/sessions`; from the records alone,
`python -m benchmarks.sessions page` writes the same page.
The records are of the commit that froze the parameters; `python -m benchmarks.sessions
again` runs some of them with the policies as they are now and says what has changed.
WEKA's sessions are not part of this repository: without their file that part of the
shift test is left out, and says so.
"""

CANNOT_SEE = """## Cannot see

- Real engines: one profile of one engine, in virtual time, with three sets of sizes.
- Other work: one mix made of published facts; recorded sessions only in the shift test.
- Several replicas, or several front doors before one: there is one of each.
- Callers as they are: clients behave as they are modelled, and four equal tenants share
  the engine.
- Traffic without ids: every call says which task it is of."""

FINAL = "Tasks whose end nobody tells: each says which call is its last one."


TRIED = ("try", "explored (estimated)")
"""Stages in which parameters and rules of the ledger and the window were explored."""


def _tuning(told: Row) -> str:
    runs = sum(told["spent"].get(stage, (0, 0.0))[0] for stage in TRIED)
    sizes = ", ".join(f"`{arm}` {len(GRIDS[arm])}" for arm in PER_METRIC)
    return (
        f"- Equal tuning: the other arms had the sets of their grids ({sizes}) and no"
        " more; rules and defaults of the ledger and the window were explored by hand"
        f" before the freeze, in about {runs} runs, those of other arms beside them"
        " included. How many sets of ours that were was not counted."
    )


def _cannot_see(evidence: Evidence, told: Row) -> Iterator[str]:
    yield CANNOT_SEE
    yield _tuning(told)
    absent = [title for title, _, some in SITUATIONS if not evidence.chosen(some)]
    if absent:
        yield f"- What was not run: {'; '.join(absent)}."
    yield "- Of what stands beside the main cells, only the cells named there were run."
    if not evidence.chosen(_by_mix("no_final")):
        yield f"- {FINAL}"
