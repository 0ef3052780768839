"""Each policy in the regime it is for, beside the two that count and no admission.

    python benchmarks/policies.py                      the tables, printed
    python benchmarks/policies.py --write              and put into docs/results
    python benchmarks/policies.py --only kv deadlines  some of the regimes
    python benchmarks/policies.py --tune [--only kv]   each grid's best, as in TUNED
    python benchmarks/policies.py --cost [--write]     what one decision costs

SIMULATED: engines in virtual time. Every regime is a benchmark of its own: capacity
measured without a policy, deadlines as multiples of the unloaded latency, six blocks
below capacity and six above it, each arm meeting the same traffic. Parameters are
those of a grid that did best on another seed than the one reported: what `--tune`
prints is what stands in `TUNED`. What was run before in `--root` is not run again; an
empty folder times all of it.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from machine import machine

from admitperf import Reading
from admitperf.bench.design.comparison import Compared, Verdicts, compare
from admitperf.bench.design.firing import fired
from admitperf.bench.design.results import Experiment as Found
from admitperf.bench.design.results import Run, read_experiment
from admitperf.bench.harness.config import parsed
from admitperf.bench.harness.experiment import Experiment
from admitperf.bench.harness.run import Done
from admitperf.core.notice import hushed
from admitperf.policies import available, load
from admitperf.reports.comparison.statistics import t_interval
from admitperf.reports.comparison.verdict import MARGIN
from admitperf.reports.pages.checks import OK

PAGE = Path(__file__).parent.parent / "docs" / "results" / "policies.md"
BELOW, ABOVE = 0.8, 1.5
SEED, TUNING_SEED = 7, 1
BLOCKS = 6
AT_ONCE = 45
"""Arms of one benchmark while grids are run; it takes 50."""

BACK = "impatient"
"""The second client: an agent's own loop, four tries two seconds apart or as told."""

SESSIONS = 200
TARGET_US = 20.0
"""A decision with so many live sessions, at the median. Origin: the step's contract."""

COUNTS = ("attempts", "refusals")
NONE = "no_admission"
AGAIN = "_tuned"
CAP, RATE = "in_flight_cap", "rate_limit"
COUNTING = (CAP, RATE)


class Family(NamedTuple):
    """A policy as an arm at its defaults, and as one with the best of a grid.

    Attributes:
        policy: its name.
        grid: values of each parameter that is tuned; empty = none is.
        given: what the tuned arm is told beside that, and the only arm without a grid.
        untuned: what the arm that is not tuned is told; None = there is no such arm.
        name: of the arm; None = the policy's.
    """

    policy: str
    grid: Mapping[str, Sequence[object]] = {}
    given: Mapping[str, object] = {}
    untuned: Mapping[str, object] | None = {}
    name: str | None = None

    @property
    def label(self) -> str:
        """The name of its first arm."""
        return self.name or self.policy

    def candidates(self) -> list[dict[str, object]]:
        """Every cell of the grid."""
        if not self.grid:
            return []
        cells = product(*self.grid.values())
        return [
            {**self.given, **dict(zip(self.grid, cell, strict=True))} for cell in cells
        ]

    def best(self, key: str) -> dict[str, object] | None:
        """What was chosen in a regime; None = nothing, or what the other arm has."""
        chosen = self.chosen(key)
        return None if chosen is None or self._is_other(chosen) else chosen

    def _is_other(self, chosen: Mapping[str, object]) -> bool:
        """Whether the arm that is not tuned has the same values."""
        if self.untuned is None or self.policy in COUNTING:
            return False
        with hushed():
            other = load(self.policy)(reports_outcomes=True, **self.untuned)
        return all(getattr(other, name) == value for name, value in chosen.items())

    def chosen(self, key: str) -> dict[str, object] | None:
        """What `--tune` chose in a regime; None = nothing was to choose."""
        like = REGIMES[key].like
        found = TUNED[like or key if self.label in SAME else key].get(self.label)
        return None if found is None else {**self.given, **found}


class Regime(NamedTuple):
    """What binds, and who is for it.

    Attributes:
        title: in a few words.
        why: what makes it one.
        config: of its benchmark, without arms.
        families: beside no admission and the two that count.
        back: whether it is shown with callers who come back, too.
        like: the regime with the very same traffic, by which the policies of both are
            tuned that read nothing else here; None = there is none.
        counted: the grids of the two that count.
    """

    title: str
    why: str
    config: Mapping[str, Any]
    families: Sequence[Family]
    back: bool = False
    like: str | None = None
    counted: tuple[Family, ...] = ()

    @property
    def all(self) -> tuple[Family, ...]:
        """The two that count first."""
        return (*(self.counted or (COUNTED, RATED)), *self.families)

    @property
    def own(self) -> tuple[Family, ...]:
        """Those that are tuned here."""
        shared = SAME if self.like else ()
        return tuple(one for one in self.all if one.grid and one.label not in shared)

    @property
    def metric(self) -> str:
        """What is compared."""
        return str(self.config.get("metric", "goodput"))


COUNTED = Family(
    CAP,
    {"max_in_flight": (4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48)},
    untuned={"max_in_flight": "fitted"},
)
SAME = (CAP, RATE, "queue_depth")
"""Policies to which deadlines and priorities are nothing."""
RATED = Family(
    RATE,
    {"share": (0.8, 0.9, 1.0), "burst": (2, 4, 8)},
    given={"per": "pool"},
    untuned={"rate_per_s": "fitted", "burst": "fitted", "per": "pool"},
)
"""`share` is of the measured capacity: the rate follows from it, seed by seed."""


