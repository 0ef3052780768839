"""What a real vLLM's cache gauge counts: the blocks of running requests, no others.

Needs a vLLM that runs on this machine, which nothing here installs: the environment
variable ADMITPERF_VLLM_VENV names its virtual environment (0.32 or later, on CPU),
ADMITPERF_VLLM_MODEL the folder of a small model with a context of 1,024 tokens or more.
"""

import json
import os
import re
import signal
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.real.conftest import free_port, is_healthy
from tests.real.process import running, until

pytestmark = pytest.mark.real_vllm

BLOCK = 128
USABLE = 15  # of 16: one is vLLM's null block
PROMPT = 4 * BLOCK + 1
LONG = BLOCK - 2  # as much as stays in the block that the prompt begins
START_S = 180  # a first start compiles, half a minute is usual


@pytest.fixture(scope="module")
def paths():
    """The venv and the model that the environment names."""
    names = ("ADMITPERF_VLLM_VENV", "ADMITPERF_VLLM_MODEL")
    absent = [name for name in names if not os.environ.get(name)]
    if absent:
        pytest.skip(f"no real vLLM to probe: {' and '.join(absent)} not set")
    return tuple(Path(os.environ[name]) for name in names)


@pytest.fixture(scope="module")
def vllm(paths, tmp_path_factory):
    """Address of a vLLM that has served nothing yet, with fifteen blocks of KV."""
    venv, model = paths
    port, log = free_port(), tmp_path_factory.mktemp("vllm") / "engine.log"
    command = [venv / "bin" / "vllm", "serve", model, "--served-model-name", "tiny"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    command += ["--max-model-len", "1024", "--max-num-seqs", "4", "--enforce-eager"]
    command += ["--block-size", str(BLOCK), "--num-gpu-blocks-override", "16"]
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    small = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"}
    free = {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    with (
        log.open("w") as out,
        running(
            [*command, "--enable-prompt-tokens-details"],
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


def post(connection, prompt, tokens, *, stream=False):
    """Ask for so many tokens, no fewer; the response."""
    wish = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "temperature": 0}
    wish |= {"ignore_eos": True, "stream": stream}
    header = {"content-type": "application/json"}
    connection.request("POST", "/v1/completions", json.dumps(wish), header)
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()
    return reply


def cached_tokens(address, prompt, tokens=2):
    """How much of a prompt the engine says that it had."""
    with closing(HTTPConnection(address, timeout=60)) as connection:
        usage = json.loads(post(connection, prompt, tokens).read())["usage"]
    assert usage["prompt_tokens"] == len(prompt)
    return usage["prompt_tokens_details"]["cached_tokens"]


def gauges(address):
    """Requests running, and blocks in use by the cache gauge."""
    with closing(HTTPConnection(address, timeout=60)) as connection:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    names = ("num_requests_running", "kv_cache_usage_perc")
    found = [re.search(rf"^vllm:{n}{{.*}} (.+)$", page, re.MULTILINE) for n in names]
    count, fraction = (float(one[1]) for one in found)
    return count, fraction * USABLE


def prompt(chain, tokens=PROMPT):
    """The first tokens of a content of that number; none is a prefix of another."""
    return [10 + (chain * 31 + i * (chain + 3)) % 400 for i in range(tokens)]


def is_idle(address):
    """Whether the gauges say that nothing runs and nothing is used."""
    return gauges(address) == (0, 0)


def test_what_only_the_prefix_cache_holds_does_not_show_in_the_gauge(vllm):
    """After a request has ended the gauge is 0, though its repeat finds its blocks."""
    assert cached_tokens(vllm, prompt(1)) == 0
    assert until(lambda: is_idle(vllm), seconds=5)
    assert cached_tokens(vllm, prompt(1)) == 4 * BLOCK
    assert until(lambda: is_idle(vllm), seconds=5)


def test_while_a_request_runs_the_gauge_is_its_blocks(vllm):
    """Five of fifteen blocks, found in the cache or not, from first token to last."""
    for _ in range(2):
        with closing(HTTPConnection(vllm, timeout=60)) as connection:
            reply = post(connection, prompt(2), LONG, stream=True)
            assert reply.readline().startswith(b"data:")
            count, blocks = gauges(vllm)
            assert b"[DONE]" in reply.read()
        assert count == 1
        assert blocks == pytest.approx(5)
        assert until(lambda: is_idle(vllm), seconds=5)


def test_requests_that_share_blocks_count_them_once(vllm):
    """Two with the same first four blocks use six, not ten."""
    with (
        closing(HTTPConnection(vllm, timeout=60)) as one,
        closing(HTTPConnection(vllm, timeout=60)) as other,
    ):
        streams = [post(c, prompt(3), LONG, stream=True) for c in (one, other)]
        for stream in streams:
            assert stream.readline().startswith(b"data:")
        count, blocks = gauges(vllm)
        assert all(b"[DONE]" in stream.read() for stream in streams)
    assert count == 2
    assert blocks == pytest.approx(6)


def test_the_last_token_of_a_prompt_is_computed_even_if_all_of_it_is_known(vllm):
    """So a prompt of whole blocks finds all but its last block, and keeps doing so."""
    whole = prompt(4, 4 * BLOCK)
    assert cached_tokens(vllm, whole) == 0
    assert cached_tokens(vllm, whole) == 3 * BLOCK
    assert cached_tokens(vllm, whole) == 3 * BLOCK


def test_an_answer_is_in_the_cache_but_for_its_last_token(vllm):
    """The next call of a session finds whole blocks of prompt and answer."""
    first = prompt(5, 4 * BLOCK)
    with closing(HTTPConnection(vllm, timeout=60)) as connection:
        wish = {"model": "tiny", "prompt": first, "max_tokens": BLOCK + 1}
        wish |= {"temperature": 0, "ignore_eos": True, "return_token_ids": True}
        header = {"content-type": "application/json"}
        connection.request("POST", "/v1/completions", json.dumps(wish), header)
        answer = json.loads(connection.getresponse().read())["choices"][0]
    known = first + answer["token_ids"]
    assert cached_tokens(vllm, known) == 5 * BLOCK
