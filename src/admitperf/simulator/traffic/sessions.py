"""Agent sessions: calls that follow each other's answers, closed within the session.

A session begins at a time of its own, whatever happens to others; each of its calls
comes a while after the answer it follows has ended. That while is never scaled: load is
made by starting more sessions or fewer (`beginnings`). What a refusal does to one is
the client's matter.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from admitperf.core.digest import blake2b
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.arrival import Arrival, Prefix
from admitperf.simulator.traffic.traffic import Answer
from admitperf.simulator.traffic.workload import Phase, poisson


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a session.

    Attributes:
        after: place of the call whose answer it follows; None = the session's start.
        gap_s: seconds from the end of that answer, or from the start.
        input_tokens: prompt.
        output_tokens: answer, at least 1.
        prefix: how the prompt begins: (chain, tokens), in order. A number is a chain
            of the session's own, a name one that all sessions share.
        kind: what it is for, such as "plan"; empty = nothing is told apart.
        hangs_up_after: tokens of the answer after which the caller closes; None = it
            takes all of it.
        resent_after_s: the caller sends the same call a second time so much later,
            whatever became of the first; None = once.
    """

    after: int | None
    gap_s: float
    input_tokens: int
    output_tokens: int
    prefix: tuple[tuple[int | str, int], ...] = ()
    kind: str = ""
    hangs_up_after: int | None = None
    resent_after_s: float | None = None

    @property
    def received_tokens(self) -> int:
        """Of the answer, what its caller takes."""
        if self.hangs_up_after is None:
            return self.output_tokens
        return min(self.output_tokens, self.hangs_up_after)


@dataclass(frozen=True, slots=True)
class Session:
    """Calls in the order of their beginning; each follows an earlier one.

    Attributes:
        name: of the session.
        calls: what it asks. Several may follow one answer: they run side by side.
        max_output_tokens: the bound it sets for its answers.
        tenant: who pays; None = nobody is told apart.
        begun_before: it was under way when the run began.
        priority: of its calls: the higher matters more, as a policy is told it.
    """

    name: str
    calls: tuple[Call, ...]
    max_output_tokens: int
    tenant: str | None = None
    begun_before: bool = False
    priority: int = 0

    def bound(self, call: Call) -> int:
        """The bound a call sets for its answer.

        The session's; a longer answer gets the next power of two, since a bound that
        follows the answer would tell a policy what no host can know.
        """
        longer = call.output_tokens > self.max_output_tokens
        power = 1 << (call.output_tokens - 1).bit_length()
        return power if longer else self.max_output_tokens

    def following(self) -> dict[int | None, list[int]]:
        """Places of the calls that follow each answer, and the start (None)."""
        found: dict[int | None, list[int]] = {}
        for place, call in enumerate(self.calls):
            found.setdefault(call.after, []).append(place)
        return found


_CALL = tuple(field.name for field in fields(Call))
_SESSION = tuple(field.name for field in fields(Session))

Beginning = tuple[float, Session]
"""When a session begins, in seconds from the start of the run."""


def fitting(
    sessions: Iterable[Session], longest_tokens: int
) -> tuple[list[Session], int]:
    """Sessions without the calls that no engine of this size takes.

    What followed such a call follows the answer before it, and waits for both gaps. A
    session of which nothing is left is left out.

    Args:
        sessions: as they are.
        longest_tokens: most tokens of a prompt and its answer.

    Returns:
        The sessions, and how many calls are gone.
    """
    kept, dropped = list[Session](), 0
    for session in sessions:
        calls = _without(session.calls, longest_tokens)
        dropped += len(session.calls) - len(calls)
        if calls:
            kept.append(replace(session, calls=calls))
    return kept, dropped


def _without(calls: Sequence[Call], longest_tokens: int) -> tuple[Call, ...]:
    left = list[Call]()
    places = list[tuple[int | None, float]]()  # of each call, or of what it followed
    for call in calls:
        after, waited_s = (None, 0.0) if call.after is None else places[call.after]
        if call.input_tokens + call.output_tokens > longest_tokens:
            places.append((after, waited_s + call.gap_s))
            continue
        places.append((len(left), 0.0))
        left.append(replace(call, after=after, gap_s=waited_s + call.gap_s))
    return tuple(left)


