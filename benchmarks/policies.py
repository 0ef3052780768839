"""Each policy in the regime it is for, beside the two that count and no admission.

    python benchmarks/policies.py                      the tables, printed
    python benchmarks/policies.py --write              and put into docs/results
    python benchmarks/policies.py --only kv deadlines  some of the regimes
    python benchmarks/policies.py --cost               what one decision costs

SIMULATED: engines in virtual time. Every regime is a benchmark of its own: capacity
measured without a policy, deadlines as multiples of the unloaded latency, six blocks
below capacity and six above it, each arm meeting the same traffic. Parameters were
chosen on other seeds than those reported. What was run before in `--root` is not run
again; an empty folder times all of it.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from machine import machine

from admitperf.bench.design.comparison import Verdicts, compare
from admitperf.bench.design.results import Run, read_experiment
from admitperf.bench.harness.config import parsed
from admitperf.bench.harness.experiment import Experiment
from admitperf.bench.harness.run import Done
from admitperf.policies import load
from admitperf.reports.comparison.statistics import t_interval

PAGE = Path(__file__).parent.parent / "docs" / "results" / "policies.md"
BELOW, ABOVE = 0.8, 1.5
SEED = 7
"""Of what is reported; parameters were chosen with seed 1."""

SESSIONS = 200
TARGET_US = 20.0
"""A decision with so many live sessions, at the median. Origin: the step's contract."""

COUNTS = ("attempts", "refusals")
COUNTING = ("in_flight_cap", "rate_limit")
CAP = {"policy": "in_flight_cap", "parameters": {"max_in_flight": "fitted"}}
RATE = {
    "policy": "rate_limit",
    "parameters": {"rate_per_s": "fitted", "burst": "fitted", "per": "pool"},
}


class Regime(NamedTuple):
    """What binds, and who is for it.

    Attributes:
        title: in a few words.
        why: what makes it one.
        config: of its benchmark, without arms.
        arms: beside no admission and the two that count.
    """

    title: str
    why: str
    config: Mapping[str, Any]
    arms: Sequence[Mapping[str, Any]]


def arm(policy: str, name: str | None = None, **parameters: object) -> dict[str, Any]:
    """One arm of a benchmark's file."""
    told: dict[str, Any] = {"policy": policy, "parameters": parameters}
    return told | ({"name": name} if name else {})


def small(**engine: object) -> dict[str, Any]:
    """The A100's profile with sizes that let a run take under a second."""
    return {
        "kind": "sim",
        "profile": "a100-40-qwen2.5-7b",
        "engine": {"max_num_seqs": 16} | engine,
    }


CHAT = {"workload": {"name": "chat"}, "client": "none"}
KV_SIZES = {"input_tokens": [800, 1600], "output_tokens": [400, 1200]}
PREFILL_SIZES = {"input_tokens": [3000, 9000], "output_tokens": [20, 60]}

