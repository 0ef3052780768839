"""`admitperf demo --recorded`: policies over a recorded overload, always the same."""

import json
from pathlib import Path

import jsonschema
import pytest
from tests.cli.conftest import is_plain

from admitperf.bench.demo.recording import Recording
from admitperf.cli import main

NAMES = ["kv_threshold", "queue_depth", "no_admission"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The output of one demo and the folder of its logs."""
    from click.testing import CliRunner

    folder = tmp_path_factory.mktemp("demo") / "logs"
    ran = CliRunner().invoke(main, ["demo", "--recorded", "-o", str(folder)])
    assert ran.exit_code == 0
    return ran, folder


def lines(path, kind):
    """The lines of one kind in a log."""
    text = path.read_text(encoding="ascii")
    return [line for line in map(json.loads, text.splitlines()) if line["k"] == kind]


def test_the_output_is_what_it_was(run, golden):
    """The whole text, to be read in a diff."""
    golden("demo_recorded.txt", run("demo", "--recorded").stdout)


def test_it_says_what_is_recorded_and_what_to_notice(shown):
    """A newcomer knows what he looks at, and what it does not show."""
    ran, _ = shown
    assert ran.stderr == ""
    assert is_plain(ran.stdout)
    flat = " ".join(ran.stdout.split())
    opening, _, rest = flat.partition("Run of kv_threshold")
    for words in ("vLLM 0.32.0", "2026-11-29", "2x of", "enforce=0", "no policy could"):
        assert words in opening
    closing = rest.rpartition("What to notice")[2]
    for name, word in zip(NAMES, ("SHADOW", "SHADOW", "BASELINE"), strict=True):
        assert f"{name} is {word}." in closing
    assert "logs cannot say" in closing


def test_both_rules_would_have_fired_and_nothing_was_enforced(shown):
    """The findings, and the numbers behind them, are those of the logs."""
    ran, folder = shown
    flat = " ".join(ran.stdout.split())
    for name in NAMES:
        decisions = lines(folder / f"{name}.jsonl", "decision")
        refused = [line for line in decisions if line["verdict"] != "admit"]
        assert len(decisions) == 219
        assert all(line["admitted"] and not line["enforced"] for line in decisions)
        assert not any("blind" in line for line in decisions)
        if name == "no_admission":
            assert refused == []
        else:
            assert 50 < len(refused) < 200
            assert f"It would have refused {len(refused)} of 219" in flat


def test_every_request_ended_as_it_was_recorded(shown):
    """The outcomes of all three logs are the recording's own."""
    _, folder = shown
    calls = {call.id: call for call in Recording.demo().calls}
    for name in NAMES:
        outcomes = lines(folder / f"{name}.jsonl", "outcome")
        assert len(outcomes) == len(calls)
        for line in outcomes:
            call = calls[line["id"]]
            assert (line["ttft_ms"], line["e2e_ms"]) == (call.ttft_ms, call.e2e_ms)
            assert line["output_tokens"] == call.output_tokens


def test_the_reports_are_those_of_the_report_command(shown, run):
    """What the demo prints can be had again from its logs."""
    ran, folder = shown
    for name in NAMES:
        alone = run("report", str(folder / f"{name}.jsonl")).stdout
        report = alone.partition("\nFiles\n")[0]
        assert report in ran.stdout


def test_the_same_bytes_every_time(shell):
    """Two processes with different hash seeds print and log the same."""
    first = shell(
        "admitperf demo --recorded; cd admitperf-demo; cat *", PYTHONHASHSEED="1"
    )
    second = shell(
        "admitperf demo --recorded; cd admitperf-demo; cat *", PYTHONHASHSEED="2"
    )
    assert first.returncode == 0
    assert first.stdout == second.stdout


def test_a_second_demo_replaces_the_logs_of_the_first(run):
    """Otherwise the second report would count everything twice."""
    assert run("demo", "--recorded").stdout == run("demo", "--recorded").stdout


def test_a_log_that_is_none_of_a_demo_is_not_touched(run):
    """A folder of real logs named by mistake loses nothing."""
    for content in ("mine\n", '{"k":"run","experiment":"e"}\n', "[1]\n", "\0\xff"):
        Path("queue_depth.jsonl").write_text(content, encoding="latin-1")
        ran = run("demo", "--recorded", "-o", ".")
        assert ran.exit_code == 2
        (line,) = ran.stderr.splitlines()
        assert "queue_depth.jsonl: is there and no log of a demo" in line
        assert Path("queue_depth.jsonl").read_text(encoding="latin-1") == content


@pytest.mark.parametrize("folder", ["file", "/proc/nowhere", "a\0b", "file/below"])
def test_a_folder_that_cannot_be_written_is_one_clear_line(run, folder):
    """Exit code 2, the path and why."""
    Path("file").write_text("x", encoding="utf-8")
    ran = run("demo", "--recorded", "-o", folder)
    assert ran.exit_code == 2
    assert ran.stdout == ""
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_file_in_place_of_the_folder_is_called_one(run, folder):
    """Not `file exists`, and not the name of a log that is not there."""
    Path("file").write_text("x", encoding="utf-8")
    ran = run("demo", "--recorded", "-o", folder)
    assert ran.stderr == "Error: file is a file, not a folder\n"


def test_a_chosen_policy_runs_alone(run):
    """Any installed policy with usable defaults, in the order given."""
    ran = run(
        "demo",
        "--recorded",
        "--policy",
        "dual_gate",
        "--policy",
        "rate_limit",
        "--json",
    )
    told = json.loads(ran.stdout)
    assert [one["header"]["policy"] for one in told["runs"]] == [
        "dual_gate",
        "rate_limit",
    ]
    assert told["runs"][0]["finding"]["word"] == "SHADOW"


def test_json_is_the_document_of_report(run, root):
    """All of it, as its schema has it."""
    told = json.loads(run("demo", "--recorded", "--json").stdout)
    schema = root / "docs" / "reference" / "report" / "report.schema.json"
    jsonschema.validate(told, json.loads(schema.read_text(encoding="utf-8")))
    alone = run("report", "admitperf-demo/queue_depth.jsonl", "--json").stdout
    (items,) = [
        one["items"] for one in told["runs"] if one["header"]["policy"] == "queue_depth"
    ]
    assert len(items) == len(json.loads(alone)["runs"][0]["items"]) > 0


def test_a_policy_nobody_offers_is_one_clear_line(run):
    """Nothing is written for the others either."""
    ran = run(
        "demo", "--recorded", "--policy", "kv_threshold", "--policy", "kv_treshold"
    )
    assert ran.exit_code == 2
    assert "nearest: kv_threshold" in ran.stderr
    assert not Path("admitperf-demo").exists()


def test_it_is_plain_for_every_console_and_reader(shell):
    """ASCII, no escape bytes, and a closed pipe is no error."""
    ran = shell("admitperf demo --recorded", PYTHONIOENCODING="ascii", FORCE_COLOR="1")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"\x1b" not in ran.stdout
    ran = shell(
        "set -o pipefail; admitperf demo --recorded | head -1", PYTHONUNBUFFERED="1"
    )
    assert ran.returncode in (0, 141)
    assert ran.stderr == b""
