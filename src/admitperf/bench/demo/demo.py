"""The demo: three policies before one simulated engine, and what each of them buys.

A KV threshold that was picked without the SLO shortens the tail and lowers goodput; a
bound on the queue that follows from the SLO shortens it and raises goodput.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from admitperf._version import __version__
from admitperf.bench.demo import scene
from admitperf.bench.demo.calibration import (
    CLIENTS,
    SLO_FROM,
    TTFT_FACTOR,
    UNLOADED,
    Calibration,
)
from admitperf.bench.demo.calm import Calm
from admitperf.bench.place import clear, name_run
from admitperf.policies import load
from admitperf.reports.wording import number, share
from admitperf.simulator import (
    Arrival,
    VirtualClock,
    plan_hash,
    run,
    stream,
)

EXPERIMENT = "demo"
FOLDER = "experiments"
BASELINE = "no_admission"
POLICIES = (BASELINE, "kv_threshold", "queue_depth")

REPEATS = 5
"""The fewest that let a sign-flip test say p < 0.05; under 10 s on one slow core."""

MADE_BY = "admitperf demo"
"""A note in each log, by which a later demo knows what it may replace."""

WALL_S = 1_767_225_600.0
"""Virtual time begins at 2026-01-01 00:00 UTC. Plain choice."""

Told = Callable[[str, int, int], None]
"""What is being run, its number, and how many there are."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What a demo did.

    Attributes:
        measured: the engine without a policy.
        calm: the same below capacity.
        requests: in each run.
        repeats: runs of each policy.
        seed: of all of it.
        folder: where the logs are, in `demo/<policy>/r<n>.jsonl`.
    """

    measured: Calibration
    calm: Calm
    requests: int
    repeats: int
    seed: int
    folder: Path

    def opening(self) -> Iterator[str]:
        """What was done before the comparison, in paragraphs."""
        yield from self._told_engine()
        yield self._told_bound()
        yield self._told_calm()
        yield (
            f"{self._told_repeats()} (seed {self.seed}): {number(scene.CALM)}x of"
            f" capacity, with {number(scene.PEAK)}x for"
            f" {number(scene.BURST_S)} s. Who is refused does not"
            " come again."
        )
        logs = self.folder / EXPERIMENT
        yield f"{logs}: {self.repeats * len(POLICIES)} logs. Next:"
        first = logs / POLICIES[-1] / "r1.jsonl"
        yield f"admitperf report {shlex.quote(str(first))}"  # whole, to be copied

    def _told_repeats(self) -> str:
        n = self.requests
        if self.repeats == 1:
            return f"The three policies meet the same {n} requests, once"
        return (
            f"Each of {self.repeats} repeats draws {n} requests of its own; the three"
            " policies meet the same ones"
        )

    def _told_engine(self) -> Iterator[str]:
        measured, slo = self.measured, self.measured.slo
        yield (
            "A simulated engine in virtual time: no number here was measured on"
            f" hardware. It has the sizes of {scene.MODEL.partition(',')[0]} on"
            f" {scene.HARDWARE.partition(',')[0]}. Three long documents are being"
            " rewritten throughout, and questions of 1,500 to 2,500 tokens come in."
        )
        yield (
            "Measured first, without a policy: a question served alone has its first"
            f" token within {number(measured.unloaded_ms)} ms (p95, n {UNLOADED}), and"
            f" {CLIENTS} clients in a closed loop get {number(measured.capacity_per_s)}"
            f" answers a second (n {measured.answers}), which is the capacity. So the"
            f" SLO is a first token within {number(slo['ttft_ms'])} ms"
            f" ({number(TTFT_FACTOR)}x) and no gap over {number(slo['stall_ms'])} ms."
        )

    def _told_bound(self) -> str:
        measured, age_ms = self.measured, scene.SCRAPING.interval_s * 1e3
        return (
            f"The bound of queue_depth follows: {number(measured.slo['ttft_ms'])} ms"
            f" less {number(measured.unloaded_ms)} ms for the request itself and"
            f" {number(age_ms)} ms, the age of what is known, leave"
            f" {number(measured.left_ms)} ms. In that time the engine takes"
            f" {measured.max_waiting} from its queue, so max_waiting ="
            f" {measured.max_waiting} (fitted). kv_threshold keeps its default of 0.90,"
            " which knows nothing of the SLO."
        )

    def _told_calm(self) -> str:
        calm = self.calm
        return (
            f"At {number(scene.CALM)}x of capacity, without a policy, kv_pressure was"
            f" at 0.90 or more for {share(calm.full, calm.offered)} arrivals, and"
            f" {share(calm.good, calm.offered)} requests met the SLO. A full cache is"
            " no overload here: the documents keep it full, and a question needs"
            " little of it."
        )


def run_demo(folder: Path, repeats: int, seed: int, told: Told) -> Demo:
    """Runs each policy so many times; its logs are below `folder`.

    Args:
        folder: `demo/<policy>/r<n>.jsonl` goes there; logs of an earlier demo go.
        repeats: of each policy.
        seed: of the traffic, the engine's noise and the scraper.
        told: called before each run.

    Raises:
        DemoError: a folder or file cannot be written, or is no demo's.
    """
    top = folder / EXPERIMENT
    clear((top / name for name in POLICIES), _is_ours)
    measured = Calibration.measured(seed)
    calm = Calm.measured(measured, seed)
    chance = stream(seed, "repeats")
    traffic = [_Traffic.drawn(measured, chance.getrandbits(63)) for _ in range(repeats)]
    arms = [(n, name) for n in range(1, repeats + 1) for name in POLICIES]
    for done, (n, name) in enumerate(arms):
        told(f"{name} r{n}", done, len(arms))
        _run(name, top / name / f"r{n}.jsonl", traffic[n - 1], measured, seed)
    requests = len(traffic[0].arrivals)
    return Demo(measured, calm, requests, repeats, seed, folder)


@dataclass(frozen=True, slots=True)
class _Traffic:
    """What the policies of one repeat meet, and by which chance."""

    arrivals: Sequence[Arrival]
    seed: int

    @classmethod
    def drawn(cls, measured: Calibration, seed: int) -> Self:
        return cls(scene.traffic(measured.capacity_per_s, seed), seed)


def _run(
    name: str, path: Path, met: _Traffic, measured: Calibration, seed: int
) -> None:
    """One policy once."""
    clock = VirtualClock(wall_s=WALL_S)
    with load(name)(
        log=path,
        clock=clock,
        experiment=EXPERIMENT,
        run=path.stem,
        slo=measured.slo,
        notes=_notes(met.arrivals, measured, seed),
        raw="reference",
        reports_outcomes=True,
        **_parameters(name, measured),
    ) as policy:
        run(policy, clock, met.arrivals, scene.setting(met.seed))
    name_run(path, f"{name}-{path.stem}-seed{seed}")


def _parameters(name: str, measured: Calibration) -> dict[str, Any]:
    if name != "queue_depth":
        return {}
    return {
        "max_waiting": measured.max_waiting,
        "provenance": {"max_waiting": "fitted"},
    }


def _notes(
    arrivals: Sequence[Arrival], measured: Calibration, seed: int
) -> dict[str, str | float | bool | None]:
    return {
        "made_by": MADE_BY,
        "simulated": True,
        "seed": seed,
        "model": scene.MODEL,
        "engine": "admitperf simulator",
        "engine_version": __version__,
        "hardware": scene.HARDWARE,
        "workload": scene.WORKLOAD,
        "client": "does not retry",
        "baseline": BASELINE,
        "plan": plan_hash(arrivals),
        "capacity_per_s": round(measured.capacity_per_s, 4),
        "load": round(scene.LOAD, 3),
        "peak_load": scene.PEAK,
        "slo_from": SLO_FROM,
        "ignore_eos": False,
    }


def _is_ours(header: Mapping[str, Any]) -> bool:
    """Whether a log is an earlier demo's."""
    notes = header["notes"]
    return bool(header["experiment"] == EXPERIMENT and notes["made_by"] == MADE_BY)
