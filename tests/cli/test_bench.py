"""`admitperf bench`: from one line to a verdict, and back again."""

import json
import signal
import subprocess

import pytest
from tests.cli.conftest import TOOL, is_plain

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
