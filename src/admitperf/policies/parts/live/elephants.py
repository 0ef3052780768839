"""The largest old session leaves at its next call when new ones are turned away.

A session is old when it has had its quantum of calls. It is a rule about size and not
about admission: it breaks the promise that who was let in is served to the end, so the
quantum is what a host has to declare. Count of sessions rises by it, work done falls.
"""

from collections.abc import Callable
from operator import attrgetter

from admitperf.policies.parts.live.session import Session
from admitperf.policies.parts.live.sessions import Sessions

NEVER_MS_PER_S = 2_000.0
"""Wait told to a task that has to leave, in ms for each second of the longest wait that
is sent: past that, coming back is no use. Origin: the product brief, 6."""

_SIZE: Callable[[Session], float] = attrgetter("tokens")


class Elephants:
    """Marks one session at a time; its policy refuses it at its next call.

    Who is marked and stays silent is gone with its lease, and its mark with it.

    Args:
        sessions: the policy's own.
        quantum: calls that a session is let have whatever its size.
        share: part of all live context tokens, from 0 to 1, that old sessions hold
            before one of them has to leave.
    """

    def __init__(self, sessions: Sessions, quantum: int, share: float) -> None:
        self._sessions = sessions
        self._quantum = quantum
        self._share = share
        self._marked: Session | None = None

    def turned_away(
        self, size: Callable[[Session], float] = _SIZE, least: float = 0.0
    ) -> None:
        """A new session was refused for want of room: marks one, if it is due.

        Looks at all live sessions, and only while none is marked.

        Args:
            size: by which the largest is found; its context unless given.
            least: one that is not larger stays.
        """
        if self._marked is not None and self._marked.live:
            return
        self._marked = None
        old = [s for s in self._sessions.live() if s.calls >= self._quantum]
        held = sum(map(_SIZE, old))
        if old and held > self._share * self._sessions.tokens():
            largest = max(old, key=size)
            self._marked = largest if size(largest) > least else None

    def leaves(self, session: Session) -> bool:
        """Whether its next call is to be refused for good; changes nothing."""
        return session is self._marked and session.live

    def left(self, session: Session) -> None:
        """That call was refused: the session is ended, its open calls go on."""
        self._marked = None
        if session.live:
            self._sessions.end(session)
