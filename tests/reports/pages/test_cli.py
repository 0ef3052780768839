"""The two commands that read logs, as a person or a script meets them."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.reports.byhand import decision, header, jsonl, kv, outcome, reading
from tests.reports.examples import ALL

from admitperf._version import __version__
from admitperf.cli import COMMANDS, main
from admitperf.reports.files.expand import Expander

PROGRAM = "from admitperf.cli import main; main()"


@pytest.fixture
def run():
    """Run a command line in this process."""

    def _run(*args, stdin=None):
        return CliRunner().invoke(main, list(args), input=stdin)

    return _run


@pytest.fixture
def shell(tmp_path):
    """Run a shell line in which `admitperf` is a process of its own."""

    def _shell(line, **environment):
        line = f'admitperf() {{ "{sys.executable}" -c "{PROGRAM}" "$@"; }}; {line}'
        return subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env={**os.environ, **environment},
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip

    return _shell


@pytest.fixture
def live(write):
    """The path of a log with something of everything."""
    return write(*ALL["live"](), name="live.jsonl")


def test_help_lists_each_command_and_imports_none(shell):
    """`--help` stays fast: no command's module is loaded for it."""
    script = (
        "import sys; from admitperf.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('admitperf.cli.')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert all(re.search(rf"^  {name} ", ran.stdout, re.MULTILINE) for name in COMMANDS)
    assert ran.stdout.splitlines()[-1] == "['admitperf.cli.lazy']"


@pytest.mark.parametrize("args", [["report"], ["log"], ["log", "expand"]])
def test_each_command_explains_itself(run, args):
    """`--help` says what comes out, and works without a log."""
    shown = run(*args, "--help")
    assert shown.exit_code == 0
    assert shown.output.startswith("Usage:")
    assert len(shown.output.splitlines()) > 5


def test_the_version_is_said(run):
    """`--version` prints it alone."""
    shown = run("--version")
    assert (shown.exit_code, shown.output) == (0, f"admitperf {__version__}\n")


@pytest.mark.parametrize(
    "args",
    [
        ["report"],
        ["report", "--colour", "x"],
        ["report", "x.jsonl", "--slo", "p95=3"],
        ["report", "x.jsonl", "--slo", "ttft_ms=soon"],
        ["report", "x.jsonl", "--warmup", "soon"],
        ["report", "x.jsonl", "--warmup", "-3"],
        ["report", "x.jsonl", "--memory-limit", "plenty"],
        ["report", "x.jsonl", "--memory-limit", "100MB"],
        ["report", "x.jsonl", "--card", "tex"],
        ["report", "x.jsonl", "--card", "md", "--json"],
        ["log", "expand"],
        ["log", "shrink", "x"],
        ["reports"],
    ],
)
def test_wrong_use_is_2_with_usage(run, args):
    """A bad option or a missing argument: usage on stderr, exit code 2."""
    shown = run(*args)
    assert shown.exit_code == 2
    assert shown.stderr.startswith("Usage:")
    assert shown.stdout == ""


@pytest.mark.parametrize("command", [["report"], ["log", "expand"]])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "no such file or directory"),
        (b"", "no records"),
        (b"\n \n", "no records"),
        (bytes(range(256)) * 300, "no records"),
        (b'{"ts": 1, "action": "admit"}\n' * 200, "not a line of an AdmitPerf log"),
        (b"\x1f\x8b broken", "no records"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(run, tmp_path, command, content, why):
    """Missing, empty, binary or something else: the path, why, exit code 2."""
    path = tmp_path / "odd\x1b[31m.log"
    if content is not None:
        path.write_bytes(content)
    shown = run(*command, str(path))
    assert shown.exit_code == 2
    assert shown.stdout == ""
    (line,) = shown.stderr.splitlines()
    assert line.startswith("Error: ")
    assert "odd?[31m.log" in line
    assert why in line


def test_a_folder_is_no_log_to_expand(run, tmp_path):
    """It is said, not walked through."""
    shown = run("log", "expand", str(tmp_path))
    assert shown.exit_code == 2
    assert "is a directory" in shown.stderr


def test_a_folder_is_read_with_what_lies_in_it(run, write, tmp_path):
    """Each log under it, however deep; one without any is an error."""
    deep = tmp_path / "logs" / "kv"
    deep.mkdir(parents=True)
    write(*ALL["live"](), name="logs/kv/a.jsonl")
    write(header(run="b", config="b"), kv(1, 0.5, run="b"), name="logs/b.jsonl")
    shown = run("report", str(tmp_path / "logs"))
    assert shown.exit_code == 0
    assert shown.stdout.count("1 Could it have fired?") == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    shown = run("report", str(empty))
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [("baseline", 0), ("inert", 1), ("unknown", 1), ("shadow", 1), ("live", 1)],
)
@pytest.mark.parametrize("form", [[], ["--json"], ["--card", "md"]])
def test_s_ui_06_check_makes_the_exit_code(run, write, name, code, form):
    """0 or 1 in every form; without `--check` it is 0; JSON stays valid."""
    path = write(*ALL[name]())
    shown = run("report", path, "--check", *form)
    assert shown.exit_code == code
    assert shown.stderr == ""
    assert run("report", path, *form).exit_code == 0
    if form == ["--json"]:
        checks = json.loads(shown.stdout)["checks"]
        assert checks["passed"] == (code == 0)


