"""Measures the traces that workloads are generated from.

    python benchmarks/measure_traces.py            them and what is generated, as tables
    python benchmarks/measure_traces.py --write    the same, into measured.json of
                                                   bench/workloads and onto the page
    python benchmarks/measure_traces.py --json     the parameters

ADMITPERF_SHARED names the folder that holds `traces/`, by default `../shared`. Their
origin and licences: docs/reference/workloads.md.
"""

import argparse
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from admitperf.bench.workloads import (
    azure,
    measuring,
    miniswe,
    mooncake,
    servegen,
    weka,
    workload,
)
from admitperf.bench.workloads.grown import common_tokens
from admitperf.bench.workloads.measured import FILE
from admitperf.bench.workloads.measured import measured as parameters
from admitperf.bench.workloads.named import LONGEST_GAP_S
from admitperf.bench.workloads.tables import table
from admitperf.bench.workloads.workload import Recorded
from admitperf.reports.quantile import nearest_rank
from admitperf.simulator.traffic.sessions import Beginning, Session, capped

ROOT = Path(__file__).parent.parent
TRACES = Path(os.environ.get("ADMITPERF_SHARED", ROOT.parent / "shared")) / "traces"
HERE = ROOT / "src" / "admitperf" / "bench" / "workloads" / FILE

PAGE = ROOT / "docs" / "reference" / "workloads.md"
BEGIN, END = "<!-- table: benchmarks/measure_traces.py -->", "<!-- end of the table -->"

WEKA = "WEKA's Claude Code sessions (Apache-2.0)"
MINISWE = "LMCache's mini-swe-agent calls (Apache-2.0)"
MOONCAKE = "Mooncake's conversations (Apache-2.0)"
SERVEGEN = "ServeGen's m-large clients (Apache-2.0)"
AZURE = "Azure's LLM inference trace of 2023, {} (CC-BY 4.0)"


def measured() -> dict[str, Any]:
    """The parameters of all workloads, by name."""
    parts = sorted(TRACES.glob("weka_cc_sessions.part*.jsonl"))
    calls = miniswe.read(TRACES / "lmcache_miniswe_calls.jsonl")
    return {
        "agent-sessions": _sessions(WEKA, weka.read(*parts)),
        "tool-tight": _sessions(MINISWE, calls),
        "chat-prefix": _conversations(),
        "chat-steady": _steady(),
        "code-burst": _bursts(),
        "tenants": _clients(),
    }


def _sessions(source: str, recorded: Recorded) -> dict[str, Any]:
    grown = measuring.growth(recorded.pool, LONGEST_GAP_S)
    return {"source": source, "growth": asdict(grown)}


def _steady() -> dict[str, Any]:
    recorded, times_s = _azure("conv")
    return {
        "source": AZURE.format("conv"),
        "swells": asdict(measuring.swells(times_s)),
        "sizes": _sizes(recorded),
    }


def _bursts() -> dict[str, Any]:
    recorded, times_s = _azure("code")
    return {
        "source": AZURE.format("code"),
        "bursts": asdict(measuring.bursts(times_s)),
        "sizes": _sizes(recorded),
    }


def _conversations() -> dict[str, Any]:
    path = TRACES / "mooncake_conversation_trace.jsonl.gz"
    recorded = mooncake.read(path, sessions=True)
    lasted_s = float(recorded.notes["trace_s"] or 0.0)
    requests = sum(len(session.calls) for session in recorded.pool)
    grown = measuring.growth(recorded.pool, math.inf)
    return {
        "source": MOONCAKE,
        "conversations": {
            "rate_per_s": round(requests / lasted_s, 4),
            "lasts_s": round(lasted_s),
        },
        "swells": asdict(measuring.swells([at_s for at_s, _ in recorded.begun or ()])),
        "growth": {**asdict(grown), "shared": mooncake.BLOCK_TOKENS},
    }


def _clients() -> dict[str, Any]:
    path = TRACES / "servegen_language_mlarge_clients.jsonl"
    lengths = {
        f"client-{line['client']}": {
            name: line[name] for name in line if name.endswith("_tokens_q")
        }
        for line in map(json.loads, path.read_text("utf-8").splitlines())
    }
    told = [
        {
            "client": name.removeprefix("client-"),
            "windows": [[0, window.rate_per_s, window.cv, window.family]],
            **lengths[name],
        }
        for name, window in measuring.clients(servegen.clients(path))
    ]
    return {"source": SERVEGEN, "clients": told}


def _azure(name: str) -> tuple[Recorded, Sequence[float]]:
    recorded = azure.read(TRACES / f"AzureLLMInferenceTrace_{name}.csv")
    return recorded, [at_s for at_s, _ in recorded.begun or ()]


def _sizes(recorded: Recorded) -> dict[str, Any]:
    calls = [session.calls[0] for session in recorded.pool]
    return {
        "input_tokens": table(call.input_tokens for call in calls),
        "output_tokens": table(call.output_tokens for call in calls),
        "max_output_tokens": azure.MAX_OUTPUT_TOKENS,
    }


# ------------------------------------------------------------------------- the tables

SEEDS = range(1, 7)
SHARES = (0.5, 0.95)


