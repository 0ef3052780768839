"""`admitperf demo`: the argument, the same every time, and honest about what it is."""

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import is_plain

from admitperf.bench.demo.demo import POLICIES
from admitperf.cli import main


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The output of the default demo and the folder of its logs."""
    from click.testing import CliRunner

    folder = tmp_path_factory.mktemp("demo") / "logs"
    ran = CliRunner().invoke(main, ["demo", "-o", str(folder)])
    assert ran.exit_code == 0, ran.output
    return ran, folder


def logs(folder):
    """Every log of a demo, by its path below the folder."""
    return {
        str(path.relative_to(folder)): path.read_text("ascii")
        for path in sorted(folder.rglob("*.jsonl"))
    }


def test_the_output_is_what_it_was(run, golden):
    """The whole text, to be read in a diff."""
    ran = run("demo")
    assert ran.exit_code == 0, ran.output
    golden("demo.txt", ran.stdout)


def test_it_says_first_what_it_is_and_where_its_numbers_come_from(shown):
    """Simulated, the SLO and the bound derived, no retries."""
    ran, _ = shown
    assert ran.stderr == ""
    assert is_plain(ran.stdout)
    opening = " ".join(ran.stdout.partition("Experiment demo")[0].split())
    for words in (
        "A simulated engine", "no number here was measured on hardware", "n 200",
        "closed loop", "max_waiting = 3 (fitted)", "knows nothing of the SLO",
        "A full cache is no overload here", "(seed 1)", "does not come again",
    ):  # fmt: skip
        assert words in opening


def test_the_argument_is_made_by_the_verdicts(shown):
    """The threshold shortens the tail and is worse; the bound is better."""
    ran, _ = shown
    flat = " ".join(ran.stdout.split())
    assert "WORSE kv_threshold: goodput fell" in flat
    assert "BETTER queue_depth: goodput rose" in flat
    assert "refused requests that the cluster could have served" in flat
    shorter = re.search(r"kv_threshold.*?got ([\d.]+) times shorter", flat)
    assert float(shorter[1]) >= 10


def test_it_ends_with_the_page_of_compare(shown, run, tmp_path):
    """What it claims can be had again from its logs, by anyone."""
    ran, folder = shown
    again = run("compare", "--experiment", "demo", "--root", str(folder))
    assert ran.stdout.endswith(again.stdout)
    told = run("demo", "--repeats", "3", "-o", str(tmp_path / "a"), "--json")
    compare = ("compare", "--experiment", "demo", "--root", str(tmp_path / "a"))
    assert json.loads(told.stdout) == json.loads(run(*compare, "--json").stdout)


def test_it_says_where_the_logs_are_and_what_to_run_next(shown, run):
    """Before the page of compare, which stays what it is; the command works."""
    ran, folder = shown
    opening = " ".join(ran.stdout.partition("Experiment demo")[0].split())
    count, _, command = opening.rpartition(" Next: ")
    assert count.endswith(f"{folder / 'demo'}: 15 logs.")
    tool, *arguments = shlex.split(command)
    assert tool == "admitperf"
    assert run(*arguments).exit_code == 0


def test_each_repeat_has_traffic_of_its_own_and_one_repeat_is_told_as_one(shown, run):
    """What is the same is the traffic of the policies, not of the repeats."""
    ran, _ = shown
    flat = " ".join(ran.stdout.split())
    assert (
        "Each of 5 repeats draws 357 requests of its own; the three policies meet the"
        " same ones (seed 1)" in flat
    )
    flat = " ".join(run("demo", "--repeats", "1").stdout.split())
    assert "The three policies meet the same 357 requests, once (seed 1)" in flat
    assert "experiments/demo: 3 logs. Next: admitperf report experiments/demo" in flat
    assert "1 repeats" not in flat


def test_every_log_says_what_was_run(shown):
    """Simulated, the same plan in each repeat, and everything a reader must know."""
    _, folder = shown
    heads = {path: json.loads(text.splitlines()[0]) for path, text in
             logs(folder).items()}  # fmt: skip
    assert set(heads) == {f"demo/{p}/r{n}.jsonl" for p in POLICIES for n in range(1, 6)}
    plans = {}
    for head in heads.values():
        notes = head["notes"]
        assert notes["simulated"] is True
        assert notes["baseline"] == "no_admission"
        assert notes["capacity_per_s"] > 0 < notes["load"] < notes["peak_load"] == 2
        assert notes["slo_from"].startswith("TTFT 5x unloaded p95")
        plans.setdefault(head["name"], set()).add(notes["plan"])
    assert {len(of_one) for of_one in plans.values()} == {1}
    assert len(set.union(*plans.values())) == 5
    bounded = [h for h in heads.values() if h["policy"] == "queue_depth"]
    assert {h["provenance"]["max_waiting"] for h in bounded} == {"fitted"}


def test_the_same_seed_is_the_same_bytes_in_any_process(shell, tmp_path):
    """I5: text and logs under two hash seeds; another seed is another traffic."""
    told = []
    for name, seed, hash_seed in (("a", 3, "1"), ("b", 3, "2"), ("c", 4, "1")):
        folder = tmp_path / name
        folder.mkdir()
        line = f"cd {shlex.quote(str(folder))}; admitperf demo --repeats 1 --seed"
        ran = shell(f"{line} {seed}", PYTHONHASHSEED=hash_seed)
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr == b""
        told.append((ran.stdout, logs(folder / "experiments")))
    assert len(told[0][1]) == 3
    assert told[0] == told[1]
    assert told[0][1] != told[2][1]


def test_a_later_demo_replaces_all_of_an_earlier_one(run):
    """Fewer repeats leave none of the others behind to be compared."""
    run("demo", "--repeats", "3", "--seed", "2")
    ran = run("demo", "--repeats", "1")
    assert ran.exit_code == 0, ran.output
    assert set(logs(Path("experiments"))) == {f"demo/{p}/r1.jsonl" for p in POLICIES}


@pytest.mark.parametrize(
    "content",
    [
        "mine\n",
        '{"k":"run","experiment":"demo","notes":null}\n',
        '{"k":"run","experiment":"demo","notes":{"simulated":true}}\n',
        "[1]\n",
        "\0\xff",
    ],
)
def test_a_log_that_is_none_of_a_demo_is_not_touched(run, content):
    """Real runs of an experiment that is called demo too lose nothing."""
    path = Path("experiments/demo/queue_depth/r1.jsonl")
    other = Path("experiments/demo/kv_threshold/r1.jsonl")
    for one in (path, other):
        one.parent.mkdir(parents=True)
    path.write_text(content, encoding="latin-1")
    other.write_text("", encoding="ascii")
    ran = run("demo", "--repeats", "1")
    assert ran.exit_code == 2
    (line,) = ran.stderr.splitlines()
    assert "queue_depth/r1.jsonl: is there and no log of a demo" in line
    assert path.read_text(encoding="latin-1") == content
    assert other.exists()


@pytest.mark.parametrize("folder", ["file", "/proc/nowhere", "a\0b", "file/below"])
def test_a_folder_that_cannot_be_written_is_one_clear_line(run, folder):
    """Exit code 2, the path and why."""
    Path("file").write_text("x", encoding="utf-8")
    ran = run("demo", "-o", folder)
    assert ran.exit_code == 2
    assert ran.stdout == ""
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--recorded --seed 2", "--seed does not go with --recorded"),
        ("--recorded --repeats 2", "--repeats does not go with --recorded"),
        ("--policy dual_gate", "--policy needs --recorded"),
        ("--repeats 0", "0 is not in the range"),
        ("--no-such-option", "No such option"),
    ],
)
def test_wrong_use_is_exit_code_2_with_usage(run, line, why):
    """As for every command."""
    ran = run("demo", *line.split())
    assert ran.exit_code == 2
    assert ran.stderr.startswith("Usage: ")
    assert why in ran.stderr
