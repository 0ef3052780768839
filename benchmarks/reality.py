"""Holds the engine model against recorded runs of real engines.

    python benchmarks/reality.py             fits, predicts, prints the tables, a minute
    python benchmarks/reality.py --write     puts them on docs/engine-model.md
    python benchmarks/reality.py --profiles  rewrites the profiles that are shipped
    python benchmarks/reality.py --json

A run that is predicted is never among those fitted. Runs come from `tests/data/runs`
and from `runs/` of the shared inputs (`ADMITPERF_SHARED`, by default `../shared`).
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from admitperf.simulator.fit.arithmetic import all_calculated
from admitperf.simulator.fit.checking import Line, Table, checked, wrong
from admitperf.simulator.fit.fitting import fitted
from admitperf.simulator.fit.read import read
from admitperf.simulator.fit.recorded import Recorded
from admitperf.simulator.profile import Profile

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "engine-model.md"
PROFILES = ROOT / "src" / "admitperf" / "simulator" / "profiles"
BEGIN, END = "<!-- table: benchmarks/reality.py -->", "<!-- end of the table -->"
FIRST, LAST = "<!-- headline: benchmarks/reality.py -->", "<!-- end of the headline -->"
OWN = ROOT / "tests" / "data" / "runs"
SHARED = Path(os.environ.get("ADMITPERF_SHARED", ROOT.parent / "shared")) / "runs"

MACHINE = "two virtual cores of a Xeon server processor, 24 GB, no GPU"


@dataclass(frozen=True, slots=True)
class Trial:
    """Runs that are fitted, and others that the fit predicts.

    Attributes:
        fit, predict: names of runs.
        capacity_per_s: of the engine in this series, as measured; None = as modelled.
    """

    fit: tuple[str, ...]
    predict: tuple[str, ...]
    capacity_per_s: float | None = None


TRIALS = (
    Trial(("vllmA2-rate1.75", "vllmA2-rate7"), ("vllmA2-rate3.5",), 3.5),
    Trial(("vllmB-closed1",), ("vllmB-closed8",), 3.0),
    Trial(("llamacpp-closed1",), ("llamacpp-rate3.2",), 2.4),
    Trial(("vllmA2-rate3.5", "vllmA2-rate7"), ("vllmA2-rate1.75",), 3.5),
    Trial(("vllmA2-rate1.75", "vllmA2-rate3.5"), ("vllmA2-rate7",), 3.5),
    Trial(("vllmA-closed1",), ("vllmA-closed16",), 3.5),
    Trial(("llamacpp-closed1",), ("llamacppC-closed2", "llamacppC-closed4")),
    Trial(("vllmD-closed1",), ("vllmD-rate3.5",)),
    Trial(("vllmC-closed1", "vllmC-closed2"), ("vllmC-closed4", "vllmC-closed8")),
    Trial(
        ("vllmC-closed1", "vllmC-closed2", "vllmC-closed4", "vllmC-closed8"),
        (
            "vllmC-closed16",
            "vllmE-prefix-3.4",
            "vllmE-prefix-4.2",
            "vllmE-prefix-6.3",
            "vllmE-agent-0.6",
            "vllmE-agent-0.9",
        ),
    ),
    Trial(
        ("vllmE-closed1", "vllmE-closed1b"),
        (
            "vllmE-prefix-3.4",
            "vllmE-prefix-4.2",
            "vllmE-prefix-6.3",
            "vllmE-agent-0.6",
            "vllmE-agent-0.9",
        ),
    ),
)

VLLM_SIZES = {"max_num_seqs": 8, "kv_blocks": 47, "block_size": 32}
"""Of the engine in most runs: the series differ, so it has to be said."""

MEASURED = {
    "vllm-cpu": ("vllm", {**VLLM_SIZES, "max_model_len": 1024, "prefix_caching": True}),
    "llamacpp-cpu": ("llamacpp", {}),
}
"""Measured profiles: how the names of their runs begin, and the sizes that differ."""


def path_of(name: str) -> Path:
    """Where a run is; in the shared inputs when we have no copy."""
    own = OWN / f"{name}.jsonl.gz"
    return own if own.exists() else SHARED / f"{name}.jsonl"


def there(trial: Trial) -> bool:
    """Whether all runs of a trial are there; says which are not."""
    absent = [n for n in (*trial.fit, *trial.predict) if not path_of(n).exists()]
    if absent:
        print("left out, no such run here:", ", ".join(absent), file=sys.stderr)
    return not absent


def tried(trial: Trial) -> tuple[Profile, list[Table]]:
    """The profile of a trial's fitted runs, and its predictions of the others."""
    runs = [read(path_of(name)) for name in trial.fit]
    made = fitted(runs, name="+".join(trial.fit))
    tables = [
        checked(made, read(path_of(name)), capacity_per_s=trial.capacity_per_s)
        for name in trial.predict
    ]
    return made, tables


def rows(made: Profile, tables: Sequence[Table]) -> Iterator[str]:
    """A trial as Markdown."""
    engine = made.engine
    for table in tables:
        load = "closed loop" if table.load is None else f"load {table.load:.2f}"
        yield f"**{' + '.join(made.provenance.runs)} predict {table.run}** ({load})"
        yield ""
        yield "| metric | real | simulated | middle 90 % | rule | |"
        yield "|---|---|---|---|---|---|"
        for line in table.lines:
            spread = spread_of(line)
            verdict = "ok" if line.ok else "**MISS**"
            yield (
                f"| `{line.metric}` | {line.real:.4g} | {line.simulated:.4g}"
                f" | {spread} | {line.rule} | {verdict} |"
            )
        yield ""
    given = ", ".join(made.provenance.identified)
    yield (
        f"Fitted: `front_ms` {engine.front_ms:.3g}, `step_ms` {engine.step_ms:.3g},"
        f" `ms_per_resident_token` {engine.ms_per_resident_token:.3g},"
        f" `ms_per_prefill_token` {engine.ms_per_prefill_token:.3g},"
        f" `ms_per_sequence` {engine.ms_per_sequence:.3g};"
        f" noise {engine.noise:.2g} over {engine.noise_steps} steps."
        f" From the runs: {given or 'none'}."
    )
    yield ""