def test_s_ui_06_what_cannot_be_checked_is_2(run, write, tmp_path):
    """An empty file, a missing file and a bad option: never a passed check."""
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    shown = run("report", "--check", str(empty))
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "no records" in shown.stderr
    missing = str(tmp_path / "missing.jsonl")
    shown = run("report", "--check", missing)
    assert shown.exit_code == 2
    assert missing in shown.stderr
    shown = run("report", "--check", "--colour", missing)
    assert shown.exit_code == 2
    assert shown.stderr.startswith("Usage:")
    sound = write(*ALL["baseline"](), name="sound.jsonl")
    assert run("report", "--check", sound, missing).exit_code == 2


def test_the_warm_up_is_left_out(run, write):
    """By requests or by seconds, and the page says which."""
    path = write(*ALL["baseline"]())
    for asked, left in (("10", 10), ("2s", 20)):
        shown = run("report", path, "--warmup", asked)
        assert shown.exit_code == 0
        assert f"{left} of 30" in shown.stdout
        assert f"({asked})" in " ".join(shown.stdout.split())


def test_the_card_ends_with_the_command_that_makes_it(run, tmp_path, write):
    """With every option that changes a number, quoted for a shell."""
    path = write(*ALL["live"](), name="my log.jsonl")
    args = ("--card", "md", "--slo", "ttft_ms=900,stall_ms=80", "--warmup", "5")
    shown = run("report", path, *args)
    assert shown.exit_code == 0
    made_by = shown.stdout.splitlines()[-1].strip()
    assert shlex.split(made_by) == ["admitperf", "report", path, *args]
    again = run(*shlex.split(made_by)[1:])
    assert again.stdout == shown.stdout


def test_the_others_are_reported_when_one_cannot_be_read(run, write, tmp_path):
    """One line for each that could not be, on the page too, and exit code 2."""
    first = write(header(), kv(1, 0.5), name="a.jsonl")
    second = write(header(run="b", config="b"), kv(1, 0.5, run="b"), name="b.jsonl")
    noise = write("noise", name="noise")
    missing = str(tmp_path / "miss\x1b[31m")
    shown = run("report", first, missing, second, noise)
    assert shown.exit_code == 2
    assert shown.stdout.count("1 Could it have fired?") == 2
    assert "not read" in shown.stdout
    told, odd = shown.stderr.splitlines()
    assert told.startswith("Error: ")
    assert told.endswith("miss?[31m: no such file or directory")
    assert "no records" in odd
    files = json.loads(run("report", "--json", first, missing).stdout)["files"]
    assert files["paths"] == [first]
    assert len(files["unread"]) == 1


def test_each_file_that_cannot_be_read_has_a_line(run):
    """Also when there is nothing else to report."""
    shown = run("report", "none.jsonl", "neither.jsonl")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert [line.split(":")[1] for line in shown.stderr.splitlines()] == [
        " none.jsonl",
        " neither.jsonl",
    ]


