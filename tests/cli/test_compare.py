"""`compare` and `experiments`, as a person or a script meets them."""

import json
import re
import sys

import pytest
from tests.cli.conftest import is_plain
from tests.reports.byhand import jsonl
from tests.reports.repeats_byhand import arm, baseline, better, worse


@pytest.fixture
def logs(tmp_path):
    """One log for each arm, and one that holds them all."""
    sides = {
        "bound": better(),
        "wall": worse(),
        "base": baseline(),
        "inert": arm("queue_bound", (90, 91, 92, 90, 91, 93)),
    }
    for name, lines in sides.items():
        (tmp_path / f"{name}.jsonl").write_text(jsonl(*lines), encoding="utf-8")
    every = [line for name in ("bound", "wall", "base") for line in sides[name]]
    (tmp_path / "all.jsonl").write_text(jsonl(*every), encoding="utf-8")


def test_two_logs_in_any_order(run, logs):
    """The baseline is the arm that refuses nothing by design."""
    shown = run("compare", "bound.jsonl", "base.jsonl")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("queue_bound against no_admission\n")
    assert "  BETTER " in shown.stdout
    assert is_plain(shown.stdout)
    other = run("compare", "base.jsonl", "bound.jsonl")
    assert other.stdout == shown.stdout


def test_a_whole_experiment(run, logs):
    """Every arm against the baseline, an overview first."""
    shown = run("compare", "--experiment", "pilot", "--root", "all.jsonl")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("Experiment pilot: every arm against no_admission\n")
    assert re.findall(r"^  (WORSE|BETTER)", shown.stdout, re.MULTILINE) == [
        "WORSE", "BETTER", "WORSE", "BETTER",
    ]  # fmt: skip
    one = run(
        "compare", "--experiment", "pilot", "--root", "all.jsonl", "--arm", "kv_wall"
    )
    assert "queue_bound" not in one.stdout


def test_another_baseline_is_named(run, logs):
    """By policy, or by the path."""
    for name in ("kv_wall", "wall.jsonl"):
        shown = run("compare", "bound.jsonl", "wall.jsonl", "--baseline", name)
        assert shown.stdout.startswith("queue_bound against kv_wall\n")
    shown = run("compare", "bound.jsonl", "wall.jsonl")
    assert shown.exit_code == 2
    assert shown.stderr == (
        "Error: no arm refuses nothing by design: run no_admission as an arm, or name"
        " one of queue_bound, kv_wall with --baseline\n"
    )


@pytest.mark.parametrize(
    ("arm_log", "claim", "code", "said"),
    [
        ("bound", "better", 0, ""),
        ("bound", "not-worse", 0, ""),
        ("bound", "equivalent", 1, "queue_bound: better, not equivalent"),
        ("wall", "better", 1, "kv_wall: worse, not better"),
        ("wall", "not-worse", 1, "kv_wall: a loss of 0.01 is not ruled out"),
        ("inert", "better", 1, "void: check 1, the policy fired in every repeat: no."),
    ],
)
def test_a_check_is_an_exit_code_and_a_reason(run, logs, arm_log, claim, code, said):
    """1 when the logs do not support the claim, each failure in its own words."""
    shown = run(
        "compare", f"{arm_log}.jsonl", "base.jsonl", "--check", "--claim", claim
    )
    assert shown.exit_code == code
    assert said in shown.stderr
    assert bool(shown.stderr) == bool(code)
    assert run("compare", f"{arm_log}.jsonl", "base.jsonl").exit_code == 0


def test_json_stays_valid_when_a_check_fails(run, logs):
    """One strict document, and the exit code."""
    shown = run("compare", "wall.jsonl", "base.jsonl", "--check", "--json")
    assert shown.exit_code == 1
    plain = json.loads(shown.stdout)
    assert plain["check"]["passed"] is False
    assert plain["check"]["failures"] == ["kv_wall: worse, not better"]
    assert plain["comparisons"][0]["verdict"] == "worse"
    assert json.loads(run("compare", "wall.jsonl", "base.jsonl", "--json").stdout)[
        "check"
    ] is None  # fmt: skip


def test_every_arm_of_an_experiment_must_hold_the_claim(run, logs):
    """Unless the arm is named."""
    asked = ("compare", "--experiment", "pilot", "--root", "all.jsonl", "--check")
    shown = run(*asked)
    assert (shown.exit_code, shown.stderr) == (
        1,
        "check failed: kv_wall: worse, not better\n",
    )
    assert run(*asked, "--arm", "queue_bound").exit_code == 0