REGIMES: dict[str, Regime] = {
    "queue": Regime(
        "A queue: slots bind",
        "Chat before an engine of 16 slots; the KV cache never fills.",
        {"target": small(), **CHAT},
        [
            arm("queue_depth", max_waiting="fitted"),
            arm("kv_threshold"),
            arm("queue_age", target_s=0.05, interval_s=0.5),
            arm("aimd", target_ms=50.0),
            arm("gradient", base_ms=50.0),
            arm("front_door", target_wait_s=0.05),
            arm("qlm_inspired", max_batch=15),
            arm(
                "first_of",
                policies="queue_depth:max_waiting=0; in_flight_cap:max_in_flight=16",
            ),
        ],
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
            arm("kv_threshold"),
            arm("dual_gate"),
            arm("kv_headroom", high_water=1.0, to_come=0.3, quantile=0.5),
            arm("fluid_wait_inspired", buffer=0.0),
            arm("front_door", max_projected_kv=1.0),
            arm("any_of", policies="kv_threshold; queue_depth:max_waiting=0"),
        ],
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
            arm("queue_depth", max_waiting="fitted"),
            arm("prefill_backlog", target_s=4.0),
            arm(
                "chronos_inspired",
                alpha_ms=0.0976,
                gamma_ms=13.24,
                chunk_tokens=2048,
                tbt_ms=500.0,
            ),
            arm("chronos_inspired", "chronos_inherited"),
        ],
    ),
    "deadlines": Regime(
        "Callers say their deadlines",
        "Chat before 16 slots; every request carries the deadline of its first token.",
        {"target": small(), **CHAT, "deadlines": True},
        [
            arm("queue_depth", max_waiting="fitted"),
            arm("deadline_slack", deadline_is="first_token"),
            arm("front_door", min_slack_s=0.0),
            arm("qlm_inspired", max_batch=15),
            arm("qlm_inspired", "qlm_slow", max_batch=15, solve_s=5.0),
            arm(
                "qlm_inspired",
                "qlm_too_old",
                max_batch=15,
                solve_s=5.0,
                max_plan_age_s=2.0,
            ),
            arm(
                "chronos_inspired",
                alpha_ms=0.0976,
                gamma_ms=13.24,
                chunk_tokens=2048,
                tbt_ms=500.0,
            ),
        ],
    ),
    "sessions": Regime(
        "Whole sessions of agents, memory binds",
        "Agents with quick tools, whose contexts stay in a cache of 48,000 tokens.",
        {
            "target": small(max_num_seqs=64, kv_blocks=3000),
            "workload": {"name": "tool-tight"},
            "client": "patient",
            "metric": "session_goodput",
            "lasts_s": 800,
        },
        [
            arm("kv_threshold"),
            arm("concur_inspired"),
            arm("concur_inspired", "concur_reuse", start=16, h_thresh=0.7),
            arm("thunder_inspired"),
        ],
    ),
    "tenants": Regime(
        "Tenants of very different size",
        "Clients of one service, a few of them large and bursty.",
        {"target": small(), "workload": {"name": "tenants"}, "client": "patient"},
        [
            arm("queue_depth", max_waiting="fitted"),
            arm(
                "first_of",
                "share_then_cap",
                policies="tenant_share; in_flight_cap:max_in_flight=16",
            ),
            arm("rate_limit", "rate_per_tenant", rate_per_s=1.0, burst=4),
            arm(
                "rate_limit",
                "tokens_per_tenant",
                cost="tokens",
                rate_per_s=1000.0,
                burst=8000,
            ),
        ],
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
            arm("queue_depth", max_waiting="fitted"),
            arm("priority_shed", levels="0,10", max_waiting=1.0),
        ],
    ),
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


# ------------------------------------------------------------------------- the runs


def ran(key: str, root: Path, seed: int, blocks: int) -> tuple[Verdicts, list[Run]]:
    """A regime's benchmark: its comparison, and its runs."""
    regime = REGIMES[key]
    document = {
        "experiment": f"policies-{key}-{seed}",
        "root": str(root),
        "loads": [BELOW, ABOVE],
        "blocks": blocks,
        "calls": 300,
        "seed": seed,
        "arms": [{"policy": "no_admission"}, CAP, RATE, *regime.arms],
        **regime.config,
    }
    config = parsed(document, key)
    with Experiment(config, Told()) as experiment:
        experiment.run(experiment.planned())
    found = read_experiment(config.folder)
    return compare(found, None), list(found.runs)


def values(runs: Sequence[Run], arm_: str, load_: float, name: str) -> dict[int, float]:
    """A number of an arm's summaries, by block; what a run withheld is left out."""
    return {
        run.block: run.summary[name]
        for run in runs
        if run.arm == arm_ and run.load == load_ and run.summary.get(name) is not None
    }


def against(runs: Sequence[Run], one: str, other: str, name: str) -> str:
    """The mean paired difference above capacity, with its 95 % interval."""
    mine, theirs = (values(runs, arm_, ABOVE, name) for arm_ in (one, other))
    pairs = [mine[block] - theirs[block] for block in mine if block in theirs]
    if one == other or len(pairs) < 2:
        return ""
    interval = t_interval(pairs)
    mean = statistics.fmean(pairs)
    if interval is None:
        return f"{mean:+.3f}"
    mark = "" if interval.excludes_zero else " ~"
    return f"{mean:+.3f} ({interval.low:+.3f} to {interval.high:+.3f}){mark}"


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


