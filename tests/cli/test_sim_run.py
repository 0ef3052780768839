"""`admitperf sim run`: a policy in virtual time, and every output says so."""

import io
import json
import os
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import is_plain

from admitperf.bench import simulation
from admitperf.bench.callers.client import CLIENTS
from admitperf.bench.workloads.chat import Chat
from admitperf.cli import sim_run
from admitperf.simulator import EngineModel
from admitperf.simulator.profile import Profile, Provenance

ENGINE = EngineModel(
    max_num_seqs=8, kv_blocks=500, step_ms=60.0, ms_per_prefill_token=0.3,
    max_model_len=2_048, max_num_batched_tokens=512,
)  # fmt: skip
MEASURED = Provenance(
    source="measured", runs=("a", "b"), date="2026-11-29", machine="one small machine",
    versions="vLLM 0.32, a tiny model",
)  # fmt: skip
SHORT = ("--policy", "queue_depth", "--requests", "150")


@pytest.fixture
def engine(tmp_path):
    """The path of a small engine's profile."""
    path = tmp_path / "small.json"
    text = Profile(name="small", engine=ENGINE, provenance=MEASURED).text()
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture
def simulate(run, engine):
    """Run a simulation, short unless told otherwise."""

    def _simulate(*args, short=True):
        words = SHORT if short else ()
        return run("sim", "run", "--profile", engine, *words, *args)

    return _simulate


def flat(text):
    """The text without its line breaks."""
    return " ".join(text.split())


def header(path="run.jsonl"):
    """The run line of a log."""
    return lines(path)[0]


def lines(path="run.jsonl"):
    """All lines of a log."""
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def test_the_text_says_simulated_the_profile_the_capacity_and_the_load(simulate, run):
    """Then comes the page of the report, and the stamp and the log once more."""
    ran = simulate("--load", "1.5", "--slo", "ttft_ms=500")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert is_plain(ran.stdout)
    told = flat(ran.stdout)
    for words in (
        "SIMULATED: an engine in virtual time; no number here was measured on hardware",
        "Profile small: measured in 2 runs of 2026-11-29 on one small machine.",
        "Planned: 150 requests, ",
        "Measured first, without a policy: 16 clients in a closed loop get",
        "Offered, 1.5x of that: 150 requests",
        "profile_source=measured in 2 runs",
        "SLO ttft_ms 500, from the run header",
        "ORACLE",
    ):
        assert (words in told) == (words != "ORACLE"), words
    assert ran.stdout.endswith("on hardware.\nlog: run.jsonl\n")
    assert run("report", "run.jsonl").stdout in ran.stdout


def test_the_log_says_what_it_is(simulate):
    """Engine, profile and where it is from, load, seed and the hash of the traffic."""
    simulate("--load", "1.5", "--scrape-interval", "100ms", "--replicas", "2",
             "--routing", "turns")  # fmt: skip
    notes = header()["notes"]
    assert notes["simulated"] is True
    assert (notes["profile"], notes["load"], notes["seed"]) == ("small", 1.5, 1)
    assert notes["profile_source"].startswith("measured in 2 runs of 2026-11-29")
    assert (notes["replicas"], notes["routing"]) == (2, "turns")
    assert notes["scrape_interval_s"] == 0.1
    assert notes["client"] == "does not retry"
    assert "oracle" not in notes
    assert len(notes["plan"]) == 16


@pytest.mark.parametrize("as_json", [False, True])
def test_an_oracle_is_stamped_on_every_output(simulate, run, as_json):
    """The text twice, the JSON, the log's header, and whatever report is made of it."""
    ran = simulate("--oracle", *(("--json",) if as_json else ()))
    assert header()["notes"]["oracle"] is True
    assert "ORACLE" in run("report", "run.jsonl").stdout
    if as_json:
        told = json.loads(ran.stdout)
        assert told["oracle"] is True
        assert told["stamps"][0].startswith("ORACLE")
        assert told["report"]["runs"][0]["header"]["notes"]["oracle"] is True
    else:
        assert ran.stdout.startswith("ORACLE")
        assert flat(ran.stdout).count("ORACLE the policy was told") == 1
        assert ran.stdout.count("ORACLE: the policy was told") == 2


