"""Sessions that have begun, and calls that wait for an answer or for another try."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from admitperf.bench.callers.records import CallRecord, Ended
from admitperf.simulator import Answer, Arrival
from admitperf.simulator.loop import UNFINISHED
from admitperf.simulator.traffic.sessions import Session, named, new_tokens

Classify = Callable[[int], str]
"""The class of a call by the new tokens of its prompt."""

_ALONE: Mapping[int | None, list[int]] = {None: [0]}
"""What follows what in a session of one call."""


class OpenSession:
    """A session that begins, and its calls so far.

    Args:
        begun_s: when, in seconds from the start of the run.
        session: what it asks.
        scored: whether it counts.

    Attributes:
        begun_s, session: as given.
        ended: why nothing more is asked; None = it goes on.
        open: its calls that are due and have come to no end.
    """

    __slots__ = (
        "_latest_s",
        "_new_tokens",
        "_records",
        "_scored",
        "begun_s",
        "ended",
        "following",
        "open",
        "session",
    )

    def __init__(self, begun_s: float, session: Session, *, scored: bool) -> None:
        self.begun_s = self._latest_s = begun_s
        self.session = session
        self.following = session.following() if len(session.calls) > 1 else _ALONE
        self.ended: str | None = None
        self.open = 0
        self._scored = scored
        self._new_tokens = new_tokens(session)
        self._records: list[CallRecord | None] = [None] * len(session.calls)

    @property
    def fate(self) -> str:
        """How it ended; `cut` when it did not."""
        return self.ended or ("finished" if self._whole and not self.open else "cut")

    @property
    def _whole(self) -> bool:
        return None not in self._records

    def call(self, place: int, due_s: float, classify: Classify) -> "OpenCall":
        """One of its calls, which is due now."""
        self.open += 1
        record = self._records[place] = self._offered(place, classify)
        return OpenCall(self, record, due_s)

    def records(self, classify: Classify) -> list[CallRecord]:
        """What came of its calls so far, also of those that were never due."""
        return [
            record or self._offered(place, classify)
            for place, record in enumerate(self._records)
        ]

    def mark_last(self, calls: Sequence["OpenCall"]) -> None:
        """Says which call is the session's last, where there is one.

        It is the one that is due after all others, and nothing follows it.

        Args:
            calls: that have just become due, at least one.
        """
        latest = max(calls, key=lambda call: call.due_s)
        latest.last = self._whole and latest.due_s >= self._latest_s
        self._latest_s = max(self._latest_s, latest.due_s)

    def _offered(self, place: int, classify: Classify) -> CallRecord:
        session, call = self.session, self.session.calls[place]
        tokens = self._new_tokens[place]
        return CallRecord(
            id=f"{session.name}/{place}",
            session=session.name,
            tenant=session.tenant,
            slo_class=classify(tokens),
            kind=call.kind,
            place=place,
            due_s=None,
            input_tokens=call.input_tokens,
            output_tokens=min(
                call.output_tokens, call.hangs_up_after or call.output_tokens
            ),
            new_tokens=tokens,
            begun_s=self.begun_s,
            scored=self._scored,
        )


class OpenCall:
    """A call that is due, has attempts under way, or waits for its next one.

    Args:
        owner: its session.
        record: what has come of it.
        due_s: when its first attempt is due.

    Attributes:
        owner, record, due_s: as given.
        made: attempts so far.
        open: of them, those without an answer, or still to be sent.
        second: the attempt that is the call sent again; None = it is sent once.
        last: its session says so.
        settled: it has come to an end.
        chance: of its waits; None = it has not waited.
    """

    __slots__ = (
        "chance",
        "due_s",
        "last",
        "made",
        "open",
        "owner",
        "record",
        "second",
        "settled",
    )

    def __init__(self, owner: OpenSession, record: CallRecord, due_s: float) -> None:
        self.owner = owner
        self.record = record
        self.due_s = due_s
        self.made = self.open = 0
        self.second: int | None = None
        self.last = self.settled = False
        self.chance: Random | None = None

    @property
    def resent_after_s(self) -> float | None:
        """How much later than due it is sent a second time; None = it is not."""
        return self.owner.session.calls[self.record.place].resent_after_s

    def attempt(
        self,
        at_s: float,
        *,
        session: str | None,
        deadline_s: float | None,
        patience_s: float | None,
    ) -> Arrival:
        """Its next attempt.

        Args:
            at_s: when it comes.
            session: as which a policy knows its session; None = of none.
            deadline_s, patience_s: from when the call was due; None = there is none.
        """
        number, self.made, self.open = self.made, self.made + 1, self.open + 1
        record, whole = self.record, self.owner.session
        call, waited_s = whole.calls[record.place], at_s - self.due_s
        return Arrival(
            id=f"{record.id}~{number}" if number else record.id,
            at_s=at_s,
            input_tokens=call.input_tokens,
            max_output_tokens=whole.bound(call),
            output_tokens=record.output_tokens,
            prefix=named(whole.name, call.prefix),
            session=session,
            tenant=whole.tenant,
            priority=-whole.priority,
            logical_id=record.id,
            attempt=number,
            slo_class=record.slo_class or None,
            session_final=self.last,
            deadline_s=_left(deadline_s, waited_s),
            hangs_up=record.output_tokens < call.output_tokens,
            patience_s=_left(patience_s, waited_s),
        )

    def touch(self) -> None:
        """It was sent."""
        if self.record.due_s is None:
            self.record.due_s = self.due_s
            self.record.ended = "unfinished"

    def count(self, answer: Answer) -> None:
        """Adds an attempt to the record, also one that came after the answer."""
        self.touch()
        self.open -= 1
        record = self.record
        record.attempts += 1
        record.refusals += answer.refused
        record.got_tokens += answer.output_tokens
        record.computed_tokens += _computed(record, answer)
        if not self.settled:
            record.status, record.reason = answer.status, answer.reason
            record.error = answer.error

    def settle(self, arrival: Arrival, at_s: float, answer: Answer) -> None:
        """Makes this answer the call's."""
        self.settled = True
        record, waited_ms = self.record, (arrival.at_s - self.due_s) * 1000
        record.ended = _ended(answer)
        if answer.ttft_ms is not None:
            record.last_ttft_ms = answer.ttft_ms
            record.ttft_ms = round(waited_ms + answer.ttft_ms, 3)
        record.max_gap_ms = answer.max_gap_ms
        passed_ms = round((at_s - self.due_s) * 1000, 3)
        if record.served:
            record.e2e_ms = passed_ms
        elif answer.refused:
            record.refused_ms = passed_ms


def served(answer: Answer) -> bool:
    """Whether the caller has what it had planned to take."""
    return answer.ok or (answer.hung_up and answer.ttft_ms is not None)


def ending(answer: Answer) -> str:
    """Why a session ends with this answer."""
    ended = _ended(answer)
    return {"cancelled": "undone", "unfinished": "cut"}.get(ended, ended)


def _ended(answer: Answer) -> Ended:
    if answer.hung_up:
        return "cancelled"
    if answer.ok:
        return "answered"
    if answer.error == UNFINISHED:
        return "unfinished"
    return "refused" if answer.refused else "failed"


def _computed(record: CallRecord, answer: Answer) -> int:
    """Tokens that an attempt made the engine compute; 0 when it never began."""
    began = answer.ok or answer.ttft_ms is not None or answer.cached_tokens is not None
    if answer.refused or not (began or answer.output_tokens):
        return 0
    if answer.cached_tokens is None:
        return record.new_tokens + answer.output_tokens
    return record.input_tokens - answer.cached_tokens + answer.output_tokens


def _left(limit_s: float | None, passed_s: float) -> float | None:
    return None if limit_s is None else max(limit_s - passed_s, 0.0)
