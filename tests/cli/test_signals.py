"""`admitperf signals`: what an engine supplies, or one clear line why not."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import TOOL, is_plain
from tests.engines.pages import FIXTURES
from tests.real.process import running
from tests.scrape.server import http

from admitperf.core.signals import ALL

TOKEN = "s3cret-token-of-this-test"
DP2 = "constructed_vllm_0.33.0_dp2.prom"
PAGES = sorted(p.name for p in FIXTURES.glob("*.prom"))


@pytest.fixture
def stub(data):
    """Start the misbehaving engine with some options; its address."""
    script = data / "cases" / "_tools" / "stub_engine.py"
    started = []

    def _stub(*options):
        command = [sys.executable, script, "--port", "0", *options]
        process = running(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process.__enter__().stdout.readline().split()[-1]

    yield _stub
    for process in started:
        process.__exit__(None, None, None)


@pytest.fixture
def page(tmp_path):
    """Write a page to a file and get its path."""

    def _page(body, name="page.prom"):
        path = tmp_path / name
        path.write_bytes(body)
        return str(path)

    return _page


def told(shown):
    """The JSON of a run of the command, read strictly."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(shown.stdout, parse_constant=refuse)


def by_name(target):
    """The signals of one target by name."""
    return {signal["name"]: signal for signal in target["signals"]}


# ------------------------------------------------------------------ without targets


def test_without_a_target_every_signal_is_listed(run):
    """Name, unit, range, what it serves and when it fails, in 80 columns."""
    shown = run("signals")
    assert shown.exit_code == 0
    assert is_plain(shown.stdout)
    flat = " ".join(shown.stdout.split())
    for signal in ALL:
        assert re.search(
            rf"^  {signal.name} +{signal.unit} ", shown.stdout, re.MULTILINE
        )
        assert signal.serves in flat
        assert signal.fails_when in flat


def test_the_list_is_what_it_was(run, golden):
    """The whole text, to be read in a diff."""
    golden("signals.txt", run("signals").stdout)


def test_the_list_as_json_has_every_signal(run):
    """An open end of a range is null, not infinity."""
    listed = {one["name"]: one for one in told(run("signals", "--json"))["signals"]}
    assert list(listed) == [signal.name for signal in ALL]
    assert (listed["kv_pressure"]["low"], listed["kv_pressure"]["high"]) == (0, 1)
    assert listed["queue_depth"]["high"] is None
    assert listed["deadline_slack_s"]["low"] is None


# --------------------------------------------------------------------------- a page


def test_a_page_is_shown_as_it_was(run, golden, data, monkeypatch):
    """The whole text for two data-parallel engines, to be read in a diff."""
    monkeypatch.chdir(data / "fixtures")
    golden("signals-vllm-dp2.txt", run("signals", DP2).stdout)


@pytest.mark.parametrize("name", PAGES)
def test_text_and_json_say_the_same(run, name, monkeypatch):
    """Each supplied value stands in the text, each missing signal among the missing."""
    monkeypatch.chdir(FIXTURES)
    text = run("signals", name)
    (target,) = told(run("signals", "--json", name))["targets"]
    assert is_plain(text.stdout)
    found, _, missing = text.stdout.partition("\nNot supplied\n")
    for signal in target["signals"]:
        head = re.compile(rf"^{signal['name']}( |$)", re.MULTILINE)
        if signal["supplied"]:
            assert head.search(found), signal["name"]
            assert signal["source"] in " ".join(found.split())
        else:
            assert signal["value"] is None
            assert not head.search(found)
            assert signal["name"] in missing


def test_each_engines_own_value_is_shown(run, monkeypatch):
    """The full engine of two stays visible behind the one number."""
    monkeypatch.chdir(FIXTURES)
    text = run("signals", DP2).stdout
    assert "kv_pressure         0.8125 fraction" in text
    assert "engine=0 0.8125, engine=1 0.6061" in text


def test_a_missing_signal_shows_the_line_that_would_map_one(run, page):
    """The nearest name on the page is offered, ready to paste."""
    body = b"vllm:num_requests_running 1\nacme_kv_cache_used 0.4\n"
    text = run("signals", page(body)).stdout
    assert "nearest       acme_kv_cache_used" in text
    assert 'KV_PRESSURE.add_source("acme_kv_cache_used")' in text


