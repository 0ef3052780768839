"""`admitperf watch` as a person meets it: in this process, and as one of its own."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import pytest
from tests.cli.conftest import TOOL, is_plain
from tests.scrape.server import http
from tests.scrape.test_watch import PAGE

from admitperf.core.clock import SYSTEM

BRIEF = ("--for", "0.3s", "--interval", "0.1s")
LONG = ("--for", "1h", "--interval", "0.1s")
SECRET = "tok-8f3a1c"


@pytest.fixture(autouse=True)
def handlers():
    """What a command installs in this process is put back."""
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU)
    before = {name: signal.getsignal(name) for name in names}
    yield
    for name, handler in before.items():
        signal.signal(name, handler)


@contextmanager
def watching(*arguments, **options):
    """A watch as a process of its own, gone afterwards."""
    made = subprocess.Popen(
        [*TOOL, "watch", *arguments],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )
    try:
        yield made
    finally:
        made.kill()
        made.communicate()


def until(true, seconds=10):
    """Wait until something is true."""
    end_ns = SYSTEM.monotonic_ns() + seconds * 1e9
    while not true():
        assert SYSTEM.monotonic_ns() < end_ns, "it never came"
        threading.Event().wait(0.02)


def samples(path="trace.jsonl"):
    """The decisions of a trace's first run, so far."""
    text = Path(path).read_text("ascii") if Path(path).exists() else ""
    lines = [
        json.loads(line)
        for line in text.splitlines(keepends=True)
        if line.endswith("\n")
    ]
    first = lines[0]["run"] if lines else ""
    return [one for one in lines if one["k"] == "decision" and one["run"] == first]


# ---------------------------------------------------------------------------- the page


def test_a_watch_ends_with_the_report(run, serve):
    """What moved, how each policy would have done, and that none governed."""
    shown = run("watch", serve(http(PAGE)).url, *BRIEF)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stderr == ""
    assert is_plain(shown.stdout)
    flat = " ".join(shown.stdout.split())
    for word in ("queue_depth", "kv_threshold", "dual_gate", "Not judged"):
        assert word in flat
    assert "in_flight_cap it counts in_flight from the requests it let in" in flat
    assert "samples 3 in 3 rounds, 0.1 s apart" in flat
    assert "No policy governed" in flat
    assert len(samples()) == 3


def test_the_page_is_that_of_report(run, serve):
    """Nothing is said that the trace does not hold."""
    pytest.importorskip("duckdb")
    watched = run("watch", serve(http(PAGE)).url, *BRIEF).stdout
    page = run("report", "trace.jsonl")
    assert page.exit_code == 0, page.stderr
    summary, found, _ = watched.partition(page.stdout)
    assert found
    assert summary.startswith("Signals, over the samples\n")
    assert "would have refused on 0 of 3 (0.0 %) of the samples" in summary
    assert "at its nearest 0.4 away" in " ".join(summary.split())


def test_without_the_reports_extra_a_short_summary_is_printed(run, serve, monkeypatch):
    """From memory, with the extra named: the base install is good for a watch."""
    monkeypatch.setitem(sys.modules, "admitperf.reports.report", None)
    shown = run("watch", serve(http(PAGE)).url, *BRIEF)
    assert shown.exit_code == 0, shown.stderr
    assert is_plain(shown.stdout)
    flat = " ".join(shown.stdout.split())
    assert "queue_depth 3 3 3" in flat
    assert "fired would have refused on 0 of 3 (0.0 %) of the samples" in flat
    assert (
        "kv_pressure >= 0.9 was true on 0 of 3 (0.0 %); 0.5 to 0.5; at its nearest 0.4"
        in flat
    )
    assert "the extra admitperf[reports] (pip install duckdb scipy)" in flat
    assert "No policy governed" in flat


