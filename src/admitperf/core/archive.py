"""The readings of a log: which ones a file already holds, and how to write one."""

from collections.abc import Mapping
from contextlib import suppress

from admitperf.core.clock import pause
from admitperf.core.record import dumps, raw_texts, supplies_text
from admitperf.core.view import View

READINGS_MOST = 256
"""Readings held for lines not yet written."""

SLICE = 64
"""Metrics of a reading formatted before other threads get a turn."""

_WRITTEN_MOST = 4096


class Archive:
    """Readings on their way into one file.

    A caller's thread remembers, the writer's thread writes. A reading is written when
    the first line needs it, whole or as changes against the last one of its replica.
    """

    def __init__(self) -> None:
        self._views: dict[str, View] = {}
        self._written: set[str] = set()
        self._last: dict[str | None, Mapping[str, str]] = {}

    def remember(self, view: View) -> None:
        """Holds a reading until its lines are written, and a while longer."""
        if view.key in self._views:
            return
        if len(self._views) >= READINGS_MOST:
            with suppress(StopIteration, KeyError, RuntimeError):
                del self._views[next(iter(self._views))]
        self._views[view.key] = view

    def begin(self) -> None:
        """A file begins: it holds nothing yet."""
        self._written.clear()
        self._last.clear()

    def holds(self, key: str) -> bool:
        """Whether the file has this reading."""
        return key in self._written

    def line(self, key: str, run: str, t_us: str, epoch_us: int) -> str | None:
        """The line of a reading; None when it was forgotten.

        Args:
            key: the reading's id.
            run: the run's id.
            t_us: log time of the line that needs it.
            epoch_us: wall clock microseconds at monotonic zero.
        """
        view = self._views.get(key)
        if view is None:
            return None
        replica = view.reading.replica
        last = self._last.get(replica)
        texts = raw_texts(view.reading.raw)
        whole, members = last is None, _members(last or {}, texts)
        gone = [name for name in last or {} if name not in texts]
        self._last[replica] = texts
        if len(self._written) >= _WRITTEN_MOST:
            self._written.clear()
        self._written.add(key)
        return (
            f'{{"k":"reading","run":"{run}","id":{view.number},"t_us":{t_us},'
            f'"taken_us":{epoch_us + view.taken_ns // 1000},'
            f'"whole":{"true" if whole else "false"},"raw":{{{",".join(members)}}},'
            + (f'"gone":{dumps(gone)},' if gone else "")
            + (f'"replica":{dumps(replica)},' if replica else "")
            + f'"signals":{supplies_text(view)}}}'
        )


def _members(last: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    members: list[str] = []
    for count, (name, text) in enumerate(texts.items()):
        if last.get(name) != text:
            members.append(f"{dumps(name)}:{text}")
        if count % SLICE == SLICE - 1:
            pause()
    return members
