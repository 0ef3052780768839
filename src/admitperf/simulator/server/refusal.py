"""What the server says instead of an answer, word for word as vLLM 0.32 does."""

from typing import Any

BUSY = {
    "max_num_queued_reqs": "The engine is currently busy and cannot accept new"
    " requests. Please try again later or on a different instance.",
    "max_num_queued_tokens": "The engine has reached its prefill token backlog limit."
    " Please try again later or on a different instance.",
}
"""Text of a 503, by the limit that holds."""

ANTHROPIC_SECOND = "the engine is busy"
"""Text of the error event in a stream of messages. vLLM's is a validation error that
quotes its own code, by mistake; only its type is kept."""


class Refusal(Exception):  # noqa: N818  a refusal is an answer
    """A request that gets an error instead of an answer.

    Attributes:
        status: of HTTP.
        kind: as `type` in the body.
        message: for the caller.
        param: what of the request is at fault; None = nothing in particular.
        plain: the body has OpenAI's shape on Anthropic's path too.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        param: str | None = None,
        *,
        plain: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param
        self.plain = plain

    def openai(self) -> dict[str, Any]:
        """The body in OpenAI's shape."""
        said = {"message": self.message, "type": self.kind, "param": self.param}
        return {"error": {**said, "code": self.status}}

    def anthropic(self) -> dict[str, Any]:
        """The body in Anthropic's shape, but for faults found before the handler."""
        if self.plain:
            return self.openai()
        return {"type": "error", "error": {"type": self.kind, "message": self.message}}


def bad(message: str, param: str | None = None) -> Refusal:
    """A request that makes no sense: 400."""
    return Refusal(400, "BadRequestError", message, param)


def bad_value(message: str, param: str, value: object) -> Refusal:
    """A field whose value makes no sense: 400, and the text repeats it."""
    return bad(f"{message} (parameter={param}, value={value})", param)


def invalid(faults: list[tuple[str, str, str, str]]) -> Refusal:
    """A body whose fields have the wrong form: 400, all faults at once.

    Args:
        faults: kind, place such as "body.messages", text, and what was there.
    """
    count = f"{len(faults)} validation error{'s' * (len(faults) > 1)}"
    lines = [
        f"  {{'type': {kind!r}, 'loc': {place!r}, 'msg': {text!r}, 'input': {there!r}}}"
        for kind, place, text, there in faults
    ]
    message = "\n".join([f"{count}:", *lines])
    return Refusal(400, "Bad Request", message, faults[0][1], plain=True)


def no_json(place: int, why: str) -> Refusal:
    """A body that is no JSON: 400."""
    fault = (
        f"{{'type': 'json_invalid', 'loc': 'body.{place}', 'msg': 'JSON decode error',"
        f" 'input': '<dict of 0 items>', 'ctx': {{'error': {why!r}}}}}"
    )
    message = f"1 validation error:\n  {fault}"
    return Refusal(400, "Bad Request", message, f"body.{place}", plain=True)


def no_json_type() -> Refusal:
    """A body that does not claim to be JSON: 400."""
    message = (
        "1 validation error:\n  Unsupported Media Type:"
        " Only 'application/json' is allowed"
    )
    return Refusal(400, "Bad Request", message, plain=True)


def unknown_model(asked: str, served: str) -> Refusal:
    """A model that is not served: 404."""
    message = f"The model `{asked}` does not exist. Valid aliases: {served}."
    return Refusal(404, "NotFoundError", message, "model")


def busy(limit: str) -> Refusal:
    """The engine's own limit holds: 503, without Retry-After."""
    return Refusal(503, "Service Unavailable", BUSY[limit])


def too_long(tokens: int, most: int, *, exact: bool) -> Refusal:
    """A prompt that leaves no room for an answer: 400.

    Args:
        tokens: of the prompt.
        most: tokens of the model.
        exact: a text is counted no further than one past the limit.
    """
    said = str(tokens) if exact else f"at least {most + 1}"
    message = (
        f"This model's maximum context length is {most} tokens. However, your prompt"
        f" contains {said} input tokens, which exceeds this limit even without any"
        " output tokens. Please reduce the length of the input prompt."
    )
    return bad_value(message, "input_tokens", tokens if exact else most + 1)


def too_much(param: str, asked: int, most: int) -> Refusal:
    """An answer longer than the model: 400."""
    message = (
        f"{param}={asked} cannot be greater than max_model_len={most}."
        " Please request fewer output tokens."
    )
    return bad_value(message, param, asked)


def no_room(tokens: int, asked: int, most: int) -> Refusal:
    """Prompt and answer together are longer than the model: 400."""
    message = (
        f"This model's maximum context length is {most} tokens. However, you requested"
        f" {asked} output tokens and your prompt contains at least {tokens} input"
        f" tokens, for a total of at least {tokens + asked} tokens. Please reduce the"
        " length of the input prompt or the number of requested output tokens."
    )
    return bad_value(message, "input_tokens", tokens)


def too_large(most_bytes: int) -> Refusal:
    """A body beyond what the server reads: 413."""
    return Refusal(
        413,
        "BadRequestError",
        f"the body is larger than {most_bytes} bytes",
        plain=True,
    )


def broken() -> Refusal:
    """What a failing engine says: 500."""
    return Refusal(500, "InternalServerError", "Internal server error")


def unready() -> Refusal:
    """What a restarting engine says: 503."""
    return Refusal(503, "Service Unavailable", "the engine is starting", plain=True)
