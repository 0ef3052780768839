"""Field cases about the command line: in pipes, in CI and on odd consoles."""

import gzip
import json
import os
import pty
import re
import select
import subprocess
import sys

import pytest
from tests.cases import arms
from tests.cases.conftest import PROGRAM
from tests.cases.mapping import log_of
from tests.real.process import running
from tests.reports.byhand import header, jsonl, kv, outcome

ESCAPES = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
"""Everything a terminal obeys, but for the tab and the line end."""
ODD_NOTES = {"workload": "Se\u00f1or \u2713 \ud83d\ude00"}
PAGE = "constructed_vllm_0.33.0_dp2.prom"


@pytest.fixture
def page(data):
    """A metrics page."""
    return data / "fixtures" / PAGE


@pytest.fixture
def log(write):
    """A log whose notes are not ASCII."""
    lines = [kv(n, 0.3 + n / 100) for n in range(1, 90)]
    ends = [outcome(n) for n in range(1, 60)]
    return write([header(notes=ODD_NOTES), *lines, *ends], "x.jsonl")


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A folder with two experiments: one that a check accepts, one that it does not."""
    root = tmp_path_factory.mktemp("arms")
    arms.sound(root)
    arms.inert(root)
    return root / "experiments"


@pytest.fixture
def experiments(written, tmp_path):
    """The same in the working folder."""
    (tmp_path / "experiments").symlink_to(written)


@pytest.fixture
def verbs(experiments, log, page, stub):
    """A command line for every verb but the dashboard."""
    return {
        "signals": f"signals {page}",
        "watch": f"watch {stub()} --for 1s --interval 0.25s -o trace.jsonl --force",
        "reach": "reach --kv-tokens 384000 --max-num-seqs 64 --tokens-per-request 2168",
        "policies": "policies",
        "report": f"report {log}",
        "compare": f"compare {BOUND['sound']} {BASE['sound']}",
        "experiments": "experiments",
        "log": f"log expand {log}",
        "demo": "demo --recorded",
        "report-html": f"report {log} --html page.html",
        "compare-html": f"compare {BOUND['sound']} {BASE['sound']} --html pair.html",
        "doctor": f"doctor --log {log}",
    }


BOUND = {name: f"experiments/{name}/queue_depth" for name in ("sound", "inert")}
BASE = {name: f"experiments/{name}/no_admission" for name in ("sound", "inert")}
VERBS = (
    "signals", "watch", "reach", "policies", "report", "compare", "experiments", "log",
    "demo", "report-html", "compare-html", "doctor",
)  # fmt: skip


# ------------------------------------------------------------------------ s-ui-03


@pytest.mark.parametrize("reader", ["head -1", "true"])
@pytest.mark.parametrize(
    "verb", ["report", "doctor", "compare", "experiments", "demo", "help"]
)
def test_s_ui_03_a_reader_that_goes_away_ends_it_quietly(shell, verbs, verb, reader):
    """No traceback, no ignored exception; exit code 0 or 141."""
    line = {"help": "report --help", **verbs}[verb]
    ran = shell(
        f"admitperf {line} | {reader}; exit ${{PIPESTATUS[0]}}", PYTHONUNBUFFERED="1"
    )
    assert ran.stderr == b""
    assert ran.returncode in (0, 141)


def test_s_ui_03_a_big_log_and_head(shell, write):
    """As in the case: far more output than the reader wants."""
    write([header(), *(kv(n, 0.5) for n in range(1, 20_000))], "big.jsonl")
    for line in ("report big.jsonl", "report --json big.jsonl", "log expand big.jsonl"):
        ran = shell(
            f"admitperf {line} | head -1; exit ${{PIPESTATUS[0]}}", PYTHONUNBUFFERED="1"
        )
        assert ran.stderr == b""
        assert ran.returncode in (0, 141), line


# ------------------------------------------------------------------------ s-ui-04


@pytest.mark.parametrize("verb", VERBS)
def test_s_ui_04_a_console_that_is_not_utf_8_shows_everything(shell, verbs, verb):
    """Plain replacements, the same exit code, and no traceback."""
    codes = set()
    for encoding in ("utf-8", "cp1252", "ascii"):
        ran = shell(f"admitperf {verbs[verb]} > out", PYTHONIOENCODING=encoding)
        codes.add(ran.returncode)
        assert b"Traceback" not in ran.stderr
        assert b"codec" not in ran.stderr
        assert shell("cat out").stdout.isascii() or encoding == "utf-8"
    assert codes == {0}


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_s_ui_04_files_are_utf_8_all_the_same(shell, verbs, tmp_path, encoding):
    """A trace and an expanded log can be read as UTF-8."""
    ran = shell(
        f"admitperf {verbs['log']} -o out.jsonl && admitperf {verbs['watch']}",
        PYTHONIOENCODING=encoding,
    )
    assert ran.returncode == 0, ran.stderr
    for name in ("out.jsonl", "trace.jsonl"):
        text = (tmp_path / name).read_text(encoding="utf-8", errors="strict")
        assert [json.loads(line) for line in text.splitlines()]


# ------------------------------------------------------------------------ s-ui-05


@pytest.fixture
def on_terminal(tmp_path):
    """Run a command on a terminal of its own; what the terminal was sent."""

    def _run(line, **environment):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-c", PROGRAM, *line.split()]
        whole = {**os.environ, **environment}
        with running(
            command, cwd=tmp_path, env=whole, stdout=theirs, stderr=theirs,
            stdin=subprocess.DEVNULL,
        ) as child:  # fmt: skip
            os.close(theirs)
            sent = b"".join(received(ours, child))
        os.close(ours)
        return sent, child.returncode

    return _run


def received(terminal, child, seconds=60):
    """What comes over a terminal until its other end is closed."""
    for _ in range(seconds * 10):
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # so Linux says that nobody holds the other end
                return
            if not piece:
                return
            yield piece
        elif child.poll() is not None:
            return


@pytest.mark.parametrize("verb", VERBS)
def test_s_ui_05_no_escape_codes_in_a_file(shell, verbs, verb):
    """Nor a carriage return: what CI keeps is plain text."""
    ran = shell(f"admitperf {verbs[verb]} > f 2> e", CI="true", TERM="xterm-256color")
    assert ran.returncode == 0
    kept = shell("cat f e").stdout
    assert kept
    assert not ESCAPES.search(kept)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
@pytest.mark.parametrize("verb", ["report", "compare", "watch"])
def test_s_ui_05_no_colour_where_none_is_wanted(on_terminal, verbs, verb, environment):
    """On a terminal that asks for none, no ESC byte arrives."""
    sent, code = on_terminal(verbs[verb], **environment)
    assert code == 0, sent
    assert sent
    assert b"\x1b" not in sent


# ------------------------------------------------------------------------ s-ui-06


def checked(verb, bound, base):
    """What is given to `report` or `compare` to check one arm."""
    return (
        [verb, bound, base, "--check"]
        if verb == "compare"
        else [verb, bound, "--check"]
    )


@pytest.mark.usefixtures("experiments")
@pytest.mark.parametrize("verb", ["report", "compare"])
def test_s_ui_06_a_sound_log_passes(admitperf, verb):
    """Exit code 0."""
    shown = admitperf(*checked(verb, BOUND["sound"], BASE["sound"]))
    assert shown.exit_code == 0, shown.output


@pytest.mark.usefixtures("experiments")
@pytest.mark.parametrize("verb", ["report", "compare"])
def test_s_ui_06_an_inert_log_fails(admitperf, told, verb):
    """Exit code 1, with the JSON as valid as ever."""
    arguments = checked(verb, BOUND["inert"], BASE["inert"])
    shown = admitperf(*arguments)
    assert shown.exit_code == 1, shown.output
    assert "INERT" in shown.output
    made, code = told(*arguments)
    assert (bool(made), code) == (True, 1)


@pytest.mark.usefixtures("experiments")
@pytest.mark.parametrize("verb", ["report", "compare"])
@pytest.mark.parametrize("as_json", [False, True])
def test_s_ui_06_an_empty_file_has_no_records(admitperf, write, verb, as_json):
    """Not 0, and the words."""
    empty = write(b"", "empty.jsonl")
    extra = ["--json"] if as_json else []
    shown = admitperf(*checked(verb, empty, BASE["sound"]), *extra)
    assert shown.exit_code == 2
    assert "no records" in shown.stderr
    assert "Traceback" not in shown.output


@pytest.mark.usefixtures("experiments")
@pytest.mark.parametrize("verb", ["report", "compare"])
def test_s_ui_06_a_missing_file_is_named(admitperf, verb):
    """Not 0, and the path."""
    shown = admitperf(*checked(verb, "gone.jsonl", BASE["sound"]))
    assert shown.exit_code == 2
    assert "gone.jsonl" in shown.stderr
    assert "Traceback" not in shown.output


@pytest.mark.parametrize("verb", VERBS)
def test_s_ui_06_a_bad_option_is_wrong_use(admitperf, verb):
    """Exit code 2 and the usage, the same for every verb."""
    words = ["log", "expand"] if verb == "log" else [verb]
    shown = admitperf(*words, "--no-such-option")
    assert shown.exit_code == 2
    assert shown.stderr.startswith("Usage:")


@pytest.mark.parametrize("verb", ["report", "compare"])
def test_s_ui_06_the_codes_are_in_the_help(admitperf, verb):
    """0, 1 and 2, where a person who writes a CI job looks."""
    shown = admitperf(verb, "--help")
    text = " ".join(shown.output.split())
    assert "--check" in text
    for code in "12":
        assert re.search(rf"\b{code}\b", text.partition("Exit code")[2]), code


# ------------------------------------------------------------------------ s-ui-07


def numbers(report):
    """A report without the names of its files."""
    runs = [{n: v for n, v in one.items() if n != "paths"} for one in report["runs"]]
    files = {n: v for n, v in report["files"].items() if n not in ("paths", "first")}
    return runs, files


def test_s_ui_07_standard_input_reads_like_a_file(data, told, shell, write):
    """`zcat d.jsonl.2.gz | admitperf report -` gives the report of the file."""
    packed = data / "cases" / "s-lg-05" / "decisions.jsonl.2.gz"
    rows = log_of(gzip.decompress(packed.read_bytes()))
    path = write(gzip.compress(rows), "d.jsonl.2.gz")
    expected, code = told("report", path)
    piped = shell("zcat d.jsonl.2.gz | admitperf report - --json")
    assert (piped.returncode, piped.stderr, code) == (0, b"", 0)
    found = json.loads(piped.stdout)
    assert numbers(found) == numbers(expected)
    assert found["runs"][0]["answers"]["offered"] == 50


def test_s_ui_07_empty_and_closed_standard_input_are_said(shell):
    """'no records', and a clear message when there is no input at all."""
    empty = shell("admitperf report - < /dev/null")
    assert empty.returncode not in (0, None)
    assert b"no records" in empty.stderr
    closed = shell("admitperf report - <&-")
    assert closed.returncode not in (0, None)
    assert b"standard input is closed" in closed.stderr
    assert b"Traceback" not in empty.stderr + closed.stderr


def test_s_ui_07_it_says_that_it_waits(tmp_path):
    """On a terminal, a person is told before the wait begins, and Ctrl-D ends it."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "report", "-"]
    with running(
        command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs
    ) as child:
        os.close(theirs)
        said = next(received(ours, child))
        os.write(ours, jsonl(header(), kv(1, 0.5)).encode())
        os.write(ours, b"\x04")
        rest = b"".join(received(ours, child))
        code = child.wait(timeout=30)
    os.close(ours)
    assert b"standard input" in said
    assert code == 0
    assert b"kv_threshold" in rest
