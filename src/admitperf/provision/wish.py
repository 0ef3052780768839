"""What somebody wants to have up."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["vllm", "llamacpp", "sim", "url", "skypilot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What `up` is asked for.

    Attributes:
        kind: whose engine.
        state: the state file; the log stands beside it.
        port: to serve on; 0 = any that is free.
        model: to serve, and of a URL to ask for; None = the kind's own.
        profile: simulated engine.
        url: of an engine that somebody else has started, without a path of the API.
        gpu: to rent, as SkyPilot writes it, such as A10:1.
        cluster: SkyPilot's name for what is rented.
        ends_after_min: minutes after which it ends itself, whatever runs.
        more: arguments handed to the engine.
        wait_s: longest it may take to become healthy.
        token: for the engine; None = it asks for none.
    """

    kind: Kind
    state: Path
    port: int = 8000
    model: str | None = None
    profile: str = "vllm-cpu"
    url: str | None = None
    gpu: str = "A10:1"
    cluster: str = "admitperf"
    ends_after_min: int = 120
    more: tuple[str, ...] = ()
    wait_s: float = 900.0
    token: str | None = None
