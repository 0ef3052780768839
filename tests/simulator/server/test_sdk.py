"""The official SDKs of OpenAI and Anthropic cannot tell."""

import asyncio

import anthropic
import openai
import pytest

PROMPT = [{"role": "user", "content": "write a short story about the queue"}]
MODEL = "tiny"


@pytest.fixture
def oai(server):
    """OpenAI's client."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as made:
        yield made


@pytest.fixture
def claude(server):
    """Anthropic's client."""
    with anthropic.Anthropic(base_url=server.url, api_key="x", max_retries=0) as made:
        yield made


def test_openai_reads_a_completion_whole_and_streamed_alike(oai):
    """The words of the stream are those of the answer, and the usage adds up."""
    ask = {"model": MODEL, "prompt": "hello world", "max_tokens": 9}
    whole = oai.completions.create(**ask)
    usage = {"include_usage": True}
    chunks = list(oai.completions.create(**ask, stream=True, stream_options=usage))
    text = "".join(c.choices[0].text for c in chunks if c.choices)
    assert text == whole.choices[0].text
    assert text.strip()
    assert whole.usage.completion_tokens == 9
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + 9
    assert chunks[-1].usage.completion_tokens == 9
    assert [c.usage for c in chunks[:-1]] == [None] * 9
    assert whole.choices[0].finish_reason == "length"
    assert chunks[-2].choices[0].finish_reason == "length"


def test_openai_reads_a_chat_whole_and_streamed_alike(oai):
    """Role, words, reason and usage are where the SDK looks for them."""
    ask = {"model": MODEL, "messages": PROMPT, "max_tokens": 7}
    whole = oai.chat.completions.create(**ask)
    usage = {"include_usage": True}
    chunks = list(oai.chat.completions.create(**ask, stream=True, stream_options=usage))
    text = "".join(c.choices[0].delta.content for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert text.strip() == text != ""
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens == 7
    assert whole.usage.prompt_tokens_details.cached_tokens == 0


def test_openai_streams_a_chat_with_its_own_helper(oai):
    """The helper that gathers a stream gets the whole message."""
    with oai.chat.completions.stream(
        model=MODEL, messages=PROMPT, max_completion_tokens=900
    ) as stream:
        kinds = [event.type for event in stream]
        done = stream.get_final_completion()
    assert "content.done" in kinds
    assert done.choices[0].finish_reason == "stop"
    assert done.choices[0].message.content.strip()


def test_openai_reads_a_response_whole_and_streamed_alike(oai):
    """The helper that gathers the events gets the answer without a stream."""
    ask = {"model": MODEL, "input": "hello world", "max_output_tokens": 6}
    whole = oai.responses.create(**ask)
    with oai.responses.stream(**ask) as stream:
        deltas = [e.delta for e in stream if e.type == "response.output_text.delta"]
        done = stream.get_final_response()
    assert "".join(deltas) == done.output_text == whole.output_text
    assert len(deltas) == 6
    assert whole.status == "incomplete"
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert done.usage.output_tokens == whole.usage.output_tokens == 6
    assert whole.usage.input_tokens_details.cached_tokens == 0


def test_anthropic_reads_a_message_whole_and_streamed_alike(claude):
    """The helper that gathers the events gets the answer without a stream."""
    ask = {"model": MODEL, "messages": PROMPT, "max_tokens": 6, "system": "be short"}
    whole = claude.messages.create(**ask)
    with claude.messages.stream(**ask) as stream:
        text = "".join(stream.text_stream)
        done = stream.get_final_message()
    assert text == done.content[0].text == whole.content[0].text
    assert done.stop_reason == whole.stop_reason == "max_tokens"
    assert done.usage.output_tokens == whole.usage.output_tokens == 6
    assert whole.usage.cache_read_input_tokens == 0
    counted = claude.messages.count_tokens(
        model=MODEL, messages=PROMPT, system="be short"
    )
    assert counted.input_tokens == whole.usage.input_tokens


def test_the_next_prompt_of_a_conversation_finds_the_one_before(oai, claude):
    """What was asked and answered is in the cache, and both SDKs are told."""
    turns = [{"role": "user", "content": "tell me all about queues " * 8}]
    first = oai.chat.completions.create(model=MODEL, messages=turns, max_tokens=60)
    answer = {"role": "assistant", "content": first.choices[0].message.content}
    turns = [*turns, answer, {"role": "user", "content": "go on"}]
    second = oai.chat.completions.create(model=MODEL, messages=turns, max_tokens=4)
    known = first.usage.total_tokens
    cached = second.usage.prompt_tokens_details.cached_tokens
    assert known - 16 <= cached <= known
    third = claude.messages.create(model=MODEL, messages=turns, max_tokens=4)
    read = third.usage.cache_read_input_tokens
    assert read >= cached
    assert read + third.usage.input_tokens == second.usage.prompt_tokens


def test_openai_lists_the_model(oai):
    """The only one there is."""
    assert [model.id for model in oai.models.list()] == [MODEL]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"model": "nope"}, openai.NotFoundError),
        ({"max_tokens": 0}, openai.BadRequestError),
        ({"messages": []}, openai.BadRequestError),
        ({"n": 3}, openai.BadRequestError),
        ({"temperature": -1}, openai.BadRequestError),
    ],
)
def test_openai_maps_errors_to_its_classes(oai, wrong, error):
    """And reads type, code and text out of the body."""
    ask = {"model": MODEL, "messages": PROMPT, "max_tokens": 4, **wrong}
    with pytest.raises(error) as caught:
        oai.chat.completions.create(**ask)
    assert caught.value.body["code"] == caught.value.status_code
    assert caught.value.body["message"] in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"model": "nope"}, anthropic.NotFoundError),
        ({"max_tokens": 5000}, anthropic.BadRequestError),
        ({"messages": []}, anthropic.BadRequestError),
    ],
)
def test_anthropic_maps_errors_to_its_classes(claude, wrong, error):
    """Their bodies have Anthropic's shape."""
    ask = {"model": MODEL, "messages": PROMPT, "max_tokens": 4, **wrong}
    with pytest.raises(error) as caught:
        claude.messages.create(**ask)
    assert caught.value.body["type"] == "error"