def fewer(*caps: int) -> tuple[Family, ...]:
    """The two that count, with grids for regimes whose runs are long."""
    shares = {"share": (0.8, 0.9, 1.0), "burst": (8,)}
    return COUNTED._replace(grid={"max_in_flight": caps}), RATED._replace(grid=shares)


def small(**engine: object) -> dict[str, Any]:
    """The A100's profile with sizes that let a run take under a second."""
    return {
        "kind": "sim",
        "profile": "a100-40-qwen2.5-7b",
        "engine": {"max_num_seqs": 16} | engine,
    }


def both(
    first: str, second: str, one: Iterable[object], two: Iterable[object]
) -> list[str]:
    """Compositions of two policies, each with some values of a parameter."""
    return [f"{first}={a}; {second}={b}" for a in one for b in two]


CHAT = {"workload": {"name": "chat"}, "client": "none"}
KV_SIZES = {"input_tokens": [800, 1600], "output_tokens": [400, 1200]}
PREFILL_SIZES = {"input_tokens": [3000, 9000], "output_tokens": [20, 60]}
CLASS_SIZES = {"input_tokens": [100, 6000]}
QUEUE = Family("queue_depth", {"max_waiting": (0, 1, 2, 4, 8)})
QLM = Family("qlm_inspired", {"max_batch": (12, 14, 16, 18)})
SLOW = Family("qlm_inspired", given={"max_batch": 16, "solve_s": 5.0}, name="qlm_slow")
LATE = Family(
    "qlm_inspired",
    given={"max_batch": 16, "solve_s": 5.0, "max_plan_age_s": 2.0},
    name="qlm_too_old",
)
DOOR = Family("front_door", {"min_slack_s": (0.0, 0.1, 0.2, 0.4)})
SLACK = Family("deadline_slack", {"probe_s": (1.0, 3.0, 10.0)})
CHRONOS = Family(
    "chronos_inspired",
    {"rate": ("peak", "mean"), "window_s": (15.0, 60.0)},
)
"""At its defaults it has the step of another engine; its grid is over this one's."""
STEP = {"alpha_ms": 0.0976, "gamma_ms": 13.24, "chunk_tokens": 2048, "tbt_ms": 500.0}
"""Of the profile: what a step takes for a prompt's token and besides, its chunk, and
the least stall of an SLO, below which no such step fits."""

MEASURED_STEP = CHRONOS._replace(given=STEP)

REGIMES: dict[str, Regime] = {
    "queue": Regime(
        "A queue: slots bind",
        "Chat before an engine of 16 slots; the KV cache never fills.",
        {"target": small(), **CHAT},
        [
            QUEUE,
            Family("kv_threshold"),
            Family(
                "queue_age",
                {"target_s": (0.02, 0.05, 0.1, 0.2), "interval_s": (0.25, 0.5, 1.0)},
            ),
            Family("aimd", {"target_ms": (20.0, 50.0, 100.0, 200.0)}),
            Family("gradient", {"base_ms": (20.0, 50.0, 100.0, 200.0)}),
            Family("front_door", {"target_wait_s": (0.02, 0.05, 0.1, 0.3)}),
            QLM,
            Family(
                "first_of",
                {
                    "policies": both(
                        "queue_depth:max_waiting",
                        "in_flight_cap:max_in_flight",
                        (0, 2),
                        (12, 14, 16),
                    )
                },
                untuned=None,
            ),
        ],
        back=True,
    ),
    "kv": Regime(
        "Memory: the KV cache binds",
        "Long answers before an engine with slots to spare and 24,000 tokens of cache.",
        {
            "target": small(max_num_seqs=64, kv_blocks=1500),
            "workload": {"name": "chat", "parameters": KV_SIZES},
            "client": "none",
        },
        [
            Family("kv_threshold", {"threshold": (0.8, 0.85, 0.9, 0.95)}),
            Family(
                "dual_gate", {"threshold": (0.7, 0.8, 0.9), "match": ("all", "any")}
            ),
            Family(
                "kv_headroom",
                {
                    "high_water": (0.9, 1.0),
                    "quantile": (0.5, 0.8),
                    "to_come": (0.3, 0.5),
                },
            ),
            Family(
                "fluid_wait_inspired",
                {"buffer": (0.0, 0.05, 0.1), "thresholds": ("largest", "least")},
            ),
            Family("front_door", {"max_projected_kv": (0.8, 0.9, 1.0)}),
            Family(
                "any_of",
                {
                    "policies": both(
                        "kv_threshold:threshold",
                        "queue_depth:max_waiting",
                        (0.8, 0.9),
                        (0, 4),
                    )
                },
                untuned={"policies": "kv_threshold; queue_depth"},
            ),
        ],
        back=True,
    ),
    "prefill": Regime(
        "Prefill binds",
        "Prompts of thousands of tokens and short answers.",
        {
            "target": small(max_num_seqs=64),
            "workload": {"name": "chat", "parameters": PREFILL_SIZES},
            "client": "none",
        },
        [
            QUEUE,
            Family("prefill_backlog", {"target_s": (1.0, 2.0, 3.0, 4.0, 6.0)}),
            MEASURED_STEP,
        ],
        back=True,
    ),
    "deadlines": Regime(
        "Callers say their deadlines",
        "Chat before 16 slots; every request carries the deadline of its first token.",
        {"target": small(), **CHAT, "deadlines": True},
        [QUEUE, SLACK, DOOR, QLM, MEASURED_STEP],
        back=True,
        like="queue",
    ),
    "classes": Regime(
        "Deadlines of several classes, and callers who come back",
        "Prompts of 100 to 6,000 tokens before 16 slots, the deadline of a first token"
        " by the size of the prompt; who is sent off comes back when told to. So an"
        " order of groups can act: by how long each is told to wait.",
        {
            "target": small(),
            "workload": {"name": "chat", "parameters": CLASS_SIZES},
            "client": "patient",
            "deadlines": True,
        },
        [Family("deadline_slack"), QLM, SLOW, LATE],
        counted=fewer(8, 12, 16, 20),
    ),
    "sessions": Regime(
        "Whole sessions of agents, memory binds",
        "Agents with quick tools, whose contexts stay in a cache of 32,000 tokens.",
        {
            "target": small(max_num_seqs=64, kv_blocks=2000),
            "workload": {"name": "tool-tight"},
            "client": "patient",
            "metric": "session_goodput",
            "lasts_s": 800,
        },
        [
            Family("kv_threshold", {"threshold": (0.8, 0.9)}),
            Family("concur_inspired", {"start": (8, 16), "h_thresh": (0.2, 0.7)}),
            Family("thunder_inspired", {"watermark": (0.7, 1.0, 1.3)}),
        ],
        counted=fewer(4, 8, 12),
    ),
    "tenants": Regime(
        "Tenants of very different size",
        "Clients of one service, a few of them large and bursty.",
        {"target": small(), "workload": {"name": "tenants"}, "client": "patient"},
        [
            QUEUE,
            Family(
                "first_of",
                {
                    "policies": [
                        f"tenant_share; in_flight_cap:max_in_flight={cap}"
                        for cap in (12, 16, 20)
                    ]
                },
                untuned=None,
                name="share_then_cap",
            ),
            Family("tenant_share"),
            Family(
                "rate_limit",
                {"rate_per_s": (0.5, 1.0, 2.0), "burst": (4, 8)},
                name="rate_per_tenant",
            ),
            Family(
                "rate_limit",
                {"rate_per_s": (500.0, 1000.0, 2000.0), "burst": (8000,)},
                given={"cost": "tokens"},
                untuned=None,
                name="tokens_per_tenant",
            ),
        ],
        counted=fewer(8, 12, 16, 20),
    ),
    "priorities": Regime(
        "Two priorities",
        "Chat before 16 slots; half of the requests matter more.",
        {
            "target": small(),
            "workload": {"name": "chat", "parameters": {"priorities": [0, 10]}},
            "client": "none",
        },
        [
            QUEUE,
            Family(
                "priority_shed",
                {"max_waiting": (1.0, 2.0, 4.0, 8.0), "fall_s": (1.0, 5.0)},
                given={"levels": "0,10"},
                untuned={},
            ),
        ],
        back=True,
        like="queue",
    ),
}