def test_a_skipped_series_is_warned_of(run, page):
    """43 under a fraction's name is not shown as 0.43, nor as 1, nor as 0."""
    text = run("signals", page(b"vllm:kv_cache_usage_perc 43\n")).stdout
    assert "kv_pressure (0..1): skipped vllm_kv_cache_usage_perc{} = 43" in text


def test_a_page_from_a_pipe(shell, page):
    """`-` reads standard input."""
    path = page(b"vllm:num_requests_waiting 7\n")
    ran = shell(f"cat {path} | admitperf signals - --json")
    (target,) = json.loads(ran.stdout)["targets"]
    assert by_name(target)["queue_depth"]["value"] == 7
    assert target["target"] == "standard input"


# -------------------------------------------------------------------------- an engine


def test_an_engine_is_read_twice(run, stub, data):
    """What is counted over time is known after a second, and how fresh it all is."""
    engine = stub("--metrics", data / "fixtures" / "constructed_vllm_window_t0.prom")
    (target,) = told(run("signals", "--json", engine))["targets"]
    assert target["engine"] == "vllm"
    assert 1 <= target["window_s"] < 3
    found = by_name(target)
    assert found["preemptions"]["value"] == 0
    assert 0 <= found["kv_pressure"]["age_s"] < 1
    assert "nothing counted" in found["prefix_hit_rate"]["why"]


def test_once_reads_once_and_says_what_that_costs(run, stub):
    """No second is waited, and the counted signals say that they need two readings."""
    shown = run("signals", "--once", stub().removeprefix("http://"))
    assert shown.exit_code == 0
    assert "two readings" not in shown.stdout.splitlines()[1]
    assert "queue_depth         0 requests" in shown.stdout


def test_a_trtllm_endpoint_is_read_once_with_a_warning(run, serve):
    """Its list is handed out once: a second reading would take more from others."""
    body = b'[{"numQueuedRequests": 3, "numActiveRequests": 2}]'
    server = serve(http(body, content_type="application/json"))
    shown = run("signals", server.url)
    assert len(server.requests) == 1
    assert "hands each iteration's numbers out once" in " ".join(shown.stdout.split())


# ---------------------------------------------------------------- s-met-09, s-met-10


@pytest.mark.parametrize("status", [401, 403])
def test_s_met_09_metrics_behind_an_api_key(run, stub, status):
    """The address, the status and the way to pass a token; nothing reads 0."""
    engine = stub("--metrics-status", str(status))
    shown = run("signals", engine)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    (line,) = shown.stderr.splitlines()
    assert f"{engine}/metrics: {status}" in line
    assert "ADMITPERF_TOKEN" in line
    assert "--token-env NAME or --token-file PATH" in line


def test_s_met_09_as_json(run, stub):
    """A program sees that nothing was read, and no signal with a value."""
    shown = run("signals", "--json", stub("--metrics-status", "401"))
    assert shown.exit_code == 2
    (target,) = told(shown)["targets"]
    assert target["read"] is False
    assert target["error"]["kind"] == "token"
    assert target["signals"] == []


