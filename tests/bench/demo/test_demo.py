"""The demo makes its argument whatever the seed, from its logs alone."""

import json
import os
import subprocess
import sys

import pytest

from admitperf.bench.demo.demo import POLICIES, run_demo
from admitperf.bench.place import DemoError


def quietly(*_):
    """Tell nobody."""


def read(path):
    """Goodput of offered, and the p95 TTFT of the served by nearest rank."""
    lines = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    slo = lines[0]["slo"]
    offered = sum(line["k"] == "decision" for line in lines)
    ended = [line for line in lines if line["k"] == "outcome"]
    good = sum(
        line["ttft_ms"] <= slo["ttft_ms"] and line["max_gap_ms"] <= slo["stall_ms"]
        for line in ended
    )
    times = sorted(line["ttft_ms"] for line in ended)
    assert len(times) >= 20
    return good / offered, times[-(-95 * len(times) // 100) - 1]


@pytest.mark.parametrize("seed", range(8))
def test_the_threshold_cuts_the_tail_tenfold_and_goodput_with_it(tmp_path, seed):
    """And the bound cuts the tail and raises goodput, with room to spare."""
    run_demo(tmp_path, 1, seed, quietly)
    (base, slow), (kv, kv_p95), (queue, queue_p95) = (
        read(tmp_path / "demo" / name / "r1.jsonl") for name in POLICIES
    )
    assert kv_p95 * 10 <= slow
    assert kv < base - 0.1
    assert queue_p95 * 5 <= slow
    assert queue > base + 0.2


def test_each_run_is_told_before_it_begins(tmp_path):
    """For a person who waits: what, which, of how many."""
    told = []
    run_demo(tmp_path, 2, 1, lambda *said: told.append(said))
    assert told == [
        (f"{name} r{n}", (n - 1) * 3 + place, 6)
        for n in (1, 2)
        for place, name in enumerate(POLICIES)
    ]


def test_a_log_of_an_experiment_that_is_called_demo_too_is_kept(tmp_path):
    """Only what says that a demo made it is a demo's."""
    path = tmp_path / "demo" / "queue_depth" / "r1.jsonl"
    path.parent.mkdir(parents=True)
    header = {"k": "run", "experiment": "demo", "notes": {"made_by": "my gateway"}}
    path.write_text(json.dumps(header), "ascii")
    with pytest.raises(DemoError, match="no log of a demo"):
        run_demo(tmp_path, 1, 1, quietly)
    assert json.loads(path.read_text("ascii")) == header


def test_the_same_seed_is_the_same_logs_in_any_process(tmp_path):
    """I5: under two hash seeds, to the byte; another seed is another traffic."""
    program = (
        "import sys; from pathlib import Path; from admitperf.bench.demo.demo import *;"
        "run_demo(Path(sys.argv[1]), 1, int(sys.argv[2]), print)"
    )
    made = []
    for hash_seed, seed in (("1", "3"), ("2", "3"), ("1", "4")):
        folder = tmp_path / str(len(made))
        subprocess.run(
            [sys.executable, "-c", program, folder, seed],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True, capture_output=True,
        )  # fmt: skip
        made.append([(folder / "demo" / p / "r1.jsonl").read_bytes() for p in POLICIES])
    assert made[0] == made[1]
    assert all(a != b for a, b in zip(made[0], made[2], strict=True))