TUNED: dict[str, dict[str, dict[str, object]]] = {key: {} for key in REGIMES}
TUNED["queue"] = {
    "in_flight_cap": {"max_in_flight": 16},
    "rate_limit": {"share": 0.9, "burst": 8},
    "queue_depth": {"max_waiting": 0},
    "queue_age": {"target_s": 0.02, "interval_s": 0.5},
    "aimd": {"target_ms": 20.0},
    "gradient": {"base_ms": 20.0},
    "front_door": {"target_wait_s": 0.02},
    "qlm_inspired": {"max_batch": 14},
    "first_of": {
        "policies": "queue_depth:max_waiting=0; in_flight_cap:max_in_flight=16"
    },
}
TUNED["kv"] = {
    "in_flight_cap": {"max_in_flight": 14},
    "rate_limit": {"share": 1.0, "burst": 2},
    "kv_threshold": {"threshold": 0.85},
    "dual_gate": {"threshold": 0.9, "match": "any"},
    "kv_headroom": {"high_water": 1.0, "quantile": 0.5, "to_come": 0.3},
    "fluid_wait_inspired": {"buffer": 0.0, "thresholds": "largest"},
    "front_door": {"max_projected_kv": 0.9},
    "any_of": {"policies": "kv_threshold:threshold=0.8; queue_depth:max_waiting=0"},
}
TUNED["priorities"] = {
    "priority_shed": {"max_waiting": 1.0, "fall_s": 1.0},
}
TUNED["deadlines"] = {
    "deadline_slack": {"probe_s": 1.0},
    "front_door": {"min_slack_s": 0.2},
    "qlm_inspired": {"max_batch": 14},
    "chronos_inspired": {"rate": "peak", "window_s": 60.0},
}
TUNED["prefill"] = {
    "in_flight_cap": {"max_in_flight": 16},
    "rate_limit": {"share": 0.9, "burst": 8},
    "queue_depth": {"max_waiting": 2},
    "prefill_backlog": {"target_s": 4.0},
    "chronos_inspired": {"rate": "mean", "window_s": 60.0},
}
TUNED["classes"] = {
    "in_flight_cap": {"max_in_flight": 16},
    "rate_limit": {"share": 0.9, "burst": 8},
    "qlm_inspired": {"max_batch": 16},
}
TUNED["tenants"] = {
    "in_flight_cap": {"max_in_flight": 16},
    "rate_limit": {"share": 0.9, "burst": 8},
    "queue_depth": {"max_waiting": 2},
    "share_then_cap": {"policies": "tenant_share; in_flight_cap:max_in_flight=20"},
    "rate_per_tenant": {"rate_per_s": 2.0, "burst": 4},
    "tokens_per_tenant": {"rate_per_s": 1000.0, "burst": 8000},
}
TUNED["sessions"] = {
    "in_flight_cap": {"max_in_flight": 4},
    "rate_limit": {"share": 1.0, "burst": 8},
    "kv_threshold": {"threshold": 0.8},
    "concur_inspired": {"start": 8, "h_thresh": 0.7},
    "thunder_inspired": {"watermark": 1.0},
}


