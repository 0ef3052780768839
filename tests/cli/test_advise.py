"""`admitperf advise` as a person meets it."""

import gzip
import json

import pytest
from tests.cli.conftest import is_plain
from tests.lab.advice import logs
from tests.lab.advice.conftest import few_installed  # noqa: F401  a fixture
from tests.reports.byhand import jsonl
from tests.reports.examples import ALL


@pytest.fixture
def log(tmp_path):
    """Write lines to a log in this folder, and get its name."""

    def _log(lines, name="run.jsonl"):
        (tmp_path / name).write_text(jsonl(*lines), encoding="utf-8")
        return name

    return _log


PAGES = {
    "slots": logs.slots,
    "memory": logs.memory,
    "idle": logs.idle,
    "samples": logs.watched,
    "tight": logs.tight,
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page(run, log, golden, name, few_installed):  # noqa: F811
    """Letter by letter, with the policies that are there from the beginning."""
    shown = run("advise", log(PAGES[name]()))
    assert shown.exit_code == 0, shown.stderr
    assert is_plain(shown.stdout)
    golden(f"advise_{name}.txt", shown.stdout)


def test_the_page_that_a_user_sees(run, log, golden):
    """Letter by letter, with everything that is installed and a log that says most."""
    shown = run("advise", log(logs.everything()))
    assert shown.exit_code == 0, shown.stderr
    assert is_plain(shown.stdout)
    assert "not installed" not in shown.stdout
    golden("advise_everything.txt", shown.stdout)


def test_a_policy_that_is_too_tight_is_the_first_thing_said(run, log):
    """And of what its refusals kept low none is called INERT."""
    top = run("advise", log(logs.tight())).stdout.splitlines()[:10]
    flat = " ".join(" ".join(top).split())
    assert "follows first_of is too tight: 90 of 100 (90.0 %) were turned away" in flat
    inert = flat.partition("INERT")[2].partition("not fired")[0]
    assert inert == " at their defaults here: deadline_slack, tenant_share "


def test_a_policy_is_told_in_full_once_a_page(run, log):
    """front_door is in every shape; what came of it is said at the first."""
    told = run("advise", log(logs.everything())).stdout
    follows = told[told.index("What follows") :]
    assert follows.count("    - front_door ") > 2
    assert follows.count("max_projected_kv=None,") == 1


@pytest.mark.parametrize("name", ALL)
def test_every_log_that_has_a_report_has_advice(run, log, name):
    """Shadow, live, blind, few, held: whatever the finding."""
    shown = run("advise", log(ALL[name]()))
    assert shown.exit_code == 0, shown.stderr
    assert is_plain(shown.stdout)
    told = json.loads(run("advise", "run.jsonl", "--json").stdout)
    assert len(told["runs"]) == 1


def test_everything_installed_is_plain_too(run, log):
    """Whatever policies there are."""

    def facts(seq):
        said = {"tenant": "a" if seq % 5 else "b", "session": f"s{seq // 10}"}
        return {**said, "deadline_s": 5.0, "priority": 1}

    shown = run("advise", log(logs.slots(facts=facts)))
    assert shown.exit_code == 0, shown.stderr
    assert is_plain(shown.stdout)
    assert "formal bound" in shown.stdout


def test_the_first_lines_say_what_follows_and_what_is_inert(run, log):
    """A person who reads five lines knows both."""
    top = run("advise", log(logs.slots())).stdout.splitlines()[:6]
    flat = " ".join(" ".join(top).split())
    assert "follows bound on the queue; try first: queue_depth, with a bound" in flat
    assert "INERT at their defaults here: queue_depth, kv_threshold" in flat


def test_a_threshold_out_of_reach_is_told_with_its_distance(run, log):
    """The sentence that saves a deployment."""
    flat = " ".join(run("advise", log(logs.slots())).stdout.split())
    assert (
        "INERT: it could not have fired: kv_pressure >= 0.9 never held (n 100),"
        " kv_pressure reached 0.005, 0.895 short"
    ) in flat
    assert "Not fitted: every bound here is a default" in flat


def test_json_is_strict_and_says_the_same(run, log):
    """One document, with its number."""
    told = json.loads(run("advise", log(logs.slots()), "--json").stdout)
    assert told["schema"] == 1
    (one,) = told["runs"]
    assert [shape["name"] for shape in one["shapes"]] == ["bound on the queue"]
    assert (one["policy"], one["decisions"]) == ("no_admission", 100)
    assert (one["fitted"], one["simulated"]) == (False, False)
    words = {each["policy"]: each["trial"]["word"] for each in one["policies"]}
    assert words["kv_threshold"] == "could not have fired"
    assert next(each["name"] for each in one["questions"]) == "overload"


def test_stamps_come_with_the_numbers(run, log):
    """Simulated outcomes and lengths that no host can know."""
    lines = [logs.head(notes={"simulated": True, "oracle": True}), *logs.idle()]
    del lines[1]
    shown = run("advise", log(lines)).stdout
    assert "  SIMULATED     the outcomes come from a simulated engine" in shown
    assert "  ORACLE        the policy was told how long answers would be" in shown


def test_an_slo_of_ones_own(run, log):
    """In place of the log's; a wrong one is wrong use."""
    name = log(logs.idle())
    shown = run("advise", name, "--slo", "ttft_ms=1")
    assert "SLO (--slo): ttft_ms 1, missed by ttft_ms 100" in " ".join(
        shown.stdout.split()
    )
    assert run("advise", name, "--slo", "speed=1").exit_code == 2


def test_a_folder_a_packed_log_and_standard_input(run, log, tmp_path):
    """What `report` reads, this reads."""
    text = jsonl(*logs.slots())
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    for arguments, stdin in ((["logs"], None), (["-"], text)):
        shown = run("advise", *arguments, stdin=stdin)
        assert shown.exit_code == 0, shown.stderr
        assert "bound on the queue" in shown.stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "bad.jsonl: no records"),
        ("{}\n", "none of 1 line is one of an AdmitPerf log"),
        ("\x00\x00", "bad.jsonl: no records"),
        ("hello\nworld\n", "none of 2 lines is one of an AdmitPerf log"),
    ],
)
def test_what_is_no_log_is_one_line(run, tmp_path, text, why):
    """And exit code 2."""
    (tmp_path / "bad.jsonl").write_text(text, encoding="utf-8")
    shown = run("advise", "bad.jsonl")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert why in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_a_missing_file_and_a_good_one(run, log):
    """The good one is advised on, the other named, and the exit code is 2."""
    shown = run("advise", log(logs.slots()), "gone.jsonl")
    assert shown.exit_code == 2
    assert "bound on the queue" in shown.stdout
    assert shown.stderr == "Error: gone.jsonl: no such file or directory\n"


def test_wrong_limits_are_wrong_use(run, log):
    """Memory and warm-up as for a report."""
    for option, value in (("--memory-limit", "little"), ("--warmup", "soon")):
        shown = run("advise", log(logs.idle()), option, value)
        assert shown.exit_code == 2
        assert "Traceback" not in shown.stderr


def test_a_warm_up_is_in_no_number(run, log):
    """Neither in the questions nor in the trials."""
    told = json.loads(
        run("advise", log(logs.slots()), "--warmup", "40", "--json").stdout
    )
    (one,) = told["runs"]
    trial = next(p for p in one["policies"] if p["policy"] == "kv_threshold")["trial"]
    assert (one["decisions"], trial["fired"]["of"]) == (60, 60)


def test_a_reader_that_leaves_early_is_no_error(shell, log):
    """`| head` ends it quietly."""
    ran = shell(f"admitperf advise {log(logs.slots())} | head -1")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.startswith(b"Advice on the run of no_admission")
