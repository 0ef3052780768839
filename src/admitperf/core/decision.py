"""What a policy answered, and what to do about it."""

import math
from typing import TYPE_CHECKING

from admitperf.core.gate import Gate
from admitperf.core.verdict import Verdict

if TYPE_CHECKING:
    from admitperf.core.asked import Asked

_OK = 200
_TYPES = {
    "caller": "rate_limit_error",
    "size": "invalid_request_error",
}
_WORDS = {
    "capacity": "The server is at capacity",
    "caller": "You are over your share of this server",
    "deadline": "Waiting would miss the deadline of this request",
    "size": "This request can never fit this model or pool",
    "instrument": "The server cannot see its load at the moment",
}


class Decision:
    """One decision. Read it; do not change it.

    Attributes:
        verdict, reason: what the policy said; reason None for a plain yes.
        admitted: what to do: start it or not. True for everything not governed.
        status: 200, or the HTTP status that goes with the reason.
        retry_after_ms: when to come back, in milliseconds; None = not at all, or now.
        request_id: the id to pass to `first_token` and `outcome`.
        enforced: whether the policy governs this request.
        seq: number of this decision in its run.
        estimate_ms: the wait before spread and cap; None = not known or none.
        wait: on what the wait rests: measured, default, policy, fixed or none.
        capped: the estimate is longer than the longest wait sent.
        should_retry: whether trying again can succeed.
        blind: why the policy could not see, or None.
        said: what a refusing policy said, before waits were computed.
        rank: its place among held requests of one priority: lower ones first.
        limit, used: of a caller's own bound, in its unit; None = not said.
        open: a refusal that `Policy.ask` returned and that is nobody's answer yet:
            ask again, or make it the answer with `Policy.answer`.
        asked: what is needed to record an open refusal; None = recorded.
        extra: what else stands on its log line, as JSON members.
        gates: the comparisons that led here.
        rests_on: those that the wait of a refusal follows from; empty = all of them.
    """

    # Class attributes are the answers of a plain yes, so that one costs four stores.
    admitted = True
    status = _OK
    request_id = ""
    enforced = True
    seq = -1
    wait: str | None = None
    capped = False
    should_retry = True
    blind: str | None = None
    fault: str | None = None
    said: tuple[Verdict, str | None, float | None, float | None] | None = None
    gates: tuple[Gate, ...] = ()
    rests_on: tuple[Gate, ...] = ()
    rank = 0.0
    limit: float | None = None
    used: float | None = None
    open = False
    asked: "Asked | None" = None
    extra = ""

    def __init__(
        self,
        verdict: Verdict,
        reason: str | None = None,
        retry_after_ms: float | None = None,
        estimate_ms: float | None = None,
    ) -> None:
        self.verdict = verdict
        self.reason = reason
        self.retry_after_ms = retry_after_ms
        self.estimate_ms = estimate_ms

    def __repr__(self) -> str:
        what = f"{self.verdict}" + (f" {self.reason}" if self.reason else "")
        return f"<Decision {self.request_id or '-'}: {what}, status {self.status}>"

    def headers(self) -> dict[str, str]:
        """Headers of the refusal; empty when the request is to be started.

        `Retry-After` in whole seconds, rounded up, at least 1 (both official SDKs
        ignore 0); `retry-after-ms` when the wait is above 0; `x-should-retry`;
        `x-admitperf-reason`.
        """
        if self.admitted:
            return {}
        headers = {
            "x-should-retry": "true" if self.should_retry else "false",
            "x-admitperf-reason": self.reason or "",
        }
        if self.retry_after_ms is not None:
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after_ms / 1000)))
            if self.retry_after_ms > 0:
                headers["retry-after-ms"] = str(math.ceil(self.retry_after_ms))
        return headers

    def body(self) -> dict[str, object]:
        """The refusal as an OpenAI-shaped error; empty when the request is to start.

        `code` is the reason; `estimate_ms` the true estimate, also when it was capped.
        """
        if self.admitted:
            return {}
        error: dict[str, object] = {
            "message": self._message(),
            "type": _TYPES.get(self.fault or "", "overloaded_error"),
            "param": None,
            "code": self.reason,
        }
        if self.retry_after_ms is not None:
            error["retry_after_ms"] = math.ceil(self.retry_after_ms)
        if self.limit is not None:
            error |= {"limit": self.limit, "used": self.used}
        if self.estimate_ms is not None:
            error["estimate_ms"] = math.ceil(self.estimate_ms)
            error["capped"] = self.capped
        return {"error": error}

    def _message(self) -> str:
        words = _WORDS.get(self.fault or "", "The request was refused")
        bound = (
            "" if self.limit is None else f": limit {self.limit:g}, used {self.used:g}"
        )
        text = f"{words} ({self.reason}{bound})."
        if not self.should_retry:
            return text + " Trying again will not help."
        if self.retry_after_ms is None:
            return text
        seconds = max(1, math.ceil(self.retry_after_ms / 1000))
        capped = (
            f" The wait is estimated at {self.estimate_ms / 1000:.0f} s and was capped."
            if (self.capped and self.estimate_ms is not None)
            else ""
        )
        return f"{text} Try again in {seconds} s.{capped}"
