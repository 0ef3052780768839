"""What a request asks for, whichever of the four APIs it speaks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from admitperf.simulator.server.body import Body
from admitperf.simulator.server.refusal import Refusal, bad, bad_value
from admitperf.simulator.server.script import conversation, said
from admitperf.simulator.server.tokens import Content

COMPLETION_TOKENS = 16
"""What a completion may be long when it does not say, as OpenAI's and vLLM's."""


MOST_PROMPTS = 1024
"""Prompts in one request; others wait while they are taken in. Plain choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request.

    Attributes:
        prompts: at least one; only completions have several.
        bare: an answer begins without a blank, because a template precedes it.
        most: tokens an answer may have; None = what the model has room for.
        most_name: the field that says so.
        clipped: an answer beyond the model's length is cut short, not refused.
        stream: answers come token by token.
        usage: the stream ends with what was used.
        running_usage: every chunk says what was used so far.
        forced: answers do not end of themselves.
        priority: for the engine.
        seed: tells answers to one prompt apart.
        with_ids: the token ids are wanted too.
        echoed: what the answer repeats of the request.
    """

    prompts: Sequence[Content]
    bare: bool = True
    most: int | None = None
    most_name: str = "max_tokens"
    clipped: bool = False
    stream: bool = False
    usage: bool = False
    running_usage: bool = False
    forced: bool = False
    priority: int = 0
    seed: int = 0
    with_ids: bool = False
    echoed: dict[str, Any]


def completion(body: Body) -> Ask:
    """A request of `/v1/completions`.

    Raises:
        Refusal: it makes no sense.
    """
    usual = _usual(body)
    most = body.whole("max_tokens")
    with_ids = body.flag("return_token_ids")
    body.check()
    _sampling(body, most)
    return Ask(
        prompts=_prompts(body.fields.get("prompt")),
        bare=False,
        most=COMPLETION_TOKENS if most is None else most,
        clipped=True,
        with_ids=with_ids,
        echoed={},
        **usual,
    )


def chat(body: Body) -> Ask:
    """A request of `/v1/chat/completions`.

    Raises:
        Refusal: it makes no sense.
    """
    usual = _usual(body)
    messages = _messages(body, "messages", body.items("messages", needed=True))
    tools = body.items("tools")
    name = "max_tokens"
    if body.fields.get("max_completion_tokens") is not None:
        name = "max_completion_tokens"
    most = body.whole(name)
    body.check()
    if not messages:
        raise bad(
            "Cannot apply chat template to an empty conversation."
            " Provide at least one message."
        )
    _sampling(body, most)
    prompt = conversation(tools, messages)
    return Ask(prompts=(prompt,), most=most, most_name=name, echoed={}, **usual)


def response(body: Body) -> Ask:
    """A request of `/v1/responses`.

    Raises:
        Refusal: it makes no sense.
    """
    usual = {**_usual(body), "usage": True}
    instructions = body.text("instructions")
    before = body.text("previous_response_id")
    most = body.whole("max_output_tokens")
    tools = body.items("tools")
    items = _input(body)
    echoed = _echoed(body, instructions, most, tools)
    body.check()
    if before is not None:
        said = f"Response with id '{before[:64]}' not found."
        raise Refusal(404, "NotFoundError", said, "response_id")
    _sampling(body, most, "max_output_tokens")
    head = [{"role": "system", "content": instructions}] if instructions else []
    prompt = conversation(tools, head + items)
    return Ask(
        prompts=(prompt,),
        most=most,
        most_name="max_output_tokens",
        echoed=echoed,
        **usual,
    )


def message(body: Body, *, counted: bool = False) -> Ask:
    """A request of `/v1/messages`.

    Args:
        body: as it came.
        counted: only its tokens are asked for, so it sets no bound on the answer.

    Raises:
        Refusal: it makes no sense.
    """
    usual = {**_usual(body), "usage": True}
    messages = _messages(body, "messages", body.items("messages", needed=True))
    if not counted and body.fields.get("max_tokens") is None:
        body.missing("max_tokens")
    most = body.whole("max_tokens")
    tools = body.items("tools")
    system = said(body.fields.get("system"))
    body.check()
    if not messages:
        raise bad("messages: at least one message is required")
    _sampling(body, most)
    head = [{"role": "system", "content": system}] if system else []
    prompt = conversation(tools, head + messages)
    name = "max_completion_tokens"
    return Ask(prompts=(prompt,), most=most, most_name=name, echoed={}, **usual)


def _usual(body: Body) -> dict[str, Any]:
    """What all four have."""
    stream = body.flag("stream")
    options = Body(body.mapping("stream_options"))
    if body.fields.get("stream_options") is not None and not stream:
        raise bad(
            "Stream options can only be defined when `stream=True`."
            " (parameter=stream_options)",
            "stream_options",
        )
    usual = {
        "stream": stream,
        "usage": options.flag("include_usage"),
        "running_usage": options.flag("continuous_usage_stats"),
        "forced": body.flag("ignore_eos"),
        "priority": body.whole("priority") or 0,
        "seed": body.whole("seed") or 0,
    }
    options.check()
    return usual


def _sampling(body: Body, most: int | None, name: str = "max_tokens") -> None:
    """What has the right form and no sense.

    Raises:
        Refusal: the first of it.
    """
    n = body.whole("n")
    temperature, top_p = body.number("temperature", 1.0), body.number("top_p", 1.0)
    body.check()
    if n is not None and n != 1:
        raise bad_value("the simulated engine gives one answer: n must be 1,"
                        f" got {n}.", "n", n)  # fmt: skip
    if temperature < 0:
        said = f"temperature must be non-negative, got {temperature}."
        raise bad_value(said, "temperature", temperature)
    if not 0 < top_p <= 1:
        raise bad_value(f"top_p must be in (0, 1], got {top_p}.", "top_p", top_p)
    if most is not None and most < 1:
        raise bad_value(f"{name} must be at least 1, got {most}.", name, most)


def _prompts(prompt: object) -> tuple[Content, ...]:
    """One prompt or several, as texts or as token ids.

    Raises:
        Refusal: it is neither, one of them is empty, or there are too many.
    """
    several = _several(prompt)
    if len(several) > MOST_PROMPTS:
        told = f"at most {MOST_PROMPTS} prompts are taken at once, got {len(several)}"
        raise bad(told, "prompt")
    made = [_prompt(one) for one in several]
    if not made or not all(made):
        raise bad(
            "Either prompt or prompt_embeds must be provided and non-empty."
            " (parameter=prompt)",
            "prompt",
        )
    return tuple(one for one in made if one)


def _several(prompt: object) -> list[object]:
    if isinstance(prompt, list) and any(isinstance(p, str | list) for p in prompt):
        return prompt
    return [prompt]


def _prompt(one: object) -> Content | None:
    """A prompt; None = there is nothing in it."""
    if one is None or isinstance(one, str):
        return one or None
    if isinstance(one, list) and all(type(i) is int and i >= 0 for i in one):
        return tuple(one) or None
    raise bad("prompt must be a text, token ids, or a list of these", "prompt")


def _messages(body: Body, name: str, items: list[Any]) -> list[dict[str, Any]]:
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            body.wrong(dict, f"{name}.{place}", item)
    return [item for item in items if isinstance(item, dict)]


def _input(body: Body) -> list[dict[str, Any]]:
    """What a response answers: one text, or a list of items."""
    value = body.fields.get("input")
    if value is None:
        body.missing("input", beside=1)
        return []
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return _messages(body, "input", body.items("input"))


def _echoed(
    body: Body, instructions: str | None, most: int | None, tools: list[Any]
) -> dict[str, Any]:
    choice = body.fields.get("tool_choice")
    return {
        "instructions": instructions,
        "metadata": body.mapping("metadata") or None,
        "temperature": body.number("temperature", 1.0),
        "top_p": body.number("top_p", 1.0),
        "max_output_tokens": most,
        "tools": tools,
        "tool_choice": choice if isinstance(choice, str) and tools else "none",
        "user": body.text("user"),
    }