def tail(runs: Sequence[Run], arm_: str) -> str:
    """The p95 of the time to first token of those served, the middle block."""
    mine = [run for run in runs if (run.arm, run.load) == (arm_, ABOVE)]
    found = [run.summary["ttft_served_ms"]["p95"] for run in mine]
    known = [one for one in found if one is not None]
    return f"{statistics.median(known) / 1e3:.2f} s" if known else "-"


def rows(verdicts: Verdicts, runs: Sequence[Run], name: str) -> Iterator[str]:
    """The table of one regime."""
    words = {one.arm: one.verdict for one in verdicts.arms}
    yield (
        f"| arm | {name} 0.8x | 1.5x | against none | against the cap |"
        " against the rate | refused 0.8x | 1.5x | p95 TTFT served | log at 1.5x |"
        " verdict |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for arm_ in dict.fromkeys(run.arm for run in runs):
        cells = [
            f"`{arm_}`",
            mean(values(runs, arm_, BELOW, name)),
            mean(values(runs, arm_, ABOVE, name)),
            *(
                against(runs, arm_, other, name)
                for other in ("no_admission", *COUNTING)
            ),
            refused(runs, arm_, BELOW),
            refused(runs, arm_, ABOVE),
            tail(runs, arm_),
            liveness(runs, arm_),
            str(words.get(arm_, "baseline")),
        ]
        yield f"| {' | '.join(cells)} |"


def parameters(runs: Sequence[Run]) -> Iterator[str]:
    """What each arm was given."""
    seen = set()
    for run in runs:
        given = run.manifest.get("parameters") or {}
        if run.arm not in seen and given:
            told = ", ".join(f"{name}={value}" for name, value in given.items())
            yield f"- `{run.arm}`: {told}"
        seen.add(run.arm)


def section(key: str, root: Path, seed: int, blocks: int) -> list[str]:
    """A regime, told."""
    regime = REGIMES[key]
    verdicts, runs = ran(key, root, seed, blocks)
    name = str(regime.config.get("metric", "goodput"))
    lines = [f"## {regime.title}", "", regime.why, ""]
    lines += [*rows(verdicts, runs, name), "", *parameters(runs), ""]
    more = MORE.get(key)
    return lines + ([*more(runs), ""] if more else [])


# --------------------------------------------------------- what a goodput does not say


def by_priority(runs: Sequence[Run]) -> Iterator[str]:
    """How often each priority was refused."""
    yield "| arm | priority | refused at 1.5x, attempts |"
    yield "|---|---|---|"
    for arm_ in dict.fromkeys(run.arm for run in runs):
        counts: dict[int, list[int]] = {}
        for run in (r for r in runs if (r.arm, r.load) == (arm_, ABOVE)):
            for line in decisions(run):
                priority = line.get("facts", {}).get("priority", 0)
                count = counts.setdefault(priority, [0, 0])
                count[0] += line["verdict"] != "admit"
                count[1] += 1
        for priority, (no, of) in sorted(counts.items()):
            yield f"| `{arm_}` | {priority} | {no / of:.1%} of {of} |"


def by_jain(runs: Sequence[Run]) -> Iterator[str]:
    """How evenly goodput falls to tenants."""
    yield "| arm | Jain's index of tenants' goodputs at 1.5x | against the cap |"
    yield "|---|---|---|"
    for arm_ in dict.fromkeys(run.arm for run in runs):
        found = mean(values(runs, arm_, ABOVE, "jain"))
        yield f"| `{arm_}` | {found} | {against(runs, arm_, 'in_flight_cap', 'jain')} |"


def plan_ages(runs: Sequence[Run]) -> Iterator[str]:
    """How old the plans were that decisions went by, and what those decisions took."""
    yield "| arm | plan age p50 | max | decisions past its bound | decide p99 |"
    yield "|---|---|---|---|---|"
    for arm_ in dict.fromkeys(r.arm for r in runs if r.arm.startswith("qlm")):
        ages, late, took = [], 0, []
        for run in (r for r in runs if (r.arm, r.load) == (arm_, ABOVE)):
            for line in decisions(run):
                took.append(line["decide_us"])
                for gate, value, _, _, held in line["gates"]:
                    if gate == "plan_age_s":
                        ages.append(value)
                        late += held
        if ages:
            p99 = statistics.quantiles(took, n=100)[98]
            yield (
                f"| `{arm_}` | {statistics.median(ages):.2f} s | {max(ages):.2f} s |"
                f" {late / len(ages):.1%} of {len(ages)} | {p99:.0f} us (virtual) |"
            )


def decisions(run: Run) -> Iterator[dict[str, Any]]:
    """The decision lines of a run."""
    path = run.folder / "decisions.jsonl"
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            told = json.loads(line)
            if told.get("k") == "decision":
                yield told


MORE = {"priorities": by_priority, "tenants": by_jain, "deadlines": plan_ages}


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


def cost_us(name: str, rounds: int = 4000) -> tuple[float, float]:
    """p50 and p99 of one call with `SESSIONS` live sessions, in microseconds."""
    policy = load(name)(reports_outcomes=True, **COSTED.get(name, {}))
    facts = {"input_tokens": 900, "max_output_tokens": 500, "deadline_s": 60.0}
    for number in range(SESSIONS):
        d = policy(QUIET, session=f"s{number}", tenant=f"t{number % 20}", **facts)
        if number % 2:
            policy.outcome(d.request_id, output_tokens=100, ttft_ms=80, e2e_ms=900)
    took = []
    for number in range(rounds):
        who = number % SESSIONS
        begun = time.perf_counter_ns()
        d = policy(QUIET, session=f"s{who}", tenant=f"t{who % 20}", **facts)
        took.append(time.perf_counter_ns() - begun)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id, output_tokens=100, ttft_ms=80, e2e_ms=900)
    cuts = statistics.quantiles(took, n=100)
    return cuts[49] / 1e3, cuts[98] / 1e3