def test_an_oracle_tells_the_policy_true_lengths_and_nothing_else_does(simulate):
    """Facts of decisions against the outcomes of the same requests."""
    for oracle in (False, True):
        simulate("--force", *(("--oracle",) if oracle else ()))
        log = lines()
        asked = {
            line["id"]: line["facts"]["max_output_tokens"]
            for line in log
            if line["k"] == "decision"
        }
        got = [line for line in log if line["k"] == "outcome"]
        assert got
        told = [asked[line["id"]] == line["output_tokens"] for line in got]
        assert all(told) if oracle else not any(told)


def test_the_same_seed_writes_the_same_bytes_and_another_one_does_not(simulate):
    """In the log as in the output."""
    outputs, logs = [], []
    for seed in ("3", "3", "4"):
        outputs.append(simulate("--seed", seed, "--force", "--json").stdout)
        logs.append(Path("run.jsonl").read_bytes())
    assert outputs[0] == outputs[1] != outputs[2]
    assert logs[0] == logs[1] != logs[2]


def test_json_is_one_document_with_the_report_in_it(simulate):
    """And the profile whole, with its provenance."""
    told = json.loads(simulate("--json", "--rate", "2").stdout)
    assert (told["simulated"], told["oracle"], told["count"]) == (True, False, 150)
    assert told["profile"]["provenance"]["runs"] == ["a", "b"]
    assert told["rate_per_s"] == 2.0
    assert told["load"] == pytest.approx(2.0 / told["capacity"]["requests_per_s"])
    assert told["lasts_s"] == 75.0
    assert told["report"]["runs"]