def test_json_holds_every_number(run, serve):
    """One strict document, with what was not judged and why."""
    shown = run("watch", serve(http(PAGE)).url, *BRIEF, "--json")
    told = json.loads(shown.stdout, parse_constant=lambda _: 1 / 0)
    assert (told["samples"], told["governed"]) == (3, False)
    by_name = {one["policy"]: one for one in told["policies"]}
    assert by_name["queue_depth"]["gates"][0]["distance"] == 29
    assert by_name["rate_limit"]["judged"] is False
    assert told["signals"]["queue_depth"] == {"n": 3, "low": 3, "high": 3}


def test_the_report_in_json_is_the_document_of_report(run, serve, root):
    """All of it, as its schema has it."""
    pytest.importorskip("duckdb")
    shown = run("watch", serve(http(PAGE)).url, *BRIEF, "--json")
    told = json.loads(shown.stdout)["report"]
    schema = root / "docs" / "reference" / "report" / "report.schema.json"
    jsonschema.validate(told, json.loads(schema.read_text(encoding="utf-8")))
    assert told == json.loads(run("report", "trace.jsonl", "--json").stdout)


SIMULATED = PAGE + b'admitperf_simulated_info{profile="x"} 1\n'


def test_a_simulated_engine_is_said_on_every_page(run, serve):
    """In the watch, its JSON, its trace and every report of that."""
    pytest.importorskip("duckdb")
    url = serve(http(SIMULATED)).url
    shown = run("watch", url, *BRIEF)
    assert shown.stdout.startswith("SIMULATED: ")
    assert is_plain(shown.stdout)
    page = run("report", "trace.jsonl").stdout
    assert page in shown.stdout
    assert "\n  SIMULATED     the outcomes come from a simulated engine" in page
    told = json.loads(run("watch", url, *BRIEF, "--json", "--force").stdout)
    assert told["simulated"] is True
    first = json.loads(Path("trace.jsonl").read_text("ascii").splitlines()[0])
    assert first["notes"]["simulated"] is True


def test_without_the_reports_extra_it_is_said_all_the_same(run, serve, monkeypatch):
    """Before the first number."""
    monkeypatch.setitem(sys.modules, "admitperf.reports.report", None)
    shown = run("watch", serve(http(SIMULATED)).url, *BRIEF)
    assert shown.stdout.startswith("SIMULATED: the numbers come from a simulated")


def test_an_engine_that_turns_out_simulated_later_is_said_on_every_page(run, serve):
    """The page of the samples as well as those of the policies."""
    pytest.importorskip("duckdb")
    pages = iter([PAGE, PAGE])
    url = serve(lambda _: http(next(pages, SIMULATED))).url
    shown = run("watch", url, *BRIEF, "--policy", "queue_depth", "--json")
    assert shown.exit_code == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert told["simulated"] is True
    headers = [one["header"] for one in told["report"]["runs"]]
    assert {one["policy"] for one in headers} == {"no_admission", "queue_depth"}
    assert all(one["notes"]["simulated"] is True for one in headers)
    page = run("report", "trace.jsonl").stdout
    assert page.count("\n  SIMULATED     the outcomes come from a simulated") == 2


def test_the_defaults_in_the_help_stand_without_brackets_of_their_own(run):
    """As the others do."""
    flat = " ".join(run("watch", "--help").stdout.split())
    assert "[default: 1m]" in flat
    assert "[default: 1s]" in flat


def test_only_the_named_policies_are_run(run, serve):
    """A name that is none is one line, before anything is asked."""
    server = serve(http(PAGE))
    shown = run("watch", server.url, *BRIEF, "--json", "--policy", "queue_depth")
    assert [one["policy"] for one in json.loads(shown.stdout)["policies"]] == [
        "queue_depth"
    ]
    asked = len(server.requests)
    shown = run("watch", server.url, "--policy", "queue_dept", "-o", "other")
    assert (shown.exit_code, len(server.requests)) == (2, asked)
    assert "nearest: queue_depth" in shown.stderr


def test_nothing_is_said_where_no_terminal_is(run, serve):
    """No progress, and no notice of a policy that goes blind."""
    body = b"llamacpp:requests_deferred 3\nllamacpp:requests_processing 4\n"
    with watching(serve(http(body)).url, *BRIEF) as process:
        _, errors = process.communicate(timeout=30)
    assert errors == b""


