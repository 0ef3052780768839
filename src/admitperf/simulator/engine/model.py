"""What an engine is, and what its steps cost, as numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_AT_LEAST_1 = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "kv_blocks",
    "block_size",
    "max_model_len",
    "max_num_queued_reqs",
    "max_num_queued_tokens",
    "noise_steps",
)
_AT_LEAST_0 = (
    "front_ms",
    "step_ms",
    "ms_per_resident_token",
    "ms_per_prefill_token",
    "ms_per_sequence",
    "noise",
)
_MOST = 10**9
"""Of blocks, tokens, requests and steps: more than any engine has. Plain choice."""

_MOST_BLOCK = 65_536
"""Tokens in a block; the engine keeps a count for each place in it. Plain choice."""

_MOST_MS = 3_600_000.0
"""An hour: longer than any step takes. Plain choice."""

_MOST_NOISE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineModel:
    """One engine that works in steps, named as vLLM names its options.

    A step takes `step_ms`, and more for what it holds: `ms_per_resident_token` for each
    token in the KV cache of running requests, `ms_per_prefill_token` for each prompt
    token it computes, `ms_per_sequence` for each request in it.

    Attributes:
        max_num_seqs: requests that may run at once.
        kv_blocks: blocks of the KV cache that requests can have.
        step_ms: of a step with nothing in it.
        max_num_batched_tokens: tokens one step may compute. Default: vLLM's on a CPU.
        block_size: tokens a block holds. Default: vLLM's on a GPU.
        max_model_len: most tokens of prompt and answer; None = what the cache holds.
        prefix_caching: whether blocks can be found again.
        chunked_prefill: whether a prompt may be computed over several steps.
        scheduling: who comes first: who came first, or the lowest `priority`.
        max_num_queued_reqs: requests inside at which more are refused; None = no bound.
        max_num_queued_tokens: prompt tokens of requests without a first token, at which
            more are refused; None = no bound.
        front_ms: from a request's arrival to the engine's queue.
        ms_per_resident_token, ms_per_prefill_token, ms_per_sequence: as above.
        noise: sigma of the lognormal factor, of mean 1, on the time of steps.
        noise_steps: steps in a row that share one factor.

    Raises:
        ValueError: numbers no engine can have, all at once.
    """

    max_num_seqs: int
    kv_blocks: int
    step_ms: float
    max_num_batched_tokens: int = 2048
    block_size: int = 16
    max_model_len: int | None = None
    prefix_caching: bool = True
    chunked_prefill: bool = True
    scheduling: Literal["fcfs", "priority"] = "fcfs"
    max_num_queued_reqs: int | None = None
    max_num_queued_tokens: int | None = None
    front_ms: float = 0.0
    ms_per_resident_token: float = 0.0
    ms_per_prefill_token: float = 0.0
    ms_per_sequence: float = 0.0
    noise: float = 0.0
    noise_steps: int = 16

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))

    @property
    def kv_tokens(self) -> int:
        """Tokens the KV cache holds."""
        return self.kv_blocks * self.block_size

    @property
    def longest_tokens(self) -> int:
        """Most tokens of one request, prompt and answer.

        The last is never stored. What cannot be computed in pieces has to fit into one
        step, at its last restart too.
        """
        bounds = [self.kv_tokens + 1, self.max_model_len]
        bounds += [] if self.chunked_prefill else [self.max_num_batched_tokens + 1]
        return min(bound for bound in bounds if bound is not None)

    def _faults(self) -> Iterator[str]:
        for name in _AT_LEAST_1:
            value = getattr(self, name)
            most = _MOST_BLOCK if name == "block_size" else _MOST
            if value is not None and not (type(value) is int and 1 <= value <= most):
                yield f"{name} = {_shown(value)} is not a whole number from 1 to {most}"
        for name in _AT_LEAST_0:
            value = getattr(self, name)
            high = _MOST_NOISE if name == "noise" else _MOST_MS
            if not (type(value) in {int, float} and 0 <= value <= high):
                yield f"{name} = {_shown(value)} is not a number from 0 to {high:g}"
        if self.step_ms == 0:
            yield "step_ms = 0: a step has to take some time"
        if self.scheduling not in ("fcfs", "priority"):
            told = _shown(self.scheduling)
            yield f"scheduling = {told} is neither 'fcfs' nor 'priority'"
        yield from self._unfit()

    def _unfit(self) -> Iterator[str]:
        seqs, batched = self.max_num_seqs, self.max_num_batched_tokens
        if type(seqs) is int and type(batched) is int and batched < seqs:
            yield (
                f"max_num_batched_tokens = {batched} is below max_num_seqs = {seqs}:"
                " a token for each running request has to fit into a step"
            )


def _shown(value: object) -> str:
    """As a message can hold it: an integer may have thousands of digits."""
    try:
        return f"{value!r}"[:60]
    except ValueError:  # more digits than Python writes
        return "a number with thousands of digits"