def tables() -> str:
    """What was recorded beside what is generated, in Markdown."""
    return "\n".join([*_table(REQUESTS, _requests()), "", *_table(SESSIONS, _grown())])


REQUESTS = (
    "requests", "rate /s", "CV of gaps", "peak 2 s", "IDC 1 / 10 / 60 s",
    "prompt p50 / p95", "answer p50 / p95", "reuse",
)  # fmt: skip
SESSIONS = (
    "sessions", "calls p25 / p50 / p75", "prompt p50 / p95", "answer p50 / p95",
    "new tokens p50 / p95", "pause p50 / p75, s", "reuse",
)  # fmt: skip


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _requests() -> Iterator[list[str]]:
    conversations = TRACES / "mooncake_conversation_trace.jsonl.gz"
    for name, read in (
        ("chat-steady", lambda: _azure("conv")[0]),
        ("code-burst", lambda: _azure("code")[0]),
        ("chat-prefix", lambda: mooncake.read(conversations)),
    ):
        begun = read().begun or ()
        lasts_s = begun[-1][0]
        rate = len(begun) / lasts_s
        yield _traffic(f"{name}, recorded", rate, [begun])
        yield _generated(name, rate, lasts_s)
    yield _generated("tenants", 5.0, 1_200.0)


def _generated(name: str, rate: float, lasts_s: float) -> list[str]:
    made = workload(name)
    blocks = [made.begun(rate, lasts_s, seed) for seed in SEEDS]
    return _traffic(f"{name}, generated", rate, blocks)


def _traffic(
    name: str, rate: float, blocks: Sequence[Sequence[Beginning]]
) -> list[str]:
    """Means over blocks of arrivals; lengths over all of them."""
    times = [[at_s for at_s, _ in begun] for begun in blocks]
    idc = [
        fmean(measuring.dispersion(at_s, window_s) for at_s in times)
        for window_s in (1.0, 10.0, 60.0)
    ]
    calls = [session.calls[0] for begun in blocks for _, session in begun]
    shares = any(call.prefix for call in calls)
    reuse = fmean(map(measuring.hit_share, blocks)) if shares else None
    return [
        name,
        f"{rate:.2f}",
        f"{fmean(map(measuring.gap_cv, times)):.2f}",
        f"{fmean(measuring.peak(at_s, 2.0) for at_s in times):.0f}",
        " / ".join(f"{one:.1f}" for one in idc),
        _spread((call.input_tokens for call in calls), SHARES),
        _spread((call.output_tokens for call in calls), SHARES),
        "-" if reuse is None else f"{reuse:.3f}",
    ]


def _grown() -> Iterator[list[str]]:
    parts = sorted(TRACES.glob("weka_cc_sessions.part*.jsonl"))
    calls = TRACES / "lmcache_miniswe_calls.jsonl"
    for name, read in (
        ("agent-sessions", lambda: weka.read(*parts)),
        ("tool-tight", lambda: miniswe.read(calls)),
    ):
        recorded = capped(read().pool, LONGEST_GAP_S)
        yield _sessions_row(f"{name}, recorded", recorded)
        yield _sessions_row(f"{name}, generated", workload(name).pool())


def _sessions_row(name: str, sessions: Sequence[Session]) -> list[str]:
    calls = [call for one in sessions for call in one.calls]
    steps = [step for one in sessions for step in measuring.following(one)]
    fresh = [
        call.input_tokens - common_tokens(before.prefix, call.prefix)
        for before, call in steps
    ]
    reuse = 1 - sum(fresh) / sum(call.input_tokens for _, call in steps)
    return [
        name,
        _spread((len(one.calls) for one in sessions), (0.25, 0.5, 0.75)),
        _spread((call.input_tokens for call in calls), SHARES),
        _spread((call.output_tokens for call in calls), SHARES),
        _spread(fresh, SHARES),
        _spread((call.gap_s for _, call in steps), (0.5, 0.75), 2),
        f"{reuse:.3f}",
    ]


def _spread(values: Iterable[float], shares: Sequence[float], digits: int = 0) -> str:
    ordered = sorted(values)
    return " / ".join(f"{nearest_rank(ordered, one):,.{digits}f}" for one in shares)


def text_of(found: dict[str, Any]) -> str:
    """As the file has it: one table a line."""
    lines = json.dumps(found, indent=1, sort_keys=True)
    return _joined(lines) + "\n"


def _joined(text: str) -> str:
    """Lists of numbers on one line each."""
    out, inside = list[str](), False
    for line in text.splitlines():
        bare = line.strip()
        if inside:
            out[-1] += (" " if out[-1].endswith(",") else "") + bare
        else:
            out.append(line)
        if bare.endswith("["):
            inside = True
        elif bare.startswith("]"):
            inside = False
    return "\n".join(out)


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {FILE}")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = measured()
    if given.json:
        print(json.dumps(found))
        return
    if given.write:
        HERE.write_text(text_of(found), encoding="utf-8")
        parameters.cache_clear()
    told = tables()
    print(told)
    if given.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        text = f"{before}{BEGIN}\n\n{told}\n\n{END}{after}"
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