class Told:
    """A line on stderr now and then."""

    def stage(self, what: str) -> None:
        """Something begins."""
        print(what, file=sys.stderr)

    def ran(self, done: Done, n: int, of: int, left_s: float) -> None:
        """A run is over."""
        if n % 50 == 0 or n == of:
            print(f"{done.job.place} {n}/{of}, {left_s:.0f} s left", file=sys.stderr)


class Unread(Experiment):
    """One whose logs are not read: a grid goes by summaries alone."""

    def _judge(self) -> None:
        self.found = read_experiment(self._config.folder, logs=False)


class Asked(NamedTuple):
    """Which runs: where they are kept, of which seed, and how many blocks."""

    root: Path
    seed: int
    blocks: int


# ------------------------------------------------------------------------- the runs


def ran(
    name: str,
    config: Mapping[str, Any],
    arms: Sequence[Mapping[str, Any]],
    asked: Asked,
    kind: type[Experiment] = Experiment,
) -> Found:
    """A benchmark's runs, with their logs unless its kind leaves them."""
    document = {
        "experiment": f"policies-{name}-{asked.seed}",
        "root": str(asked.root),
        "loads": [BELOW, ABOVE],
        "blocks": asked.blocks,
        "calls": 300,
        "seed": asked.seed,
        **config,
    }
    bare = parsed({**document, "arms": [{"policy": NONE}, {"policy": CAP}]}, name)
    with Experiment(bare, Told()) as first:
        per_s = first.planned().setup.calibration.capacity.calls_per_s
    shared = [{**one, "parameters": rated(one["parameters"], per_s)} for one in arms]
    made = parsed({**document, "arms": [{"policy": NONE}, *shared]}, name)
    with kind(made, Told()) as experiment:
        experiment.run(experiment.planned())
        if experiment.found is None:
            raise SystemExit(f"{name}: was ended early")
        return experiment.found


def rated(parameters: Mapping[str, object], per_s: float) -> dict[str, object]:
    """With a rate in place of a share of the capacity."""
    told = dict(parameters)
    share = told.pop("share", None)
    if share is not None:
        told["rate_per_s"] = round(float(str(share)) * per_s, 3)
    return told


def arm(family: Family, name: str, parameters: Mapping[str, object]) -> dict[str, Any]:
    """One arm of a benchmark's file."""
    return {"policy": family.policy, "name": name, "parameters": dict(parameters)}


def arms(key: str) -> Iterator[dict[str, Any]]:
    """Of a regime: each family at its defaults, then tuned where that differs."""
    for family in REGIMES[key].all:
        best = family.best(key)
        if family.untuned is not None:
            told = family.untuned if family.grid else family.given
            yield arm(family, family.label, told)
        if best is not None:
            yield arm(family, family.label + AGAIN, best)


def arms_back(key: str) -> Iterator[dict[str, Any]]:
    """The tuned arms alone, and those that nothing was to tune of."""
    for one in arms(key):
        if f"{one['name']}{AGAIN}" not in {other["name"] for other in arms(key)}:
            yield one


# ------------------------------------------------------------------------- the tuning


def tuned(key: str, asked: Asked) -> dict[str, dict[str, object]]:
    """The best of each grid: most above capacity, without loss below it."""
    cells = [
        (family, number, cell)
        for family in REGIMES[key].own
        for number, cell in enumerate(family.candidates())
    ]
    scores: dict[str, list[tuple[bool, float, dict[str, object]]]] = {}
    for begin in range(0, len(cells), AT_ONCE):
        many = cells[begin : begin + AT_ONCE]
        told = [arm(one, f"{one.label}-{n}", cell) for one, n, cell in many]
        found = ran(f"{key}-tune{begin}", REGIMES[key].config, told, asked, Unread)
        for one, n, cell in many:
            score = scored(found.runs, f"{one.label}-{n}", REGIMES[key].metric)
            scores.setdefault(one.label, []).append((*score, cell))
    given = {family.label: family.given for family in REGIMES[key].all}
    return {
        label: {n: v for n, v in best(many).items() if n not in given[label]}
        for label, many in scores.items()
    }


def best(
    scores: Sequence[tuple[bool, float, dict[str, object]]],
) -> dict[str, object]:
    """Of equals the first of the grid."""
    return max(scores, key=lambda one: one[:2])[2]


def scored(runs: Sequence[Run], name: str, metric: str) -> tuple[bool, float]:
    """Whether it loses at most the margin below capacity, and what counts then.

    Who loses more is ranked by how little, behind all that lose less.
    """
    lost = statistics.fmean(pairs(runs, name, NONE, metric, BELOW))
    if lost < -MARGIN:
        return False, round(lost, 6)
    return True, round(statistics.fmean(values(runs, name, ABOVE, metric).values()), 6)


def tuning(keys: Sequence[str], asked: Asked) -> str:
    """What `TUNED` is to hold, as lines of this script."""
    lines = []
    for key in keys:
        lines.append(f"TUNED[{json.dumps(key)}] = {{")
        for label, cell in tuned(key, asked).items():
            told = ", ".join(f"{json.dumps(n)}: {v!r}" for n, v in cell.items())
            lines.append(f"    {json.dumps(label)}: {{{told}}},".replace("'", '"'))
        lines.append("}")
    return "\n".join(lines)