@pytest.mark.parametrize("way", ["default", "--token-env", "--token-file"])
def test_s_met_09_the_token_opens_and_is_seen_nowhere(serve, tmp_path, way):
    """Not in the process list while it runs, and not in what it prints."""
    lock = f"Authorization: Bearer {TOKEN}\r\n".encode()
    cmdlines = []

    def answer(request):
        cmdlines.extend(command_lines(child.pid))
        if lock in request:
            return http(f'vllm:num_requests_waiting{{who="{TOKEN}"}} 4\n'.encode())
        return http(status="401 Unauthorized")

    server = serve(answer)
    words, environment = [], {}
    if way == "--token-file":
        (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
        words = [way, "token"]
    else:
        name = "ADMITPERF_TOKEN" if way == "default" else "ENGINE_KEY"
        environment = {name: TOKEN}
        words = [] if way == "default" else [way, name]
    with running(
        [*TOOL, "signals", "--once", *words, server.url],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        stdout, stderr = child.communicate(timeout=30)
    assert "queue_depth         4 requests" in stdout
    assert TOKEN not in stdout + stderr
    assert cmdlines
    assert all(TOKEN.encode() not in line for line in cmdlines)


def command_lines(pid):
    """The command line of a process, as everyone on the machine sees it."""
    try:
        return [Path(f"/proc/{pid}/cmdline").read_bytes()]
    except OSError:  # no such file system here
        return [b"not to be seen"]


@pytest.mark.parametrize("wrong", [["--token-env", TOKEN], ["--token-file", TOKEN]])
def test_s_met_09_a_token_typed_by_mistake_is_not_repeated(run, wrong):
    """Whoever types the token where its name belongs is told so without it."""
    shown = run("signals", *wrong, "127.0.0.1:1")
    assert shown.exit_code == 2
    assert wrong[0] in shown.stderr
    assert TOKEN not in shown.stderr


@pytest.mark.parametrize("status", ["401 Unauthorized", "404 X", "500 X", "200 OK"])
def test_s_met_09_a_server_that_echoes_the_token_cannot_make_us_print_it(
    run,
    serve,
    status,
):
    """Whatever comes back, in a body or a header, the token stays out of the output."""
    body = f"<html>{TOKEN}</html>".encode()
    server = serve(http(body, status, www_authenticate=TOKEN, location=f"/{TOKEN}"))
    shown = run("signals", server.url, ADMITPERF_TOKEN=TOKEN)
    assert shown.exit_code == 2
    assert TOKEN not in shown.output


def test_s_met_10_a_redirect_to_the_slashed_path_is_read(run, stub, data):
    """/metrics answers 307 to /metrics/, and the samples are there."""
    engine = stub("--metrics-redirect", data / "fixtures" / DP2)
    shown = run("signals", "--once", engine)
    assert shown.exit_code == 0
    assert "kv_pressure         0.8125 fraction" in shown.stdout


def test_s_met_10_a_redirect_to_another_host_gets_no_token(run, serve):
    """The target is named and never asked."""
    other = serve(http(b"vllm:num_requests_waiting 4\n"))
    server = serve(http(status="307 Temporary Redirect", location=other.url))
    shown = run("signals", server.url, ADMITPERF_TOKEN=TOKEN)
    assert shown.exit_code == 2
    assert other.url in shown.stderr
    assert other.requests == []
    assert TOKEN not in shown.output


# ------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b"\x7fELF\x00", "binary"),
        (b"<html><h1>Bad gateway</h1></html>", "HTML"),
        (b"no page\n", "no sample"),
        (b"python_info 1\n", "none of its 1 series"),
        (b"vllm:num_requests_waiting 4", "no sample in it, cut off"),
        (b"vllm:num_requests_waiting 4\nvllm:num_requests_ru", "ends too early"),
        (b"[]", "TensorRT-LLM is idle"),
    ],
)
def test_a_file_that_is_no_page_is_one_clear_line(run, page, body, said):
    """Exit code 2, the file's name, what is wrong; no traceback and no zeros."""
    path = page(body)
    shown = run("signals", path)
    assert shown.exit_code == 2
    (line,) = shown.stderr.splitlines()
    assert line.startswith(f"Error: {path}: ")
    assert said in line


@pytest.mark.parametrize(
    "word",
    ["nosuch.prom", ".", "ftp://x", "http://h:x", "127.0.0.1:1", "\x1b[31mx", ""],
)
def test_a_target_that_cannot_be_read_is_one_clear_line(run, word):
    """Whatever is typed, nothing but printable ASCII comes back."""
    shown = run("signals", word)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    (line,) = shown.stderr.splitlines()
    assert line.startswith("Error: ")
    assert line.isprintable()


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("ftp://engine/x", "ftp://engine/x"),
        (f"ftp://me:{TOKEN}@engine?key={TOKEN}", "ftp://engine?***"),
        (f"http://engine:{TOKEN}", "http://engine:***"),
    ],
)
def test_an_address_that_is_none_is_named_without_its_secrets(run, word, shown):
    """One of several words is told from the others, also in the JSON."""
    ran = run("signals", word)
    assert ran.stderr.startswith(f"Error: {shown}: not usable: ")
    (target,) = told(run("signals", "--json", word))["targets"]
    assert target["target"] == shown
    assert TOKEN not in ran.output


def test_the_others_are_shown_when_one_fails(run, page):
    """One line for the one that failed, and still exit code 2."""
    good = page(b"vllm:num_requests_waiting 4\n")
    shown = run("signals", "nosuch", good, "ftp://x")
    assert shown.exit_code == 2
    assert "queue_depth         4 requests" in shown.stdout
    assert len(shown.stderr.splitlines()) == 2
    found = told(run("signals", "--json", "nosuch", good))["targets"]
    assert [target["read"] for target in found] == [False, True]


