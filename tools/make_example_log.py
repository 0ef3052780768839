# ruff: noqa: INP001  a script, not a package
"""Makes `examples/logs/kv_threshold.jsonl` out of a recorded run of a real vLLM.

    python tools/make_example_log.py [FILE]

`kv_threshold` is asked about each request of the run, in recorded time. It refuses
none of them, so what was recorded is also what happens with it in front.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from make_demo_run import METRICS, call, scrape

from admitperf.bench.demo.recording import Recording
from admitperf.bench.demo.replay import Replay
from admitperf.bench.place import name_run
from admitperf.policies import load
from admitperf.testing import FakeClock

ROOT = Path(__file__).parents[1]
RUN = ROOT / "tests/data/runs/vllmC-closed16.jsonl.gz"
OUT = ROOT / "examples/logs/kv_threshold.jsonl"

SLO = {"ttft_ms": 1500}
"""First token within 1.5 s. Plain choice: the bound of the recorded demo."""

NOTES: dict[str, str | float | bool | None] = {
    "model": "mid 19.3M f32",
    "engine": "vLLM",
    "engine_version": "0.32.0",
    "hardware": "CPU, one thread",
    "workload": "16 clients, prompts of 64 to 256 tokens, answers of 32 to 128",
}


def recording() -> Recording:
    """The run as the replay reads it; a closed loop has no rate to name."""
    text = gzip.decompress(RUN.read_bytes()).decode()
    lines = [json.loads(line) for line in text.splitlines()]
    meta = next(line for line in lines if line["type"] == "meta")
    requests = [line for line in lines if line["type"] == "req"]
    made: list[dict[str, Any]] = [
        {
            "schema": 1,
            "engine": "vLLM 0.32.0",
            "wall_s": meta["t0_wall"],
            "rate_per_s": 0.0,
            "capacity_per_s": 1.0,
            "scrape_s": 1 / meta["args"]["scrape_hz"],
            "settings": meta["meta"],
            "metrics": METRICS,
        },
        *(scrape(line) for line in lines if line["type"] == "scrape"),
    ]
    made += [
        call(line, number)
        for number, line in enumerate(sorted(requests, key=lambda x: x["arr"]), 1)
    ]
    return Recording.of("".join(json.dumps(line) + "\n" for line in made))


def make(out: Path) -> None:
    """Asks the policy about each request and writes the log, the same bytes each time.

    Raises:
        SystemExit: it refused one, so what was recorded is not what would happen.
    """
    run = recording()
    clock = FakeClock(wall_s=run.wall_s)
    out.unlink(missing_ok=True)
    policy = load("kv_threshold")(
        log=out, clock=clock, slo=SLO, notes=NOTES, reports_outcomes=True
    )
    with policy:
        Replay(policy, clock, run).run()
    name_run(out, "kv_threshold")
    if '"admitted":false' in out.read_text(encoding="utf-8"):
        raise SystemExit("it refused: what was recorded is not what would happen")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else OUT)
