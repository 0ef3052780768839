"""Which attempts are tries at one call, and who is back before the time it was told.

A call is known by its fingerprint: an idempotency key, or a digest of tenant, session
and body. Equal requests that are open at once are different calls; one that comes after
a refusal is the next try, unless each bears a mark of its own.
"""

from collections import OrderedDict
from dataclasses import dataclass

from admitperf.core.verdict import Verdict


@dataclass(slots=True)
class Call:
    """One wish of a client.

    Attributes:
        logical_id: its name in the log.
        tries: attempts seen, less one.
        open: whether the last one is under way.
        served: it is over: an equal request is another call.
        due_ns: when it may come back; 0 = it was not refused.
        reason, verdict: of the last refusal.
        again: whether that said that coming back is of use.
        mark: what told it from equal ones; None = nothing did.
    """

    logical_id: str
    tries: int = 0
    open: bool = True
    served: bool = False
    due_ns: int = 0
    reason: str = ""
    verdict: Verdict = Verdict.DEFER
    again: bool = True
    mark: str | None = None


class Attempts:
    """Remembers calls, those that were served too, so that no two have one name.

    Args:
        most: calls remembered; the longest unseen go first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: OrderedDict[str, Call] = OrderedDict()
        self._made = 0

    def begin(
        self,
        fingerprint: str,
        said: int | None,
        *,
        mark: str | None = None,
        fresh: bool = False,
    ) -> Call:
        """Takes an attempt.

        Args:
            fingerprint: of its call.
            said: the number of this try by the client's own count; None = not told.
            mark: tells equal calls apart where nothing else does, such as the id its
                caller gave the request; None = there is none.
            fresh: it is known to be a call of its own, however equal it looks.
        """
        call = self._calls.get(fingerprint)
        if call is None:
            call = self._new(fingerprint, fingerprint, said)
        elif fresh or _other(call, said, mark):
            self._made += 1
            call = self._new(fingerprint, f"{fingerprint}-{self._made}", said)
        else:
            call.tries = said if said is not None else call.tries + 1
            call.open = True
            self._calls.move_to_end(fingerprint)
        call.mark = mark
        return call

    def refused(self, call: Call, due_ns: int, reason: str, verdict: Verdict) -> None:
        """It was told to come back at this time, and why."""
        call.open = False
        call.due_ns, call.reason, call.verdict = due_ns, reason, verdict

    def ended(self, call: Call, *, served: bool) -> None:
        """It is no longer open. A call that was served is over."""
        call.open, call.served = False, served
        call.due_ns = 0

    def _new(self, fingerprint: str, name: str, said: int | None) -> Call:
        call = self._calls[fingerprint] = Call(name, said or 0)
        self._calls.move_to_end(fingerprint)
        if len(self._calls) > self._most:
            self._calls.popitem(last=False)
        return call


def _other(call: Call, said: int | None, mark: str | None) -> bool:
    """Whether an equal request is another call than this one."""
    marked = None not in (mark, call.mark) and mark != call.mark
    return call.served or (call.open and not said) or marked
