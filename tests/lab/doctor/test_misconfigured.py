"""Each thing set up wrong is named; a set-up that is well has no problem."""

import re
import socket
import threading

import pytest
from tests.lab.doctor.conftest import at, said

from admitperf.core.clock import SYSTEM

RUNS = "vllm:num_requests_running"
KV = "vllm:kv_cache_usage_perc"
STARTED = "process_start_time_seconds"
LONG_AGO = "Sun, 01 Nov 2026 08:00:00 GMT"


def value_of(name, value):
    """Make a page say another value."""
    pattern = re.compile(rf"^({name}(?:{{.*}})?) \S+$", re.MULTILINE)
    return lambda page: pattern.sub(rf"\g<1> {value}", page)


def renamed(page):
    """A later version of the engine calls it otherwise."""
    return page.replace(KV, "vllm:kv_cache_use_percent")


def two_replicas():
    """Two processes behind one address, asked in turn."""
    turn = iter(range(1000))

    def page(text):
        return value_of(STARTED, 1790000000 + next(turn) % 2)(text)

    return page


def frozen():
    """A cache in between that never asks again, taken while two ran."""
    kept = []

    def page(text):
        kept.append(value_of(RUNS, "2.0")(text))
        return kept[0]

    return page


def stamped(page):
    """Samples that carry a time, an hour old."""
    old_ms = SYSTEM.wall_ns() // 1_000_000 - 3_600_000
    return re.sub(r"^(vllm:\S+ \S+)$", rf"\1 {old_ms}", page, flags=re.MULTILINE)


SPOILT_PAGES = {
    "engine.names": {"page": renamed},
    "engine.percent": {"page": value_of(KV, "41")},
    "engine.one": {"page": two_replicas()},
    "engine.moving": {"page": frozen()},
    "engine.fresh": {"page": stamped},
    "engine.clock": {"date": LONG_AGO},
    "engine.speed": {"wait_s": 1.6},
}


def test_a_set_up_that_is_well_has_no_problem(doctor, engine_url, door):
    """Nothing is named that is not wrong, and every subject was asked."""
    made, code = doctor(
        "--engine", engine_url, "--gateway", door.url, "--log", door.log
    )
    assert at(made, "problem") == set(), made
    assert code == 0
    subjects = {name.partition(".")[0] for name in at(made, "ok")}
    assert subjects == {"engine", "gateway", "probe", "log"}
    assert "probe.events" in at(made, "ok")
    assert "probe.headers-in" in at(made, "ok")
    assert "log.gateway" in at(made, "ok")


@pytest.mark.parametrize("check", SPOILT_PAGES)
def test_what_is_wrong_with_a_page_is_named(doctor, between, engine_url, check):
    """Renamed, a percentage, several replicas, frozen, old, off the clock, slow."""
    url = between(engine_url, **SPOILT_PAGES[check])
    made, code = doctor("--engine", url)
    assert at(made, "problem") == {check}, made
    assert code == 1
    assert said(made, check)["fix"]


def test_the_renamed_signal_comes_with_the_line_that_maps_it(
    doctor, between, engine_url
):
    """With its scale where the name says that it is a percentage."""
    made, _ = doctor("--engine", between(engine_url, page=renamed))
    fix = said(made, "engine.names")["fix"]
    assert (
        'KV_PRESSURE.add_source(Source("vllm_kv_cache_use_percent", scale=0.01))' in fix
    )


NO_PAGES = {
    "engine.page": (404, "text/plain", "no"),
    "engine.token": (401, "text/plain", "who?"),
    "engine.known": (200, "text/plain", "go_threads 4\n"),
}


@pytest.mark.parametrize("check", NO_PAGES)
def test_a_page_that_is_not_there_is_named(doctor, pages, check):
    """At the wrong path, behind a token, of another program."""
    made, code = doctor("--engine", pages({"/metrics": NO_PAGES[check]}))
    assert check in at(made, "problem"), made
    assert code == 1


def test_a_login_page_is_no_metrics_page(doctor, pages):
    """HTML with status 200."""
    page = (200, "text/html", "<html>please log in</html>")
    made, code = doctor("--engine", pages({"/metrics": page}))
    assert at(made, "problem") == {"engine.page"}
    assert code == 1


def test_a_signal_that_is_not_there_at_all_is_named(doctor, pages):
    """Without a name that is like it there is nothing to map."""
    text = 'vllm:num_requests_running{engine="0"} 1\nvllm:prompt_tokens_total 4\n'
    made, _ = doctor("--engine", pages({"/metrics": (200, "text/plain", text)}))
    assert {"engine.signals", "engine.names"} & at(made, "problem")


