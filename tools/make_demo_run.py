# ruff: noqa: INP001  a script, not a package
"""Makes the demo's recording out of a run of the load generator.

    python tools/make_demo_run.py ../shared/runs/vllmA2-rate7.jsonl

It keeps what the demo replays: the metrics a signal is made of, and of each request
its size, its arrival and its end, as seen from the moment it arrived.
"""

import gzip
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

Line = dict[str, Any]

OUT = Path(__file__).parents[1] / "src/admitperf/bench/data/vllm-0.32-2x.jsonl.gz"

CAPACITY_PER_S = 3.5
"""Requests per second this engine carried with the same requests (closed loop)."""

METRICS = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:num_preemptions_total",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
)


def about(meta: Line, requests: int) -> Line:
    """The first line: what was measured, when, and how."""
    settings, load = meta["meta"], meta["args"]
    return {
        "k": "recording",
        "schema": 1,
        "engine": "vLLM 0.32.0",
        "wall_s": meta["t0_wall"],
        "rate_per_s": load["rate"],
        "capacity_per_s": CAPACITY_PER_S,
        "scrape_s": 1 / load["scrape_hz"],
        "requests": requests,
        "settings": {
            **settings,
            "input_tokens": [load["pmin"], load["pmax"]],
            "output_tokens": [load["omin"], load["omax"]],
        },
        "metrics": METRICS,
    }


def scrape(line: Line) -> Line:
    """One reading; it could be used when it had come back, `took_s` after `t_s`."""
    values = [line["m"][name] for name in METRICS]
    return {"k": "scrape", "t_s": line["t"], "took_s": line["dt"], "v": values}


def call(line: Line, number: int) -> Line:
    """One request; its times count from its arrival, not from when it was sent."""
    late_s = line["sent"] - line["arr"]
    tokens_s = [late_s + chunk[0] for chunk in line["chunks"]]
    gaps_s = [after - before for before, after in pairwise(tokens_s)]
    return {
        "k": "call",
        "id": f"call-{number:03d}",
        "t_s": line["arr"],
        "input_tokens": line["plen"],
        "max_output_tokens": line["max_tokens"],
        "ok": line["status"] == 200 and line["done"],  # noqa: PLR2004
        "ttft_ms": milliseconds(tokens_s[0]) if tokens_s else None,
        "max_gap_ms": milliseconds(max(gaps_s)) if gaps_s else None,
        "e2e_ms": milliseconds(line["fin"] - line["arr"]),
        "output_tokens": line["ntok"],
        "finish_reason": line["finish_reason"],
    }


def milliseconds(seconds: float) -> float:
    """To the resolution of the load generator's clock."""
    return round(seconds * 1e3, 2)


def recording(text: str) -> str:
    """The recording, as lines."""
    lines = [json.loads(line) for line in text.splitlines()]
    requests = sorted(
        (line for line in lines if line["type"] == "req"), key=lambda line: line["arr"]
    )
    made = [
        *(about(line, len(requests)) for line in lines if line["type"] == "meta"),
        *(scrape(line) for line in lines if line["type"] == "scrape"),
        *(call(line, number) for number, line in enumerate(requests, 1)),
    ]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in made)


def main() -> None:
    """Read the run that is named, write the recording."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_bytes(gzip.compress(recording(text).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