def test_a_torn_log_is_reported(run, write):
    """99 of 100 rows are worth a report, and the fault is on the page."""
    path = write(header(), kv(1, 0.5), '{"k":"decision","seq":2')
    shown = run("report", path)
    assert shown.exit_code == 0
    assert "1 could not be used" in shown.output


def test_json_and_text_show_the_same_numbers(run, live):
    """One report, written twice."""
    text = run("report", live).output
    numbers = json.loads(run("report", "--json", live).output)
    (one,) = numbers["runs"]
    assert f"{one['finding']['word']}: {one['finding']['says'][0]}" in text
    goodput = one["cost"]["goodput"]
    assert f"{goodput['value']:.3f} = {goodput['n']} of {goodput['of']}" in text
    assert f"p95 {one['cost']['ttft_ms']['p95']:.0f} ms, p99" in text
    for signal in one["signals"]:
        assert re.search(
            rf"^  {signal['name']} .* {signal['spread']['n']}$", text, re.MULTILINE
        )


def test_the_slo_option_is_named(run, live):
    """It overrides the header's bounds, and the page says so."""
    text = " ".join(
        run("report", live, "--slo", "ttft_ms=100,stall_ms=1").output.split()
    )
    assert "ttft_ms 100, stall_ms 1, from --slo, in place of the run header's" in text
    assert "0.000 = 0 of 200 attempts" in text


def test_several_logs_make_one_report(run, write):
    """Each run once, the files listed."""
    first = write(header(), kv(1, 0.5), name="a.jsonl")
    second = write(header(run="b", config="b"), kv(1, 0.5, run="b"), name="b.jsonl")
    text = run("report", first, second).output
    assert text.count("1 Could it have fired?") == 2
    assert "4 read, 0 could not be used" in text


def test_s_ui_03_a_reader_that_goes_away_ends_it_quietly(shell, live, tmp_path):
    """No traceback and no ignored exception; exit code 0 or 141."""
    big = tmp_path / "big.jsonl"
    big.write_text(
        jsonl(header(), *(kv(n, 0.5) for n in range(1, 5000))), encoding="utf-8"
    )
    for command in (
        f"report {live}",
        "log expand big.jsonl",
        "report --help",
        "--help",
    ):
        for reader in ("head -1", "true"):
            ran = shell(
                f"admitperf {command} | {reader}; exit ${{PIPESTATUS[0]}}",
                PYTHONUNBUFFERED="1",
            )
            assert ran.stderr == b""
            assert ran.returncode in (0, 141), command


def test_s_ui_03_a_missing_file_and_a_reader_that_goes_away(shell, live):
    """At most the one line on the file, and no traceback."""
    for reader in ("head -1", "true"):
        ran = shell(
            f"admitperf report {live} missing | {reader}; exit ${{PIPESTATUS[0]}}",
            PYTHONUNBUFFERED="1",
        )
        assert ran.stderr in (b"", b"Error: missing: no such file or directory\n")
        assert ran.returncode in (2, 141)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_s_ui_04_a_console_that_is_not_utf_8_shows_everything(shell, write, encoding):
    """Plain replacements, the same exit code and the same bytes."""
    path = write(header(notes="Se\u00f1or \u2713 \ud83d\ude00"), kv(1, 0.5))
    ran = shell(f"admitperf report {path} > out", PYTHONIOENCODING=encoding)
    assert (ran.returncode, ran.stderr) == (0, b"")
    shown = shell("cat out").stdout
    assert b"Se\\xf1or \\u2713" in shown
    assert shown.isascii()


def test_s_ui_05_no_escape_codes_anywhere(run, write):
    """Not even when the log tries."""
    path = write(header(policy="\x1b[31mred", notes="\r\x1b]0;x\x07"), kv(1, 0.5))
    for args in (["report", path], ["report", "--json", path], ["log", "expand", path]):
        shown = run(*args)
        assert shown.exit_code == 0
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown.output)


