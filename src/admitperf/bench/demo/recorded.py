"""The recorded demo: policies over a measured overload of a real engine.

Nothing is enforced.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from admitperf.bench.demo.recording import Recording
from admitperf.bench.demo.replay import Replay
from admitperf.bench.place import name_run, refuse_file, refuse_other, telling
from admitperf.policies import load
from admitperf.reports.report import Report, RunReport, report
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.wording import number, plural, share
from admitperf.testing import FakeClock

POLICIES = ("kv_threshold", "queue_depth", "no_admission")
FOLDER = "admitperf-demo"
EXPERIMENT = "demo-recorded"

SLO = {"ttft_ms": 1500, "stall_ms": 500}
"""First token within 1.5 s, no gap over 0.5 s. Plain choice: the example bounds of the
log format, and what a person at a keyboard bears."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a demo did.

    Attributes:
        recording: what was replayed.
        report: on its logs, the runs in the order the policies were named.
    """

    recording: Recording
    report: Report

    def opening(self) -> Iterator[str]:
        """What is recorded, in paragraphs."""
        made = self.recording
        ended = max(call.t_s + call.e2e_ms / 1e3 for call in made.calls)
        day = datetime.fromtimestamp(made.wall_s, UTC).date()
        yield (
            f"A recorded run of a real engine: {made.engine}, {day}. Its own metrics,"
            f" {plural(len(made.scrapes), 'reading')} {number(made.scrape_s)} s apart,"
            f" and {plural(len(made.calls), 'request')} as they arrived:"
            f" {number(made.rate_per_s)} a second, {number(made.load)}x of the"
            f" {number(made.capacity_per_s)} a second it can carry, until the last had"
            f" its answer {number(round(ended))} s after the start."
        )
        yield (
            "Each policy stood in front of all of it, in recorded time, and nothing it"
            " said was enforced (enforce=0): every request was served as recorded, so"
            " the outcomes are those of running without a policy, the same for each,"
            " and no policy could change them."
        )

    def closing(self) -> Iterator[str]:
        """What to notice, in paragraphs."""
        yield "What to notice"
        for run in self.report.runs:
            yield " ".join(_notice(run))
        yield (
            f"{self._met()}Whether refusing would have helped, these logs cannot say:"
            " that takes a run in which refusals are enforced. decide took 0 us"
            " because the clock of a replay stands still while a policy decides."
        )

    def _met(self) -> str:
        goodput = self.report.runs[0].cost.goodput if self.report.runs else None
        if goodput is None:
            return ""
        bounds = "first token within 1.5 s, no gap over 0.5 s"
        return f"{goodput.n} of {goodput.of} requests met the SLO ({bounds}). "


def run_recorded(names: Sequence[str], folder: Path) -> Recorded:
    """Runs policies over the recording and reports on their logs.

    Args:
        names: installed policies, each with its default parameters.
        folder: where `<policy>.jsonl` goes; logs of an earlier demo are replaced.

    Raises:
        PolicyNotFound, BadPlugin, ConfigError: a policy cannot be used as it is.
        DemoError: the folder or a file in it cannot be written, or a file in it is
            no log of a demo.
    """
    recording = Recording.demo()
    classes = {name: load(name) for name in names}
    paths = {name: folder / f"{name}.jsonl" for name in classes}
    refuse_file(folder)
    for path in paths.values():
        with telling(path):
            _make_room(path)
    for name, cls in classes.items():
        clock = FakeClock(wall_s=recording.wall_s)
        with cls(
            log=paths[name],
            clock=clock,
            experiment=EXPERIMENT,
            enforce=0.0,
            slo=SLO,
            notes=_notes(recording),
            reports_outcomes=True,
        ) as policy:
            Replay(policy, clock, recording).run()
        name_run(paths[name], name)
    made = report([str(path) for path in paths.values()])
    order = {name: place for place, name in enumerate(classes)}
    runs = sorted(made.runs, key=lambda run: order.get(run.header.get("policy", ""), 0))
    return Recorded(recording, replace(made, runs=tuple(runs)))


def _notes(made: Recording) -> dict[str, str | float | bool | None]:
    """What is known of the recorded run and not in its metrics."""
    engine, _, version = made.engine.partition(" ")
    sizes = made.settings
    (low, high), (least, most) = sizes["input_tokens"], sizes["output_tokens"]
    return {
        "model": sizes["model"],
        "engine": engine,
        "engine_version": version,
        "hardware": "CPU, one thread",
        "workload": (
            f"Poisson, prompts of {low} to {high} tokens, answers of {least} to {most}"
        ),
        "baseline": "no_admission",
        "capacity_per_s": made.capacity_per_s,
        "load": made.load,
        "ignore_eos": True,
    }


def _make_room(path: Path) -> None:
    """Empties the place of a log, and nothing that is not a demo's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        refuse_other(path, lambda header: header["experiment"] == EXPERIMENT)
    path.write_bytes(b"")


def _notice(run: RunReport) -> Iterator[str]:
    """What one run shows, in sentences."""
    name, answers = run.header.get("policy", "?"), run.answers
    yield f"{name} is {run.finding.word}."
    if run.finding.word == "BASELINE":
        moved = [m for m in run.signals if m.name in ("kv_pressure", "queue_depth")]
        told = " and ".join(f"{m.name} to {number(m.spread.high)}" for m in moved)
        yield f"It refuses nothing by design, and saw the same signals move: {told}."
        return
    if run.finding.word == "UNKNOWN":
        yield "Its log cannot say whether it would have fired; its report says why."
        return
    yield f"It would have refused {share(answers.refused, answers.offered)}."
    for gate in run.gates:
        spread = {m.name: m.spread for m in run.signals}.get(gate.signal)
        if spread is not None and spread.n:
            low, middle, high = map(number, (spread.low, spread.p50, spread.high))
            yield (
                f"{gate.signal} went from {low} to {high} (p50 {middle}), and it"
                f" refuses when {gate_text(gate)}."
            )
