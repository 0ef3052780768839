"""`admitperf sim serve` as a process: its address, its signals and its end."""

import http.client
import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from select import select

import pytest
from click.testing import CliRunner

from admitperf.cli.sim_serve import command
from admitperf.simulator.server import extra

PROGRAM = "from admitperf.cli.sim_serve import command; command()"
LONGEST_WAIT_S = 20
ENGINE = {"max_num_seqs": 8, "kv_blocks": 200, "step_ms": 10.0}


@pytest.fixture
def profile(tmp_path):
    """A file with a quick engine."""
    path = tmp_path / "quick.json"
    document = {
        "schema": 1, "name": "quick", "engine": ENGINE, "residuals": None,
        "provenance": {"source": "published arithmetic"},
    }  # fmt: skip
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


@contextmanager
def served(profile, *options):
    """A server as a process, and its port."""
    tool = [sys.executable, "-c", PROGRAM, "--profile", profile, "--port", "0"]
    process = subprocess.Popen(
        [*tool, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = process.stdout.readline()
        assert said.startswith("simulated on http://127.0.0.1:"), said
        yield process, int(said.split()[2].rpartition(":")[2])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(LONGEST_WAIT_S)
        process.stdout.close()
        process.stderr.close()


def opened(port, tokens=50):
    """A stream that has begun."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST_WAIT_S)
    told = {"prompt": "x", "max_tokens": tokens, "stream": True, "ignore_eos": True}
    kind = {"content-type": "application/json"}
    connection.request("POST", "/v1/completions", json.dumps(told), kind)
    answer = connection.getresponse()
    answer.readline()
    return connection, answer


def deaf(port):
    """Wait until nobody listens there."""
    for _ in range(2000):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return
    pytest.fail("it still listens")


def test_nothing_open_it_ends_at_the_first_signal(profile):
    """With 0, and without a word."""
    for name in (signal.SIGTERM, signal.SIGINT):
        with served(profile) as (process, _):
            process.send_signal(name)
            assert process.wait(LONGEST_WAIT_S) == 0
            assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_open_streams_hang_after_sigterm_until_their_callers_leave(profile):
    """As vLLM's: no token, no end, and nobody new gets in."""
    with served(profile) as (process, port):
        connection, answer = opened(port, tokens=2000)
        process.send_signal(signal.SIGTERM)
        deaf(port)
        connection.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            answer.read()
        assert process.poll() is None
        answer.close()
        connection.close()
        assert process.wait(LONGEST_WAIT_S) == 0
        assert process.stderr.read() == (
            "1 request open; it stands still until its caller leaves; signal again to"
            " end\n"
        )


def test_it_says_at_once_why_it_does_not_end(profile):
    """How many are open and what a second signal does, while they are open."""
    for name in (signal.SIGTERM, signal.SIGINT):
        with served(profile) as (process, port):
            held = [opened(port, tokens=2000) for _ in range(2)]
            process.send_signal(name)
            assert select([process.stderr], [], [], LONGEST_WAIT_S)[0]
            said = process.stderr.readline()
            assert process.poll() is None
            assert said == (
                "2 requests open; they stand still until their callers leave; signal"
                " again to end\n"
            )
            for connection, _ in held:
                connection.close()


def test_drained_streams_are_finished_after_sigterm(profile):
    """All their tokens, then the end of the server."""
    with served(profile, "--shutdown", "drain") as (process, port):
        connection, answer = opened(port)
        process.send_signal(signal.SIGTERM)
        raw = answer.read()
        connection.close()
        assert raw.endswith(b"data: [DONE]\n\n")
        assert process.wait(LONGEST_WAIT_S) == 0


def test_cut_streams_end_with_sigterm(profile):
    """In the middle, without the end of their chunks."""
    with served(profile, "--shutdown", "cut") as (process, port):
        connection, answer = opened(port, tokens=2000)
        process.send_signal(signal.SIGTERM)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            answer.read()
        connection.close()
        assert process.wait(LONGEST_WAIT_S) == 0


@pytest.mark.parametrize("shutdown", ["hang", "drain"])
def test_a_second_signal_ends_it_whatever_is_open(profile, shutdown):
    """With 1: something was cut off."""
    with served(profile, "--shutdown", shutdown) as (process, port):
        connection, _ = opened(port, tokens=2000)
        process.send_signal(signal.SIGTERM)
        deaf(port)
        process.send_signal(signal.SIGINT)
        assert process.wait(LONGEST_WAIT_S) == 1
        connection.close()
        assert len(process.stderr.read().splitlines()) == (shutdown == "hang")


def test_the_page_names_the_profile_of_the_command(profile):
    """By the name in its file, not by the path."""
    with served(profile) as (_, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read()
        connection.close()
    assert b'admitperf_simulated_info{profile="quick"} 1.0\n' in page


def test_faults_given_at_the_start_hold(profile, tmp_path):
    """Those of the file and those of the command line."""
    path = tmp_path / "faults.json"
    path.write_text('{"faults": [{"kind": "failing"}]}', encoding="utf-8")
    options = ("--faults", str(path), "--fault", "scrape_delay:seconds=0.01")
    with served(profile, *options) as (_, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/admin/faults")
        told = json.load(connection.getresponse())["faults"]
        connection.close()
    assert {fault["kind"] for fault in told} == {"failing", "scrape_delay"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fault", "melt", "--fault", "slow:factor=x"), ["'melt'", "factor = 'x'"]),
        (("--faults", "none.json"), ["none.json: no such file"]),
        (("--faults", "bad.json", "--fault", "melt"), ["is no JSON", "'melt'"]),
        (("--profile", "nobody"), ["profile nobody"]),
        (("--host", "256.1.1.1"), ["256.1.1.1:8000"]),
        (("--fault", "slow:factor=1" + "0" * 400), ["is no number"]),
        (("--fault", "slow:factor=200", "--fault", "slow:factor=200"), ["multiply"]),
        (("--faults", "big.json"), ["--faults big.json", "factor = 1000"]),
    ],
)
def test_wrong_use_is_one_line_and_2(profile, options, said, monkeypatch, tmp_path):
    """All that is wrong with the faults is in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    big = '[{"kind": "slow", "factor": 1' + "0" * 400 + "}]"
    (tmp_path / "big.json").write_text(big, encoding="utf-8")
    ran = CliRunner().invoke(command, ["--profile", profile, *options])
    assert ran.exit_code == 2
    assert ran.output.startswith("Error: ")
    assert len(ran.output.splitlines()) == 1
    assert all(word in ran.output for word in said), ran.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", ""), ["--host", "it is empty"]),
        (("--host", " "), ["--host", "it is empty"]),
        (("--host", "a" * 100), ["--host", "is no name of a host"]),
        (("--host", "a..b"), ["--host", "is no name of a host"]),
        (("--host", "\udcff"), ["--host", "'\\udcff' has characters"]),
        (("--model", "a\nb"), ["--model", "'a\\nb' has characters"]),
        (("--model", "\udcff"), ["--model", "has characters"]),
        (("--model", ""), ["--model", "it is empty"]),
        (("--mean-tokens", "nan"), ["--mean-tokens", "nan is no number"]),
        (("--mean-tokens", "inf"), ["--mean-tokens", "inf is not in the range"]),
        (("--mean-tokens", "1e308"), ["--mean-tokens", "is not in the range"]),
    ],
)
def test_values_that_no_option_can_have_are_2(profile, options, said):
    """Before anything listens anywhere, and named."""
    ran = CliRunner().invoke(command, ["--profile", profile, *options])
    assert ran.exit_code == 2
    last = ran.output.splitlines()[-1]
    assert last.startswith("Error: Invalid value for ")
    assert all(word in last for word in said), ran.output


def test_a_port_that_is_taken_is_said_in_one_line(profile):
    """With the address, and exit code 2."""
    with served(profile) as (_, port):
        ran = CliRunner().invoke(command, ["--profile", profile, "--port", str(port)])
    assert ran.exit_code == 2
    assert ran.output.startswith(f"Error: 127.0.0.1:{port}: ")
    assert "in use" in ran.output
    assert len(ran.output.splitlines()) == 1


def test_a_missing_extra_is_named(profile, monkeypatch):
    """Before anything needs it."""

    def missing(_):
        raise ImportError

    monkeypatch.setattr(extra, "import_module", missing)
    ran = CliRunner().invoke(command, ["--profile", profile])
    assert ran.exit_code == 2
    assert ran.output == (
        "Error: this needs aiohttp, of the extra admitperf[sim]: pip install aiohttp\n"
    )
