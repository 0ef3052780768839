"""A benchmark's traffic against a real vLLM, which refuses by a limit of its own.

Needs what `tests/real/test_vllm_probe.py` needs.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.real.conftest import free_port, is_healthy
from tests.real.process import running, until
from tests.real.test_bench_llamacpp import alone, call, drive

from admitperf.bench.harness.http import HttpTarget
from admitperf.simulator.traffic.sessions import Session

pytestmark = pytest.mark.real_vllm

BLOCK = 32
INSIDE = 6
START_S = 180


@pytest.fixture(scope="module")
def vllm(tmp_path_factory):
    """Address of a vLLM with four slots that takes six requests."""
    names = ("ADMITPERF_VLLM_VENV", "ADMITPERF_VLLM_MODEL")
    if absent := [name for name in names if not os.environ.get(name)]:
        pytest.skip(f"no real vLLM: {' and '.join(absent)} not set")
    venv, model = (Path(os.environ[name]) for name in names)
    port, log = free_port(), tmp_path_factory.mktemp("vllm") / "engine.log"
    command = [venv / "bin" / "vllm", "serve", model, "--served-model-name", "tiny"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    command += ["--max-model-len", "1024", "--max-num-seqs", "4", "--enforce-eager"]
    command += ["--block-size", str(BLOCK), "--num-gpu-blocks-override", "48"]
    command += ["--max-num-queued-reqs", str(INSIDE), "--enable-prompt-tokens-details"]
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    small = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"}
    free = {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    with (
        log.open("w") as out,
        running(
            command,
            env=os.environ | quiet | small | free,
            stdout=out,
            stderr=out,
            start_new_session=True,
        ) as server,
    ):
        address = f"127.0.0.1:{port}"
        until(lambda: server.poll() is not None or is_healthy(address), START_S)
        assert is_healthy(address), log.read_text(encoding="utf-8")[-4000:]
        yield address
    with suppress(ProcessLookupError):  # a worker may outlive its server
        os.killpg(server.pid, signal.SIGKILL)


def test_every_call_is_served_as_planned(vllm):
    """Its tokens, and a first token before its end."""
    records, made = drive(vllm, alone(12, every_s=0.5))
    assert {one.ended for one in records} == {"answered"}
    assert {one.got_tokens for one in records} == {12}
    assert all(one.last_ttft_ms < one.e2e_ms for one in records)
    assert made.facts["failed"] == made.restarts == 0
    assert made.facts["moved"]["kv_pressure"][1] > 0


def test_its_own_limit_is_seen_as_its_own(vllm):
    """Of many at once some get a 503, by their status or inside a stream."""
    records, made = drive(vllm, alone(16, every_s=0.0, output_tokens=40))
    refused = [one for one in records if one.ended != "answered"]
    assert len(refused) == made.facts["engine_refused"] > 0
    assert {one.status for one in refused} == {503}
    assert {one.error for one in refused} == {"503, the engine's own limit"}
    assert made.facts["failed"] == 0
    assert made.facts["quiet_after"] is True


def test_who_hangs_up_frees_the_engine(vllm):
    """Long before the answer would have ended."""
    long = call(output_tokens=900, hangs_up_after=5)
    begun = [(0.0, Session(f"r{n}", (long,), 900)) for n in range(3)]
    records, made = drive(vllm, begun)
    assert {one.ended for one in records} == {"cancelled"}
    assert all(5 <= one.got_tokens < 450 for one in records)
    assert made.facts["quiet_after"] is True


def test_a_session_finds_its_prompts_and_answers_and_no_other_runs(vllm):
    """In whole blocks, without the last token of an answer."""
    sizes = (100, 160, 230)
    calls = tuple(
        call(
            after=place - 1 if place else None,
            gap_s=0.05,
            input_tokens=tokens,
            output_tokens=40,
            prefix=((0, tokens),),
        )
        for place, tokens in enumerate(sizes)
    )
    for _ in range(2):
        records, _ = drive(vllm, [(0.0, Session("s", calls, 50))])
        assert [one.ended for one in records] == ["answered"] * 3
        cached = [one.input_tokens + 40 - one.computed_tokens for one in records]
        held = (0, *(tokens + 40 - 1 for tokens in sizes[:-1]))
        assert cached == [n // BLOCK * BLOCK for n in held]


def test_what_it_is(vllm):
    """It says its version, and how long a prompt may be."""
    target = HttpTarget(f"http://{vllm}")
    told = target.notes()
    assert (told["engine"], told["model"]) == ("vLLM", "tiny")
    assert told["engine_version"].startswith("0.32")
    assert target.longest_tokens() == 1024
    assert target.probe() > 0
