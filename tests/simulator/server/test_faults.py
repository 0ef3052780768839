"""Each fault does what its name says, and stops when it is over."""

import http.client
import json
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from admitperf.simulator.server.faults import KINDS

SHORT = {"max_tokens": 4, "ignore_eos": True}


def metric(server, name):
    """A number of the page; None = it is not there."""
    for line in server.get("/metrics").body.decode().splitlines():
        if line.startswith(name) and not line.startswith(("#", f"{name}_")):
            return float(line.rpartition(" ")[2])
    return None


def streamed(server, **more):
    """A stream, read to its end; its events, and whether it ended in a proper way."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    told = {"prompt": "hello", "stream": True, "ignore_eos": True, **more}
    raw = b""
    whole = True
    connection.request(
        "POST", "/v1/completions", json.dumps(told),
        {"content-type": "application/json"},
    )  # fmt: skip
    answer = connection.getresponse()
    try:
        while piece := answer.read1(65536):
            raw += piece
    except (http.client.HTTPException, OSError):
        whole = False
    connection.close()
    return [e for e in raw.decode().split("\n\n") if e], whole


def test_slow_makes_every_step_longer(start):
    """The engine's own times say so, not only the caller."""
    server = start(step_ms=1.0)
    server.ask(**SHORT)
    usual = metric(server, "vllm:e2e_request_latency_seconds_sum")
    server.fault("slow", factor=20)
    server.ask(**SHORT)
    both = metric(server, "vllm:e2e_request_latency_seconds_sum")
    assert both - usual > 10 * usual
    server.clear()
    server.ask(**SHORT)
    last = metric(server, "vllm:e2e_request_latency_seconds_sum")
    assert last - both < 3 * usual


def test_a_share_of_requests_fails(start):
    """With 500, in the shape of its API, by the seed."""
    server = start([{"kind": "failing", "share": 0.5}])
    codes = [server.ask(**SHORT).status for _ in range(40)]
    assert set(codes) == {200, 500}
    assert 8 < codes.count(500) < 32
    again = start([{"kind": "failing", "share": 0.5}])
    assert [again.ask(**SHORT).status for _ in range(40)] == codes
    server.fault("failing")
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
    assert server.post("/v1/messages", body).json() == {
        "type": "error",
        "error": {"type": "InternalServerError", "message": "Internal server error"},
    }


def test_metrics_stand_still_while_serving_goes_on(start):
    """The page is that of the moment it froze."""
    server = start()
    server.ask(**SHORT)
    server.fault("frozen")
    server.ask(**SHORT)
    assert metric(server, "vllm:generation_tokens_total") == 4
    server.clear()
    assert metric(server, "vllm:generation_tokens_total") == 8


def test_the_engine_stands_still_while_metrics_answer(start):
    """A request gets its tokens when it goes on; the page shows it running."""
    server = start(step_ms=5.0, front_ms=0.0)
    done = threading.Event()

    def ask():
        assert server.ask(max_tokens=40, ignore_eos=True).status == 200
        done.set()

    def shown():
        server.serving.front.house.wall.catch_up()
        return server.engine.gauges.running  # once its first step is over

    caller = threading.Thread(target=ask)
    caller.start()
    server.until(shown)
    server.fault("frozen", what="engine")
    given = metric(server, "vllm:generation_tokens_total")
    assert not done.wait(0.4)
    assert metric(server, "vllm:generation_tokens_total") == given
    assert metric(server, "vllm:num_requests_running") == 1
    server.clear()
    assert done.wait(20)
    caller.join()
    assert metric(server, "vllm:e2e_request_latency_seconds_sum") > 0.4


def test_gauges_read_nan_and_counters_go_on(start):
    """As an exporter that lost its source."""
    server = start()
    server.ask(**SHORT)
    server.fault("nan")
    page = server.get("/metrics").body.decode()
    assert 'vllm:num_requests_running{engine="0",model_name="tiny"} NaN' in page
    assert 'vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} NaN' in page
    assert metric(server, "vllm:generation_tokens_total") == 4


def test_metrics_go_by_other_names(start):
    """As after an upgrade."""
    server = start()
    server.fault("renamed", **{"from": "kv_cache_usage_perc", "to": "kv_used"})
    assert metric(server, "vllm:kv_cache_usage_perc") is None
    assert metric(server, "vllm:kv_used") == 0.0


def test_a_request_is_taken_and_never_answered(start):
    """Until its caller goes away; nothing of it reaches the engine."""
    server = start()
    server.fault("hang")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=0.4)
    connection.request(
        "POST", "/v1/completions", '{"prompt": "x"}',
        {"content-type": "application/json"},
    )  # fmt: skip
    with pytest.raises(TimeoutError):
        connection.getresponse()
    assert server.within(lambda: server.serving.front.open) == 1
    connection.close()
    server.until(server.empty)
    assert server.get("/health").status == 200


