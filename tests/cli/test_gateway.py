"""`admitperf gateway` as a person meets it; its process is in tests/gateway."""

import json
import subprocess
import sys

import pytest
from tests.cli.conftest import TOOL, is_plain
from tests.real.process import running
from tests.scrape.server import http

from admitperf.cli import gateway

PAGE = (
    b"vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
    b"vllm:kv_cache_usage_perc 0.1\n"
    b'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1\n'
)
SECRET = "0123456789abcdef"


@pytest.fixture
def engine(serve):
    """The address of an engine whose page can be read."""
    return served(serve, PAGE)


def served(serve, page):
    """The address of a server that shows a page of metrics."""
    return serve(http(page)).url.removesuffix("/metrics")


@pytest.mark.parametrize("words", [(), ("serve",), ("hash-key",)])
def test_help_is_plain(run, words):
    """In 80 columns of ASCII."""
    shown = run("gateway", *words, "--help")
    assert shown.exit_code == 0
    assert is_plain(shown.stdout)


def test_a_token_is_never_an_argument():
    """Everyone on a machine can read its command lines."""
    names = {name for option in gateway.serve.params for name in option.opts}
    assert not {"--token", "--secret", "--key"} & names
    assert {"--token-env", "--token-file"} <= names


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--policy", "queue_depth"], "give --upstream URL, or --config FILE"),
        (["--upstream", "h:1", "--param", "max_waiting"], "write NAME=VALUE"),
        (["--upstream", "h:1", "--enforce", "2"], "--enforce"),
        (["--upstream", "h:1", "--slo", "x=1"], "--slo"),
        (["--upstream", "h:1", "--defer", "x"], "--defer"),
        (["--upstream", ""], "--upstream"),
    ],
)
def test_wrong_use_says_what_is_meant(run, words, says):
    """With exit code 2, and nothing is asked of an engine."""
    shown = run("gateway", *words)
    assert shown.exit_code == 2
    assert says in shown.stderr


def test_all_faults_come_at_once_in_a_line_each(run):
    """Each with the path it has in a file."""
    shown = run(
        "gateway", "--upstream", "h:1/v1", "--policy", "queue_depth", "--listen", "x",
        "--param", "max_waiting=-1", "--param", "action=drop", "--preset", "none",
    )  # fmt: skip
    assert shown.exit_code == 2
    assert [
        line.removeprefix("Error: options: ")[:40] for line in shown.stderr.splitlines()
    ] == [
        "listen = 'x' is not HOST:PORT",
        "pools[0].upstreams[0].url must not end i",
        "pools[0].policy.preset = 'none' is not o",
        "pools[0].policy.params.max_waiting = -1 ",
        "pools[0].policy.params.action = 'drop' i",
    ]