def test_agents_are_told_as_sessions(simulate):
    """What is offered, what a refusal does, and how sessions ended."""
    ran = simulate(
        "--policy", "queue_depth", "--param", "max_waiting=0", "--load", "2",
        "--for", "2m", "--workload", "agents", short=False,
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    told = flat(ran.stdout)
    assert "sessions a second" in told
    assert "a refusal ends its session" in told
    assert "Of the sessions" in told
    assert "and 0 by the end of the run" not in told
    assert "session 100.0 %" in told
    times_us = [line["t_us"] for line in lines() if line["k"] == "decision"]
    assert times_us[-1] - header()["t_us"] <= 120e6  # nothing is asked later


def attempts():
    """Decisions by the call they are about."""
    found = {}
    for line in lines():
        if line["k"] == "decision":
            found.setdefault(line["facts"]["logical_id"], []).append(line)
    return found


def test_a_client_that_comes_again_is_told_of_and_stands_in_the_log(simulate):
    """Four attempts at most, each of which the policy is told the number of."""
    words = ("--param", "max_waiting=0", "--load", "3", "--client", "impatient")
    ran = simulate(*words)
    assert ran.exit_code == 0, ran.output
    said = "tries 4 times, 2 s apart, honours Retry-After"
    assert f"The client {said}." in flat(ran.stdout)
    assert header()["notes"]["client"] == said
    calls = attempts()
    assert len(calls) == 150
    assert {len(tries) for tries in calls.values()} == {1, 2, 3, 4}
    for tries in calls.values():
        told = [line["facts"].get("attempt", 0) for line in tries]
        assert told == list(range(len(tries)))
    assert "150 calls" in flat(ran.stdout)


def test_who_does_not_come_again_makes_one_attempt_a_call(simulate):
    """Which is the default."""
    assert simulate("--param", "max_waiting=0", "--load", "3").exit_code == 0
    assert {len(tries) for tries in attempts().values()} == {1}
    assert header()["notes"]["client"] == "does not retry"


def test_out_of_patience_a_session_is_undone_and_counted_as_that(simulate):
    """Where the engine is given far more than it can do."""
    ran = simulate(
        "--policy", "no_admission", "--load", "3", "--for", "10m", "--client", "undo",
        "--workload", "agents", short=False,
    )  # fmt: skip
    assert "by a caller out of patience" in flat(ran.stdout)
    assert any(line.get("error") == "client_closed" for line in lines())


def test_the_help_names_every_client(run):
    """And no other."""
    told = flat(run("sim", "run", "--help").stdout)
    *most, last = CLIENTS
    assert f"What a refused caller does: {', '.join(most)} or {last}." in told


def test_a_trace_is_divided_until_it_fits_and_says_by_how_much(simulate, tmp_path):
    """Unless the divisor is given; what is left out is counted."""
    calls = [
        {"t": 9.0 * n, "in": 640 * (n + 1), "out": 64, "think": 5.0, "stream": 0,
         "blocks": [[1, 10 * (n + 1)]]}
        for n in range(20)
    ]  # fmt: skip
    trace = tmp_path / "trace.jsonl"
    trace.write_text(json.dumps({"session": "s", "events": calls}), encoding="utf-8")
    words = ("--policy", "no_admission", "--for", "1m", "--load", "1", "--workload",
             str(trace), "--force")  # fmt: skip
    ran = simulate(*words, short=False)
    assert ran.exit_code == 0, ran.output
    notes = header()["notes"]
    assert (notes["token_divisor"], notes["calls_left_out"]) == (8, 0)
    assert "token counts divided by 8" in flat(ran.stdout)
    ran = simulate(*words, "--token-divisor", "4", short=False)
    notes = header()["notes"]
    assert (notes["token_divisor"], notes["calls_left_out"]) == (4, 8)
    assert "8 of 20 (40.0 %) calls left out" in flat(ran.stdout)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--policy", "nope"), "no policy 'nope'"),
        (("--param", "x=1"), "x is no parameter"),
        (("--param", "max_waiting=-1"), "max_waiting = -1 is not at least 0"),
        (("--param", "max_waiting"), "write NAME=VALUE"),
        (("--param", "log=x"), "is a setting, not a parameter"),
        (("--param", "action=defer", "--param", "action=reject"), "given twice"),
        (("--rate", "1", "--load", "2"), "choose one"),
        (("--for", "1m"), "choose one"),
        (("--rate", "0"), "'--rate'"),
        (("--load", "nan"), "--load nan is no number"),
        (("--profile", "nope"), "is none of those shipped"),
        (("--workload", "none.jsonl"), "no workload 'none.jsonl', and no file"),
        (("--workload", "small.json"), "small.json: is of no form that is read"),
        (("--workload", "chat", "--workload", "agents"), "'chat' takes no trace"),
        (("--token-divisor", "3"), "'chat' takes no divisor"),
        (("--client", "polite"), "no client 'polite'; there are none, patient, "),
        (("--slo", "nope=1"), "'--slo'"),
        (("-o", "small.json/x.jsonl"), "small.json"),
        (("-o", "small.json"), "is there and not empty"),
        (("--scrape-interval", "250"), "250ms is written 250ms"),
        (("--scrape-interval", "2m"), "a bare number is seconds"),
        (("--experiment", "a/b"), "must not contain a path separator"),
    ],
)
def test_a_wrong_option_is_one_clear_line(simulate, tmp_path, args, words):
    """With exit code 2, and no log is left."""
    ran = simulate(*args)
    assert ran.exit_code == 2, ran.output
    (said,) = [line for line in ran.stderr.splitlines() if line.startswith("Error")]
    assert words in said
    assert ran.stdout == ""
    assert not (tmp_path / "run.jsonl").exists()


def test_a_rate_at_which_nothing_comes_is_said(simulate):
    """Instead of an empty run."""
    ran = simulate("--policy", "no_admission", "--rate", "0.001", "--for", "1s",
                   short=False)  # fmt: skip
    assert ran.exit_code == 2
    assert "nothing comes" in ran.stderr


