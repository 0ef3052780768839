"""The official clients and curl, against every home."""

import subprocess

import anthropic
import openai
import pytest
from tests.gateway.conformance.wire import CHAT
from tests.gateway.conformance.wire import wish as asked

TALK = [{"role": "user", "content": "hello"}]
RAISED = [
    ("reject:rate_limit", 429),
    ("defer:kv_pressure", 503),
    ("reject:pool_saturated", 529),
    ("reject:too_large", 413),
]
OPENAI = {429: openai.RateLimitError, 413: openai.APIStatusError}
ANTHROPIC = {429: anthropic.RateLimitError, 413: anthropic.APIStatusError}


@pytest.fixture
def of_openai(home):
    """An OpenAI client without retries of its own."""
    with openai.OpenAI(base_url=f"{home.url}/v1", api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
def of_anthropic(home):
    """An Anthropic client without retries of its own."""
    with anthropic.Anthropic(base_url=home.url, api_key="k", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "status"), RAISED)
def test_the_openai_client_raises_what_it_has_for_it(of_openai, model, status, stream):
    """With the message, the code and the id of the request."""
    with pytest.raises(OPENAI.get(status, openai.InternalServerError)) as caught:
        of_openai.chat.completions.create(model=model, messages=TALK, stream=stream)
    reason = model.split(":")[1]
    assert caught.value.status_code == status
    assert caught.value.code == reason
    assert caught.value.request_id
    assert reason in caught.value.message


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "status"), RAISED)
def test_the_anthropic_client_raises_what_it_has_for_it(
    of_anthropic, model, status, stream
):
    """With the type that its own API would have used."""
    with pytest.raises(ANTHROPIC.get(status, anthropic.APIStatusError)) as caught:
        of_anthropic.messages.create(
            model=model, messages=TALK, max_tokens=9, stream=stream
        )
    assert caught.value.status_code == status
    assert caught.value.request_id
    assert model.split(":")[1] in str(caught.value)


def test_both_clients_read_streams_to_their_end(scripted, of_openai, of_anthropic):
    """Six pieces of text, in both dialects."""
    stream = of_openai.chat.completions.create(model="ok", messages=TALK, stream=True)
    pieces = [c.choices[0].delta.content for c in stream if c.choices]
    assert "".join(p or "" for p in pieces) == "t0 t1 t2 t3 t4 t5 "
    with of_anthropic.messages.stream(model="ok", messages=TALK, max_tokens=9) as told:
        assert told.get_final_text() == "t0 t1 t2 t3 t4 t5 "
    answered = of_openai.responses.create(model="ok", input="hello", stream=True)
    assert [e.type for e in answered][-1] == "response.completed"


@pytest.mark.parametrize("model", ["cut", "torn"])
def test_neither_client_takes_half_an_answer_for_a_whole_one(
    scripted, of_openai, of_anthropic, model
):
    """A stream that was cut raises, also where half an event cannot be parsed."""
    wish = {"model": model, "stream": True}
    chat = of_openai.chat.completions.create(messages=TALK, **wish)
    with pytest.raises((openai.APIError, ValueError)):
        list(chat)
    message = of_anthropic.messages.create(messages=TALK, max_tokens=9, **wish)
    with pytest.raises(anthropic.APIError):
        list(message)
    response = of_openai.responses.create(input="hello", **wish)
    with pytest.raises((openai.APIError, ValueError)):
        list(response)


def test_curl_understands_a_refusal(home):
    """`--fail` fails, and `--retry` finds a wait it can read."""
    done = subprocess.run(
        ["curl", "-sS", "-i", "-d", asked(CHAT, "reject:pool_saturated").decode(),
         "-H", "content-type: application/json", f"{home.url}{CHAT}"],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout.startswith("HTTP/1.1 529 ")
    assert "\nretry-after: " in done.stdout.lower()


def test_curl_may_ask_before_it_sends(scripted):
    """`Expect: 100-continue`, which curl uses for long bodies, costs no second."""
    body = asked(CHAT, "ok", text="x" * 500_000)
    done = subprocess.run(
        ["curl", "-sS", "-m", "20", "--expect100-timeout", "15", "--data-binary", "@-",
         "-H", "content-type: application/json", "-H", "expect: 100-continue",
         "-w", "%{http_code} %{time_total}", "-o", "/dev/null",
         f"{scripted.url}{CHAT}"],
        input=body, capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    status, seconds = done.stdout.decode().split()
    assert status == "200"
    assert float(seconds) < 10