def test_a_terminal_shows_one_line_of_progress(serve):
    """Rewritten in place, and gone at the end."""
    control, terminal = pty.openpty()
    read = threading.Thread(target=lambda: shown.append(_drain(control)))
    shown = []
    read.start()
    command = [*TOOL, "watch", serve(http(PAGE)).url, *BRIEF]
    with Path(os.devnull).open("wb") as nowhere:
        ran = subprocess.run(
            ["setsid", "--ctty", "--wait", *command], stdin=terminal, stdout=nowhere,
            stderr=terminal, check=False, timeout=30,
        )  # fmt: skip
    os.close(terminal)
    read.join(timeout=10)
    assert ran.returncode == 0
    assert b"3 samples, 0 failed scrapes; ends in 0s, or with Ctrl-C" in shown[0]
    assert b"\n" not in shown[0]
    assert shown[0].rstrip(b"\r").endswith(b" " * 79)


def _drain(fd):
    """Everything a terminal is sent until it is closed."""
    whole = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            return whole
        if not piece:
            return whole
        whole += piece


# ------------------------------------------------------------------- several endpoints


def test_replicas_and_an_exporter_are_one_pool(run, serve):
    """Queues add up, and what the GPUs do stands beside them."""
    urls = [serve(http(PAGE)).url for _ in range(2)]
    gpu = serve(http(b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 70\n')).url
    told = json.loads(run("watch", *urls, gpu, *BRIEF, "--json").stdout)
    assert told["signals"]["queue_depth"]["high"] == 6
    assert told["signals"]["gpu_util"]["high"] == pytest.approx(0.7)
    assert len(told["replicas"]) == 3


def test_one_that_cannot_be_read_is_said_and_the_others_go_on(run, serve):
    """On standard error at the start, and counted at the end."""
    good, bad = serve(http(PAGE)), serve(http(status="503 Busy"))
    shown = run("watch", good.url, bad.url, *BRIEF)
    assert shown.exit_code == 0
    assert is_plain(shown.stderr)
    flat = " ".join(shown.stderr.split())
    assert flat.startswith(f"Warning: {bad.url}: 503")
    assert flat.endswith(". It is asked again each time.")
    first = f"1 of 2 endpoints never answered: {bad.url}. The rest is without them."
    assert " ".join(shown.stdout.split()).startswith(first)
    assert "failed scrapes 3 of 3 rounds; last:" in " ".join(shown.stdout.split())


def test_a_warning_that_asks_is_wrapped_and_goes_on_in_a_new_sentence(run, serve):
    """No `?;`, and at most 80 columns."""
    good, away = serve(http(PAGE)), serve(http(PAGE))
    away.close()
    shown = run("watch", good.url, away.url, *BRIEF)
    assert is_plain(shown.stderr)
    flat = " ".join(shown.stderr.split())
    assert flat.endswith("is this its port? It is asked again each time.")


def test_one_that_answered_once_is_not_said_to_be_silent(run, serve):
    """Failures are counted at the end; that it never answered would be wrong."""
    answers = []

    def answer(_):
        answers.append(1)
        return http(PAGE) if len(answers) < 3 else http(status="500 Gone")

    shown = run("watch", serve(http(PAGE)).url, serve(answer).url, *BRIEF)
    assert "failed scrapes" in shown.stdout
    assert "never answered" not in shown.stdout


# ------------------------------------------------------ nothing to watch: s-met-09, -10


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
def test_s_met_09_metrics_behind_an_api_key(run, serve, status):
    """The address, the status and the way to pass a token; nothing is recorded."""
    server = serve(http(b'{"error":"Invalid API Key"}', status=status))
    shown = run("watch", server.url, *LONG)
    assert (shown.exit_code, shown.stdout) == (2, "")
    (line,) = shown.stderr.splitlines()
    assert line.startswith(f"Error: {server.url}: {status[:3]}")
    assert "ADMITPERF_TOKEN" in line
    assert not Path("trace.jsonl").exists()


@pytest.mark.parametrize("option", ["--token-file", "--token-env"])
def test_s_met_09_the_token_opens_and_is_nowhere(serve, tmp_path, option):
    """Sent to the engine; in no trace, no output and no process list."""

    def answer(request):
        known = f"Authorization: Bearer {SECRET}".encode() in request
        echo = f'vllm:x{{seen="{SECRET}"}} 1\n'.encode()
        return http(PAGE + echo) if known else http(status="401 No")

    token, path = tmp_path / "token", tmp_path / "t"
    token.write_text(SECRET)
    where = token if option == "--token-file" else "MY_TOKEN"
    arguments = (serve(answer).url, *LONG, option, where, "-o", path)
    with watching(*arguments, env={**os.environ, "MY_TOKEN": SECRET}) as process:
        until(lambda: len(samples(path)) > 1)
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.send_signal(signal.SIGTERM)
        told = process.communicate(timeout=30)
    assert process.returncode == 0
    assert SECRET.encode() not in b"".join((command, *told))
    assert SECRET not in path.read_text("ascii")


def test_s_met_10_a_redirect_on_the_same_host_is_followed(run, serve):
    """A mount point answers 307; its samples are read."""

    def answer(request):
        moved = request.startswith(b"GET /metrics/ ")
        return http(PAGE) if moved else http(status="307 Moved", location="/metrics/")

    told = json.loads(run("watch", serve(answer).url, *BRIEF, "--json").stdout)
    assert told["signals"]["queue_depth"] == {"n": 3, "low": 3, "high": 3}


def test_s_met_10_a_redirect_to_another_host_is_not_followed(run, serve):
    """It is named, and the token stays here."""
    other = serve(http(PAGE))
    here = serve(http(status="302 Found", location=other.url))
    shown = run("watch", here.url, *LONG, ADMITPERF_TOKEN=SECRET)
    assert shown.exit_code == 2
    assert "redirects to another host" in shown.stderr
    assert other.requests == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (http(status="404 No"), "no metrics at this path; some engines serve metrics"),
        (http(b"python_info 1\n"), "none of its 1 series is of a known engine"),
        (http(b"<html>login</html>"), "an HTML page"),
        (http(b""), "empty"),
    ],
)
def test_nothing_to_watch_ends_at_once_with_the_fix(run, serve, answer, said):
    """An hour is not waited to learn that nothing was there."""
    shown = run("watch", serve(answer).url, *LONG)
    assert (shown.exit_code, shown.stdout) == (2, "")
    (line,) = shown.stderr.splitlines()
    assert said in line


