"""A recorded run: what was asked of an engine, what came back, what it showed."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request of a run.

    Attributes:
        id: its id in the run.
        sent_s: when it left the client, in seconds from the start.
        input_tokens: prompt.
        output_tokens: what it was given; 0 = nothing.
        max_output_tokens: the bound its caller set.
        ok: whether its answer ended properly.
        ttft_ms: time to the first token; None = not known, or none came.
        e2e_ms: time to the end; None = not known.
        chunks: when tokens came, in seconds from the start, with how many; empty =
            the run does not say.
        cached_tokens: of the prompt, found in the prefix cache; None = not known.
        prefix: the prompt's leading tokens, by chain.
        session: whose turn it is; None = it stands alone.
        priority: smaller goes first, for engines that order by it.
        after: id of the request whose end set it off; None = its own time did.
        think_s: time between that end and this request.
    """

    id: str
    sent_s: float
    input_tokens: int
    output_tokens: int
    max_output_tokens: int
    ok: bool = True
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    chunks: tuple[tuple[float, int], ...] = ()
    cached_tokens: int | None = None
    prefix: tuple[tuple[str, int], ...] = ()
    session: str | None = None
    priority: int = 0
    after: str | None = None
    think_s: float = 0.0

    @property
    def first_s(self) -> float | None:
        """When its first token came; None = not known, or none came."""
        return None if self.ttft_ms is None else self.sent_s + self.ttft_ms / 1e3

    @property
    def end_s(self) -> float | None:
        """When it ended; None = not known."""
        return None if self.e2e_ms is None else self.sent_s + self.e2e_ms / 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a scrape of the engine showed.

    Attributes:
        at_s: when it was asked for, in seconds from the start.
        running, waiting: requests; None = not shown.
        kv_fraction: of the KV cache in use by running requests; None = not shown.
        preemptions: since the engine's start; None = not shown.
    """

    at_s: float
    running: float | None = None
    waiting: float | None = None
    kv_fraction: float | None = None
    preemptions: float | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """What other processes took of the machine in a stretch of a run.

    Attributes:
        from_s, to_s: of the stretch, in seconds from the start.
        cores: processors they kept busy on average.
    """

    from_s: float
    to_s: float
    cores: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A run.

    Attributes:
        name: of the run, as its file is called.
        kind: which reader read it: "load", "log" or "bench".
        asked: its requests in the order in which they were sent.
        sights: scrapes in order; empty = there were none.
        clients: of a closed loop; None = an open one.
        rate_per_s: requests a second it was to send; None = not stated.
        engine: facts of the engine the run states, by `EngineModel` field.
        versions: the engine and the model, in words; None = not stated.
        date: of the recording, as 2026-11-29; None = not stated.
        foreign: from when to when other processes took how many cores; empty = the run
            does not say.
        shows_steps: whether its page shows how the last step ended, as vLLM's does, or
            the present, as llama.cpp's.
        left_out: requests of the file that cannot be used, and why, with their count.
        simulated: whether it says that its engine was simulated.
        replicas: how many engines answered; 1 also where the run does not say.
    """

    name: str
    kind: str
    asked: tuple[Asked, ...]
    sights: tuple[Sight, ...] = ()
    clients: int | None = None
    rate_per_s: float | None = None
    engine: Mapping[str, object] = field(default_factory=dict)
    versions: str | None = None
    date: str | None = None
    foreign: tuple[Foreign, ...] = ()
    shows_steps: bool = True
    left_out: Mapping[str, int] = field(default_factory=dict)
    simulated: bool = False
    replicas: int = 1

    @property
    def timed(self) -> bool:
        """Whether it says when each token came."""
        return any(len(one.chunks) > 1 for one in self.asked)

    @property
    def waits_for_answers(self) -> bool:
        """Whether clients, or sessions, ask again only after an answer."""
        return self.clients is not None or any(one.after for one in self.asked)

    @property
    def offered_per_s(self) -> float | None:
        """Requests a second that were sent; None = a closed loop, or only one.

        What the run was to send comes first: it is what a load is called by.
        """
        if self.rate_per_s and self.clients is None:
            return self.rate_per_s
        if self.clients is not None or len(self.asked) < 2:  # noqa: PLR2004
            return None
        span_s = self.asked[-1].sent_s - self.asked[0].sent_s
        return (len(self.asked) - 1) / span_s if span_s > 0 else None
