"""What is offered to an engine: the one form that all workloads have.

A workload begins sessions of calls at instants that nothing can move; a request that
nobody waits for is a session of one call. Load is made by beginning more of them or
fewer, never by scaling the pauses within.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from admitperf.core.errors import AdmitPerfError
from admitperf.core.notes import Note
from admitperf.simulator.traffic.sessions import Beginning, Session

Noun = Literal["request", "session"]
"""What a rate counts."""


class TraceError(AdmitPerfError, ValueError):
    """A file is no trace, or not one of the kind it was taken for."""


class WorkloadError(AdmitPerfError, ValueError):
    """A workload cannot be had, or not with these parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What an importer found, or a generator made in the same form.

    Attributes:
        name: of the kind of trace, such as "azure".
        begun: sessions at the instants of the trace, in seconds from its first one and
            in their order; None = it has no clock that sessions share.
        pool: its sessions.
        said: what it is, in a few words.
        notes: what was read and what was done to it, by name.
        synthetic: nothing of it was measured.
    """

    name: str
    begun: tuple[Beginning, ...] | None
    pool: tuple[Session, ...]
    said: str
    notes: Mapping[str, Note] = field(default_factory=dict[str, Note])
    synthetic: bool = False


class Workload(Protocol):
    """Something to offer, at whatever rate."""

    @property
    def name(self) -> str:
        """As it was asked for."""
        ...

    @property
    def noun(self) -> Noun:
        """What a rate counts."""
        ...

    @property
    def synthetic(self) -> bool:
        """Whether it is made of plain choices: nothing of it was measured."""
        ...

    def pool(self) -> Sequence[Session]:
        """Sessions to draw from, for capacity and for latency without load."""
        ...

    def begun(
        self, rate_per_s: float, lasts_s: float, seed: int
    ) -> Sequence[Beginning]:
        """What begins in a run, in the order of time; names differ.

        Args:
            rate_per_s: beginnings a second; those under way at the start are more.
            lasts_s: for how long something begins.
            seed: of the block: another one is another stretch, draw or rotation.
        """
        ...

    def words(self) -> str:
        """What it is, and what was done to make it fit."""
        ...

    def scaling(self) -> str:
        """How its load is made, in one sentence."""
        ...

    def notes(self) -> dict[str, Note]:
        """The same as facts by name, for the log."""
        ...

    def fitting(self, longest_tokens: int | None) -> "Workload":
        """The same for an engine that takes so many tokens of a prompt and its answer.

        None = whatever is asked. It is always made of what was recorded, so that a
        second time leaves nothing of the first.

        Raises:
            WorkloadError: nothing of it fits.
        """
        ...
