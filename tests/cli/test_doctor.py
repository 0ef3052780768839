"""`admitperf doctor` as a person meets it."""

import json

import pytest
from tests.cli.conftest import is_plain
from tests.reports.byhand import header, jsonl, kv, outcome
from tests.scrape.server import http

PAGE = (
    'vllm:num_requests_running{engine="0"} 0\n'
    'vllm:num_requests_waiting{engine="0"} 0\n'
    'vllm:kv_cache_usage_perc{engine="0"} 41\n'
)


@pytest.fixture
def log(tmp_path):
    """A log of a policy that fired, which only we may touch."""
    lines = [kv(n, 0.95 if n % 4 == 0 else 0.5) for n in range(1, 41)]
    ends = [outcome(n) for n in range(1, 41) if n % 4]
    path = tmp_path / "log.jsonl"
    path.write_text(jsonl(header(), *lines, *ends), encoding="utf-8")
    path.chmod(0o600)
    return path


def test_nothing_named_is_wrong_use(run):
    """One line that says what to give."""
    ran = run("doctor")
    assert ran.exit_code == 2
    assert "--engine" in ran.stderr


def test_a_log_without_problems_is_exit_code_0(run, log):
    """Warnings are allowed."""
    ran = run("doctor", "--log", str(log))
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.startswith("0 problems")
    assert is_plain(ran.stdout)


def test_problems_come_first_with_fix_and_link(run, serve, log):
    """Then warnings, then what is fine, then what could not be asked."""
    ran = run("doctor", "--engine", serve(http(PAGE.encode())).url, "--log", str(log))
    assert ran.exit_code == 1
    assert is_plain(ran.stdout)
    places = [ran.stdout.index(f"\n{t}\n") for t in (
        "Problems", "Warnings", "Fine", "Could not be asked"
    )]  # fmt: skip
    assert places == sorted(places)
    problems = ran.stdout[places[0] : places[1]]
    assert "engine.percent" in problems
    assert "fix: " in problems
    assert "see: docs/how-to/metrics.md" in problems
    assert not ran.stderr


def test_json_has_a_schema_number_and_the_same_findings(run, serve):
    """Problems first, with counts by level."""
    ran = run("doctor", "--engine", serve(http(PAGE.encode())).url, "--json")
    made = json.loads(ran.stdout)
    assert made["schema"] == 1
    assert made["findings"][0]["level"] == "problem"
    counted = [one["level"] for one in made["findings"]]
    assert {level: counted.count(level) for level in made["counts"]} == made["counts"]


@pytest.mark.parametrize("words", [("--timeout", "nan"), ("--max-num-seqs", "0")])
def test_an_option_out_of_range_is_wrong_use(run, log, words):
    """One line, exit code 2."""
    ran = run("doctor", "--log", str(log), *words)
    assert ran.exit_code == 2
    assert "Traceback" not in ran.output


def test_the_token_is_never_shown(run, serve):
    """Not even when a server says it."""
    served = serve(lambda _: http(b"secret-word-1", status="401 Unauthorized"))
    ran = run("doctor", "--engine", served.url, ADMITPERF_TOKEN="secret-word-1")
    assert ran.exit_code == 1
    assert "engine.token" in ran.stdout
    assert "secret-word-1" not in ran.output


@pytest.mark.parametrize("address", ["ftp://x/metrics", "no address", ""])
def test_what_is_no_address_is_said(run, address):
    """Exit code 2 and no traceback."""
    ran = run("doctor", "--engine", address, "--gateway", "ftp://x")
    assert ran.exit_code == 2
    assert "engine.reachable" in ran.stdout
    assert "Traceback" not in ran.output