@pytest.mark.parametrize(("how", "proper"), [("end", True), ("reset", False)])
def test_a_stream_breaks_off_without_its_end(start, how, proper):
    """After so many tokens; by a proper end of the connection or a reset."""
    server = start()
    server.fault("cut", after=3, how=how)
    events, whole = streamed(server, max_tokens=50)
    assert whole is proper
    if proper:
        assert len(events) == 3
    assert "[DONE]" not in "".join(events)
    assert "length" not in "".join(events)


def test_a_refusal_comes_inside_a_stream_that_began_with_200(start):
    """The error, then the end, and nothing else."""
    server = start()
    server.fault("reject_in_stream")
    events, whole = streamed(server, max_tokens=5)
    assert whole
    assert json.loads(events[0].removeprefix("data: "))["error"]["code"] == 503
    assert events[1:] == ["data: [DONE]"]


@pytest.mark.parametrize(
    ("path", "more", "says"),
    [
        ("/v1/chat/completions", {"messages": [{"content": "x"}]}, "Service Unavail"),
        ("/v1/messages", {"messages": [{"content": "x"}], "max_tokens": 3}, "error"),
        ("/v1/responses", {"input": "x"}, "response.in_progress"),
    ],
)
def test_each_api_refuses_inside_a_stream_in_its_own_way(start, path, more, says):
    """Responses break off after their opening, as recorded."""
    server = start()
    server.fault("reject_in_stream")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(
        "POST", path, json.dumps({**more, "stream": True}),
        {"content-type": "application/json"},
    )  # fmt: skip
    answer = connection.getresponse()
    assert answer.status == 200
    try:
        raw = answer.read()
        assert path != "/v1/responses", "the chunked body ended as it should"
    except http.client.IncompleteRead as cut:
        raw = cut.partial
        assert path == "/v1/responses"
    connection.close()
    assert says in raw.decode()


@pytest.mark.parametrize("meanwhile", ["refused", "503"])
def test_a_restart_kills_connections_and_begins_anew(start, meanwhile):
    """Counters, cache and start time are those of a new process."""
    server = start(step_ms=5.0)
    prompt = "one two three four five six seven eight nine ten " * 10
    server.ask(prompt, **SHORT)
    born = metric(server, "process_start_time_seconds")
    seen = []
    caller = threading.Thread(
        target=lambda: seen.append(streamed(server, max_tokens=900))
    )
    caller.start()
    server.until(lambda: server.engine.running)
    server.fault("restart", down=0.4, meanwhile=meanwhile)
    caller.join(20)
    assert seen[0][1] is False
    if meanwhile == "503":
        assert server.get("/health").status == 503
        assert server.ask(**SHORT).status == 503
    else:
        with pytest.raises(OSError):  # noqa: PT011  refused or reset
            server.get("/health")
    server.until(lambda: not server.serving.front.unready)
    server.until(lambda: server.serving._site is not None)
    assert metric(server, "vllm:generation_tokens_total") == 0
    assert metric(server, "process_start_time_seconds") > born
    again = server.ask(prompt, **SHORT).json()["usage"]
    assert again["prompt_tokens_details"]["cached_tokens"] == 0
    assert server.ask(prompt, **SHORT).json()["usage"]["prompt_tokens_details"][
        "cached_tokens"
    ]


def test_counters_are_reset_while_serving_goes_on(start):
    """Connections and cache live on."""
    server = start()
    prompt = "one two three four five six seven eight nine ten " * 10
    server.ask(prompt, **SHORT)
    server.fault("counter_reset")
    assert metric(server, "vllm:generation_tokens_total") == 0
    assert metric(server, "vllm:time_to_first_token_seconds_count") == 0
    used = server.ask(prompt, **SHORT).json()["usage"]["prompt_tokens_details"]
    assert used["cached_tokens"] > 0
    assert metric(server, "vllm:generation_tokens_total") == 4


def test_a_scrape_takes_its_time_and_holds_up_nothing_else(start):
    """Only the page is late."""
    server = start()
    server.fault("scrape_delay", seconds=1.5)
    came = threading.Event()

    def scrape():
        with suppress(OSError):
            server.get("/metrics")
            came.set()

    caller = threading.Thread(target=scrape)
    caller.start()
    server.until(lambda: server.serving.front.open == 1)
    assert server.ask(**SHORT).status == 200
    assert not came.is_set()
    caller.join()
    assert came.is_set()


