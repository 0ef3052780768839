"""What an engine tells of its requests."""

from dataclasses import dataclass

from admitperf.simulator.traffic.arrival import Arrival


@dataclass(frozen=True, slots=True)
class FirstToken:
    """A request has its first token.

    Attributes:
        arrival: the request.
        at_s: when, in seconds from the start.
    """

    arrival: Arrival
    at_s: float


@dataclass(frozen=True, slots=True)
class End:
    """A request has its last token and let go of its slot and memory.

    Attributes:
        arrival: the request.
        at_s: when, in seconds from the start.
        ttft_ms: from its submission to the first token.
        max_gap_ms: longest time between two tokens; None = it has only one.
        e2e_ms: from its submission to the last token.
        preempted: how often it was thrown out of memory on the way.
        cached_tokens: of its prompt, found in the prefix cache at its first start.
    """

    arrival: Arrival
    at_s: float
    ttft_ms: float
    max_gap_ms: float | None
    e2e_ms: float
    preempted: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The engine's own limit held when the request had come as far as its queue.

    Over HTTP that is the error inside a stream that began with 200.

    Attributes:
        arrival: the request.
        at_s: when, in seconds from the start.
    """

    arrival: Arrival
    at_s: float


@dataclass(frozen=True, slots=True)
class Gone:
    """What a request had when its caller went away.

    Attributes:
        given: tokens of its answer.
        ttft_ms: from its submission to the first token; None = it had none.
        cached_tokens: of its prompt, found in the prefix cache; None = it had not
            begun.
    """

    given: int
    ttft_ms: float | None
    cached_tokens: int | None


Event = FirstToken | End | Refused