def test_a_slow_engine_is_told_of_the_timeout(run, serve):
    """Named with the option that gives it longer."""
    gate = threading.Event()
    server = serve(lambda _: gate.wait(5) and http(PAGE))
    shown = run("watch", server.url, *LONG, "--timeout", "0.2")
    gate.set()
    assert shown.exit_code == 2
    assert "no answer within 0.2 s; see --timeout" in shown.stderr


def test_each_engine_that_is_away_is_named(run, serve):
    """One line each."""
    servers = [serve(http(PAGE)) for _ in range(2)]
    for one in servers:
        one.close()
    shown = run("watch", *(one.url for one in servers), *LONG)
    assert shown.exit_code == 2
    assert [line.split(": ")[1] for line in shown.stderr.splitlines()].sort() == [
        one.url for one in servers
    ].sort()
    assert shown.stderr.count("connection refused") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("page.prom",), "is no address of a running engine; write HOST:PORT"),
        (("",), "is no address of a running engine"),
        (("ftp://a:1",), "only http:// and https:// are read"),
        (("a:1", "http://a:1/metrics"), "given twice"),
        (("a:1", "--token-env", "NO_SUCH"), "not set"),
        (("a:1", "-o", "/dev/full"), "/dev/full: is no regular file"),
        (("a:1", "-o", "."), "is no regular file"),
    ],
)
def test_wrong_use_is_one_line(run, arguments, said):
    """On standard error, with exit code 2, and nothing is left behind."""
    shown = run("watch", *arguments)
    assert (shown.exit_code, shown.stdout) == (2, "")
    (line,) = shown.stderr.splitlines()
    assert said in line
    assert not Path("trace.jsonl").exists()