# ------------------------------------------------------------------------ the numbers


def values(runs: Sequence[Run], arm_: str, load_: float, name: str) -> dict[int, float]:
    """A number of an arm's summaries, by block; what a run withheld is left out."""
    return {
        run.block: run.summary[name]
        for run in runs
        if run.arm == arm_ and run.load == load_ and run.summary.get(name) is not None
    }


def pairs(
    runs: Sequence[Run], one: str, other: str, name: str, load_: float
) -> list[float]:
    """One arm's less the other's, block by block."""
    mine, theirs = (values(runs, arm_, load_, name) for arm_ in (one, other))
    return [mine[block] - theirs[block] for block in mine if block in theirs]


def against(
    runs: Sequence[Run], one: str, other: str, name: str, load_: float = ABOVE
) -> str:
    """The mean paired difference with its 95 % interval."""
    found = pairs(runs, one, other, name, load_)
    if one == other or len(found) < 2:
        return ""
    interval = t_interval(found)
    mark = "" if interval.excludes_zero else " ~"
    told = f"{statistics.fmean(found):+.3f}"
    return f"{told} ({interval.low:+.3f} to {interval.high:+.3f}){mark}"


def mean(found: Mapping[int, float]) -> str:
    """Over the blocks."""
    return f"{statistics.fmean(found.values()):.3f}" if found else "-"


def liveness(runs: Sequence[Run], arm_: str) -> str:
    """What the logs above capacity say, and how many of them."""
    words = [run.finding or "?" for run in runs if (run.arm, run.load) == (arm_, ABOVE)]
    return ", ".join(f"{w} {words.count(w)}/{len(words)}" for w in dict.fromkeys(words))


def refused(runs: Sequence[Run], arm_: str, load_: float) -> str:
    """Of all attempts, those that the policy refused."""
    mine = [run for run in runs if (run.arm, run.load) == (arm_, load_)]
    asked, no = (sum(run.summary[name] for run in mine) for name in COUNTS)
    return f"{no / asked:.1%}" if asked else "-"


def tail(runs: Sequence[Run], arm_: str, who: str) -> str:
    """The p95 of a time to first token above capacity, the middle block."""
    mine = [run for run in runs if (run.arm, run.load) == (arm_, ABOVE)]
    found = [run.summary[f"ttft_{who}_ms"]["p95"] for run in mine]
    known = sorted(float("inf") if one is None else one for one in found)
    if not known:
        return "-"
    middle = statistics.median_high(known)
    return "never" if middle == float("inf") else f"{middle / 1e3:.2f} s"


def shown(arm_: str) -> str:
    """An arm's name as tables have it."""
    return f"`{arm_.removesuffix(AGAIN)}`{' tuned' if arm_.endswith(AGAIN) else ''}"


