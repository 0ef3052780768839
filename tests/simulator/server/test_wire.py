"""What goes over the wire is what vLLM 0.32 was recorded to send."""

import json

import pytest

# What differs between two answers of the same engine, or follows from its tokenizer.
FREE = {
    "id", "created", "created_at", "root", "text", "content", "delta", "item_id",
    "system_fingerprint", "prompt_tokens", "input_tokens", "total_tokens", "token_ids",
    "original_input_tokens", "temperature",
}  # fmt: skip
FREE_WHEN_TEXT = {"text", "content", "delta"}


def shape(value, name=""):
    """A value with its keys in order, and a word for what is free to differ."""
    if isinstance(value, dict):
        return [(key, shape(inner, key)) for key, inner in value.items()]
    if isinstance(value, list) and name != "token_ids":
        return [shape(inner) for inner in value]
    if name in FREE and value is not None:
        return type(value).__name__ if value != "" else value
    return value


def read(text):
    """JSON as a shape; what is none as it is."""
    try:
        return shape(json.loads(text))
    except ValueError:
        return text


def events(text):
    """A stream as the names and shapes of its events."""
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((lines.get("event"), read(lines["data"])))
    return found


@pytest.fixture(scope="module")
def recorded(data):
    """Exchanges with the real engine, by name."""
    path = data / "wire" / "vllm-0.32.0.json"
    return json.loads(path.read_text(encoding="utf-8"))


def exchange(server, told):
    """Have the same exchange with ours."""
    headers = {"content-type": told["type"]} if told["type"] else {}
    if "id" in told:
        headers["x-request-id"] = told["id"]
    body = None if told["body"] is None else told["body"].encode()
    return server.call(told["method"], told["path"], body, headers)


def test_every_recorded_exchange_has_the_same_shape(start, recorded):
    """Status, type, keys, their order and every value that is not free."""
    server = start(prefix_caching=False)  # the recorded prompts repeat
    assert len(recorded) > 50
    wrong = {}
    for name, told in recorded.items():
        ours = exchange(server, told)
        kinds = {key.lower(): value for key, value in ours.headers.items()}
        text = ours.body.decode()
        same = events if "event-stream" in (told["answer_type"] or "") else read
        theirs = (told["status"], told["answer_type"], same(told["answer"]))
        made = (ours.status, kinds.get("content-type"), same(text))
        if told["answer"] == "":
            theirs, made = theirs[:1] + theirs[2:], made[:1] + made[2:]
        if made != theirs:
            wrong[name] = (theirs, made)
    assert wrong == {}


def test_a_prompt_over_the_limit_is_refused_in_the_recorded_words(server):
    """Ids are counted to the end, a text to one past the limit."""
    over = server.ask([20] * 1100, max_tokens=4)
    message = (
        "This model's maximum context length is 1024 tokens. However, your prompt"
        " contains 1100 input tokens, which exceeds this limit even without any output"
        " tokens. Please reduce the length of the input prompt."
        " (parameter=input_tokens, value=1100)"
    )
    error = {"message": message, "type": "BadRequestError", "param": "input_tokens"}
    assert over.json() == {"error": {**error, "code": 400}}
    body = {"max_tokens": 4, "messages": [{"role": "user", "content": "hello " * 1100}]}
    texts = server.post("/v1/messages", body).json()["error"]
    assert "prompt contains at least 1025 input tokens" in texts["message"]
    assert "(parameter=input_tokens, value=1025)" in texts["message"]


def test_an_answer_past_the_model_is_cut_for_a_completion_only(server):
    """A completion gets what fits, a chat 400."""
    cut = server.ask([20] * 1000, max_tokens=2000, ignore_eos=True)
    assert cut.status == 200
    assert cut.json()["usage"]["completion_tokens"] == 24
    assert cut.json()["choices"][0]["finish_reason"] == "length"
    message = {"role": "user", "content": "hello " * 900}
    chat = server.post(
        "/v1/chat/completions", {"messages": [message], "max_tokens": 500}
    )
    assert chat.status == 400
    assert chat.json()["error"]["param"] == "input_tokens"


def test_each_event_is_a_chunk_of_its_own(server):
    """As with the real one: who reads chunk by chunk reads event by event."""
    import socket

    body = b'{"prompt": "hello world", "max_tokens": 3, "stream": true}'
    head = (
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(head + body)
        raw = b"".join(iter(lambda: sock.recv(65536), b""))
    chunked = raw.partition(b"\r\n\r\n")[2]
    sizes, events = [], 0
    while chunked:
        size, _, chunked = chunked.partition(b"\r\n")
        sizes.append(int(size, 16))
        events += chunked[: sizes[-1]].startswith(b"data: ")
        chunked = chunked[sizes[-1] + 2 :]
    assert sizes[-1] == 0
    assert events == len(sizes) - 1 == 4


def test_a_caller_without_chunks_gets_a_stream_that_ends_with_its_connection(server):
    """HTTP/1.0 knows no chunks."""
    import socket

    body = b'{"prompt": "hello world", "max_tokens": 3, "stream": true}'
    head = (
        b"POST /v1/completions HTTP/1.0\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % len(body)
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(head + body)
        raw = b"".join(iter(lambda: sock.recv(65536), b""))
    assert raw.partition(b"\r\n\r\n")[2].startswith(b"data: ")
    assert raw.endswith(b"data: [DONE]\n\n")


def test_what_is_taken_and_ignored_changes_nothing(server):
    """The answer is that of a request without it, and has no logprobs."""
    ignored = {
        "logprobs": 3, "echo": True, "stop": ["e"], "tool_choice": "auto",
        "response_format": {"type": "json_object"},
    }  # fmt: skip
    (bare,) = server.ask("hello", max_tokens=6).json()["choices"]
    (same,) = server.ask("hello", max_tokens=6, **ignored).json()["choices"]
    assert bare == same
    assert same["logprobs"] is None
    messages = [{"role": "user", "content": "hello"}]
    told = {"messages": messages, "max_tokens": 4, "top_logprobs": 2, **ignored}
    answer = server.post("/v1/chat/completions", {**told, "logprobs": True})
    assert answer.json()["choices"][0]["logprobs"] is None


def test_there_is_no_tokenizer_to_ask(server):
    """So its paths are unknown ones."""
    for path in ("/tokenize", "/detokenize"):
        assert server.post(path, {"prompt": "x"}).status == 404


def test_what_the_recorded_page_shows_as_0_is_0_here(server):
    """After traffic too: it says how such an engine is set up."""
    server.ask("hello", max_tokens=2)
    page = server.get("/metrics").body.decode()
    for name in ("estimated_flops_per_gpu", "mm_cache_hits", "mm_cache_queries"):
        assert f'vllm:{name}_total{{engine="0",model_name="tiny"}} 0.0' in page
