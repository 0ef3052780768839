"""Field cases about log files: what is damaged costs its own lines and no others."""

import gzip
import json
import re
import subprocess
import sys

import pytest
from tests.cases.conftest import PROGRAM
from tests.cases.mapping import log_of, packed_log_of

MOST_KB = 200 * 1024
SPARSE_BYTES = 1 << 30
MEASURE = """
import resource, subprocess, sys
ran = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(ran.returncode)
"""


@pytest.fixture
def log(case, write):
    """Write a file of the case as a log of ours."""

    def _log(name, **changes):
        return write(log_of((case / name).read_bytes(), **changes), name)

    return _log


def test_s_lg_01_a_torn_last_line_costs_one_record(log, told):
    """99 rows are used, and one warning names the file and the last line."""
    path = log("torn.jsonl")
    last = len(path.read_bytes().splitlines())
    report, code = told("report", path)
    (run,) = report["runs"]
    assert (code, run["answers"]["offered"]) == (0, 99)
    assert sum(report["files"]["unusable"].values()) == 1
    (warning,) = report["files"]["first"]
    assert warning.startswith(f"{path}:{last} ")


def test_s_lg_01_the_text_and_the_check_say_so(log, admitperf):
    """A reader of the text, and of the check, is told which line was lost."""
    path = log("torn.jsonl")
    where = f"{path.name}:{len(path.read_bytes().splitlines())}"
    for arguments in (["report", path], ["report", "--check", path]):
        shown = admitperf(*arguments)
        assert where in "".join(shown.output.split())


def test_s_lg_02_valid_json_of_the_wrong_kind_is_counted(log, told):
    """100 rows are used, 7 are counted as unusable, and blank lines are nothing."""
    path = log("odd_types.jsonl")
    report, code = told("report", path)
    (run,) = report["runs"]
    assert (code, run["answers"]["offered"]) == (0, 100)
    assert sum(report["files"]["unusable"].values()) == 7
    assert report["files"]["lines"] == 100 + 2 + 7


@pytest.mark.parametrize("run_line_first", [True, False])
@pytest.mark.parametrize(
    "environment", [{}, {"PYTHONUTF8": "0", "LC_ALL": "C"}], ids=["utf-8", "c"]
)
def test_s_lg_03_odd_bytes_cost_at_most_one_row(
    log, shell, run_line_first, environment
):
    """A mark, CRLF and a bad byte, the same in every locale: the first row is there."""
    path = log("bytes.jsonl", run_line_first=run_line_first)
    ran = shell(f"admitperf report --json {path}", **environment)
    assert (ran.returncode, ran.stderr) == (0, b"")
    report = json.loads(ran.stdout)
    (run,) = report["runs"]
    lost = sum(report["files"]["unusable"].values())
    assert lost <= 1
    assert run["answers"]["offered"] == 100 - lost
    assert run["span_s"] == 99.0
    assert run["header"]["policy"] == "kv_threshold"


@pytest.mark.parametrize("run_line_first", [True, False])
def test_s_lg_04_a_hole_of_nul_bytes_is_passed_over(log, told, run_line_first):
    """All 100 rows, and one notice."""
    path = log("nul_prefix.jsonl", run_line_first=run_line_first)
    report, code = told("report", path)
    (run,) = report["runs"]
    assert (code, run["answers"]["offered"], run["span_s"]) == (0, 100, 99.0)
    assert report["files"]["unusable"] == {}
    (notice,) = report["files"]["notices"]
    assert "NUL" in notice


def peak_kb(command):
    """What a command wrote, and the most memory it took, in kB.

    A process of its own starts it: what a child is charged with begins at what its
    parent had.
    """
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, *command],
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, int(ran.stderr.split()[-1])


def test_s_lg_04_a_sparse_gigabyte_takes_no_memory(case, tmp_path):
    """A hole as a log of hundreds of megabytes leaves it: under 200 MB to read it."""
    rows = log_of((case / "nul_prefix.jsonl").read_bytes()).lstrip(b"\0")
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as file:
        file.truncate(SPARSE_BYTES)
        file.seek(SPARSE_BYTES)
        file.write(rows)
    written, used_kb = peak_kb(
        [sys.executable, "-c", PROGRAM, "report", "--json", path]
    )
    report = json.loads(written)
    assert report["runs"][0]["answers"]["offered"] == 100
    assert len(report["files"]["notices"]) == 1
    assert used_kb < MOST_KB


@pytest.fixture
def rotated(case, write):
    """A folder with the case's three files as logs of ours."""

    def packed(name):
        data = (case / name).read_bytes()
        return packed_log_of(data) if name.endswith(".gz") else log_of(data)

    names = ("decisions.jsonl", "decisions.jsonl.1", "decisions.jsonl.2.gz")
    return [write(packed(name), f"set/{name}") for name in names]


@pytest.mark.parametrize("order", ["folder", "newest first", "mixed", "twice"])
def test_s_lg_05_a_rotated_set_is_one_run(rotated, run_of, order):
    """100 rows in time order, each once, however the files are named."""
    new, old, oldest = rotated
    run = run_of(*{
        "folder": [new.parent],
        "newest first": [new, old, oldest],
        "mixed": [old, oldest, new],
        "twice": [new.parent, oldest, new],
    }[order])  # fmt: skip
    assert run["answers"]["offered"] == 100
    assert run["span_s"] == 99.0
    assert run["faults"]["repeated"] in ({}, {"decision": 0, "outcome": 0})
    assert len(run["paths"]) == 3


def test_s_lg_05_the_rows_are_those_of_the_case(rotated):
    """r0 to r99, so that a lost or doubled file could not go unseen."""
    found = []
    for path in reversed(rotated):
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        lines = map(json.loads, text.splitlines())
        found += [line["id"] for line in lines if line["k"] == "decision"]
    assert found == [f"r{n}" for n in range(100)]


def test_s_lg_06_a_wall_clock_that_steps_back_changes_no_number(log, run_of):
    """99 s, about one a second, and one notice; nothing is negative."""
    run = run_of(log("clock_back.jsonl"))
    assert run["answers"]["offered"] == 100
    assert run["span_s"] == 99.0
    assert run["load"]["span_s"] == 99.0
    assert run["load"]["rate_per_s"] == pytest.approx(1.0)
    clock = [said for said in run["notices"] if "clock" in said]
    assert len(clock) == 1


def test_s_lg_06_the_text_shows_no_negative_time(log, admitperf):
    """The notice is there to be read, and the only number below zero is the step."""
    shown = admitperf("report", log("clock_back.jsonl"))
    assert shown.exit_code == 0
    assert set(re.findall(r"(?<![\w-])-\d+", shown.output)) <= {"-3600"}
    assert "wall clock" in " ".join(shown.output.split())
    assert "99 s" in shown.output
