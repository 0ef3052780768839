"""A log that a test can look into."""

import json
from typing import Any

from admitperf.core.view import View

Line = dict[str, Any]


class MemoryLog:
    """Takes a policy's lines instead of a file: `Policy(..., log=MemoryLog())`.

    Lines are parsed when they are asked for, as strictly as any reader may be. The run
    header and the reading lines belong to a file and are not here; `readings` has what
    a decision's `reading` refers to.

    Attributes:
        texts: the lines as they would be written, in order.
        readings: raw metrics by reading id, for decisions that do not carry them.
        runs: the ids this log was started anew under, in forked children.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.readings: dict[int, dict[str, object]] = {}
        self.runs: list[str] = []

    @property
    def lines(self) -> list[Line]:
        """Every line.

        Raises:
            ValueError: a line is no strict JSON object of ASCII.
        """
        return [_parsed(text) for text in self.texts]

    @property
    def decisions(self) -> list[Line]:
        """The decision lines."""
        return self._of_kind("decision")

    @property
    def outcomes(self) -> list[Line]:
        """The outcome lines."""
        return self._of_kind("outcome")

    @property
    def controls(self) -> list[Line]:
        """The lines about the instrument itself."""
        return self._of_kind("control")

    def _of_kind(self, kind: str) -> list[Line]:
        return [line for line in self.lines if line["k"] == kind]

    def decision(self, view: View | None, line: str) -> None:
        """Takes a decision line, and the reading it refers to if it refers to one."""
        if view is not None:
            self.readings.setdefault(view.number, dict(view.reading.raw))
        self.texts.append(line)

    def event(self, kind: str, line: str) -> None:  # noqa: ARG002  a sink's signature
        """Takes an outcome or control line."""
        self.texts.append(line)

    def flush(self, timeout_s: float = 0.0) -> bool:  # noqa: ARG002  a sink's signature
        """There is nothing to wait for."""
        return True

    def close(self, timeout_s: float = 0.0) -> None:
        """There is nothing to let go of; the lines stay."""

    def after_fork(self, run: str) -> None:
        """Forgets the parent's lines."""
        self.texts, self.readings = [], {}
        self.runs.append(run)


def _parsed(text: str) -> Line:
    if not text.isascii():
        raise ValueError(f"a log line is ASCII: {text!r}")
    line = json.loads(text, parse_constant=_refuse)
    if not isinstance(line, dict):
        raise ValueError(f"a log line is an object: {text!r}")  # noqa: TRY004  its content
    return line


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
