"""What a caller does who is refused, or waits too long.

It is declared before the run, is part of the plan's hash, and is the same in all arms:
how patient callers are decides between policies as much as the policies do.
"""

from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any, Literal

from admitperf.reports.wording import number
from admitperf.simulator import Answer

_RETRIED = frozenset({0, 408, 409, 429})
"""Statuses below 500 after which the OpenAI and Anthropic SDKs try again, and 0, which
is a connection that failed."""

_SERVER_ERROR = 500

Noun = Literal["request", "session"]
"""What a workload is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client model.

    Attributes:
        name: of the model.
        tries: attempts at a call, the first included.
        first_wait_s: before the second attempt, in seconds.
        factor: of each further wait to the one before.
        most_wait_s: longest wait of its own; a longer Retry-After is kept all the same.
        honours: waits for Retry-After at least, and gives up on `x-should-retry:
            false`.
        jitter: waits are longer by a share drawn up to this.
        patience_s: seconds after a call was due at which it hangs up when no token has
            come; None = it waits for ever.
        undoes: having hung up out of patience it drops the rest of the session too.
        gives_up: what a call without an answer ends: the session, or only itself, and
            then the next call comes as if it had been answered.

    Raises:
        ValueError: a number makes no sense; every fault is named.
    """

    name: str
    tries: int = 1
    first_wait_s: float = 1.0
    factor: float = 2.0
    most_wait_s: float = 30.0
    honours: bool = True
    jitter: float = 0.25
    patience_s: float | None = None
    undoes: bool = False
    gives_up: Literal["session", "call"] = "session"

    def __post_init__(self) -> None:
        if faults := list(_faults(self)):
            raise ValueError(f"client {self.name}: {'; '.join(faults)}")

    def wait_s(self, attempt: int, answer: Answer, chance: Random) -> float | None:
        """How long it waits before it tries again.

        Args:
            attempt: the one that got this answer, 0 for the first.
            answer: what it got.
            chance: of the call; one number is drawn a wait.

        Returns:
            Seconds; None = it does not try again.
        """
        if attempt + 1 >= self.tries or not _retried(answer):
            return None
        own_s = self._own_s(attempt)
        if not self.honours:
            return own_s * (1 + self.jitter * chance.random())
        if not answer.should_retry:
            return None
        asked_s = (answer.retry_after_ms or 0.0) / 1000
        return max(own_s, asked_s) * (1 + self.jitter * chance.random())

    def _own_s(self, attempt: int) -> float:
        try:
            return min(self.first_wait_s * self.factor**attempt, self.most_wait_s)
        except OverflowError:
            return self.most_wait_s

    def words(self, noun: Noun = "session") -> str:
        """What it does, to follow "The client".

        Args:
            noun: what it asks; where that is single requests no session is spoken of.
        """
        return "; ".join([self._tries(), *self._hangs_up(noun), *self._ends(noun)])

    def _tries(self) -> str:
        if self.tries == 1:
            return "does not retry"
        return f"tries {self.tries} times, {self._waits()}"

    def _waits(self) -> str:
        heeds = "honours Retry-After" if self.honours else "ignores Retry-After"
        if not self.first_wait_s:
            return f"at once, {heeds}"
        first, most = number(self.first_wait_s), number(self.most_wait_s)
        flat = self.factor == 1 or self.most_wait_s <= self.first_wait_s
        wait = f"{first} s apart" if flat else f"{first} s apart and growing to {most}"
        return f"{wait}, {heeds}"

    def _hangs_up(self, noun: Noun) -> list[str]:
        if self.patience_s is None:
            return []
        said = f"hangs up after {number(self.patience_s)} s without a token"
        if noun == "request":
            return [said]
        return [f"{said} and {'drops its session' if self.undoes else 'goes on'}"]

    def _ends(self, noun: Noun) -> list[str]:
        if noun == "request":
            return []
        ends = {"session": "its session", "call": "that call only"}
        return [f"a refusal ends {ends[self.gives_up]}"]


def _retried(answer: Answer) -> bool:
    """Whether an SDK would try again: a refusal, a full server, no connection."""
    return answer.refused or answer.status in _RETRIED or answer.status >= _SERVER_ERROR


def _faults(one: Client) -> list[str]:
    faults = [*_wrong_kinds(one)]
    if faults:
        return faults
    least = {"tries": 1, "first_wait_s": 0, "factor": 1, "most_wait_s": 0, "jitter": 0}
    for name, low in least.items():
        if not low <= getattr(one, name) < float("inf"):
            faults.append(f"{name} = {getattr(one, name)} is under {low} or no number")
    if one.patience_s is not None and not 0 < one.patience_s < float("inf"):
        faults.append(f"patience_s = {one.patience_s} is no positive number")
    if one.undoes and one.patience_s is None:
        faults.append("undoes needs patience_s")
    return faults


_KINDS: dict[str, tuple[type, ...]] = {
    "tries": (int,),
    "first_wait_s": (int, float),
    "factor": (int, float),
    "most_wait_s": (int, float),
    "jitter": (int, float),
    "patience_s": (int, float, type(None)),
    "honours": (bool,),
    "undoes": (bool,),
}


def _wrong_kinds(one: Client) -> list[str]:
    faults = list[str]()
    for name, kinds in _KINDS.items():
        value = getattr(one, name)
        wrong_bool = isinstance(value, bool) and bool not in kinds
        if wrong_bool or not isinstance(value, kinds):
            faults.append(f"{name} = {value!r} is no {kinds[0].__name__}")
    if one.gives_up not in ("session", "call"):
        faults.append(f"gives_up = {one.gives_up!r} is neither session nor call")
    return faults


CLIENTS = {
    one.name: one
    for one in (
        Client(name="none"),
        Client(name="patient", tries=10),
        Client(name="impatient", tries=4, first_wait_s=2.0, factor=1.0),
        Client(name="deaf", tries=4, first_wait_s=0.0, honours=False),
        Client(name="cancel", patience_s=30.0),
        Client(name="undo", patience_s=30.0, undoes=True),
    )
}
"""The models that come along, by name. `patient` waits as the SDKs of OpenAI and
Anthropic do when told to be patient, `impatient` as an agent's own loop; `deaf` has the
budget of three retries that it spends at once. The 30 s of `cancel` and `undo` are a
plain choice."""


def client(name: str, **changed: Any) -> Client:  # noqa: ANN401  checked below
    """A model by name, with some of its numbers changed.

    Args:
        name: one of `CLIENTS`.
        changed: fields of `Client` and their values.

    Raises:
        ValueError: there is none of this name, it has no such field, or a value makes
            no sense.
    """
    if name not in CLIENTS:
        raise ValueError(f"no client {name!r}; there are {', '.join(CLIENTS)}")
    known = [field.name for field in fields(Client) if field.name != "name"]
    unknown = sorted(set(changed) - set(known))
    if unknown:
        said = f"{', '.join(unknown)} is not one of {', '.join(known)}"
        raise ValueError(f"client {name}: {said}")
    return replace(CLIENTS[name], **changed)
