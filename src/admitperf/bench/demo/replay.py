"""Puts a policy in front of a recorded run, in recorded time.

The policy sees each reading when it had come back, each request when it arrived and
each end when it happened. Nothing it says changes what happened.
"""

from collections.abc import Iterator

from admitperf.bench.demo.recording import Call, Recording
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.testing import FakeClock

_NS = 1_000_000_000
# What happens at one instant: an end frees room before the next arrival sees it.
_END, _FIRST_TOKEN, _READING, _ARRIVAL = range(4)

_Event = tuple[int, int, int]
"""(nanoseconds since the start, kind, index of the call or scrape)"""


class Replay:
    """One policy over one recording.

    Args:
        policy: constructed with `clock`.
        clock: stands at the recording's start.
        recording: what to replay.
    """

    def __init__(self, policy: Policy, clock: FakeClock, recording: Recording) -> None:
        self._policy = policy
        self._clock = clock
        self._recording = recording
        self._start_ns = clock.monotonic_ns()
        self._reading = Reading({}, taken_ns=self._start_ns)
        self._ids: dict[int, str] = {}

    def run(self) -> None:
        """Replays all of it, and writes every line before time goes on."""
        for at_ns, kind, index in sorted(self._events()):
            now_ns = self._clock.monotonic_ns() - self._start_ns
            self._clock.advance((at_ns - now_ns) / _NS)
            self._happen(kind, index)

    def _events(self) -> Iterator[_Event]:
        for index, scrape in enumerate(self._recording.scrapes):
            yield _ns(scrape.t_s + scrape.took_s), _READING, index
        for index, call in enumerate(self._recording.calls):
            yield _ns(call.t_s), _ARRIVAL, index
            yield _ns(call.t_s + call.e2e_ms / 1e3), _END, index
            if call.ttft_ms is not None:
                yield _ns(call.t_s + call.ttft_ms / 1e3), _FIRST_TOKEN, index

    def _happen(self, kind: int, index: int) -> None:
        if kind == _READING:
            self._read(index)
            return
        call = self._recording.calls[index]
        if kind == _ARRIVAL:
            self._arrive(index, call)
        elif kind == _FIRST_TOKEN:
            self._policy.first_token(self._ids[index])
        else:
            self._end(index, call)
        self._policy.flush()

    def _read(self, index: int) -> None:
        scrape = self._recording.scrapes[index]
        self._reading = Reading(
            scrape.raw,
            taken_ns=self._start_ns + _ns(scrape.t_s),
            interval_s=self._recording.scrape_s,
        )

    def _arrive(self, index: int, call: Call) -> None:
        decision = self._policy(
            self._reading,
            request_id=call.id,
            input_tokens=call.input_tokens,
            max_output_tokens=call.max_output_tokens,
            stream=True,
        )
        self._ids[index] = decision.request_id

    def _end(self, index: int, call: Call) -> None:
        self._policy.outcome(
            self._ids[index],
            ok=call.ok,
            ttft_ms=call.ttft_ms,
            max_gap_ms=call.max_gap_ms,
            e2e_ms=call.e2e_ms,
            output_tokens=call.output_tokens,
            finish_reason=call.finish_reason,
        )


def _ns(seconds: float) -> int:
    return round(seconds * _NS)