def table(head: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table whose first column is words."""
    yield f"| {head} |"
    yield "|---" * (head.count(" | ") + 1) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def names(runs: Sequence[Run], order: Iterable[Mapping[str, Any]]) -> list[str]:
    """The arms that ran, no admission first."""
    there = {run.arm for run in runs}
    return [NONE, *(one["name"] for one in order if one["name"] in there)]


# ------------------------------------------------------------------------- the tables


def did(runs: Sequence[Run], order: Sequence[str], name: str) -> Iterator[str]:
    """What each arm did."""
    head = (
        f"arm | {name} 0.8x | 1.5x | refused 0.8x | refused 1.5x"
        " | TTFT p95 of those served, 1.5x | TTFT p95 of those offered, 1.5x"
        " | logs at 1.5x"
    )
    yield from table(
        head,
        (
            [
                shown(arm_),
                *(mean(values(runs, arm_, load_, name)) for load_ in (BELOW, ABOVE)),
                *(refused(runs, arm_, load_) for load_ in (BELOW, ABOVE)),
                *(tail(runs, arm_, who) for who in ("served", "offered")),
                liveness(runs, arm_),
            ]
            for arm_ in order
        ),
    )


def differed(
    verdicts: Verdicts, runs: Sequence[Run], order: Sequence[str], name: str
) -> Iterator[str]:
    """Each arm against no admission and the tuned counters, and what is claimed."""
    head = (
        "arm | against none, 0.8x | against none, 1.5x | against the tuned cap, 1.5x"
        " | against the tuned rate, 1.5x | against none, in words"
    )
    words = {one.arm: said(one) for one in verdicts.arms}
    yield from table(
        head,
        (
            [
                shown(arm_),
                against(runs, arm_, NONE, name, BELOW),
                *(against(runs, arm_, other, name) for other in (NONE, *TUNED_COUNTS)),
                words.get(arm_, ""),
            ]
            for arm_ in order[1:]
        ),
    )


TUNED_COUNTS = (CAP + AGAIN, RATE + AGAIN)


def said(one: Compared) -> str:
    """The headline of `bench compare`; of a void arm, that it is void."""
    return f"VOID: {one.headline}" if one.verdict == "void" else one.headline


def voids(verdicts: Verdicts, found: Found) -> Iterator[str]:
    """Why an arm may claim nothing."""
    sentences = [(row.arm, row.said) for row in fired(found) if row.answer != OK]
    for check in verdicts.checks:
        for arm_ in check.voids:
            own = [
                text for who, text in sentences if who == arm_ and "fired" in check.name
            ]
            own += [text for text in check.says if text.startswith(f"{arm_} ")]
            why = (own or check.says)[0]
            yield f'- {shown(arm_)} is void, by "{check.name}": {why}'


def given(key: str, runs: Sequence[Run], order: Sequence[str]) -> Iterator[str]:
    """What each arm was given."""
    kept = {one.label for one in REGIMES[key].all if one.grid and not one.best(key)}
    first = {run.arm: run.manifest.get("parameters") or {} for run in reversed(runs)}
    for arm_ in order:
        told = ", ".join(f"`{name}={value}`" for name, value in first[arm_].items())
        if arm_ != NONE:
            more = ", the best of its grid" if arm_ in kept else ""
            yield f"- {shown(arm_)}: {told or 'its defaults'}{more}"


def section(key: str, asked: Asked, harmed: list[str]) -> list[str]:
    """A regime, told."""
    regime, order = REGIMES[key], list(arms(key))
    found = ran(key, regime.config, order, asked)
    verdicts, runs, told = compare(found), found.runs, names(found.runs, order)
    harmed += (
        f'{shown(one.arm)} in "{regime.title}":'
        f" {'shown' if one.no_harm.falls else 'not ruled out'},"
        f" {against(runs, one.arm, NONE, regime.metric, BELOW)}"
        for one in verdicts.arms
        if one.no_harm is not None and not one.no_harm.not_worse
    )
    lines = [f"## {regime.title}", "", regime.why, ""]
    lines += ["What it did:", "", *did(runs, told, regime.metric)]
    lines += ["Against others:", "", *differed(verdicts, runs, told, regime.metric)]
    if void := list(voids(verdicts, found)):
        lines += [*void, ""]
    for more in MORE.get(key, ()):
        lines += more(runs)
    if regime.back:
        lines += come_back(key, asked)
    return [*lines, "What each was given:", "", *given(key, runs, told), ""]


def come_back(key: str, asked: Asked) -> Iterator[str]:
    """The tuned arms once more, before callers who come back."""
    regime, order = REGIMES[key], list(arms_back(key))
    config = {**regime.config, "client": BACK}
    runs = ran(f"{key}-{BACK}", config, order, asked).runs
    yield f"The same with the client `{BACK}`, who comes back; not tuned again:"
    yield ""
    yield from table(
        f"arm | {regime.metric} 0.8x | 1.5x | against none, 0.8x | against none, 1.5x"
        " | against the tuned cap, 1.5x | refused 1.5x",
        (
            [
                shown(arm_),
                *(mean(values(runs, arm_, at, regime.metric)) for at in (BELOW, ABOVE)),
                against(runs, arm_, NONE, regime.metric, BELOW),
                against(runs, arm_, NONE, regime.metric),
                against(runs, arm_, CAP + AGAIN, regime.metric),
                refused(runs, arm_, ABOVE),
            ]
            for arm_ in names(runs, order)
        ),
    )


# --------------------------------------------------------- what a goodput does not say


def decisions(runs: Sequence[Run], arm_: str) -> Iterator[dict[str, Any]]:
    """The decision lines of an arm above capacity."""
    for run in (one for one in runs if (one.arm, one.load) == (arm_, ABOVE)):
        with (run.folder / "decisions.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                told = json.loads(line)
                if told.get("k") == "decision":
                    yield told


def of_family(runs: Sequence[Run], *policies: str) -> list[str]:
    """The arms of some policies, each once."""
    mine = [run.arm for run in runs if run.manifest.get("policy") in policies]
    return list(dict.fromkeys(mine))


def by_priority(runs: Sequence[Run]) -> Iterator[str]:
    """How often each priority was refused."""
    rows = []
    for arm_ in dict.fromkeys(run.arm for run in runs):
        counts: dict[int, list[int]] = {}
        for line in decisions(runs, arm_):
            count = counts.setdefault(line.get("facts", {}).get("priority", 0), [0, 0])
            count[0] += line["verdict"] != "admit"
            count[1] += 1
        told = [f"{no / of:.1%} of {of}" for _, (no, of) in sorted(counts.items())]
        rows.append([shown(arm_), *told])
    yield from table("arm | priority 0 refused, 1.5x | priority 10 refused, 1.5x", rows)


def by_jain(runs: Sequence[Run]) -> Iterator[str]:
    """How evenly goodput falls to tenants."""
    yield from table(
        "arm | Jain's index of tenants' goodputs, 1.5x | against the tuned cap",
        (
            [
                shown(arm_),
                mean(values(runs, arm_, ABOVE, "jain")),
                against(runs, arm_, CAP + AGAIN, "jain"),
            ]
            for arm_ in dict.fromkeys(run.arm for run in runs)
        ),
    )


def plan_ages(runs: Sequence[Run]) -> Iterator[str]:
    """How old the plans were that decisions went by, and what those decisions took."""
    rows = []
    for arm_ in of_family(runs, "qlm_inspired"):
        gates = gates_of(runs, arm_, "plan_age_s")
        ages = [value for value, _, _ in gates]
        late = sum(held for _, _, held in gates)
        if ages:
            rows.append(
                [
                    shown(arm_),
                    f"{statistics.median(ages):.2f} s",
                    f"{max(ages):.2f} s",
                    f"{late / len(ages):.1%} of {len(ages)}",
                    *(wall_us(runs, arm_, of) for of in ("p50", "p99")),
                ]
            )
    yield "How old the order of groups was, and what a decision took of this machine's"
    yield "time, its record included, middle run at 1.5x:"
    yield ""
    yield from table(
        "arm | plan age p50 | max | decisions past its bound | decision p50 | p99", rows
    )


def wall_us(runs: Sequence[Run], arm_: str, of: str) -> str:
    """What the harness timed of a policy's calls, in wall time."""
    mine = [run for run in runs if (run.arm, run.load) == (arm_, ABOVE)]
    found = [run.summary["decide_us"][of] for run in mine]
    return f"{statistics.median(found):.0f} us"


Gate = tuple[float, float, bool]


def gates_of(runs: Sequence[Run], arm_: str, name: str) -> list[Gate]:
    """(value, bound, whether it held) of a gate wherever it was asked."""
    return [
        (value, bound, held)
        for line in decisions(runs, arm_)
        for gate, value, _, bound, held in line["gates"]
        if gate == name
    ]


def held_share(gates: Sequence[Gate], of: int) -> str:
    """Of all decisions, those in which a gate held; "never asked" is not 0."""
    return f"{sum(held for _, _, held in gates) / of:.1%}" if gates else "not asked"


def concur_gates(runs: Sequence[Run]) -> Iterator[str]:
    """How often CONCUR's two signals held, and both, and where its window went."""
    rows = []
    for arm_ in of_family(runs, "concur_inspired"):
        of = sum(1 for _ in decisions(runs, arm_))
        asked = ("kv_pressure", "prefix_hit_rate", "thrash", "active_sessions")
        found = {name: gates_of(runs, arm_, name) for name in asked}
        window = [bound for _, bound, _ in found["active_sessions"]] or [0.0]
        shares = [held_share(found[name], of) for name in asked]
        rows.append([shown(arm_), *shares, f"{min(window):g} to {max(window):g}"])
    yield "Of the decisions at 1.5x, those in which each gate of CONCUR's held:"
    yield ""
    yield from table(
        "arm | KV over `u_high` | hit rate under `h_thresh` | both (`thrash`)"
        " | sessions fill the window | the window",
        rows,
    )


def fluid_gates(runs: Sequence[Run]) -> Iterator[str]:
    """How often the gates of the fluid model held."""
    rows = []
    for arm_ in of_family(runs, "fluid_wait_inspired"):
        of = sum(1 for _ in decisions(runs, arm_))
        asked = ("fluid_demand", "class_in_flight", "projected_kv")
        shares = [held_share(gates_of(runs, arm_, name), of) for name in asked]
        rows.append([shown(arm_), *shares])
    yield "Of the decisions at 1.5x, those in which each gate of the fluid model held"
    yield "(demand refuses nobody by itself; a class's number and memory do):"
    yield ""
    yield from table(
        "arm | demand over 1 (`fluid_demand`) | its class is full (`class_in_flight`)"
        " | memory is (`projected_kv`)",
        rows,
    )


MORE: dict[str, Sequence[Callable[[Sequence[Run]], Iterator[str]]]] = {
    "kv": [fluid_gates],
    "deadlines": [plan_ages],
    "classes": [plan_ages],
    "sessions": [concur_gates],
    "tenants": [by_jain],
    "priorities": [by_priority],
}


# ------------------------------------------------------------------------------ cost

COSTED: dict[str, dict[str, Any]] = {
    "first_of": {"policies": "tenant_share; kv_threshold"},
    "all_of": {"policies": "tenant_share; kv_threshold"},
    "any_of": {"policies": "kv_threshold; queue_depth"},
}
QUIET = {
    "kv_pressure": 0.4,
    "kv_capacity_tokens": 4e6,
    "queue_depth": 0.0,
    "running": 40.0,
    "prefix_hit_rate": 0.6,
    "pool_load": 0.4,
}


def _same(one: object) -> object:
    return one


HANDED: dict[str, Callable[[], Callable[[], object]]] = {
    "one Reading": lambda: partial(_same, Reading(QUIET)),
    "one mapping": lambda: partial(_same, QUIET),
    "a new Reading": lambda: partial(Reading, QUIET),
}
"""How a host hands over what it read: once an interval, as the gateway does; as a dict
that is compared with the last one; or anew for each request."""

REPEATS = 3
ROUNDS = 2000
COST_SAID = f"""p50 of one call of a policy, without a log, with {SESSIONS} live
sessions of 20 tenants: the median of {REPEATS} repeats, and their least and most.
A gateway hands the same `Reading` to every request until the next look; the target is
{TARGET_US:g} us there.
A mapping is compared with the last one at every call; a new `Reading` has to be read
and observed first."""


def cost_us(name: str, handed: Callable[[], object]) -> float:
    """p50 of one call with `SESSIONS` live sessions, in microseconds."""
    policy = load(name)(reports_outcomes=True, **COSTED.get(name, {}))
    facts = {"input_tokens": 900, "max_output_tokens": 500, "deadline_s": 60.0}
    for number in range(SESSIONS):
        who = {"session": f"s{number}", "tenant": f"t{number % 20}"}
        d = policy(handed(), **who, **facts)
        if number % 2:
            policy.outcome(d.request_id, output_tokens=100, ttft_ms=80, e2e_ms=900)
    took = []
    for number in range(ROUNDS):
        who = {"session": f"s{number % SESSIONS}", "tenant": f"t{number % 20}"}
        raw = handed()
        begun = time.perf_counter_ns()
        d = policy(raw, **who, **facts)
        took.append(time.perf_counter_ns() - begun)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id, output_tokens=100, ttft_ms=80, e2e_ms=900)
    return statistics.median(took) / 1e3


