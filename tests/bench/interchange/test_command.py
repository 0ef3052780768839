"""`admitperf bench read`: pages, JSON, call lines; one line for what is no result."""

import json
import os

import pytest
from click.testing import CliRunner

from admitperf.bench.callers.records import record
from admitperf.cli.bench_read import command


@pytest.fixture
def ran():
    """Run the command."""
    return lambda *args: CliRunner().invoke(command, [str(one) for one in args])


def test_a_page_leads_with_goodput_over_offered(ran, made):
    """And says what the file does not."""
    shown = ran(made("inference-perf-0.7.0-per-request.json"), "--slo", "ttft_ms=301")
    assert shown.exit_code == 0
    assert "goodput       0.625 = 5 of 8 requests offered" in shown.output
    assert "not said      When requests were due" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80
    assert shown.output.isascii()


def test_json_is_strict_and_has_every_run(ran, made):
    """Numbers with their denominators, and no NaN."""
    shown = ran(made("guidellm-0.8.1.json"), made("aiperf-0.13.0.jsonl"), "--json")

    def refuse(constant):
        raise AssertionError(constant)

    told = json.loads(shown.stdout, parse_constant=refuse)
    assert told["schema"] == 1
    assert [run["tool"] for run in told["runs"]] == ["GuideLLM"] * 3 + ["AIPerf"]
    assert [run["offered"] for run in told["runs"]] == [8, 5, 50, 10]
    assert told["runs"][0]["summary"]["offered"] == 8


def test_calls_are_written_as_ours_are(ran, made, tmp_path):
    """Each line is one that our own readers take."""
    path = tmp_path / "calls.jsonl"
    assert ran(made("aiperf-0.13.0.jsonl"), "--calls", path).exit_code == 0
    calls = [record(json.loads(line)) for line in path.read_text().splitlines()]
    assert len(calls) == 10
    assert {call.ended for call in calls} == {
        "answered", "cancelled", "failed", "refused",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "7",
        '"text"',
        "not json",
        '{"k": "run"}\n{"k": "call"}\n',
        '{"benchmarks": []}',
        '{"benchmarks": [1]}',
        '{"benchmarks": [{"requests": {"successful": [[]]}}]}',
        '{"completed": 1, "request_throughput": NaN}',
        '{"completed": "x", "request_throughput": 1}',
        '{"load_summary": 1, "successes": 2}',
        '{"metadata": {}, "metrics": {}}',
        '{"metadata": {"timestamp_ns": 1}, "metrics": {}}\nnonsense\n',
        '[{"start_time": 2, "end_time": 1, "info": {}}]',
        '[{"start_time": 1, "end_time": 2, "info": 7}]',
        "[" * 100_000,
    ],
)
def test_what_is_no_result_is_one_line(ran, tmp_path, text):
    """The file by name, why, and exit code 2."""
    path = tmp_path / "odd.json"
    path.write_text(text, encoding="utf-8")
    shown = ran(path)
    assert shown.exit_code == 2
    assert isinstance(shown.exception, SystemExit)
    (line,) = [one for one in shown.stderr.splitlines() if one]
    assert line.startswith("Error: ")
    assert "odd.json" in line


def test_a_file_that_cannot_be_read_does_not_hide_the_others(ran, made, tmp_path):
    """A folder, a missing file and bytes that are no text."""
    odd = tmp_path / "bytes.json"
    odd.write_bytes(b"\xff\xfe")
    shown = ran(tmp_path / "none.json", tmp_path, odd, made("aiperf-0.13.0.jsonl"))
    assert shown.exit_code == 2
    assert "goodput       0.700 = 7 of 10" in shown.output
    assert len(shown.stderr.splitlines()) == 3
    assert "no such file" in shown.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_calls_that_cannot_be_written_are_one_line(ran, made, tmp_path):
    """The path and why."""
    tmp_path.chmod(0o500)
    shown = ran(made("aiperf-0.13.0.jsonl"), "--calls", tmp_path / "x.jsonl")
    assert shown.exit_code == 1
    assert "x.jsonl" in shown.output


def test_bounds_that_are_none_are_a_usage_error(ran, made):
    """As on `report`."""
    shown = ran(made("aiperf-0.13.0.jsonl"), "--slo", "ttft=5")
    assert shown.exit_code == 2
    assert "'ttft' is no bound" in shown.output
