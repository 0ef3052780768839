"""The page of metrics is read right by who reads the real one."""

import json
import re
import threading

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families as families
from tests.engines.pages import FIXTURES

from admitperf.cli import main
from admitperf.scrape.simulated import INFO
from admitperf.simulator.server.exposition import SIMULATED, Exposition, stamp
from admitperf.simulator.server.served import tokens_bounds

REAL = FIXTURES / "real-vllm-0.32.0-load.prom"
LEFT_OUT = {
    "vllm:iteration_tokens_total", "vllm:request_inference_time_seconds",
    "http_request_size_bytes", "http_response_size_bytes",
    "http_request_duration_highr_seconds", "http_request_duration_seconds",
}  # fmt: skip


def kinds(text):
    """Name to type, of what a page declares, but for creation times and Python."""
    found = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    return {
        name: kind
        for name, kind in found
        if not name.endswith("_created")
        and not name.startswith(("python_", "process_"))
    }


def labels(text):
    """Name to the names of its labels, of every series."""
    found = {}
    for name, inner in re.findall(r"^(\w[\w:]*)\{(.*)\} \S+$", text, re.MULTILINE):
        found[name] = set(re.findall(r'(\w+)="', inner))
    return found


def busy(server, **more):
    """Start a request that lasts; what ends it."""
    caller = threading.Thread(
        target=lambda: server.ask([5] * 100, max_tokens=200, ignore_eos=True, **more)
    )
    caller.start()
    server.until(lambda: server.engine.given_tokens > 2)
    return caller


def signals(server):
    """What `admitperf signals` says of it: signal to value."""
    shown = CliRunner().invoke(main, ["signals", server.url, "--json", "--once"])
    assert shown.exit_code == 0, shown.output
    (target,) = json.loads(shown.stdout)["targets"]
    return {told["name"]: told["value"] for told in target["signals"]}


def test_names_and_types_are_those_of_a_recorded_page(server):
    """What is left out is left out on purpose, and nothing is made up.

    But for one family: the one that says the page is of no real engine.
    """
    server.ask(max_tokens=2)
    ours = kinds(server.get("/metrics").body.decode())
    assert ours.pop(SIMULATED) == "gauge"
    theirs = kinds(REAL.read_text(encoding="utf-8"))
    assert theirs.keys() - ours.keys() == LEFT_OUT
    assert ours == {name: theirs[name] for name in ours}


def test_labels_and_buckets_are_those_of_a_recorded_page(server):
    """So a query written for the real one finds the same series."""
    server.ask(max_tokens=2)
    ours = server.get("/metrics").body.decode()
    theirs = REAL.read_text(encoding="utf-8")
    known = labels(theirs)
    config = "vllm:cache_config_info"
    found = labels(ours)
    assert found.pop(SIMULATED) == {"profile"}
    assert found[config] < known[config]
    for name, names in found.items():
        assert name == config or names == known[name], name
    bounds = re.compile(r'^(\w[\w:]*)_bucket\{.*le="([^"]+)"', re.MULTILINE)
    real = {name for name in bounds.findall(theirs) if name[0] not in LEFT_OUT}
    assert set(bounds.findall(ours)) == real


def test_a_strict_parser_reads_the_page_in_both_dialects(start):
    """Every number, and counts of buckets that only grow."""
    for dialect in ("vllm", "sglang"):
        server = start(setup={"dialect": dialect})
        server.ask("a\n" * 30, max_tokens=3)
        answer = server.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=1.0.0")
        text = answer.body.decode()
        found = {family.name: family for family in families(text)}
        ttft = found[f"{dialect}:time_to_first_token_seconds"]
        counts = [s.value for s in ttft.samples if s.name.endswith("_bucket")]
        assert counts == sorted(counts)
        assert counts[-1] == 1


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_our_own_signals_read_what_the_engine_has(start, dialect):
    """Under either dialect: running, waiting, KV and capacity."""
    server = start(
        setup={"dialect": dialect}, max_num_seqs=1, kv_blocks=50, step_ms=8.0
    )
    caller = busy(server)
    other = threading.Thread(target=lambda: server.ask("x", max_tokens=1))
    other.start()
    server.until(lambda: server.engine.waiting == 1)
    read = signals(server)
    other.join()
    caller.join()
    assert read["running"] == 1
    assert read["queue_depth"] == 1
    assert read["kv_capacity_tokens"] == 800
    assert 0.1 < read["kv_pressure"] < 0.5


def test_what_the_engine_refuses_is_counted(start):
    """By the limit's name, once each."""
    server = start(max_num_queued_reqs=1, step_ms=4.0)
    caller = busy(server)
    assert [server.ask("x").status for _ in range(3)] == [503] * 3
    page = server.get("/metrics").body.decode()
    caller.join()
    name = 'admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"}'
    assert f"vllm:{name} 3.0" in page
    assert 'handler="/v1/completions",method="POST",status="5xx"} 3.0' in page


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_the_page_says_that_it_is_simulated_and_by_what(start, dialect):
    """In both dialects, with help and type, and whatever else goes wrong."""
    server = start([{"kind": "nan"}], setup={"dialect": dialect, "profile": "quick"})
    lines = server.get("/metrics").body.decode().splitlines()
    assert f'{SIMULATED}{{profile="quick"}} 1.0' in lines
    assert f"# TYPE {SIMULATED} gauge" in lines
    assert sum(line.startswith(f"# HELP {SIMULATED} ") for line in lines) == 1


def test_the_scraper_looks_for_what_the_server_writes():
    """The two may not import each other, so the name stands twice."""
    assert SIMULATED == INFO
    assert r'{profile="a\"b"} 1.0' in stamp('a"b')


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_signals_says_simulated(start, dialect):
    """As a row with the profile, and in JSON."""
    server = start(setup={"dialect": dialect, "profile": "quick"})
    text = CliRunner().invoke(main, ["signals", server.url, "--once"]).stdout
    row = "SIMULATED the numbers come from a simulated engine (profile quick), not"
    assert row in " ".join(text.split())
    made = CliRunner().invoke(main, ["signals", server.url, "--once", "--json"])
    (target,) = json.loads(made.stdout)["targets"]
    assert (target["simulated"], target["profile"]) == (True, "quick")


def test_labels_are_escaped():
    """A model may be called anything."""
    out = Exposition({"model_name": 'a"b\\c\nd'})
    out.gauge("x", "some", 1)
    assert r'x{model_name="a\"b\\c\nd"} 1.0' in out.text()


def test_bounds_for_tokens_end_with_the_model():
    """As vLLM's: 1, 2, 5 and so on."""
    assert tokens_bounds(1024)[-3:] == (200.0, 500.0, 1000.0)
    assert tokens_bounds(1) == (1.0,)
