"""What stands behind the policies of a benchmark: an engine that can be driven."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from admitperf.core.notes import Note
from admitperf.core.reading import Reading
from admitperf.simulator.loop import Driven
from admitperf.simulator.traffic.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One policy as it is tried.

    Attributes:
        name: of the arm, unique in an experiment; names its folder.
        policy: name of an installed policy.
        parameters: its parameters; what is left out keeps its default.
        provenance: where a parameter's value comes from: fitted, inherited, default.
        url: an engine of its own, for engines that refuse by themselves; None = the
            target's.
    """

    name: str
    policy: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None


class Target(Protocol):
    """An engine, simulated or real, that traffic can be driven through."""

    simulated: bool
    """Whether no number of it was measured on an engine."""

    def notes(self) -> dict[str, Note]:
        """What it is: model, hardware, engine, engine_version, replicas and the like.

        They become notes of every log, and make a report's configuration item.
        """
        ...

    def reading(self) -> Reading:
        """One look at it, by which it is checked what policies could see of it."""
        ...

    def drive(  # noqa: PLR0913  all of a run, by keyword
        self,
        arm: Arm,
        log: Path | None,
        traffic: Traffic,
        *,
        seed: int,
        notes: Mapping[str, Note],
        slo: Mapping[str, object] | None,
        run: str,
        experiment: str,
        until_s: float,
    ) -> Driven:
        """Drives traffic through an arm's policy; two calls of production each request.

        Args:
            arm: whose policy is built, with its parameters.
            log: where its decision log goes; None = nowhere.
            traffic: who asks, and what they ask next.
            seed: of all chance of the target's own.
            notes: what the log says of the run, the target's own notes included.
            slo: deadlines for the log, as a policy's keyword; None = none yet.
            run: name of the run in its experiment.
            experiment: name of that.
            until_s: seconds from the start after which what is still inside is given
                up as unfinished.

        Raises:
            AdmitPerfError: the policy cannot be had so, the log cannot be written, or
                the engine cannot be reached.
        """
        ...

    def longest_tokens(self) -> int | None:
        """Most tokens of a prompt and its answer; None = not known."""
        ...

    def probe(self) -> float | None:
        """How fast it is now: p50 in ms of a fixed set of requests without a policy.

        None = it cannot change: virtual time does not drift.
        """
        ...
