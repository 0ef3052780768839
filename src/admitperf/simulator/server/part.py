"""One prompt of a request, and its answer."""

from dataclasses import dataclass

from admitperf.simulator.server.tokens import Content


@dataclass(slots=True, kw_only=True)
class Part:
    """One prompt of a request and how far its answer is.

    Attributes:
        id: the engine's.
        index: among the prompts of the request.
        prompt: as asked.
        tokens: of the prompt.
        start: place of the answer's first word on the tape.
        length: tokens of the answer.
        finish: why it will end there: "stop" or "length".
        cached: tokens of the prompt found in the cache, once it has ended.
        given: tokens that were passed on.
    """

    id: str
    index: int
    prompt: Content
    tokens: int
    start: int
    length: int
    finish: str
    cached: int = 0
    given: int = 0
