"""A policy's lines on their way into a trace."""

import re
from collections.abc import Callable

from admitperf.core.archive import Archive
from admitperf.core.header import run_line
from admitperf.core.log import REPEAT_S
from admitperf.core.policy import Policy
from admitperf.core.record import dumps
from admitperf.core.view import View

_RUN = re.compile(r'"run":"([^"]+)"')
_TIME = re.compile(r'"t_us":(\d+)')

Put = Callable[[str], None]


class RunLines:
    """Takes the lines of one policy: `Policy(log=RunLines(...))`.

    The header goes in front of the first line and says `basis: samples`. With
    readings, each is written before the first decision on it, and header and a whole
    reading again every minute, as in a log; without, decisions refer to none, since
    another run of the trace holds them.

    Args:
        put: where lines go.
        epoch_us: wall clock microseconds at monotonic zero of the policy's clock.
        wall_us: the wall clock, asked for each header; None = the line's own time.
        readings: whether they are written.

    Attributes:
        policy: whose lines these are; to be set before it decides.
        run: its run id; None before its first line.
    """

    def __init__(
        self,
        put: Put,
        epoch_us: int = 0,
        wall_us: Callable[[], int] | None = None,
        *,
        readings: bool,
    ) -> None:
        self.policy: Policy | None = None
        self.run: str | None = None
        self._put = put
        self._epoch_us = epoch_us
        self._wall_us = wall_us
        self._readings = readings
        self._archive = Archive()
        self._repeat_us = 0
        self._early: list[tuple[int, str, dict[str, object]]] = []

    def decision(self, view: View | None, line: str) -> None:
        """Takes a decision line, and the reading it refers to."""
        t_us = self._begin(line)
        if view is not None and self._readings:
            self._reading(view, t_us)
        elif view is not None:
            line = line.replace(view.reference, "", 1)
        self._put(line)

    def event(self, kind: str, line: str) -> None:  # noqa: ARG002  a sink's signature
        """Takes a control line."""
        self._begin(line)
        self._put(line)

    def control(self, t_us: int, event: str, details: dict[str, object]) -> None:
        """Writes a notice about the instrument that the policy does not know of.

        It has no number of its own; before the policy's first line it is held back.
        """
        if self.run is None:
            self._early.append((t_us, event, details))
            return
        told = {"k": "control", "run": self.run, "t_us": t_us, "event": event}
        self._put(dumps({**told, **details}))

    def restate(self) -> None:
        """Has the header written again before the next line, since it says more now."""
        self._repeat_us = 0

    def flush(self, timeout_s: float = 0.0) -> bool:  # noqa: ARG002  a sink's signature
        """The file's own business."""
        return True

    def close(self, timeout_s: float = 0.0) -> None:
        """The file's own business."""

    def after_fork(self, run: str) -> None:
        """A child that was forked writes nothing here."""
        self._put = _nowhere
        self.run = run

    def _begin(self, line: str) -> int:
        """Writes the header when it is due; the time of the line."""
        run, time = _RUN.search(line), _TIME.search(line)
        if run is None or time is None:
            raise ValueError("no line of a policy")
        t_us = int(time[1])
        if self.run is None or (self._readings and t_us >= self._repeat_us):
            self.run = run[1]
            self._repeat_us = t_us + int(REPEAT_S * 1e6)
            self._head(self._early[0][0] if self._early else t_us, t_us)
            for early in self._early:
                self.control(*early)
            self._early = []
        return t_us

    def _head(self, t_us: int, now_us: int) -> None:
        if self.policy is None or self.run is None:
            raise ValueError("no policy to write a header of")
        wall_us = self._wall_us() - (now_us - t_us) if self._wall_us else t_us
        made = run_line(self.policy, self.run, t_us, wall_us)
        self._put(dumps({**made, "basis": "samples"}))
        self._archive.begin()

    def _reading(self, view: View, t_us: int) -> None:
        if self._archive.holds(view.key) or self.run is None:
            return
        self._archive.remember(view)
        told = self._archive.line(view.key, self.run, str(t_us), self._epoch_us)
        if told is not None:
            self._put(told)


def _nowhere(line: str) -> None:
    """Takes a line and drops it."""
