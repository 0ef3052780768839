"""What an engine can do, as numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineModel:
    """One engine.

    A request holds a slot from the start of its prefill to its last token. One
    request is prefilled at a time; all that are decoding advance side by side.

    Attributes:
        max_num_seqs: slots: requests that may hold memory at once.
        kv_tokens: tokens the KV cache holds.
        prefill_ms: fixed part of a prefill.
        prefill_ms_per_token: the rest of it, for each token to be computed.
        decode_ms_per_token: time between two tokens of one answer.

    Raises:
        ValueError: a number no engine can have, all at once.
    """

    max_num_seqs: int
    kv_tokens: int
    prefill_ms: float
    prefill_ms_per_token: float
    decode_ms_per_token: float

    def __post_init__(self) -> None:
        faults = [
            *(
                f"{name} = {getattr(self, name)!r} is not at least 1"
                for name in ("max_num_seqs", "kv_tokens")
                if not getattr(self, name) >= 1
            ),
            *(
                f"{name} = {getattr(self, name)!r} is not over 0"
                for name in (
                    "prefill_ms",
                    "prefill_ms_per_token",
                    "decode_ms_per_token",
                )
                if not getattr(self, name) > 0
            ),
        ]
        if faults:
            raise ValueError("; ".join(faults))