def test_the_first_lines_say_what_came_of_it(simulate):
    """After the stamp and the plan: five names, and the log among them."""
    ran = simulate("--load", "1.5", "--slo", "ttft_ms=500")
    _, planned, first, *_ = ran.stdout.split("\n\n")
    assert planned.startswith("Planned: 150 requests, ")
    names = [line.split()[0] for line in first.splitlines() if line[2] != " "]
    assert names == ["finding", "goodput", "refused", "TTFT", "log"]
    assert "run.jsonl" in first


def test_what_is_planned_is_said_before_any_of_it_is_made(simulate, monkeypatch):
    """So that who asked for too much can end it."""

    def begun(*_):
        raise ValueError("made")

    monkeypatch.setattr(Chat, "begun", begun)
    ran = simulate()
    assert ran.exit_code == 2
    assert "made" in ran.stderr
    assert "Planned: 150 requests" in ran.stdout


@pytest.mark.parametrize("workload", ["chat", "agents"])
def test_too_many_requests_are_refused_in_one_line(simulate, tmp_path, workload):
    """Before any is made, with what to give instead; that is then taken."""
    words = ("--policy", "no_admission", "--workload", workload, "--rate", "1000000")
    ran = simulate(*words, "--for", "31d", short=False)
    assert ran.exit_code == 2
    (said,) = ran.stderr.splitlines()
    assert "5,000,000 is the most: give fewer --requests, or a shorter time" in said
    assert ran.stdout == ""
    assert not (tmp_path / "run.jsonl").exists()


def test_repeats_of_an_experiment_are_compared(simulate, run):
    """Each seed is a repeat, the capacity is one, and the verdict is not void."""
    for policy in ("no_admission", "queue_depth"):
        for seed in ("1", "2", "3"):
            ran = simulate(
                "--policy", policy, "--load", "2", "--slo", "ttft_ms=2000",
                "--experiment", "pilot", "--seed", seed,
                *(("--param", "max_waiting=1") if policy == "queue_depth" else ()),
            )  # fmt: skip
            assert ran.exit_code == 0, ran.output
    headers = [header(path) for path in Path("experiments/pilot").rglob("*.jsonl")]
    assert {(one["experiment"], one["name"]) for one in headers} == {
        ("pilot", "r1"), ("pilot", "r2"), ("pilot", "r3"),
    }  # fmt: skip
    assert len({one["run"] for one in headers}) == 6
    assert len({one["notes"]["capacity_per_s"] for one in headers}) == 1
    compared = run("compare", "--experiment", "pilot")
    assert compared.exit_code == 0, compared.output
    assert "VOID" not in compared.stdout
    assert "3 pairs" in compared.stdout


def test_agents_have_one_capacity_and_state_no_load_in_calls(simulate):
    """The log's rate counts calls, and what is stated counts sessions."""
    capacities = set()
    for seed in ("1", "2"):
        simulate("--policy", "no_admission", "--workload", "agents", "--load", "2",
                 "--for", "30s", "--seed", seed, "--force", short=False)  # fmt: skip
        notes = header()["notes"]
        assert "load" not in notes
        assert notes["session_load"] == 2.0
        capacities.add(notes["capacity_per_s"])
    assert len(capacities) == 1


def test_answers_of_the_default_requests_are_no_alarm(simulate):
    """Over half of what is asked for comes."""
    assert "as long as asked for" not in flat(simulate().stdout)


def test_a_log_is_not_replaced_unless_it_is_said(simulate):
    """Nor added to."""
    assert simulate().exit_code == 0
    again = simulate()
    assert again.exit_code == 2
    assert "add --force" in again.stderr
    assert simulate("--force").exit_code == 0
    log = Path("run.jsonl").read_text("utf-8")
    assert log.count('"k":"decision"') == 150


