"""Who asks what when, whatever answers: a simulated engine or one at the end of a wire.

A plan is made before any arm runs and fixes what is offered. What is asked of it then
depends on the answers, by rules that are declared: a call follows the answer before it,
a refused caller tries again as its client model says, and a call that got no answer in
the end takes the rest of its session with it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import inf

from admitperf.bench.callers.client import Client, Noun
from admitperf.bench.callers.records import CallRecord
from admitperf.bench.callers.under_way import (
    Classify,
    OpenCall,
    OpenSession,
    ending,
    served,
)
from admitperf.core.digest import blake2b
from admitperf.simulator import Answer, Arrival, stream
from admitperf.simulator.loop import UNFINISHED
from admitperf.simulator.traffic.sessions import (
    Beginning,
    Session,
    new_tokens,
    sessions_hash,
)


def alike(_new_tokens: int) -> str:
    """One class for all."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is offered, whatever becomes of it.

    Attributes:
        begun: sessions and when they begin, in the order of time.
        lasts_s: nothing begins later; what has begun goes on.
        scored_s: sessions that begin from the one to before the other are scored.
        hash: the same in runs that offer the same to the same client.
        noun: "request" when every session is a single request of nobody's session, and
            then policies are told of no session.
    """

    begun: tuple[Beginning, ...]
    lasts_s: float
    scored_s: tuple[float, float]
    hash: str
    noun: Noun = "session"

    @property
    def offered(self) -> int:
        """Calls of the sessions that are scored."""
        return sum(
            len(session.calls)
            for at_s, session in self.begun
            if self.scores(at_s, session)
        )

    def scores(self, at_s: float, session: Session) -> bool:
        """Whether a session counts that begins then."""
        first_s, end_s = self.scored_s
        return first_s <= at_s < end_s and not session.begun_before


def planned(  # noqa: PLR0913  what fixes a plan
    begun: Iterable[Beginning],
    lasts_s: float,
    scored_s: tuple[float, float],
    client: Client,
    classify: Classify = alike,
    claims: Sequence[str] = (),
    *,
    noun: Noun = "session",
) -> Plan:
    """Fixes what is offered, before any arm runs.

    Args:
        begun: sessions and when they begin, in seconds from the start of the run; those
            that would begin after `lasts_s` are left out.
        lasts_s: for how long sessions begin.
        scored_s: the part of that which is scored.
        client: what a refused caller does.
        classify: classes of calls.
        claims: what the run is to show; part of the hash, as they are made beforehand.
        noun: see `Plan`.

    Raises:
        ValueError: two sessions have one name, a request has several calls, or the part
            that is scored does not lie within the run.
    """
    first_s, end_s = scored_s
    if not 0 <= first_s < end_s <= lasts_s:
        said = f"{first_s:g} to {end_s:g} s is no part of {lasts_s:g} s to score"
        raise ValueError(said)
    kept = tuple(
        sorted((one for one in begun if one[0] < lasts_s), key=lambda one: one[0])
    )
    _refuse_odd(kept, noun)
    digest = _hash(
        kept, [lasts_s, *scored_s, *astuple(client), *claims, noun], classify
    )
    return Plan(begun=kept, lasts_s=lasts_s, scored_s=scored_s, hash=digest, noun=noun)


def _refuse_odd(begun: Sequence[Beginning], noun: Noun) -> None:
    counts = Counter(session.name for _, session in begun)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise ValueError(f"{len(twice)} names of sessions come twice, as {twice[0]!r}")
    if noun == "request" and any(len(session.calls) > 1 for _, session in begun):
        raise ValueError(
            "a request is a session of one call, and there are some of more"
        )


def _hash(
    begun: Sequence[Beginning], said: Sequence[object], classify: Classify
) -> str:
    digest = blake2b(digest_size=8)
    digest.update(sessions_hash(begun).encode())
    for _, session in begun:
        classes = [classify(tokens) for tokens in new_tokens(session)]
        digest.update(json.dumps(classes).encode())
    digest.update(json.dumps(said).encode())
    return digest.hexdigest()


class Callers:
    """The callers of a plan: traffic for any target, and what came of each call.

    Equal answers at equal times make equal calls at equal times: all chance belongs to
    the seed and the call.

    Args:
        plan: what is offered.
        client: what a caller does who is refused; the one the plan was made with.
        seed: of how long callers wait.
        classify: classes of calls, as for the plan.
        deadlines: seconds in which a class wants its first token, told to the policy as
            what is left of them at each attempt; None = no deadline is told.
        until_s: no call begins later, and a session that would have gone on is cut off;
            calls that have begun are tried on. inf = sessions go on to their end.
    """

    def __init__(
        self,
        plan: Plan,
        client: Client,
        seed: int,
        classify: Classify = alike,
        deadlines: Mapping[str, float] | None = None,
        *,
        until_s: float = inf,
    ) -> None:
        self._client = client
        self._seed = seed
        self._deadlines = deadlines or {}
        self._until_s = until_s
        self._in_sessions = plan.noun == "session"
        self._sessions = [
            OpenSession(at_s, session, scored=plan.scores(at_s, session))
            for at_s, session in plan.begun
        ]
        self._classify = classify
        self._open: dict[str, OpenCall] = {}

    def first(self) -> Iterator[Arrival]:
        """What begins each session, in the order of their beginnings."""
        for one in self._sessions:
            yield from self._following(one, None, one.begun_s)

    def sent(self, arrival: Arrival, late_ms: float) -> None:
        """Says that an attempt is on its way.

        A target in wall time calls it, so that a run that breaks off knows what it had
        sent. The times of an answer count from when the attempt was due all the same.

        Args:
            arrival: the attempt.
            late_ms: how much later than due it was sent.
        """
        call = self._open[_call_id(arrival)]
        call.touch()
        call.record.late_ms = max(call.record.late_ms, late_ms)

    def after(self, arrival: Arrival, at_s: float, answer: Answer) -> Iterable[Arrival]:
        """What an answer leads to: another try, the next calls, or nothing.

        Args:
            arrival: the attempt.
            at_s: when its answer ended, or its refusal came.
            answer: what it got.
        """
        name = _call_id(arrival)
        call = self._open[name]
        call.count(answer)
        asked = [] if call.settled else self._moved(call, arrival, at_s, answer)
        if call.settled and not call.open:
            del self._open[name]
        return asked

    def records(self) -> list[CallRecord]:
        """Every planned call, also those that were never sent, in the plan's order."""
        return [
            record for one in self._sessions for record in one.records(self._classify)
        ]

    def tally(self) -> Counter[str]:
        """Sessions by how they ended.

        `finished`: to their last call; `refused`, `failed`, `undone`: by a call that
        got no answer; `cut`: by the end of the run.
        """
        return Counter(one.fate for one in self._sessions)

    def _moved(
        self, call: OpenCall, arrival: Arrival, at_s: float, answer: Answer
    ) -> list[Arrival]:
        """What follows an attempt at a call that nothing has been made of so far."""
        if not served(answer):
            wait_s = self._wait_s(call, arrival, at_s, answer)
            if wait_s is not None:
                return [self._attempt(call, at_s + wait_s)]
            if call.open:
                return []  # sent twice, and the other one may still be answered
        call.settle(arrival, at_s, answer)
        owner = call.owner
        owner.open -= 1
        if not self._goes_on(call, answer):
            owner.ended = owner.ended or ending(answer)
        if owner.ended:
            return []
        return list(self._following(owner, call.record.place, at_s))

    def _wait_s(
        self, call: OpenCall, arrival: Arrival, at_s: float, answer: Answer
    ) -> float | None:
        if call.owner.ended or answer.hung_up or answer.error == UNFINISHED:
            return None
        if arrival.attempt == call.second:
            return None  # only the first sending is taken care of
        tries = call.made - (call.second is not None)
        call.chance = call.chance or stream(self._seed, f"client/{call.record.id}")
        wait_s = self._client.wait_s(tries - 1, answer, call.chance)
        if wait_s is None:
            return None
        patience_s = self._client.patience_s
        waited_s = at_s + wait_s - call.due_s
        return None if patience_s is not None and waited_s >= patience_s else wait_s

    def _goes_on(self, call: OpenCall, answer: Answer) -> bool:
        if call.record.served:
            return True
        if answer.error == UNFINISHED:
            return False
        if answer.hung_up:
            return not self._client.undoes
        return self._client.gives_up == "call"

    def _following(
        self, owner: OpenSession, place: int | None, at_s: float
    ) -> Iterator[Arrival]:
        """The calls that follow one, or the beginning, each sent once or twice."""
        calls = list(self._begun(owner, place, at_s))
        if calls and self._in_sessions:
            owner.mark_last(calls)
        for call in calls:
            yield self._attempt(call, call.due_s)
            again_s = call.resent_after_s
            if again_s is not None:
                call.second = call.made
                yield self._attempt(call, call.due_s + again_s)

    def _begun(
        self, owner: OpenSession, place: int | None, at_s: float
    ) -> Iterator[OpenCall]:
        for following in owner.following.get(place, ()):
            due_s = at_s + owner.session.calls[following].gap_s
            if due_s > self._until_s:
                continue
            call = owner.call(following, due_s, self._classify)
            self._open[call.record.id] = call
            yield call

    def _attempt(self, call: OpenCall, at_s: float) -> Arrival:
        return call.attempt(
            at_s,
            session=call.record.session if self._in_sessions else None,
            deadline_s=self._deadlines.get(call.record.slo_class),
            patience_s=self._client.patience_s,
        )


def _call_id(arrival: Arrival) -> str:
    return arrival.logical_id or arrival.id