@pytest.mark.parametrize(
    "arguments", [(), ("a:1", "--for", "0"), ("a:1", "--for", "soon"),
                  ("a:1", "--interval", "1ms"), ("a:1", "--timeout", "nan")],
)  # fmt: skip
def test_a_wrong_option_shows_the_usage(run, arguments):
    """With exit code 2."""
    shown = run("watch", *arguments)
    assert shown.exit_code == 2
    assert "Usage:" in shown.stderr


# --------------------------------------------------------------------------- the file


def test_an_earlier_trace_is_not_written_over(run, serve):
    """Nor asked for anything first; `--force` replaces it."""
    server = serve(http(PAGE))
    assert run("watch", server.url, *BRIEF).exit_code == 0
    asked = len(server.requests)
    shown = run("watch", server.url, *BRIEF)
    assert shown.exit_code == 2
    assert "add --force" in shown.stderr
    assert len(server.requests) == asked
    assert run("watch", server.url, *BRIEF, "--force").exit_code == 0
    assert len(samples()) == 3


@pytest.mark.parametrize("folder", ["/proc/none", "plain"])
def test_a_folder_that_cannot_be_written_is_one_line(run, serve, folder):
    """Before the engine is asked for anything."""
    Path("plain").write_text("a file")
    server = serve(http(PAGE))
    shown = run("watch", server.url, *BRIEF, "-o", f"{folder}/t")
    assert (shown.exit_code, server.requests) == (2, [])
    (line,) = shown.stderr.splitlines()
    assert f"{folder}/t: " in line


def test_a_disk_that_fills_up_keeps_what_is_there(shell, serve):
    """One line when it happens, whole lines in the file, and the summary at the end."""
    url = serve(http(PAGE)).url
    ran = shell(f"ulimit -f 8; admitperf watch {url} --for 1h --interval 0.05")
    assert ran.returncode == 2
    (line,) = ran.stderr.decode().splitlines()
    assert line == "Error: trace.jsonl: file too large; the watch ends here"
    kept = len(samples())
    assert kept > 3
    flat = " ".join(ran.stdout.decode().split())
    assert "trace incomplete: trace.jsonl: file too large" in flat
    assert "would have refused on 0 of" in flat
    assert Path("trace.jsonl").read_text("ascii").endswith("}\n")


def test_a_killed_watch_leaves_a_trace_that_can_be_read(serve, tmp_path, run):
    """kill -9: every whole round is there, no line is torn."""
    path = tmp_path / "t.jsonl"
    with watching(serve(http(PAGE)).url, *LONG, "-o", path) as process:
        until(lambda: len(samples(path)) >= 3)
        process.kill()
        process.wait(timeout=10)
    text = path.read_text("ascii")
    assert text.endswith("\n")
    assert {json.loads(line)["k"] for line in text.splitlines()} >= {"run", "reading"}
    pytest.importorskip("duckdb")
    shown = run("report", str(path))
    assert shown.exit_code == 0, shown.stderr
    assert "BASELINE" in shown.stdout


# ------------------------------------------------------------------------- ended early


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_watch_with_the_report(serve, tmp_path, name):
    """Exit code 0, the report, and in the trace every policy over what was seen."""
    path = tmp_path / "t.jsonl"
    with watching(serve(http(PAGE)).url, *LONG, "-o", path) as process:
        until(lambda: len(samples(path)) >= 2)
        process.send_signal(getattr(signal, name))
        shown, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, b"")
    assert b"No policy governed" in shown
    ended = [json.loads(line) for line in path.read_text().splitlines()]
    (told,) = [one for one in ended if one.get("event") == "watch_ended"]
    assert told["why"] == "stopped"
    assert {one["policy"] for one in ended if one["k"] == "run"} >= {"queue_depth"}


