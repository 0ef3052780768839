"""`admitperf bench`: from one line to a verdict, and back again."""

import json
import re
import shutil
import signal
import subprocess

import pytest
from tests.cli.conftest import TOOL, is_plain

from admitperf.cli.bench_run import rough

SMALL = (
    "bench",
    "--profile=a100-40-qwen2.5-7b",
    "--engine=max_num_seqs=4",
    "--workload=chat",
    "--policy=queue_depth:max_waiting=2",
    "--loads=0.8,1.5",
    "--blocks=6",
    "--calls=30",
    "--jobs=1",
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What a small benchmark prints, and where it is."""
    from click.testing import CliRunner

    from admitperf.cli import main

    root = tmp_path_factory.mktemp("bench")
    ran = CliRunner().invoke(main, [*SMALL, f"--root={root}"])
    assert ran.exit_code == 0, ran.output
    return ran, root


def test_one_line_ends_with_a_verdict(shown):
    """What is planned, then the page of `bench compare`, all of it plain."""
    ran, _ = shown
    text = ran.stdout
    assert is_plain(text)
    assert text.startswith("SIMULATED")
    plan, page = text.index("24 runs into"), text.index("Claims\n")
    assert plan < page
    assert "queue_depth: every arm against no_admission" in text or (
        "every arm against no_admission" in text
    )
    assert "measuring capacity" in ran.stderr


def test_the_same_line_again_reads_what_is_there(shown, run):
    """And prints the same page."""
    ran, root = shown
    again = run(*SMALL, f"--root={root}")
    assert again.exit_code == 0
    assert again.stdout == ran.stdout
    assert "measuring latency" not in again.stderr


def test_the_folder_is_named_after_what_was_run(shown):
    """Unless it was given a name."""
    _, root = shown
    assert [path.name for path in root.iterdir()] == ["chat-a100-40-qwen2.5-7b"]


def test_a_plan_is_told_and_nothing_is_run(shown, run):
    """As text and as JSON."""
    _, root = shown
    ran = run(*SMALL, f"--root={root}", "--plan-only", "--json")
    told = json.loads(ran.stdout)
    assert told["runs"] == len(told["order"]) == 24
    assert any("smallest p that sign flips" in one for one in told["said"])


def test_an_arm_may_be_a_composition(run, tmp_path):
    """With commas inside its brackets, `fitted` too, and a folder's name for each."""
    one = "first_of:policies=(tenant_share:weights=(a=2,b=1); queue_depth)"
    fits = "first_of:policies=(queue_depth:max_waiting=fitted,action=reject)"
    arms = [f"--policy={one}", f"--policy={fits}"]
    words = [word for word in SMALL if not word.startswith("--policy")]
    ran = run(*words, *arms, f"--root={tmp_path}", "--plan-only", "--json")
    assert ran.exit_code == 0, ran.output
    assert {job["arm"] for job in json.loads(ran.stdout)["order"]} == {
        "no_admission",
        "first_of-policies=tenant_share:weights=_a=2_b=1_queue_depth",
        "first_of-policies=queue_depth:max_waiting=fitted_action=reject",
    }


def test_the_plan_says_the_hash_of_what_was_planned_first(shown, run):
    """That of the experiment, which stands in its file; what is otherwise is said."""
    _, root = shown
    (folder,) = [path for path in root.iterdir() if path.name.startswith("chat-")]
    first = json.loads((folder / "experiment.json").read_text())["planned_first"]
    ran = run(*SMALL, f"--root={root}", "--plan-only")
    assert f"Planned first: {first['hash']}." in " ".join(ran.stdout.split())
    assert "planned first" not in ran.stderr
    ran = run(*SMALL, f"--root={root}", "--blocks=8", "--plan-only", "--json")
    told = json.loads(ran.stdout)
    assert told["planned_first"] == first
    (said,) = [line for line in ran.stderr.splitlines() if "planned first" in line]
    assert "blocks 6, now 8" in said
    assert said == told["departed"]


def test_another_metric_after_the_runs_is_said_and_gone_on_with(shown, run, tmp_path):
    """It is no other experiment; the verdict is void."""
    _, root = shown
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    (tmp_path / "my.yaml").write_text(
        "target: {profile: a100-40-qwen2.5-7b, engine: {max_num_seqs: 4}}\n"
        "workload: {name: chat}\n"
        "arms: [{policy: queue_depth, parameters: {max_waiting: 2}}]\n"
        "loads: [0.8, 1.5]\nblocks: 6\ncalls: 30\njobs: 1\nmetric: wasted_share\n"
    )
    ran = run("bench", "my.yaml", f"--root={copy}", "--check")
    assert ran.exit_code == 1, ran.output
    assert "metric goodput, now wasted_share" in ran.stderr
    assert "VOID" in ran.stdout


def test_a_block_is_run_again(shown, run, tmp_path):
    """Of every arm, and the rest stands."""
    _, root = shown
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    (folder,) = [path for path in copy.iterdir() if path.name.startswith("chat-")]
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/*/summary.json")}
    ran = run(*SMALL, f"--root={copy}", "--redo=x1.5-b2", "--redo=x0.8-b1")
    assert ran.exit_code == 0, ran.output
    after = {path: path.stat().st_mtime_ns for path in folder.glob("*/*/summary.json")}
    changed = {path.parent.name for path in after if after[path] != before[path]}
    assert (changed, len(after)) == ({"x1.5-b2", "x0.8-b1"}, 24)
    assert "x1.5-b2 was run again for every arm" in " ".join(ran.stdout.split())
    ran = run(*SMALL, f"--root={copy}", "--redo=b2")
    assert ran.exit_code == 2
    assert "--redo b2: is none of the blocks" in ran.output


@pytest.mark.parametrize(
    ("left_s", "said"),
    [
        (0.86137, "1s"),
        (12.4, "12s"),
        (89.4, "1m29s"),
        (95.0, "2m"),
        (1234.5, "21m"),
        (5400.0, "1h30m"),
    ],
)
def test_an_estimate_is_rough(left_s, said):
    """Whole seconds, and whole minutes when it is more than one and a half."""
    assert rough(left_s) == said


def test_progress_says_how_long_the_rest_may_take(shown):
    """In every line but the last."""
    ran, _ = shown
    lines = [line for line in ran.stderr.splitlines() if " runs" in line]
    assert len(lines) >= 2
    assert all(re.search(r" runs, [1-9][0-9hms]* left\)$", one) for one in lines[:-1])
    assert lines[-1].endswith("(24 of 24 runs)")


def test_the_logs_are_read_once(shown, monkeypatch):
    """For the findings in the experiment's file, and for the page."""
    from click.testing import CliRunner

    from admitperf.bench.design import results
    from admitperf.cli import main

    seen = []
    report = results.report
    monkeypatch.setattr(
        results, "report", lambda paths: seen.append(paths) or report(paths)
    )
    ran, root = shown
    again = CliRunner().invoke(main, [*SMALL, f"--root={root}"])
    assert (again.exit_code, len(seen)) == (0, 1)
    assert again.stdout == ran.stdout


def test_a_check_that_is_not_met_ends_with_1(shown, run):
    """Of an arm that cannot be better: it is the baseline."""
    _, root = shown
    ran = run(
        *SMALL[:4],
        "--aa",
        "--loads=1.2",
        "--blocks=6",
        "--calls=30",
        "--jobs=1",
        f"--root={root}",
        "--experiment=aa",
        "--check",
    )
    assert ran.exit_code == 1, ran.output
    assert "check failed: " in ran.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["my.yaml", "--preset=tool-tight"], "choose one"),
        (["--profile=a", "--url=http://b"], "choose one"),
        (["none.yaml"], "none.yaml: cannot be read: no such file"),
        (["--preset=none"], "is none of "),
        ([], "Usage: "),
        (["--profile=none", "--policy=queue_depth"], "is none of those shipped"),
        (["--profile=a100-40-qwen2.5-7b"], "there is only the baseline"),
        ([*SMALL[1:], "--loads=a"], "--loads a: write numbers"),
        ([*SMALL[1:], "--engine=seqs"], "--engine seqs: write NAME=VALUE"),
        ([*SMALL[1:], "--engine=seqs=1"], "engine.seqs is unknown"),
        ([*SMALL[1:], "--workload=none"], "no workload 'none'"),
        ([*SMALL[1:], "--client=none_such"], "names none of none, patient"),
        ([*SMALL[1:], "--policy=none"], "no policy 'none'"),
        ([*SMALL[1:], "--policy=queue_depth:"], "nothing follows the colon"),
        ([*SMALL[1:], "--policy=kv_threshold:threshold=7"], "threshold = 7"),
        (
            [*SMALL[1:], "--policy=tenant_share:weights=a=2,b=1"],
            "b=1: b is no parameter (known: weights, contended_at); write name:param=",
        ),
        ([*SMALL[1:], "--policy=queue_depth:8"], "'8' is not PARAM=VALUE"),
        ([*SMALL[1:], "--policy=tenant_share:weights=(a"], "brackets do not match"),
        ([*SMALL[1:], "--blocks=5"], "5 blocks cannot win"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(run, tmp_path, args, said):
    """With exit code 2, and nothing is written."""
    ran = run("bench", *args)
    assert ran.exit_code == 2, ran.output
    assert said in ran.output
    assert "Traceback" not in ran.output
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_with_130_and_what_can_be_read(tmp_path):
    """By a real signal, to a process that runs runs in others."""
    line = [*TOOL, *SMALL[:-1], "--jobs=2", "--blocks=60", f"--root={tmp_path}"]
    child = subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    for told in child.stderr:
        if " runs" in told:
            break
    child.send_signal(signal.SIGINT)
    _, rest = child.communicate(timeout=60)
    assert child.returncode == 130, rest
    assert rest.splitlines()[-1].startswith("ended early: ")
    (folder,) = tmp_path.iterdir()
    assert json.loads((folder / "experiment.json").read_text())["partial"] is True
    assert list(folder.glob("*/x*/summary.json"))
    assert not list(folder.glob("*/.*"))


def test_a_file_says_what_and_options_stand_over_it(run, tmp_path):
    """Key by key."""
    (tmp_path / "my.yaml").write_text(
        "target: {profile: a100-40-qwen2.5-7b, engine: {max_num_seqs: 4}}\n"
        "workload: {name: chat}\n"
        "arms: [{policy: queue_depth, parameters: {max_waiting: 2}}]\n"
        "loads: [0.8, 1.5]\nblocks: 8\ncalls: 30\njobs: 1\n"
    )
    ran = run("bench", "my.yaml", "--blocks=6", "--plan-only", "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["runs"] == 24


@pytest.mark.parametrize("what", ["workloads", "clients"])
def test_lists_are_text_and_json(run, what):
    """The names are those that can be given."""
    told = json.loads(run("bench", what, "--json").stdout)
    text = run("bench", what).stdout
    assert is_plain(text)
    assert all(name in text for name in told)
    assert {"workloads": "tool-tight", "clients": "patient"}[what] in told
