"""AdmitPerf on a real llama.cpp server: it reads, decides, records and reports."""

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.real.process import running, until

pytestmark = pytest.mark.real_engine

SLOTS = 4
TOKENS = 96  # about a second with all slots busy, on two cores
BURST = 40
BURST_S = 2.0


def admitperf(*arguments):
    """What a command of the tool printed."""
    tool = Path(sys.executable).with_name("admitperf")
    ran = subprocess.run(
        [tool, *arguments], capture_output=True, text=True, check=False, timeout=30
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def wish(number, tokens):
    """A streamed completion of so many tokens, with a prompt of its own."""
    prompt = [10 + (number * 7 + i) % 200 for i in range(32)]
    return json.dumps(
        {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True}
    )


def ask(address, number, tokens=TOKENS):
    """Send one request; its status, headers and body."""
    headers = {"x-request-id": f"call-{number}"}
    with closing(HTTPConnection(address, timeout=60)) as connection:
        connection.request("POST", "/v1/completions", wish(number, tokens), headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()


def ask_many(address, count, seconds, tokens=TOKENS):
    """Send so many requests, evenly over so many seconds; all the answers."""
    pause = threading.Event()
    with ThreadPoolExecutor(count) as pool:
        answers = []
        for number in range(count):
            answers.append(pool.submit(ask, address, number, tokens))
            pause.wait(seconds / count)
        return [answer.result() for answer in answers]


def lines(log, kind):
    """The lines of one kind in a log."""
    text = log.read_text(encoding="utf-8")
    return [line for line in map(json.loads, text.splitlines()) if line["k"] == kind]


def signals(engine):
    """What `admitperf signals` finds on an engine: value and source by signal."""
    told = json.loads(admitperf("signals", "--once", "--json", engine))
    (target,) = told["targets"]
    return {one["name"]: (one["value"], one["source"]) for one in target["signals"]}


def test_an_idle_engine_shows_an_empty_queue_and_an_unknown_cache(engine, capsys):
    """Nothing waiting is 0; a cache the engine does not report is absent, never 0."""
    found = signals(engine)
    assert found["queue_depth"] == (0, "llamacpp_requests_deferred sum")
    assert found["running"] == (0, "llamacpp_requests_processing sum")
    assert found["kv_pressure"] == (None, None)
    page = admitperf("signals", f"http://{engine}/metrics")
    assert "kv_pressure" in page.split("Not supplied")[1]
    with capsys.disabled():
        sys.stdout.write(f"\n\nidle\n{page}")


def test_an_overloaded_engine_shows_full_slots_and_a_queue(engine, capsys):
    """Of more requests than there are slots, the slots run and the rest wait."""
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(ask_many, engine, 4 * SLOTS, 0.1)
        seen = []

        def is_full():
            seen.append(signals(engine))
            running, waiting = seen[-1]["running"][0], seen[-1]["queue_depth"][0]
            return running == SLOTS and waiting > 0

        assert until(is_full, seconds=3), seen
        page = admitperf("signals", "--once", engine)
        assert {status for status, _, _ in load.result()} == {200}
    with capsys.disabled():
        sys.stdout.write(f"\n\nunder load\n{page}")


@pytest.fixture
def overload(gateway):
    """What became of a short overload: answers, and the log when all is over."""
    address, log = gateway
    answers = ask_many(address, BURST, BURST_S)
    last, *_ = ask(address, BURST, tokens=1)
    assert last == 200
    assert until(lambda: len(lines(log, "decision")) == BURST + 1, seconds=5)
    assert until(lambda: lines(log, "outcome")[-1]["id"] == f"call-{BURST}", seconds=5)
    return answers, log


def test_an_overload_is_partly_served_and_partly_refused(overload, engine, capsys):
    """The gateway sheds what the engine cannot take, says so and writes it down."""
    answers, log = overload
    served = [body for status, _, body in answers if status == 200]
    refused = [(headers, body) for status, headers, body in answers if status == 503]
    assert len(served) + len(refused) == BURST
    assert len(served) >= SLOTS
    assert len(refused) >= BURST // 8
    assert all(body.endswith(b"data: [DONE]\n\n") for body in served)
    for headers, body in refused:
        assert int(headers["Retry-After"]) >= 1
        assert headers["x-admitperf-reason"] == "queue_depth"
        assert json.loads(body)["error"]["code"] == "queue_depth"
    check_log(log, served)
    assert signals(engine)["running"][0] == signals(engine)["queue_depth"][0] == 0
    report = admitperf("report", log)
    assert "LIVE" in report
    with capsys.disabled():
        sys.stdout.write(
            f"\n\noverload: {len(served)} served, {len(refused)} refused\n{report}"
        )


def check_log(log, served):
    """One decision a request, one outcome for each admitted one, none left open."""
    decisions = lines(log, "decision")
    outcomes = {line["of"]: line for line in lines(log, "outcome")}
    assert sorted(line["id"] for line in decisions) == sorted(
        f"call-{number}" for number in range(BURST + 1)
    )
    admitted = {line["seq"] for line in decisions if line["admitted"]}
    assert len(admitted) == len(served) + 1
    assert outcomes.keys() == admitted
    assert len(lines(log, "outcome")) == len(admitted)
    assert all(line["ok"] and line["ttft_ms"] > 0 for line in outcomes.values())
    assert {line["output_tokens"] for line in outcomes.values()} == {1, TOKENS}
    assert decisions[-1]["signals"]["in_flight"] == 0
    assert not lines(log, "lost")


def test_a_caller_that_leaves_frees_its_slot(gateway, engine):
    """A closed connection ends the request in the engine and in the log."""
    address, log = gateway
    with closing(HTTPConnection(address, timeout=10)) as connection:
        connection.request("POST", "/v1/completions", wish(0, 900))
        assert connection.getresponse().readline().startswith(b"data: ")
    assert until(lambda: len(lines(log, "outcome")) == 1, seconds=5)
    (outcome,) = lines(log, "outcome")
    assert not outcome["ok"]
    assert until(lambda: signals(engine)["running"][0] == 0, seconds=3)


def test_a_watch_sees_the_overload_and_judges_by_it(engine, tmp_path, capsys):
    """The queue moved and the slots were full; what it does not report is no zero."""
    tool, trace = Path(sys.executable).with_name("admitperf"), tmp_path / "trace.jsonl"
    command = [tool, "watch", engine, "--for", "1h", "--interval", "0.1", "-o", trace]
    with running([*command, "--json"], stdout=subprocess.PIPE) as watch:
        assert until(lambda: trace.exists() and lines(trace, "decision"), seconds=10)
        answers = ask_many(engine, 4 * SLOTS, 0.1)
        watch.send_signal(signal.SIGINT)
        told = json.loads(watch.communicate(timeout=30)[0])
    assert {status for status, _, _ in answers} == {200}
    assert watch.returncode == 0
    assert told["signals"]["running"]["high"] == SLOTS
    assert told["signals"]["queue_depth"]["high"] > SLOTS
    assert "kv_pressure" not in told["signals"]
    policies = {one["policy"]: one for one in told["policies"]}
    (queue,) = policies["queue_depth"]["gates"]
    assert queue["high"] == told["signals"]["queue_depth"]["high"]
    assert policies["queue_depth"]["blind"] == 0
    assert policies["kv_threshold"]["blind"] == told["samples"]
    assert not policies["in_flight_cap"]["judged"]
    with capsys.disabled():
        sys.stdout.write(f"\n\nwatched\n{json.dumps(told['signals'], indent=1)}\n")


def test_a_second_build_downloads_nothing(serve):
    """What was built stays: without any package index the build is done at once."""
    ran = subprocess.run(
        ["sh", serve.with_name("build.sh")],
        env={**os.environ, "PYTHON": "false", "PIP_NO_INDEX": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    server, model = (line.split()[1] for line in ran.stdout.splitlines())
    assert os.access(server, os.X_OK)
    assert Path(model).read_bytes()[:4] == b"GGUF"


def test_serving_before_building_says_what_to_do(root, tmp_path):
    """Whoever serves first is told to build, in one line."""
    ran = subprocess.run(
        ["sh", root / "infra" / "llamacpp" / "serve.sh", "1", tmp_path / "log"],
        env={**os.environ, "DIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [
        f"serve.sh: nothing in {tmp_path}, run build.sh first"
    ]