def costs() -> list[str]:
    """One row a policy, the repeats of all policies one after the other."""
    mine = [n for n in available() if load(n).__module__.startswith("admitperf.")]
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(REPEATS):
        for name, (how, made) in product(mine, HANDED.items()):
            with hushed():
                took = cost_us(name, made())
            found.setdefault((name, how), []).append(took)
    return [
        "## What a decision costs",
        "",
        COST_SAID,
        "",
        *table(
            f"policy | {' | '.join(HANDED)} | target",
            (
                [
                    f"`{name}`",
                    *(spread(found[name, how]) for how in HANDED),
                    met(found[name, "one Reading"]),
                ]
                for name in mine
            ),
        ),
    ]


def spread(found: Sequence[float]) -> str:
    """The median, the least and the most."""
    middle = statistics.median(found)
    return f"{middle:.1f} us ({min(found):.1f} to {max(found):.1f})"


def met(found: Sequence[float]) -> str:
    """Whether the median is within the target."""
    return "met" if statistics.median(found) <= TARGET_US else "MISSED"


# ------------------------------------------------------------------------------ page

HEAD = f"""# Policies in their regimes

**SIMULATED**: engines in virtual time; no number of a request here was measured on
hardware.

Each policy stands in the regime it is for, beside no admission and the two that count:
a fixed cap on requests in flight, and a rate.
It is no leaderboard: the regimes were chosen so that what a policy reads is what binds,
and it says nothing of a regime that is not the policy's own.

**How they were tuned.** Each policy stands here at its defaults, and `tuned` where
it has something to tune: with the best of a small grid, which `benchmarks/policies.py`
holds and `--tune` runs, by one rule for all, the cap and the rate included.
The rule: the highest mean at 1.5x of those whose mean loss against no admission at
0.8x is at most {MARGIN:g}; if none is, the least loss.
Grids ran on seed {TUNING_SEED}; what is shown is seed {SEED}, {BLOCKS} blocks each.
Of the two that count the first arm is what `fitted` gives, which in some regimes is a
cap or a burst too large to do anything; differences are against the tuned ones.
Grids are of different sizes: the cap has {len(COUNTED.candidates())} cells, the rate
{len(RATED.candidates())}, or a few where callers come back and runs are long; most
policies 3 to 8, and a larger grid finds a little more.
Where deadlines or priorities are all that differs from the queue's regime, the cap, the
rate and `queue_depth` have what the queue's grids gave.

**Who comes back.** At first a refused request does not come back, so that a policy is
judged by whom it lets in and not by its callers' patience; a second table shows the
tuned arms before the client `{BACK}`, who does.
Agents, who lose their session otherwise, tenants, whose shares are between those who
wait, and the regime of several classes have the client `patient` alone.

**How to read it.** Differences are paired by block, with a 95 % interval; `~` marks
one that holds 0.
The last column is the headline of `admitperf bench compare`: a gain above capacity and
no harm below it are two claims, and the margin is {MARGIN:g}.
A tail of `never` is that of calls of which over 5 % were not served.
Every single difference is exploratory: nothing is adjusted for their number.

Made by `python benchmarks/policies.py --write`.
"""
FOOT = """## Cannot see

- One profile of one engine, and mostly made-up traffic: which policy is better before
  your engine, `admitperf bench` says.
- Grids are small, and each was tuned for its regime and its client `none`: an arm that
  wins here with a value may lose with it elsewhere, and a default is for more than one
  engine.
- The cap and the rate are tuned to one traffic too. When sizes of requests drift they
  have to be tuned again, which no regime here shows.
- Nothing was held. The order in which `qlm_inspired` ranks requests, and priorities,
  act in full where a host holds requests; here an order acts only by how long each
  caller is told to wait, and with the client `none` not at all.
- Decision times in the tables of plan ages are of runs side by side on all cores.
"""