def test_progress_is_told_while_requests_are_made(simulate, monkeypatch):
    """What is made, the plan's hash, and every so many calls."""
    said = []
    monkeypatch.setattr(simulation, "MADE_EVERY", 50)
    monkeypatch.setattr(sim_run, "_progress", said.append)
    assert simulate().exit_code == 0
    assert said == [
        "reading the workload", "measuring capacity", "", "making requests",
        "naming the plan: 150 requests", "preparing calls: 50",
        "preparing calls: 100", "preparing calls: 150", "",
    ]  # fmt: skip


def test_a_terminal_sees_how_far_it_is_and_nothing_else_does(simulate, monkeypatch):
    """One line, written over, and empty when it is over."""

    class Terminal(io.StringIO):
        """Says that it is one."""

        def isatty(self):
            """Yes."""
            return True

    assert simulate().stderr == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    sim_run._progress("measuring capacity")
    sim_run._progress("")
    shown = terminal.getvalue()
    assert shown.startswith("\rmeasuring capacity")
    assert shown.endswith(f"\r{'':79}\r")
    assert "\n" not in shown


def test_a_run_that_is_ended_leaves_no_half_log(simulate, monkeypatch):
    """Under no name; and what was there before stays as it was."""

    def ended(*_):
        raise KeyboardInterrupt

    Path("run.jsonl").write_text("before\n", encoding="utf-8")
    there = set(Path().iterdir())
    monkeypatch.setattr(simulation, "name_run", ended)
    assert simulate("--force").exit_code != 0
    assert Path("run.jsonl").read_text("utf-8") == "before\n"
    assert set(Path().iterdir()) == there


def test_a_log_appears_under_its_name_when_it_is_whole(simulate, monkeypatch):
    """Until then it is a hidden file beside it."""
    seen = []

    def look(path, name):
        seen.append((path.name, Path("run.jsonl").exists()))
        return name_run(path, name)

    name_run = simulation.name_run
    monkeypatch.setattr(simulation, "name_run", look)
    assert simulate().exit_code == 0
    ((name, there),) = seen
    assert name.startswith(".run.jsonl.")
    assert not there
    assert [one.name for one in Path().glob("*run*")] == ["run.jsonl"]


def test_two_runs_into_one_file_are_not_mixed(simulate, monkeypatch):
    """The one that ends last replaces all of the other."""

    def other(path, name):
        monkeypatch.setattr(simulation, "name_run", name_run)
        assert simulate("--seed", "7").exit_code == 0  # while the first is under way
        return name_run(path, name)

    name_run = simulation.name_run
    monkeypatch.setattr(simulation, "name_run", other)
    assert simulate("--seed", "3").exit_code == 0
    assert {line["run"] for line in lines()} == {header()["run"]}
    assert header()["notes"]["seed"] == 3


def test_a_link_stays_and_what_it_leads_to_is_replaced(simulate, tmp_path):
    """As a person who made the link expects."""
    there = tmp_path / "there.jsonl"
    (tmp_path / "run.jsonl").symlink_to(there)
    assert simulate().exit_code == 0
    assert (tmp_path / "run.jsonl").is_symlink()
    assert there.stat().st_size


def test_a_pipe_is_no_place_for_a_log(simulate, tmp_path):
    """The log is read again for the report: it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    for force in ((), ("--force",)):
        ran = simulate("-o", "pipe", *force)
        assert ran.exit_code == 2
        (said,) = ran.stderr.splitlines()
        assert "pipe: is no plain file" in said


@pytest.mark.parametrize("instead", ["at most 26 --requests", "another --rate"])
def test_a_rate_so_low_that_it_would_never_end_is_refused(simulate, instead):
    """With what could be asked for; that is a month's worth."""
    rate = "0.00001" if "at most" in instead else "0.0000001"
    ran = simulate("--rate", rate)
    assert ran.exit_code == 2
    (said,) = ran.stderr.splitlines()
    assert said.startswith("Error: 150 requests at ")
    assert "31 are the most" in said
    assert instead in said