def capped(sessions: Iterable[Session], longest_gap_s: float) -> list[Session]:
    """Sessions in which nobody pauses for longer than this; other gaps stay."""
    return [
        replace(
            session,
            calls=tuple(
                replace(call, gap_s=min(call.gap_s, longest_gap_s))
                for call in session.calls
            ),
        )
        for session in sessions
    ]


def beginnings(
    sessions: Sequence[Session], rate_per_s: float, lasts_s: float, seed: int
) -> list[Beginning]:
    """Sessions at Poisson times, drawn without putting back.

    Fewer than there are thin the trace out. When all have been drawn they are all drawn
    again, as sessions of their own that share nothing with the first: `name~2`.

    At the start of the run there are sessions under way, those that would have begun
    before it and not be over if answers took no time; they go on with what is left of
    them. Otherwise a run would have to be long before it is under full load.

    Args:
        sessions: to draw from, at least one.
        rate_per_s: sessions that begin a second.
        lasts_s: for how long sessions begin.
        seed: of the times and of the draw.
    """
    before_s = longest_s(sessions)
    phases = [Phase(lasts_s=before_s + lasts_s, rate_per_s=rate_per_s)]
    times_s = poisson(phases, seed, "sessions")
    begun = list[Beginning]()
    for time_s, session in zip(times_s, drawn(sessions, seed), strict=False):
        at_s = time_s - before_s
        if at_s >= 0:
            begun.append((at_s, session))
        elif left := under_way(session, -at_s):
            begun.append((0.0, replace(left, begun_before=True)))
    return begun


def longest_s(sessions: Iterable[Session]) -> float:
    """How long the longest of them would last if answers took no time, in seconds."""
    return max(max(_nominal_s(session)) for session in sessions)


def under_way(session: Session, passed_s: float) -> Session | None:
    """What is left of a session some time after its beginning; None = nothing.

    It is where it would be if answers took no time.
    """
    left, places = list[Call](), dict[int, int]()
    for place, due_s in enumerate(_nominal_s(session)):
        call = session.calls[place]
        if due_s < passed_s:
            continue
        if call.after in places:
            call = replace(call, after=places[call.after])
        else:
            call = replace(call, after=None, gap_s=due_s - passed_s)
        places[place] = len(left)
        left.append(call)
    return replace(session, calls=tuple(left)) if left else None


def _nominal_s(session: Session) -> list[float]:
    """When each call would be due if answers took no time, from its beginning."""
    due_s = list[float]()
    for call in session.calls:
        after_s = 0.0 if call.after is None else due_s[call.after]
        due_s.append(after_s + call.gap_s)
    return due_s


def drawn(sessions: Sequence[Session], seed: int) -> Iterator[Session]:
    """All sessions in a drawn order, then all of them again, without end."""
    chance, round_number = stream(seed, "draw"), 0
    while True:
        round_number += 1
        order = list(sessions)
        chance.shuffle(order)
        for one in order:
            name = one.name if round_number == 1 else f"{one.name}~{round_number}"
            yield replace(one, name=name)


def new_tokens(session: Session) -> list[int]:
    """Of each call's prompt, the tokens no text before it in the session began with.

    That is what an engine would compute of it if its cache were endless and the calls
    came in their order, one after the other, with nobody else there: text that all
    sessions share counts as new where this one first uses it.
    """
    held: dict[tuple[object, int | str], int] = {}
    return [call.input_tokens - _seen(call, held) for call in session.calls]


def _seen(call: Call, held: dict[tuple[object, int | str], int]) -> int:
    """Tokens of a prompt that are held; it and its answer are from now on.

    Args:
        call: the call.
        held: how far each chain is known, counted from the beginning of the prompts,
            by what stands before it and its name; is added to.
    """
    seen = end = 0
    whole = True  # all chains up to here are held as far as this prompt goes
    last = len(call.prefix) - 1
    for place, (chain, tokens) in enumerate(call.prefix):
        key = call.prefix[:place], chain
        end = call.input_tokens if place == last else end + tokens
        known = held.get(key, 0)
        if whole:
            seen = max(seen, min(known, end))
            whole = known >= end
        to = end + call.received_tokens if place == last else end
        held[key] = max(known, to)
    return seen