def test_a_busy_engine_is_a_503_without_retry_after_to_both(start):
    """As the real one: neither SDK is told when to come back."""
    server = start(max_num_queued_reqs=1, max_num_seqs=1, step_ms=20.0)
    held = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
    other = anthropic.Anthropic(base_url=server.url, api_key="x", max_retries=0)
    stream = held.completions.create(
        model=MODEL, prompt="hello", max_tokens=900, stream=True,
        extra_body={"ignore_eos": True},
    )  # fmt: skip
    next(stream)
    with pytest.raises(openai.InternalServerError) as caught:
        held.completions.create(model=MODEL, prompt="hello", max_tokens=1)
    assert caught.value.status_code == 503
    assert "retry-after" not in caught.value.response.headers
    with pytest.raises(anthropic.APIStatusError) as refused:
        other.messages.create(model=MODEL, messages=PROMPT, max_tokens=1)
    assert refused.value.status_code == 503
    stream.close()
    server.until(server.empty)
    assert held.completions.create(model=MODEL, prompt="hello", max_tokens=1).choices


def test_openai_raises_at_a_503_inside_a_stream_that_began_with_200(start):
    """The headers came at once; the refusal is the first event."""
    server = start()
    server.fault("reject_in_stream")
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
    with client.completions.with_streaming_response.create(
        model=MODEL, prompt="hello", stream=True
    ) as raw:
        assert raw.status_code == 200
    with pytest.raises(openai.APIError, match="currently busy"):
        list(client.completions.create(model=MODEL, prompt="hello", stream=True))


def test_a_caller_that_leaves_frees_the_engine_at_once(start):
    """Closing the stream is enough; nothing of it stays."""
    server = start(step_ms=5.0)
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
    stream = client.chat.completions.create(
        model=MODEL, messages=PROMPT, max_tokens=900, stream=True,
        extra_body={"ignore_eos": True},
    )  # fmt: skip
    next(stream)
    assert server.within(lambda: server.engine.running) == 1
    stream.close()
    client.close()
    server.until(server.empty)
    assert server.engine.given_tokens < 900
    assert server.engine.tally.ended == 0


def test_both_async_clients_stream_side_by_side(server):
    """Eight streams at once, each with all its tokens."""

    async def one(client, place):
        """Tokens of a chat."""
        stream = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": f"number {place}"}],
            max_tokens=20, stream=True, extra_body={"ignore_eos": True},
            stream_options={"include_usage": True},
        )  # fmt: skip
        return [chunk async for chunk in stream][-1].usage.completion_tokens

    async def other(client, place):
        """Tokens of a message."""
        asked = [{"role": "user", "content": f"number {place}"}]
        async with client.messages.stream(
            model=MODEL, messages=asked, max_tokens=900
        ) as stream:
            return (await stream.get_final_message()).usage.output_tokens

    async def main():
        """Both, four times each."""
        async with (
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x") as oai,
            anthropic.AsyncAnthropic(base_url=server.url, api_key="x") as claude,
        ):
            return await asyncio.gather(
                *(one(oai, place) for place in range(4)),
                *(other(claude, place) for place in range(4)),
            )

    tokens = asyncio.run(main())
    assert tokens[:4] == [20] * 4
    assert all(1 <= count <= 900 for count in tokens[4:])