def test_a_watch_in_the_background_listens_to_sigint(shell, serve):
    """A shell starts `&` with SIGINT ignored; kill -INT ends it all the same."""
    url = serve(http(PAGE)).url
    ran = shell(
        f"set +m; admitperf watch {url} --for 1h --interval 0.1 >out & watch=$!;"
        " until grep -q decision trace.jsonl 2>/dev/null; do sleep 0.05; done;"
        " kill -INT $(pgrep -P $watch || echo $watch); wait $watch"
    )
    assert ran.returncode == 0, ran.stderr
    assert "No policy governed" in Path("out").read_text("ascii")


def test_a_signal_while_a_slow_engine_answers_ends_it_at_once(serve, tmp_path):
    """Nobody waits for the timeout."""
    gate, answers, path = threading.Event(), [], tmp_path / "t"

    def answer(_):
        answers.append(1)
        if len(answers) > 2:
            gate.wait(60)
        yield http(PAGE)

    arguments = (serve(answer).url, "--interval", "0.1s", "--timeout", "60", "-o", path)
    with watching(*arguments, "--for", "1h") as process:
        until(lambda: len(answers) > 2)
        began_ns = SYSTEM.monotonic_ns()
        process.terminate()
        shown, _ = process.communicate(timeout=30)
    gate.set()
    assert SYSTEM.monotonic_ns() - began_ns < 20e9
    assert b"No policy governed" in shown


def test_a_signal_before_the_first_sample_is_one_line(serve, tmp_path):
    """There is nothing to report on, and no file to leave."""
    gate, path = threading.Event(), tmp_path / "t"
    server = serve(lambda _: gate.wait(60) and http(PAGE))
    with watching(server.url, "--timeout", "60", "-o", path) as process:
        until(lambda: server.requests)
        process.terminate()
        shown, errors = process.communicate(timeout=30)
    gate.set()
    assert (process.returncode, shown) == (2, b"")
    assert errors == b"Error: no sample was taken: it was stopped before the first\n"
    assert not path.exists()


def test_an_engine_that_goes_away_for_good_is_one_line(serve, tmp_path):
    """No sample was taken: the fault is named, and no empty trace is left."""
    answers, path = [], tmp_path / "t"

    def answer(_):
        answers.append(1)
        return http(PAGE) if len(answers) == 1 else http(status="500 Gone")

    with watching(serve(answer).url, *BRIEF, "-o", path) as process:
        shown, errors = process.communicate(timeout=30)
    assert (process.returncode, shown) == (2, b"")
    assert errors.startswith(b"Error: no sample was taken: http://")
    assert b"500" in errors
    assert not path.exists()


def test_a_closed_standard_output_does_not_hang(shell, serve):
    """The trace is whole, and the fault is one line."""
    url = serve(http(PAGE)).url
    line = f"admitperf watch {url} --for 0.3s --interval 0.1 >&-; echo $? >code"
    ran = shell(line)
    assert len(ran.stderr.decode().splitlines()) == 1
    assert Path("code").read_text("ascii") == "2\n"
    assert len(samples()) == 3


def test_a_background_job_is_not_stopped_for_writing_to_its_terminal(serve, tmp_path):
    """`stty tostop` stops background writers; the report is written all the same."""
    control, terminal = pty.openpty()
    shown, path = [], tmp_path / "t"
    read = threading.Thread(target=lambda: shown.append(_drain(control)))
    read.start()
    tool = f'"{sys.executable}" -c "{TOOL[2]}"'
    url = serve(http(PAGE)).url
    script = (
        f"stty tostop; set -m; {tool} watch {url} --for 0.3s --interval 0.1 -o {path} &"
        " wait $!; echo code $?"
    )
    ran = subprocess.run(
        ["setsid", "--ctty", "--wait", "bash", "-c", script],
        stdin=terminal, stdout=terminal, stderr=terminal, check=False, timeout=30,
    )  # fmt: skip
    os.close(terminal)
    read.join(timeout=10)
    assert ran.returncode == 0
    assert b"No policy governed" in shown[0]
    assert b"code 0" in shown[0]
