"""The engine on the wall's clock does what it does in virtual time."""

import http.client
import json
import socket
import threading

import pytest

from admitperf.core.clock import SYSTEM
from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.events import End
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.traffic.arrival import Arrival

STEPPED = {
    "max_num_seqs": 4, "kv_blocks": 60, "step_ms": 15.0, "front_ms": 4.0,
    "ms_per_prefill_token": 0.1, "ms_per_sequence": 0.5, "max_model_len": 900,
}  # fmt: skip
LOAD = [(0.0, 120, 40), (0.01, 200, 30), (0.05, 60, 50), (0.09, 300, 20),
        (0.1, 40, 25), (0.3, 90, 30)]  # fmt: skip
"""When, prompt and answer: six requests for four slots."""


def now():
    """Seconds since some start."""
    return SYSTEM.monotonic_ns() / 1e9


def in_virtual_time():
    """First token and end of each request, in ms from when it came."""
    engine = Engine(EngineModel(**STEPPED))
    times = {}
    for place, (at_s, prompt, tokens) in enumerate(LOAD):
        for event in engine.run_to(at_s):
            note(times, event)
        engine.submit(
            Arrival(id=str(place), at_s=at_s, input_tokens=prompt,
                    max_output_tokens=tokens, output_tokens=tokens)
        )  # fmt: skip
    for event in engine.run_to(float("inf")):
        note(times, event)
    return [times[str(place)] for place in range(len(LOAD))]


def note(times, event):
    """Keep what an end says."""
    if isinstance(event, End):
        times[event.arrival.id] = (event.ttft_ms, event.e2e_ms)