def test_check_says_what_was_found_and_ends(run, engine, tmp_path):
    """Nothing is listened on and nothing written."""
    shown = run(
        "gateway", "--upstream", engine,
        "--policy", "kv_threshold", "--log", "d.jsonl", "--check",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert is_plain(shown.stdout)
    assert "reads         kv_pressure from vllm_kv_cache_usage_perc" in shown.stdout
    assert "0.9 of the KV memory is 1,440 of 1,600 tokens" in shown.stdout
    assert "gateway on" not in shown.stdout
    assert list(tmp_path.iterdir()) == []


def test_check_in_json_is_one_document(run, engine):
    """Without the token of a metrics page."""
    shown = run(
        "gateway", "--upstream", engine,
        "--policy", "queue_depth", "--check", "--json", ADMITPERF_TOKEN="hunter2",
    )  # fmt: skip
    told = json.loads(shown.stdout)
    assert (told["schema"], told["address"]) == (1, None)
    (pool,) = told["pools"]
    assert (pool["policy"], pool["engine"], pool["stop"]) == (
        "queue_depth", "vllm", None,
    )  # fmt: skip
    assert "hunter2" not in shown.output


def test_check_of_an_engine_that_cannot_be_read_fails(run):
    """With exit code 1: what was asked for could not be checked."""
    shown = run("gateway", "--upstream", "127.0.0.1:9", "--check")
    assert shown.exit_code == 1
    assert "Warning: pool default: 127.0.0.1:9 cannot be read" in shown.stderr
    assert "asked again" not in shown.stderr
    assert "http://127.0.0.1:9 (NOT READ: connection refused" in shown.stdout


def test_check_finds_a_signal_that_is_not_there(run, serve):
    """With exit code 2, as starting would."""
    url = served(serve, b"vllm:num_requests_running 1\n")
    shown = run("gateway", "--upstream", url, "--policy", "queue_depth", "--check")
    assert shown.exit_code == 2
    assert "queue_depth is not supplied; tried " in shown.stderr


def test_a_name_that_is_almost_there_is_told(run, serve):
    """A letter apart from one that was tried."""
    url = served(serve, b"vllm:num_requests_running 1\nvllm:num_request_waiting 0\n")
    shown = run("gateway", "--upstream", url, "--policy", "queue_depth", "--check")
    near = "nearest names present: vllm_num_request_waiting;"
    assert near in shown.stderr


COMPOSED = "any_of:policies=(kv_threshold:threshold=0.8; queue_depth); rate_limit"


def test_check_shows_a_composition_part_by_part(run, engine):
    """With what each was given, and how far the marks of inner ones are."""
    shown = run(
        "gateway", "--upstream", engine, "--policy", "first_of",
        "--param", f"policies={COMPOSED}", "--check",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    rows = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    at = rows.index("policy first_of")
    assert rows[at + 1 : at + 4] == [
        "part 1 any_of:policies=(kv_threshold:threshold=0.8; queue_depth)",
        "part 2 rate_limit",
        rows[at + 3],
    ]
    assert rows[at + 3].startswith("reads kv_pressure from ")
    flat = " ".join(rows)
    assert "reach 0.8 of the KV memory is 1,280 of 1,600 tokens; whether" in flat


def test_check_in_json_has_the_parts(run, engine):
    """None of a policy that is no composition; brackets around the value are free."""
    for param, parts in (
        (f"policies=({COMPOSED})", COMPOSED.rpartition("; ")[::2]),
        (None, ()),
    ):
        more = ["--policy", "first_of", "--param", param] if param else []
        shown = run("gateway", "--upstream", engine, *more, "--check", "--json")
        (pool,) = json.loads(shown.stdout)["pools"]
        assert pool["parts"] == list(parts)


def test_a_required_signal_that_is_missing_stands_where_it_is_read(run, serve):
    """Not only among all that the engine does not say."""
    engine = served(serve, b"vllm:num_requests_running 1\n")
    shown = run("gateway", "--upstream", engine, "--policy", "queue_depth", "--check")
    assert shown.exit_code == 2
    assert "reads         queue_depth: NOT SUPPLIED\n" in shown.stdout
    (row,) = [line for line in shown.stdout.splitlines() if "not supplied" in line]
    assert "queue_depth" not in row


def test_a_gateway_that_only_watches_says_so_first(run, engine):
    """Nobody takes it for one that protects."""
    words = ["gateway", "--upstream", engine, "--check"]
    shown = run(*words, "--enforce", "0")
    says = "SHADOW: pool default decides and refuses nobody (enforce 0)."
    assert shown.stdout.splitlines()[0] == says
    assert "SHADOW" not in run(*words, "--enforce", "0.1").stdout
    told = json.loads(run(*words, "--enforce", "0", "--json").stdout)
    assert told["pools"][0]["shadow"] is True


def test_the_page_says_what_was_set(run, engine, tmp_path):
    """Each setting that changes what callers get or what is written."""
    pool = {
        "upstreams": [engine],
        "policy": {"name": "queue_depth", "enforce": 0.25, "preset": "openai",
                   "blind_cap": 7},
        "log": "d.jsonl", "slo": {"ttft_ms": 1500}, "timeouts": {"gap_s": None},
        "holding": {"defer": "hold", "most": 3, "longest_s": 20},
    }  # fmt: skip
    file = {
        "secret": SECRET,
        "tenants": [{"name": "blue", "keys": ["a" * 32, "b" * 32]}],
        "pools": [pool],
    }
    (tmp_path / "g.yaml").write_text(json.dumps(file))
    shown = run("gateway", "--config", "g.yaml", "--check")
    for line in (
        "  enforce       0.25 of the traffic; the rest is only watched",
        "  deferred      is held, at most 3 for 20s",
        "  codes         openai",
        "  when blind    degrade: at most 7 open",
        "  log           d.jsonl",
        "  slo           ttft_ms 1500",
        "  timeouts      gap_s none",
        "tenants known beforehand: 1",
    ):
        assert line in shown.stdout.splitlines(), shown.stdout
    told = json.loads(run("gateway", "--config", "g.yaml", "--check", "--json").stdout)
    assert told["tenants"] == 1
    (one,) = told["pools"]
    assert (one["enforce"], one["preset"], one["blind_cap"]) == (0.25, "openai", 7)
    assert (one["holding"]["most"], one["timeouts"]["gap_s"]) == (3, None)
    assert (one["log"], one["slo"]) == ("d.jsonl", {"ttft_ms": 1500})


@pytest.mark.parametrize("more", [(), ("--check",)])
def test_a_log_that_cannot_be_written_ends_it_at_once(run, tmp_path, more):
    """In one line, before an engine is asked."""
    (tmp_path / "d").mkdir()
    at = "--listen=203.0.113.1:0"  # not ours, so that no start of it could last
    shown = run("gateway", "--upstream", "127.0.0.1:9", "--log", "d", at, *more)
    assert (shown.exit_code, shown.stdout) == (2, "")
    says = "Error: options: pools[0].log.path = 'd' is a directory\n"
    assert shown.stderr == says


def test_options_of_the_log_and_the_end_arrive(run, tmp_path):
    """Over what the file says, and beside it."""
    log = {"path": "d.jsonl", "max_mb": 1, "keep": 2}
    pool = {"upstreams": ["h:1"], "log": log}
    file = {"server": {"drain_s": 7}, "pools": [pool]}
    (tmp_path / "g.yaml").write_text(json.dumps(file))
    words = ["--config", str(tmp_path / "g.yaml"), "--log-max-mb=5", "--grace=1m"]
    with gateway.serve.make_context("serve", words) as context:
        made = gateway._configured(context.params)
    assert (made.server.grace_s, made.server.drain_s) == (60, 7)
    settings = made.edge.pools[0].settings
    assert settings == {"log": "d.jsonl", "log_max_mb": 5, "log_keep": 2}


def test_help_says_where_the_options_are(run):
    """They are those of a command that needs no name."""
    assert "admitperf gateway serve --help" in run("gateway", "--help").stdout


def test_options_stand_over_a_file(run, engine, tmp_path):
    """For the one pool that it has."""
    (tmp_path / "g.yaml").write_text(
        "pools:\n  - upstreams: ['nowhere:1']\n"
        "    policy: {name: queue_depth, params: {max_waiting: 1, action: reject}}\n"
    )
    words = ["gateway", "--config", "g.yaml", "--upstream", engine, "--check", "--json"]
    for more, parameters in (
        ([], {"max_waiting": 1, "action": "reject"}),
        (["--param", "max_waiting=8"], {"max_waiting": 8, "action": "reject"}),
        (["--policy", "queue_depth"], {"max_waiting": 32, "action": "defer"}),
    ):
        shown = run(*words, *more)
        assert shown.exit_code == 0, shown.output
        assert json.loads(shown.stdout)["pools"][0]["parameters"] == parameters


def test_options_of_a_pool_go_with_one_pool(run, tmp_path):
    """Nobody could say which one is meant."""
    (tmp_path / "g.yaml").write_text(
        "pools: [{models: [a], upstreams: ['h:1']}, {upstreams: ['h:2']}]"
    )
    shown = run("gateway", "--config", "g.yaml", "--policy", "queue_depth", "--check")
    assert shown.exit_code == 2
    assert "a file that has exactly one" in shown.stderr


def test_a_parameter_that_is_a_text_stays_one(run, engine):
    """Although it looks like a number."""
    shown = run("gateway", "--upstream", engine, "--policy", "queue_depth",
                "--param", "action=8", "--check")  # fmt: skip
    assert "action = '8' is not one of defer, reject" in shown.stderr


def test_the_example_is_right(root, run):
    """What a reader copies passes the check but for engines that are not there."""
    from admitperf.gateway.config.document import read
    from admitperf.gateway.config.schema import parsed

    made = parsed(read(root / "examples" / "gateway.yaml", {}), "example")
    assert [pool.name for pool in made.edge.pools] == ["small", "large"]


def test_the_digest_of_a_key_is_the_one_the_gateway_knows_it_by(run, tmp_path):
    """Under the secret of the file, or of the environment."""
    from admitperf.gateway.facts.identity import Tenants

    expected = Tenants(secret=SECRET.encode()).digest("sk-1")
    (tmp_path / "g.yaml").write_text("secret: ${S}\n")
    by_file = run("gateway", "hash-key", "--config", "g.yaml", stdin="sk-1\n", S=SECRET)
    by_name = run("gateway", "hash-key", stdin="sk-1", ADMITPERF_SECRET=SECRET)
    assert by_file.stdout == by_name.stdout == expected + "\n"


@pytest.mark.parametrize(
    ("key", "secret", "says"),
    [
        ("", SECRET, "holds no key"),
        ("sk-1", "", "no secret"),
        ("sk-1", "s", "no secret"),
    ],
)
def test_a_digest_needs_a_key_and_a_secret(run, key, secret, says):
    """One line, and neither is repeated."""
    shown = run("gateway", "hash-key", stdin=f"{key}\n", ADMITPERF_SECRET=secret)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert says in shown.stderr
    assert "sk-1" not in shown.stderr


def test_without_the_extra_it_says_what_to_install(root):
    """In one line."""
    program = (
        "import sys; sys.modules['granian'] = None\n"
        "from admitperf.cli import main\n"
        "main(['gateway', '--upstream', 'h:1'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    needs = "this needs granian, of the extra admitperf[gateway]: pip install granian"
    assert ran.stderr == f"Error: {needs}\n"


def test_help_loads_nothing_of_the_gateway():
    """A shell that completes words does not wait for a server."""
    program = (
        "import sys\nfrom admitperf.cli import main\n"
        "try: main(['gateway', 'serve', '--help'])\n"
        "except SystemExit: pass\n"
        "print([n for n in sys.modules if 'granian' in n or 'pydantic' in n], "
        "file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stderr == "[]\n"


def test_it_prints_one_document_once_it_listens(engine):
    """With `--json`, the address in it."""
    words = [
        *TOOL,
        "gateway",
        "--upstream",
        engine,
        "--listen",
        "127.0.0.1:0",
        "--json",
    ]
    with running(words, stdout=subprocess.PIPE, text=True) as process:
        text = ""
        while not text.endswith("\n}\n"):
            line = process.stdout.readline()
            assert line
            text += line
        assert json.loads(text)["address"].startswith("http://127.0.0.1:")


def test_every_option_is_read():
    """A word that nobody reads would be no fault and no effect."""
    names = {option.name for option in gateway.serve.params}
    assert names == set(gateway._Options.__annotations__)
