"""A run that another tool made, in our terms: its calls, or only what it added up."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from admitperf.bench.callers.records import CallRecord, Ended
from admitperf.core.notes import Note

FULL = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, 529)
"""Statuses with which a server, or what stands before it, says that it is full."""

MOST_S = 1e9
"""Of seconds between two instants: 30 years. Plain choice."""

MOST_MS = MOST_S * 1e3

MOST_CLOCK_S = 1e11
"""Of a clock that began at any time: more than any shows. Plain choice."""

MOST_TOKENS = 10**9
"""Of tokens of a request. Plain choice."""

Percentiles = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a file adds up and does not tell call by call.

    Attributes:
        offered: requests it says it made.
        failed: of those, the ones that ended in an error.
        good: of those, the ones its own goodput counts; None = it counts none.
        ttft_ms: of those that were answered, in ms, by the tool's own percentiles.
    """

    offered: int
    failed: int
    good: int | None = None
    ttft_ms: Percentiles = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One run of another tool.

    Attributes:
        tool: which.
        name: of the run in its file; empty = the file holds only one.
        records: its calls; empty = the file does not hold them.
        totals: what it adds up; None = it adds up nothing, or the calls are all there.
        own: the tool's own goodput, in words; None = it says none.
        notes: what it says about the run.
        missing: what the file does not say, in sentences.
        at_most: why goodput over offered can only be lower than what the file shows.
        goes_on: whether a session goes on after a call that was not answered, so that
            every call that was offered is in the file.
        unjudged: bounds that no call of it can be held to, by name: the file lacks what
            they need.
    """

    tool: str
    name: str = ""
    records: tuple[CallRecord, ...] = ()
    totals: Totals | None = None
    own: str | None = None
    notes: Mapping[str, Note] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    at_most: tuple[str, ...] = ()
    goes_on: bool = False
    unjudged: frozenset[str] = frozenset()

    def completed(self) -> "Foreign":
        """The same with what follows from the calls themselves.

        Bounds nothing can be held to; and that a session whose call failed may have
        calls that were never made, of which no tool's file tells.
        """
        unjudged, at_most = set(self.unjudged), [*self.at_most]
        served = [one for one in self.records if one.ended == "answered"]
        if served and all(one.ttft_ms is None for one in served):
            unjudged.add("ttft_ms")
        if served and all(one.max_gap_ms is None for one in served):
            unjudged.add("stall_ms")
        cut = 0 if self.goes_on else _cut_sessions(self.records)
        if cut:
            at_most.append(
                f"{cut} of its sessions had a call that was not answered; calls that"
                " were then never made are not in the file, and were offered"
            )
        return replace(self, unjudged=frozenset(unjudged), at_most=tuple(at_most))


def _cut_sessions(records: tuple[CallRecord, ...]) -> int:
    """Sessions with a call that was not answered, where sessions have several."""
    if all(one.place == 0 for one in records):
        return 0
    return len({one.session for one in records if one.ended not in _ANSWERED})


_ANSWERED = ("answered", "cancelled")


def call(  # noqa: PLR0913  each is named
    *,
    name: str,
    session: str | None = None,
    place: int = 0,
    due_s: float,
    late_ms: float = 0.0,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    ttft_ms: float | None = None,
    max_gap_ms: float | None = None,
    e2e_ms: float | None = None,
    status: int = 200,
    error: str | None = None,
    unfinished: bool = False,
) -> CallRecord:
    """A call as another tool tells of it: one attempt, made by a client without tries.

    Args:
        name: of the call.
        session: whose it is; None = it is one of its own.
        place: in the session.
        due_s: when it was due, in seconds from the start of the run.
        late_ms: how much later it was sent.
        input_tokens, output_tokens: that were sent and received; None = not said.
        ttft_ms: from when it was sent to its first token; None = not said, or none.
        max_gap_ms: longest time between two tokens; None = not said.
        e2e_ms: from when it was sent to its end; None = not said.
        status: of the answer; 0 = there was none, or it is not said.
        error: what it failed with; None = it did not.
        unfinished: the run ended before it did.
    """
    got = output_tokens or 0
    served = error is None and not unfinished
    refused = error is not None and status in FULL
    ended_ms = None if e2e_ms is None else e2e_ms + late_ms
    return CallRecord(
        id=name,
        session=name if session is None else session,
        tenant=None,
        slo_class="",
        kind="",
        place=place,
        due_s=due_s,
        input_tokens=input_tokens or 0,
        output_tokens=got,
        new_tokens=input_tokens or 0,
        begun_s=due_s,
        attempts=1,
        refusals=int(refused),
        ended=_ended(error, status, refused=refused, unfinished=unfinished),
        status=status,
        error=error,
        ttft_ms=ttft_ms + late_ms if served and ttft_ms is not None else None,
        last_ttft_ms=ttft_ms if served else None,
        max_gap_ms=max_gap_ms if served else None,
        e2e_ms=ended_ms if served else None,
        refused_ms=ended_ms if refused else None,
        got_tokens=got,
        computed_tokens=got + (input_tokens or 0) if served else got,
        late_ms=late_ms,
    )


_CLIENT_CLOSED = 499


def _ended(error: str | None, status: int, *, refused: bool, unfinished: bool) -> Ended:
    if unfinished:
        return "unfinished"
    if error is None:
        return "answered"
    if refused:
        return "refused"
    return "cancelled" if status == _CLIENT_CLOSED else "failed"