def over_http(server):
    """The same, seen by callers."""
    times = [None] * len(LOAD)
    zero = now()
    pause = threading.Event()

    def call(place, at_s, prompt, tokens):
        pause.wait(max(0.0, at_s - (now() - zero)))
        came = now()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        ids = [1000 * place + n for n in range(prompt)]
        told = {"prompt": ids, "max_tokens": tokens, "ignore_eos": True, "stream": True}
        kind = {"content-type": "application/json"}
        connection.request("POST", "/v1/completions", json.dumps(told), kind)
        answer = connection.getresponse()
        answer.readline()
        first = now()
        answer.read()
        times[place] = ((first - came) * 1e3, (now() - came) * 1e3)
        connection.close()

    callers = [
        threading.Thread(target=call, args=(place, *asked))
        for place, asked in enumerate(LOAD)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return times


def test_callers_see_the_times_of_the_virtual_run(start):
    """Loosely: this machine may be busy, but a step cannot be too early."""
    virtual, seen = in_virtual_time(), over_http(start(**STEPPED))
    for (ttft, e2e), (first, last) in zip(virtual, seen, strict=True):
        assert 0.6 * ttft - 20 < first < 2 * ttft + 300
        assert 0.8 * e2e - 40 < last < 1.5 * e2e + 300
    assert max(ttft for ttft, _ in virtual) > 3 * min(ttft for ttft, _ in virtual)


def test_headers_come_at_once_and_tokens_later(start):
    """As with the real one: 200 says nothing about when it starts."""
    server = start(step_ms=400.0)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    told = {"prompt": "x", "max_tokens": 2, "stream": True}
    connection.request(
        "POST", "/v1/completions", json.dumps(told),
        {"content-type": "application/json"},
    )  # fmt: skip
    answer = connection.getresponse()
    assert answer.status == 200
    assert server.within(lambda: server.engine.given_tokens) == 0
    assert answer.read().count(b"data: ") == 3
    connection.close()


def test_the_second_check_refuses_inside_the_stream(start):
    """Ten at once for three places: most get 200 and then the error."""
    server = start(max_num_queued_reqs=3, front_ms=80.0, step_ms=20.0)
    told = json.dumps(
        {"prompt": "x", "max_tokens": 5, "ignore_eos": True, "stream": True}
    )
    raw = (
        "POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(told)}\r\n\r\n{told}"
    ).encode()
    socks = [
        socket.create_connection(("127.0.0.1", server.port), timeout=20)
        for _ in range(10)
    ]
    for sock in socks:
        sock.sendall(raw)
    answers = []
    for sock in socks:
        answers.append(b"".join(iter(lambda sock=sock: sock.recv(65536), b"")))
        sock.close()
    inside = [
        a for a in answers if a.startswith(b"HTTP/1.1 200") and b'"code": 503' in a
    ]
    served = [a for a in answers if b'"finish_reason":"length"' in a]
    assert len(served) == 3
    assert len(inside) + len(served) == 10
    assert all(a.count(b"data: ") == 2 and b"data: [DONE]" in a for a in inside)
    assert server.engine.tally.refused["max_num_queued_reqs"] == 7


def test_not_streamed_the_second_check_is_a_clean_503(start):
    """Nothing had been said yet."""
    server = start(max_num_queued_reqs=1, front_ms=80.0, step_ms=20.0)
    codes = []
    callers = [
        threading.Thread(target=lambda: codes.append(server.ask(max_tokens=5).status))
        for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(codes) == [200, 503, 503, 503]


def test_a_busy_engine_refuses_before_it_reads_how_long_a_prompt_is(start):
    """But not before it knows the model: 503 for too long, 404 for unknown."""
    server = start(max_num_queued_reqs=1, max_num_seqs=1, step_ms=20.0)
    caller = threading.Thread(target=lambda: server.ask(max_tokens=40, ignore_eos=True))
    caller.start()
    server.until(lambda: server.engine.running)
    assert server.ask([1] * 2000).status == 503
    assert server.ask(model="nope").status == 404
    caller.join()
    assert server.ask([1] * 2000).status == 400


def test_the_limit_on_prompt_tokens_is_named_as_such(start):
    """Its text differs from that of the limit on requests."""
    server = start(max_num_queued_tokens=50, max_num_seqs=1, step_ms=10.0)
    callers = [
        threading.Thread(
            target=lambda: server.ask([3] * 60, max_tokens=50, ignore_eos=True)
        )
        for _ in range(2)
    ]
    callers[0].start()
    server.until(lambda: server.engine.given_tokens)  # its prompt counts no more
    callers[1].start()
    server.until(lambda: server.engine.waiting == 1)
    answer = server.ask("x")
    assert answer.status == 503
    assert "prefill token backlog limit" in answer.json()["error"]["message"]
    for caller in callers:
        caller.join()


def test_prompts_of_one_completion_are_answered_side_by_side(server):
    """Each is a choice of its own, streamed or not."""
    told = {"max_tokens": 4, "ignore_eos": True}
    whole = server.ask([[1, 2], [3, 4, 5], [6]], **told).json()
    texts = [choice["text"] for choice in whole["choices"]]
    assert len(set(texts)) == 3
    assert whole["usage"]["prompt_tokens"] == 6
    assert whole["usage"]["completion_tokens"] == 12
    streamed = server.ask([[1, 2], [3, 4, 5], [6]], **told, stream=True).events()
    assert streamed[-1][1] == "[DONE]"
    spoken = ["", "", ""]
    for _, text in streamed[:-1]:
        choice = json.loads(text)["choices"][0]
        spoken[choice["index"]] += choice["text"]
    assert spoken == texts


def test_the_same_seed_answers_the_same(start):
    """Words, lengths and ids, in another server too."""
    one, other = (start(setup={"seed": 5}) for _ in range(2))
    third = start(setup={"seed": 6})
    told = [
        server.ask("tell me", max_tokens=500).json() for server in (one, other, third)
    ]
    for made in told:
        made["created"] = 0
    assert told[0] == told[1] != told[2]
    assert told[0]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_the_page_counts_what_was_given(start, dialect):
    """Of answers of both kinds."""
    server = start(setup={"dialect": dialect})
    for stream in (True, False):
        server.ask(max_tokens=7, ignore_eos=True, stream=stream)
    page = server.get("/metrics").body.decode()
    lines = [
        line for line in page.splitlines()
        if line.startswith(f"{dialect}:generation_tokens_total{{")
    ]  # fmt: skip
    assert [float(line.rpartition(" ")[2]) for line in lines] == [14]
