"""I5: same seed, same bytes, under any PYTHONHASHSEED.

A log holds two things that no seed fixes: the run's id and the process's. `masked`
takes them out; everything else is the same to the byte. The script flushes before its
clock moves, because the writer asks the clock when it writes a header.
"""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.policies.verdicts import installed

from admitperf import Reading
from admitperf.testing import FakeClock

SEEDS = ("0", "31337")
STEPS = 150


def masked(text):
    """A log without its run id and its process id."""
    run = re.search(r'"run":"([^"]+)"', text)[1]
    return re.sub(r'"pid":\d+', '"pid":0', text.replace(run, "RUN"))


def scripted(folder, seed):
    """The log of a scripted while of every installed policy, one after the other."""
    texts = []
    for name, cls in sorted(installed().items()):
        path = Path(folder) / f"{name}.jsonl"
        clock, chance = FakeClock(wall_s=1.7e9), random.Random(f"{seed}/{name}")
        with cls(clock=clock, log=path, enforce=0.7, reports_outcomes=True) as policy:
            for n in range(STEPS):
                step(policy, clock, chance, n)
        texts.append(masked(path.read_text("ascii")))
    return "".join(texts)


def step(policy, clock, chance, n):
    """One request of the script, and perhaps an end."""
    labels = [f'{{engine="{e}",model="m"}}' for e in range(3)]
    raw = {f"vllm:kv_cache_usage_perc{x}": chance.random() for x in labels}
    raw |= {f"vllm:num_requests_waiting{x}": chance.randrange(40) for x in labels}
    raw |= {f"other_{m}": float(n) for m in range(30)}
    page = Reading(raw, taken_ns=clock.monotonic_ns())
    d = policy(
        page if chance.random() < 0.9 else {}, request_id=f"r{n}",
        tenant=chance.choice("abc"), session=f"s{chance.randrange(9)}",
        input_tokens=chance.randrange(4000),
        deadline_s=chance.choice([None, 2.0, 90.0]),
    )  # fmt: skip
    if chance.random() < 0.8:
        policy.first_token(d.request_id)
        policy.outcome(d.request_id, ok=chance.random() < 0.9, ttft_ms=chance.random())
    assert policy.flush()
    clock.advance(chance.choice([0.0, 0.1, 3.0]))


PROGRAM = """
import hashlib, logging, sys
logging.disable(logging.CRITICAL)
from tests.invariants.test_bytes import scripted
text = scripted(sys.argv[1], sys.argv[2])
print(text.count("\\n"), hashlib.sha256(text.encode()).hexdigest())
"""


def ran(root, folder, hash_seed, seed):
    """Lines and digest of a script, in a process of its own."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), seed],
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_i5_a_scripted_run_leaves_the_same_bytes_in_every_process(root, tmp_path):
    """I5: two processes with other hash seeds write the same log, line by line."""
    told = [ran(root, tmp_path / s, s, "script") for s in SEEDS]
    lines = int(told[0][0])
    assert lines > len(installed()) * STEPS
    assert len({digest for _, digest in told}) == 1


def test_i5_another_seed_is_another_log(tmp_path):
    """I5: the script's chance is the seed's and nothing else's."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    one, again = (scripted(tmp_path / name, "script") for name in ("a", "b"))
    assert one == again
    assert scripted(tmp_path / "c", "other") != one


@pytest.mark.parametrize("name", sorted(installed()))
def test_i5_a_run_id_is_the_only_name_that_chance_gives(name, tmp_path):
    """I5: two runs of one policy have two ids, and masked they are one."""
    texts = []
    for n in range(2):
        path = tmp_path / f"{n}.jsonl"
        with installed()[name](clock=FakeClock(), log=path) as policy:
            policy({"kv_pressure": 0.95, "queue_depth": 99}, request_id="r")
        texts.append(path.read_text("ascii"))
    assert texts[0] != texts[1]
    assert masked(texts[0]) == masked(texts[1])