def test_faults_begin_and_end_at_their_times(start):
    """What was told is shown with where it stands."""
    server = start(
        [{"kind": "nan", "at": 0.1, "for": 0.3}, {"kind": "failing", "at": 99}]
    )
    front = server.serving.front
    assert [f["state"] for f in server.get("/admin/faults").json()["faults"]][1] == (
        "pending"
    )
    server.until(lambda: front.trouble.active("nan"))
    server.until(lambda: not front.trouble.active("nan"))
    told = server.get("/admin/faults").json()["faults"]
    assert [fault["state"] for fault in told] == ["pending"]
    server.clear()
    assert server.get("/admin/faults").json() == {"faults": []}


def test_a_wrong_fault_is_refused_with_all_that_is_wrong(server):
    """And none of the others is taken."""
    told = [{"kind": "nan"}, {"kind": "slow"}, {"kind": "melt"}]
    answer = server.post("/admin/faults", {"faults": told})
    assert answer.status == 400
    assert "'factor' is missing" in answer.json()["error"]["message"]
    assert "'melt'" in answer.json()["error"]["message"]
    assert server.get("/admin/faults").json() == {"faults": []}


def test_faults_that_are_over_are_forgotten(start):
    """However many there were; those that happen once at once."""
    server = start()
    for _ in range(30):
        server.fault("counter_reset")
        server.fault("nan", **{"for": 0.001})
    server.until(lambda: not server.serving.front.trouble.active("nan"))
    assert server.get("/admin/faults").json() == {"faults": []}


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ([{"factor": 1e4}] * 200, "multiply to"),
        ([{"factor": 0.01}] * 200, "multiply to"),
        ([{"factor": 200, "at": 5, "for": 9}, {"factor": 200, "at": 8}], "80000"),
        ([{"factor": 100, "for": 9}, {"factor": 0.01}, {"factor": 0.01}], "0.0002"),
        ([{"factor": 1000}, {"factor": 0.001}], "0.001"),
    ],
)
def test_factors_that_come_to_too_much_at_once_are_refused_together(start, told, says):
    """Whenever that is; the engine and the list stay as they were."""
    server = start()
    server.fault("slow", factor=2)
    before = server.get("/admin/faults").json()
    told = [{"kind": "nan"}, *({"kind": "slow", **fault} for fault in told)]
    answer = server.post("/admin/faults", {"faults": told})
    assert answer.status == 400
    assert says in answer.json()["error"]["message"]
    assert server.get("/admin/faults").json() == before
    assert server.engine.model.step_ms == 4.0
    assert not server.serving.front.trouble.active("nan")
    assert server.ask(**SHORT).status == 200


def test_slow_factors_one_after_the_other_are_not_multiplied(start):
    """Only what holds at once is."""
    server = start()
    told = [{"kind": "slow", "factor": 1e4, "at": 10 * n, "for": 10} for n in range(9)]
    assert server.post("/admin/faults", {"faults": told}).status == 200
    assert server.engine.model.step_ms == 2e4
    server.clear()


def test_a_step_longer_than_a_model_may_have_is_refused(start):
    """With the model's own words."""
    server = start(step_ms=1000.0)
    told = {"faults": [{"kind": "slow", "factor": 1e4}]}
    answer = server.post("/admin/faults", told)
    assert answer.status == 400
    assert "step_ms" in answer.json()["error"]["message"]
    assert server.engine.model.step_ms == 1000.0


def test_faults_that_are_to_come_are_bounded_in_number(start):
    """Told at once, or one after the other."""
    server = start()
    one = {"kind": "nan", "at": 999}
    assert server.post("/admin/faults", {"faults": [one] * 1001}).status == 400
    assert server.post("/admin/faults", {"faults": [one] * 1000}).status == 200
    assert server.post("/admin/faults", {"faults": [one]}).status == 400
    assert len(server.get("/admin/faults").json()["faults"]) == 1000
    server.clear()


def test_words_that_were_replaced_are_not_replaced_again(start):
    """So a page cannot grow without end."""
    server = start()
    told = [{"kind": "renamed", "from": "e", "to": "e" * 100}] * 50
    told.append({"kind": "renamed", "from": "vllm:num_requests_running", "to": "busy"})
    assert server.post("/admin/faults", {"faults": told}).status == 200
    assert len(server.get("/metrics").body) < 10_000_000


def test_every_kind_of_fault_has_a_test_here():
    """A kind that nobody tried is no promise."""
    source = Path(__file__).read_text(encoding="utf-8")
    assert [kind for kind in KINDS if source.count(f'"{kind}"') < 1] == []