def test_the_slo_and_the_margin_are_options(run, logs):
    """With 20 s everyone is in time, and refusing costs goodput."""
    shown = run("compare", "bound.jsonl", "base.jsonl", "--slo", "ttft_ms=20000")
    assert "  WORSE " in shown.stdout
    assert "ttft_ms 20000" in shown.stdout
    shown = run("compare", "bound.jsonl", "base.jsonl", "--margin", "0.5")
    assert "  EQUIVALENT " in shown.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "give two paths, A and B, or --experiment NAME"),
        (["bound.jsonl"], "give two paths"),
        (["a", "b", "c"], "give two paths"),
        (["bound.jsonl", "bound.jsonl"], "A and B are the same"),
        (["a", "b", "--experiment", "x"], "give no paths with it"),
        (["a", "b", "--arm", "x"], "--arm chooses among the arms"),
        (["a", "b", "--margin", "0"], "--margin"),
        (["a", "b", "--margin", "nan"], "--margin"),
        (["a", "b", "--claim", "best"], "--claim"),
        (["a", "b", "--slo", "p95=3"], "--slo"),
    ],
)
def test_wrong_use_is_2_with_usage(run, logs, args, said):
    """What is wrong, and how it is called."""
    shown = run("compare", *args)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.startswith("Usage:")
    assert said in shown.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["bound.jsonl", "gone.jsonl"], "gone.jsonl"),
        (["all.jsonl", "base.jsonl"], "all.jsonl holds 3 arms"),
        (["--experiment", "pilto", "--root", "all.jsonl"], "found: pilot"),
        (["--experiment", "pilot", "--root", "all.jsonl", "--arm", "x"], "called x"),
    ],
)
def test_what_cannot_be_compared_is_one_line(run, logs, args, said):
    """On standard error, exit code 2."""
    shown = run("compare", *args)
    assert (shown.exit_code, shown.stdout) == (2, "")
    (line,) = shown.stderr.splitlines()
    assert line.startswith("Error: ")
    assert said in line


def test_without_scipy_the_extra_is_named(run, logs, monkeypatch):
    """One line, exit code 2."""
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    shown = run("compare", "bound.jsonl", "base.jsonl")
    assert shown.exit_code == 2
    assert shown.stderr == (
        "Error: this needs scipy, of the extra admitperf[reports]:"
        " pip install duckdb scipy\n"
    )


def test_help_does_not_load_what_computes(shell):
    """`--help` is fast: no scipy, no database."""
    script = (
        "import sys; from admitperf.cli import main\n"
        "try: main([sys.argv[1], '--help'])\n"
        "except SystemExit: pass\n"
        "print([n for n in ('scipy', 'numpy', 'duckdb') if n in sys.modules])"
    )
    for verb in ("compare", "experiments"):
        shown = shell(f'"{sys.executable}" -c "{script}" {verb}')
        assert shown.returncode == 0
        assert shown.stdout.splitlines()[-1] == b"[]"


def test_experiments_lists_what_there_is(run, logs):
    """The page, and the same as JSON."""
    shown = run("experiments", "all.jsonl")
    assert shown.exit_code == 0
    assert is_plain(shown.stdout)
    assert shown.stdout.startswith("pilot\n=====\n")
    plain = json.loads(run("experiments", "all.jsonl", "--json").stdout)
    (pilot,) = plain["experiments"]
    assert [arm["label"] for arm in pilot["arms"]] == [
        "kv_wall",
        "no_admission",
        "queue_bound",
    ]
    assert pilot["missing"] == []


def test_what_could_not_be_read_is_said_beside_the_rest(run, logs, tmp_path):
    """The others are listed and compared, and the exit code is 2."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "all.jsonl").rename(root / "all.jsonl")
    (root / "noise.jsonl").write_text("noise\n", encoding="utf-8")
    for args in (
        ["experiments", "root"],
        ["compare", "--experiment", "pilot", "--root", "root"],
    ):
        shown = run(*args)
        assert shown.exit_code == 2
        assert "queue_bound" in shown.stdout
        (line,) = shown.stderr.splitlines()
        assert "noise.jsonl" in line


def test_experiments_without_logs_is_one_line(run, logs):
    """Nothing there: exit code 2, and the path."""
    shown = run("experiments", "nowhere")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "nowhere" in shown.stderr
