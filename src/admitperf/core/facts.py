"""The keywords that carry facts about a request, for type checkers."""

from typing import TypedDict


class Facts(TypedDict, total=False):
    """The keywords of `policy(raw_metrics, ...)`."""

    logical_id: str | None
    attempt: int
    tenant: str | None
    session: str | None
    parent_session: str | None
    session_final: bool
    model: str | None
    slo_class: str | None
    input_tokens: int | None
    cached_tokens: int | None
    max_output_tokens: int | None
    n: int
    deadline_s: float | None
    priority: int
    stream: bool | None
    late_ms: float | None