def test_two_models_on_one_page_are_named(doctor, pages):
    """Their queues would be added up."""
    rows = [
        f'{name}{{model_name="{model}"}} 1\n'
        for name in (RUNS, "vllm:num_requests_waiting")
        for model in ("small", "large")
    ]
    text = "".join([*rows, f"{KV} 0.5\n"])
    made, _ = doctor("--engine", pages({"/metrics": (200, "text/plain", text)}))
    assert "engine.labels" in at(made, "warning")
    assert "large, small" in said(made, "engine.labels")["says"]


SPOILT_WAYS = {
    "probe.headers-in": {"lost_in": ("x-session-id",)},
    "probe.headers-back": {"lost_out": ("x-request-id", "x-admitperf-decision-id")},
    "probe.encoding": {"packed": True},
    "probe.events": {"buffered": True},
}


@pytest.mark.parametrize("check", SPOILT_WAYS)
def test_what_a_proxy_before_the_gateway_spoils_is_named(doctor, between, door, check):
    """Headers stripped on the way in or out, answers packed, events kept back."""
    made, code = doctor("--gateway", between(door.url, **SPOILT_WAYS[check]))
    assert check in at(made, "problem"), made
    allowed = {check, "probe.events"} if check == "probe.encoding" else {check}
    assert at(made, "problem") <= allowed, made
    assert code == 1


def test_a_proxy_behind_the_gateway_that_buffers_is_found_by_asking_the_engine(
    doctor, between, engine_url, opened, tmp_path
):
    """The gateway had them in one burst too; the engine alone does not."""
    from tests.gateway.conformance.door import gateway

    slow = between(engine_url, buffered=True)
    words = ["--upstream", slow, "--policy", "queue_depth"]
    door = opened.enter_context(gateway(tmp_path / "behind", *words))
    made, code = doctor("--gateway", door.url, "--engine", engine_url)
    assert at(made, "problem") == {"probe.events"}, made
    assert "between it and the engine" in said(made, "probe.events")["says"]
    assert code == 1


def test_without_a_probe_nothing_is_sent(doctor, opened, door):
    """`--no-probe` only reads pages."""
    from tests.lab.doctor.between import Proxy, Spoil, serving

    proxy = opened.enter_context(serving(Proxy(door.url, Spoil())))
    made, code = doctor("--gateway", proxy.url, "--no-probe")
    assert code == 0, made
    assert proxy.spoil.seen
    assert {method for method, _ in proxy.spoil.seen} == {"GET"}
    assert not any(one["check"].startswith("probe") for one in made["findings"])


def test_the_probe_is_one_request(doctor, opened, door, engine_url):
    """One POST through the gateway where nothing is wrong with the stream."""
    from tests.lab.doctor.between import Proxy, Spoil, serving

    proxy = opened.enter_context(serving(Proxy(door.url, Spoil())))
    doctor("--gateway", proxy.url, "--engine", engine_url)
    posts = [path for method, path in proxy.spoil.seen if method == "POST"]
    assert posts == ["/v1/chat/completions"]


def test_an_engine_in_place_of_the_gateway_is_named(doctor, engine_url):
    """It answers, and knows nothing of admission."""
    made, code = doctor("--gateway", engine_url)
    assert "gateway.itself" in at(made, "problem"), made
    assert code == 1


def test_a_gateway_that_cannot_read_its_engine_is_named(doctor, opened, tmp_path):
    """Not ready, the replica not read, and why."""
    from tests.gateway.conformance.door import gateway

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    words = ["--upstream", f"127.0.0.1:{port}", "--policy", "queue_depth"]
    door = opened.enter_context(gateway(tmp_path / "down", *words, ready=False))
    made, code = doctor("--gateway", door.url, "--no-probe", "--timeout", "2s")
    assert "gateway.replicas" in at(made, "problem"), made
    assert "gateway.ready" in at(made, "problem")
    assert "refused" in said(made, "gateway.replicas")["says"]
    assert code == 1


def test_nothing_that_answers_is_exit_code_2(doctor):
    """Nothing was reached, so nothing can be said to be well."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    made, code = doctor(
        "--engine", f"127.0.0.1:{port}", "--gateway", f"127.0.0.1:{port}",
        "--log", "gone.jsonl",
    )  # fmt: skip
    assert code == 2
    assert made["reached"] is False
    expected = {"engine.reachable", "gateway.reachable", "log.file"}
    assert at(made, "problem") == expected


@pytest.fixture
def hung():
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_hangs_does_not_hang_the_doctor(doctor, hung):
    """It ends by itself, and says that no answer came."""
    ended = threading.Event()

    def ask():
        made, code = doctor("--engine", hung, "--gateway", hung, "--timeout", "0.3s")
        assert code == 2
        assert "no answer" in said(made, "engine.reachable")["says"]
        assert "no answer" in said(made, "gateway.reachable")["says"]
        ended.set()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert ended.is_set()