def first_calls(sessions: Sequence[Session], seed: int) -> Iterator[Arrival]:
    """The first call of each session drawn, without end; their times do not count."""
    return (UnderWay(session).arrival(0, 0.0) for session in drawn(sessions, seed))


def sessions_hash(begun: Iterable[Beginning]) -> str:
    """What two runs share in which the same sessions began at the same times."""
    digest = blake2b(digest_size=8)
    for at_s, session in begun:
        digest.update(json.dumps([at_s, *_plain(session)]).encode())
    return digest.hexdigest()


def _plain(session: Session) -> list[object]:
    """As `dataclasses.astuple`, which copies deeply and takes three times as long."""
    calls = [[getattr(call, name) for name in _CALL] for call in session.calls]
    return [calls if name == "calls" else getattr(session, name) for name in _SESSION]


class UnderWay:
    """A session that has begun.

    Args:
        session: which.

    Attributes:
        session: as given.
        following: places of the calls that follow each.
        open: its calls that have been asked and have no answer yet; who asks counts.
    """

    __slots__ = ("following", "open", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.following: Mapping[int | None, list[int]] = session.following()
        self.open = 0

    def arrival(self, place: int, at_s: float) -> Arrival:
        """One of its calls as a request; its id ends with the call's place."""
        session, call = self.session, self.session.calls[place]
        return Arrival(
            id=f"{session.name}/{place}",
            at_s=at_s,
            input_tokens=call.input_tokens,
            max_output_tokens=session.bound(call),
            output_tokens=call.received_tokens,
            prefix=named(session.name, call.prefix),
            session=session.name,
            tenant=session.tenant,
            priority=-session.priority,
            hangs_up=call.received_tokens < call.output_tokens,
        )

    def place(self, request_id: str) -> int:
        """Which of its calls a request is."""
        return int(request_id.rpartition("/")[2])


def named(name: str, prefix: Iterable[tuple[int | str, int]]) -> Prefix:
    """A call's prefix with the session's own chains under its name."""
    return tuple(
        (chain if isinstance(chain, str) else f"{name}/{chain}", tokens)
        for chain, tokens in prefix
    )


class Standing:
    """So many agents who begin a new session as soon as one is over.

    Each begins with a call in the midst of its first session, so that old and young
    sessions stand side by side from the start.

    Args:
        sessions: to draw from, at least one.
        agents: how many.
        until_s: nothing is asked later.
        seed: of the draw.
    """

    def __init__(
        self, sessions: Sequence[Session], agents: int, until_s: float, seed: int
    ) -> None:
        self._drawn = drawn(sessions, seed)
        self._chance = stream(seed, "standing")
        self._agents = agents
        self._until_s = until_s
        self._under_way: dict[str, UnderWay] = {}

    def first(self) -> Iterator[Arrival]:
        """A call in the midst of a session for each."""
        for _ in range(self._agents):
            one = UnderWay(next(self._drawn))
            place = self._chance.randrange(len(one.session.calls))
            gap_s = one.session.calls[place].gap_s
            yield self._ask(one, place, self._chance.random() * gap_s)

    def after(
        self, arrival: Arrival, at_s: float, _answer: Answer
    ) -> Iterable[Arrival]:
        """The next calls of the session, or the first of another one."""
        one = self._under_way.pop(arrival.id)
        one.open -= 1
        places = one.following.get(one.place(arrival.id))
        if not (places or one.open):
            one = UnderWay(next(self._drawn))
            places = one.following[None]
        return [
            self._ask(one, place, due_s)
            for place in places or ()
            if (due_s := at_s + one.session.calls[place].gap_s) <= self._until_s
        ]

    def _ask(self, one: UnderWay, place: int, at_s: float) -> Arrival:
        arrival = one.arrival(place, at_s)
        self._under_way[arrival.id] = one
        one.open += 1
        return arrival