def harms(harmed: Sequence[str]) -> list[str]:
    """Who costs goodput below capacity, before anything else is read."""
    listed = [f"- {one}" for one in harmed] or ["- None."]
    told = (
        "Arms whose loss at 0.8x against no admission is over the margin (shown), or of"
        " which that is not ruled out, with the difference:"
    )
    return ["## Harm below capacity", "", told, "", *listed, ""]


def page(asked: Asked, keys: Sequence[str], *, whole: bool) -> str:
    """All of it."""
    harmed: list[str] = []
    regimes = [line for key in keys for line in section(key, asked, harmed)]
    lines = [HEAD, *harms(harmed), *regimes]
    if whole:
        where = ", ".join(f"{name} {value}" for name, value in machine().items())
        lines += [*costs(), f"{where}; seed {asked.seed}.", "", FOOT]
    return "\n".join(lines)


def costs_renewed(page_: str, told: str) -> str:
    """The page with these costs in place of its own, all else as it was."""
    head, own, rest = page_.partition("## What a decision costs\n")
    rows, cpu, foot = rest.partition("\ncpu ")
    if not (own and rows and cpu):
        raise SystemExit(f"{PAGE}: has no costs to renew")
    return f"{head}{told.rstrip()}\n{cpu}{foot}"


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", choices=list(REGIMES), default=None)
    parser.add_argument("--root", type=Path, default=Path("experiments"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--cost", action="store_true", help="only the cost table")
    parser.add_argument(
        "--tune", action="store_true", help="only the best of the grids"
    )
    parser.add_argument("--write", action="store_true")
    given_ = parser.parse_args()
    seed = given_.seed or (TUNING_SEED if given_.tune else SEED)
    asked = Asked(given_.root, seed, given_.blocks)
    keys = given_.only or list(REGIMES)
    if given_.tune:
        print(tuning(keys, asked))
        return
    text = (
        "\n".join(costs()) if given_.cost else page(asked, keys, whole=not given_.only)
    )
    print(text)
    if given_.write and given_.cost:
        text = costs_renewed(PAGE.read_text(encoding="utf-8"), text)
    if given_.write and not given_.only:
        PAGE.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