def test_s_ui_07_standard_input_reads_like_a_file(run, live):
    """A pipe gives the same report as the file, but for the name."""
    content = Path(live).read_text(encoding="utf-8")
    plain = run("report", live).output.split("Files\n")[0]
    assert run("report", "-", stdin=content).output.split("Files\n")[0] == plain
    packed = gzip.compress(content.encode())
    assert run("report", "-", stdin=packed).output.split("Files\n")[0] == plain


def test_s_ui_07_empty_and_closed_standard_input_are_said(shell):
    """'no records', and a clear message when there is no input at all."""
    for command in ("report", "log expand"):
        empty = shell(f"admitperf {command} - < /dev/null")
        assert empty.returncode == 2
        assert empty.stderr == b"Error: -: no records\n"
        closed = shell(f"admitperf {command} - <&-")
        assert closed.returncode == 2
        assert closed.stderr.startswith(b"Error: standard input is closed")


def test_expand_writes_a_log_that_reads_the_same(run, write, tmp_path):
    """Every line is there, and the report on it has the same numbers."""
    path = write(
        header(),
        reading(1, {"a": 1}),
        kv(1, 0.95, reading=1),
        decision(2, reading=1),
        outcome(2),
    )
    out = tmp_path / "out.jsonl"
    shown = run("log", "expand", path, "-o", str(out))
    assert (shown.exit_code, shown.output) == (0, "")
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 5
    assert json.loads(lines[2])["raw"] == {"a": 1}
    assert lines == run("log", "expand", path).stdout.splitlines()
    before, after = (run("report", one).output for one in (path, str(out)))
    assert before.split("Files")[0] == after.split("Files")[0]


def test_expand_says_what_it_could_not_do(run, write):
    """A reading that is not there: the line is left, and counted on stderr."""
    shown = run("log", "expand", write(header(), decision(1, reading=3)))
    assert shown.exit_code == 0
    assert "1 decision line left as it was" in shown.stderr


def test_expand_never_writes_over_its_input(run, live, tmp_path):
    """By whatever name it is called."""
    link = tmp_path / "link.jsonl"
    link.symlink_to(live)
    before = link.read_bytes()
    for out in (live, str(link)):
        shown = run("log", "expand", live, "-o", out)
        assert shown.exit_code == 2
        assert "LOG itself" in shown.stderr
    assert link.read_bytes() == before


@pytest.mark.parametrize("out", ["no/such/folder/out", "."])
def test_expand_into_nowhere_is_one_clear_line(run, live, tmp_path, monkeypatch, out):
    """A path that cannot be written: exit code 2, no traceback."""
    monkeypatch.chdir(tmp_path)
    shown = run("log", "expand", live, "-o", out)
    assert shown.exit_code == 2
    assert shown.stderr.startswith(f"Error: {out}: ")


def test_expand_keeps_bytes_that_are_no_utf_8(run, tmp_path):
    """A damaged line comes out as it went in."""
    path, out = tmp_path / "odd.jsonl", tmp_path / "out.jsonl"
    damaged = b'{"k":"control","x":"\xff\xfe"}\n'
    path.write_bytes(jsonl(header()).encode() + damaged)
    assert run("log", "expand", str(path), "-o", str(out)).exit_code == 0
    assert out.read_bytes().endswith(damaged)


@pytest.mark.parametrize("line", [
    "admitperf log expand - -o log < log",
    "admitperf log expand log >> log",
    "admitperf log expand - < log >> log",
    "admitperf log expand log 1<> log",
    "ln log hard; admitperf log expand log -o hard",
    "admitperf log expand log -o /dev/stdout >> log",
    "ln log hard; admitperf log expand hard >> log",
])  # fmt: skip
def test_expand_knows_its_input_by_more_than_its_path(shell, live, tmp_path, line):
    """Standard input, standard output and links name files too."""
    path = tmp_path / "log"
    before = Path(live).read_bytes()
    path.write_bytes(before)
    ran = shell(f"ulimit -f 1000; {line}")  # a log that reads itself never ends
    assert ran.returncode == 2
    (said,) = ran.stderr.splitlines()
    assert b"is LOG itself; name another file" in said
    assert path.read_bytes() == before