@pytest.mark.parametrize(
    "args",
    [
        ["--no-such-option"],
        ["--timeout", "0"],
        ["--timeout", "-1"],
        ["--timeout", "nan"],
        ["--timeout", "inf"],
        ["--timeout", "soon"],
        ["--token", TOKEN],
    ],
)
def test_a_wrong_option_is_exit_code_2_with_usage(run, args):
    """A token cannot be given on the command line at all."""
    shown = run("signals", *args, "127.0.0.1:1")
    assert shown.exit_code == 2
    assert shown.stderr.startswith("Usage: ")
    assert TOKEN not in shown.stderr


def test_a_hostile_page_cannot_reach_the_terminal(run, page):
    """Escape codes in labels and values of a page are not sent on."""
    body = 'vllm:kv_cache_usage_perc{engine="\x1b[2J\u202e"} 7\n' * 2
    body += 'vllm:kv_cache_usage_perc{engine="\\n\x07"} 0.5\n'
    body += 'vllm:kv_cache_usage_perc{engine="é"} 0.4\n'
    shown = run("signals", page(body.encode()))
    assert is_plain(shown.stdout)
    assert by_name(told(run("signals", "--json", page(body.encode())))["targets"][0])


def test_a_page_of_very_long_names_keeps_to_80_columns(run, page):
    """A name longer than a line is broken, not cut."""
    name = "acme_queue_depth_" + "x" * 300
    body = f'{name} 1\nvllm:num_requests_running{{engine="{"y" * 200}"}} 1\n'
    shown = run("signals", page(body.encode()))
    assert is_plain(shown.stdout)
    assert name in "".join(shown.stdout.split())


def test_a_slow_engine_ends_at_the_timeout(run, stub):
    """One line that names the bound."""
    shown = run("signals", "--timeout", "0.3", stub("--metrics-delay", "5"))
    assert shown.exit_code == 2
    assert "no answer within 0.3 s" in shown.stderr


# ------------------------------------------------------------------------- terminals


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_console_that_is_not_utf8(shell, encoding):
    """The same bytes and the same exit code under every encoding."""
    path = FIXTURES / "edge_escaped_labels.prom"
    ran = shell(f"admitperf signals {path} > out; cat out", PYTHONIOENCODING=encoding)
    assert ran.stderr == b""
    assert ran.stdout.isascii()
    assert b"kv_pressure" in ran.stdout


@pytest.mark.parametrize("reader", ["head -1", "true"])
@pytest.mark.parametrize("command", ["signals", f"signals {FIXTURES / DP2}"])
def test_a_reader_that_leaves_is_no_error(shell, command, reader):
    """A closed pipe ends quietly."""
    line = f"set -o pipefail; admitperf {command} | {reader}"
    ran = shell(line, PYTHONUNBUFFERED="1")
    assert ran.returncode in (0, 141)
    assert ran.stderr == b""


def test_no_escape_bytes_anywhere(shell):
    """Colour never, not on errors either."""
    line = f"admitperf signals {FIXTURES / DP2} nosuch"
    ran = shell(line, FORCE_COLOR="1", TERM="xterm-256color")
    assert b"\x1b" not in ran.stdout + ran.stderr


# ------------------------------------------------------------------------ the reference


def keys(value):
    """Every key of a JSON document, down to the signals."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if isinstance(value, dict):
        below = [inner for name, inner in value.items() if name != "parts"]
        return set(value).union(*map(keys, below))
    return set()


def test_every_key_of_the_json_is_in_the_reference(run, root, monkeypatch):
    """A program can be written from the page; a new key needs a line there."""
    monkeypatch.chdir(FIXTURES)
    made = told(run("signals", "--json", DP2, "nosuch"))
    reference = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert made["schema"] == 1
    assert {name for name in keys(made) if f"`{name}`" not in reference} == set()


def test_every_kind_of_error_is_in_the_reference(root):
    """Each kind that the source raises is listed, and no other."""
    found = set()
    for path in (root / "src" / "admitperf" / "scrape").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r'ScrapeError\(\s*"(\w+)"', text))
        found |= set(re.findall(r'told = \(\s*"(\w+)"', text))
    reference = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^Kinds of `error`: (.*)\.$", reference, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", listed)) == found