def spread_of(line: Line) -> str:
    """The middle 90 %; -- where nothing was left to chance."""
    if line.low is None or line.high is None:
        return "--"
    return f"{line.low:.4g} to {line.high:.4g}"


CLOSE = 0.20
"""What is called close in the headline, of every metric, whatever its rule allows."""

SPEED = ("req_per_s", "ttft_p50_ms", "ttft_p95_ms")
"""Metrics that say how fast the engine is; of the first, more is faster."""


def easy(line: Line) -> bool:
    """Whether a row could hardly miss.

    There was nothing of its kind, or it follows from sizes alone: every repeat in the
    middle 90 % gave what the engine gave.
    """
    return line.real == 0.0 or line.low == line.real == line.high


def headline(done: Sequence[tuple[Profile, list[Table]]]) -> Iterator[str]:
    """How many predictions hold, by metric; those that could hardly miss apart."""
    lines = [one for _, tables in done for t in tables for one in t.lines]
    yield f"| metric | within {CLOSE:.0%} | rule holds | could hardly miss | misses |"
    yield "|---|---|---|---|---|"
    for metric in dict.fromkeys(one.metric for one in lines):
        yield _metric([one for one in lines if one.metric == metric])
    yield ""
    hard = [one for one in lines if not easy(one)]
    yield (
        f"{sum(one.ok for one in hard)} of {len(hard)} rules hold where a row could"
        f" miss; {len(lines) - len(hard)} more rows could hardly miss, and"
        f" {sum(one.ok for one in lines if easy(one))} of them hold."
    )
    yield _speed([one for one in lines if one.metric in SPEED])
    yield ""


def _metric(lines: Sequence[Line]) -> str:
    hard = [one for one in lines if not easy(one)]
    close = sum(abs(one.simulated - one.real) <= CLOSE * one.real for one in hard)
    missed = Counter(wrong(one) for one in lines if not one.ok)
    said = "; ".join(f"{count} x {words}" for words, count in missed.items())
    return (
        f"| `{lines[0].metric}` | {close} of {len(hard)} |"
        f" {sum(one.ok for one in hard)} of {len(hard)} |"
        f" {len(lines) - len(hard)} | {said or 'none'} |"
    )


def _fast(line: Line) -> bool:
    return (line.simulated > line.real) == (line.metric == SPEED[0])


def _speed(lines: Sequence[Line]) -> str:
    missed = [one for one in lines if not one.ok]
    fast = sum(_fast(one) for one in missed)
    names = ", ".join(f"`{name}`" for name in SPEED)
    return (
        f"Of {len(missed)} misses of speed ({names}), {fast} are too fast, which is"
        f" optimistic, and {len(missed) - fast} too slow; of all {len(lines)} such"
        f" rows, held or missed, {sum(_fast(one) for one in lines)} are too fast."
    )


def summed(done: Sequence[tuple[Profile, list[Table]]]) -> Iterator[str]:
    """How many rules hold, and which do not."""
    lines = [(t.run, one) for _, tables in done for t in tables for one in t.lines]
    missed = [f"`{one.metric}` of {run}" for run, one in lines if not one.ok]
    yield f"{len(lines) - len(missed)} of {len(lines)} rules hold."
    if missed:
        yield f"Missed: {', '.join(missed)}."
    yield ""


def runs_of(beginning: str) -> list[Recorded]:
    """All runs of an engine that are here."""
    paths = {p.name.split(".jsonl")[0]: p for p in sorted(SHARED.glob("*.jsonl"))}
    paths |= {p.name.split(".jsonl")[0]: p for p in sorted(OWN.glob("*.jsonl.gz"))}
    names = sorted(name for name in paths if name.startswith(beginning))
    return [read(paths[name]) for name in names]


def ship() -> None:
    """Rewrites the shipped profiles."""
    made = all_calculated()
    for name, (beginning, sizes) in MEASURED.items():
        runs = runs_of(beginning)
        made.append(fitted(runs, name=name, sizes=sizes, machine=MACHINE))
    for one in made:
        (PROFILES / f"{one.name}.json").write_text(one.text(), encoding="utf-8")
        print("written:", one.name)


def put(page: str, marks: tuple[str, str], text: str) -> str:
    """A page with a text between two marks, in the place of what is there."""
    head, _, rest = page.partition(marks[0])
    _, _, tail = rest.partition(marks[1])
    return f"{head}{marks[0]}\n\n{text}\n{marks[1]}{tail}"


def write(first: str, tables: str) -> None:
    """Puts the headline and the tables on the page."""
    page = PAGE.read_text(encoding="utf-8")
    page = put(page, (FIRST, LAST), first)
    PAGE.write_text(put(page, (BEGIN, END), tables), encoding="utf-8")


def main() -> None:
    """Does what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--profiles", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.profiles:
        ship()
        return
    done = [tried(trial) for trial in TRIALS if there(trial)]
    if asked.json:
        plain = [asdict(table) for _, tables in done for table in tables]
        print(json.dumps(plain, indent=2))
        return
    text = "\n".join([*summed(done), *(row for one in done for row in rows(*one))])
    first = "\n".join(headline(done))
    if asked.write:
        write(first, text)
    print(first)
    print(text)


if __name__ == "__main__":
    main()