def test_expand_into_the_file_a_shell_has_emptied_says_so(shell, live, tmp_path):
    """`log expand log > log`: too late for the log, and clear why."""
    (tmp_path / "log").write_bytes(Path(live).read_bytes())
    ran = shell("admitperf log expand log > log")
    assert ran.returncode == 2
    assert ran.stderr.startswith(b"Error: standard output is LOG itself")


def test_expand_may_read_and_write_the_same_device(shell):
    """Only a file can be destroyed; the null device is no log, and that is said."""
    ran = shell("admitperf log expand /dev/null -o /dev/null")
    assert ran.stderr == b"Error: /dev/null: no records\n"


def test_a_failed_expand_leaves_the_target_as_it_was(run, live, tmp_path, monkeypatch):
    """Whatever breaks in the middle: the old file, and nothing beside it."""
    out = tmp_path / "out" / "x.jsonl"
    out.parent.mkdir()
    out.write_text("old", encoding="utf-8")

    def breaks(self, lines):
        yield "new"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Expander, "expand", breaks)
    shown = run("log", "expand", live, "-o", str(out))
    assert shown.exit_code == 2
    assert "no space left on device" in shown.stderr
    assert out.read_text(encoding="utf-8") == "old"
    assert list(out.parent.iterdir()) == [out]


def test_expand_replaces_what_a_link_leads_to(run, live, tmp_path):
    """The link stays a link, and the file keeps its permissions."""
    out, link = tmp_path / "out.jsonl", tmp_path / "to"
    out.write_text("old", encoding="utf-8")
    out.chmod(0o640)
    link.symlink_to(out)
    assert run("log", "expand", live, "-o", str(link)).exit_code == 0
    assert link.is_symlink()
    assert out.stat().st_mode & 0o777 == 0o640
    assert out.read_text("utf-8") == run("log", "expand", live).stdout


COMMAND_LINES = [
    "report {}",
    "report --json {}",
    "report --card md {}",
    "report --check --json {}",
    "log expand {}",
    "signals",
    "policies",
    "demo",
    "--help",
    "--version",
    "report --help",
]


@pytest.mark.parametrize("command", COMMAND_LINES)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(shell, live, command, unbuffered):
    """Standard output takes nothing: exit code 2 and no traceback."""
    command = command.format(live)
    ran = shell(f"admitperf {command} > /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert ran.stderr == b"Error: standard output: no space left on device\n"
    assert ran.returncode == 2


@pytest.mark.parametrize("command", COMMAND_LINES)
def test_a_closed_standard_output_is_one_line(shell, live, command):
    """What cannot be shown is not passed over in silence."""
    ran = shell(f"admitperf {command.format(live)} >&-")
    assert ran.stderr == b"Error: standard output: bad file descriptor\n"
    assert ran.returncode == 2


def test_a_working_folder_that_is_gone_is_no_traceback(shell, live):
    """An absolute path is read, a relative one is not there."""
    gone = "mkdir gone; cd gone; rmdir ../gone; admitperf"
    whole = shell(f"{gone} report {live} x.jsonl")
    assert b"1 Could it have fired?" in whole.stdout
    assert whole.stderr == b"Error: x.jsonl: no such file or directory\n"
    for command in ("report x", "log expand x", f"log expand {live} -o x", "demo"):
        ran = shell(f"{gone} {command}")
        assert ran.returncode == 2
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
        assert b"no such file or directory" in ran.stderr


def test_a_distance_beyond_every_number_is_not_known(run, write):
    """Two finite numbers can be infinitely far apart: `--` and null."""
    gate = ["g", 1e308, ">=", -1e308, True]
    path = write(header(), decision(1, gates=[gate]))
    shown = run("report", path)
    assert shown.exit_code == 0
    assert re.search(r"^ +g >= -1e\+308 .* --$", shown.output, re.MULTILINE)
    (found,) = json.loads(run("report", "--json", path).output)["runs"]
    assert found["gates"][0]["distance"] is None
    assert found["gates"][0]["nearest"] == 1e308