def costs() -> list[str]:
    """One row a policy."""
    from admitperf.policies import available  # noqa: PLC0415  only here

    said = (
        f"One call of a policy, without a log, with {SESSIONS} live sessions of 20"
        f" tenants; the target is {TARGET_US:g} us at the median."
    )
    lines = [
        "## What a decision costs",
        "",
        said,
        "",
        "| policy | p50 | p99 | target |",
        "|---|---|---|---|",
    ]
    for name in available():
        if load(name).__module__.startswith("admitperf."):
            p50, p99 = cost_us(name)
            met = "met" if p50 <= TARGET_US else "MISSED"
            lines.append(f"| `{name}` | {p50:.1f} us | {p99:.1f} us | {met} |")
    return lines


# ------------------------------------------------------------------------------ page

HEAD = """# Policies in their regimes

**SIMULATED**: engines in virtual time; no number of a request here was measured on
hardware.

Each policy stands in the regime it is for, beside no admission and the two that count:
a fixed cap on requests in flight and a rate, both fitted to the measured capacity.
It is no leaderboard: the regimes were chosen so that what a policy reads is what binds,
and it says nothing of a regime that is not the policy's own.

A refused request does not come back here, so that a policy is judged by whom it lets
in and not by its callers' patience. Agents, who lose their session otherwise, and
tenants, whose shares are between those who wait, come back as the client `patient`
does.
Differences are paired by block, with a 95 % interval; `~` marks one that holds 0.
A verdict is against no admission: better above capacity and no harm below it.
Every single difference is exploratory: nothing is adjusted for their number.

Made by `python benchmarks/policies.py --write`.
"""
FOOT = """## Cannot see

- One profile of one engine, and mostly made-up traffic: which policy is better before
  your engine, `admitperf bench` says.
- Parameters were chosen by hand on another seed; a grid would find better ones for each
  arm, the two that count included.
- Callers who come back, but for agents and tenants; with them arms can change places.
- Nothing was held. A gateway that holds requests turns many of these refusals into
  waits.
"""


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", choices=list(REGIMES), default=None)
    parser.add_argument("--root", type=Path, default=Path("experiments"))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--cost", action="store_true", help="only the cost table")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = [] if given.cost else [HEAD]
    for key in [] if given.cost else given.only or REGIMES:
        lines += section(key, given.root, given.seed, given.blocks)
    if given.only is None:
        lines += [*costs(), ""]
        where = ", ".join(f"{name} {value}" for name, value in machine().items())
        lines += [f"{where}; seed {given.seed}.", "", FOOT]
    text = "\n".join(lines)
    print(text)
    if given.write:
        PAGE.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
