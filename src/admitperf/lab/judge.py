"""Runs policies over samples: could they have fired, and how near did they come?

The same objects as in production, in the time of the trace, nothing enforced. A sample
is no request: a rule about requests cannot be judged by it, and that is said.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.gate import Gate
from admitperf.core.notice import in_words
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.source import Source
from admitperf.core.verdict import Verdict
from admitperf.lab.recorded import Taken
from admitperf.lab.recorder import Notes
from admitperf.lab.runlines import Put, RunLines
from admitperf.lab.virtual import Recorded

_UPWARD = (">=", ">")


@dataclass(slots=True)
class GateTally:
    """One comparison over all samples.

    Attributes:
        name: of the signal, or what the policy calls its number.
        op, bound: what it is compared with.
        n: samples on which it was compared.
        held: those on which it was true.
        low, high: range of its value.
    """

    name: str
    op: str
    bound: float
    n: int = 0
    held: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def take(self, gate: Gate) -> None:
        """Counts one comparison."""
        self.n += 1
        self.held += gate.held
        self.low = min(self.low, gate.value)
        self.high = max(self.high, gate.value)

    @property
    def nearest(self) -> float:
        """The value at which it came nearest to holding, or held by most."""
        return self.high if self.op in _UPWARD else self.low

    @property
    def distance(self) -> float | None:
        """How far the nearest value was from the bound; None = it held."""
        return None if self.held else abs(self.bound - self.nearest)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "signal": self.name,
            "op": self.op,
            "bound": self.bound,
            "n": self.n,
            "held": self.held,
            "low": self.low,
            "high": self.high,
            "nearest": self.nearest,
            "distance": self.distance,
        }


@dataclass(slots=True)
class Judged:
    """One policy.

    Attributes:
        policy: its name.
        why_not: why samples cannot judge it; None = they did.
        n: samples it answered.
        fired: those on which it would have refused.
        blind: those it could not see on.
        why_blind: what it could not see, the first time.
        gates: its comparisons.
    """

    policy: str
    why_not: str | None = None
    n: int = 0
    fired: int = 0
    blind: int = 0
    why_blind: str | None = None
    gates: dict[tuple[str, str, float], GateTally] = field(default_factory=dict)

    def take(self, d: Decision) -> None:
        """Counts one decision."""
        self.n += 1
        if d.blind is not None:
            self.blind += 1
            self.why_blind = self.why_blind or f"{d.reason}: {d.blind}"
            return
        self.fired += d.verdict is not Verdict.ADMIT
        for gate in d.gates:
            key = (gate.name, gate.op, gate.bound)
            if key not in self.gates:
                self.gates[key] = GateTally(*key)
            self.gates[key].take(gate)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "policy": self.policy,
            "judged": self.why_not is None,
            "why_not": self.why_not,
            "samples": self.n,
            "fired": self.fired,
            "blind": self.blind,
            "why_blind": self.why_blind,
            "gates": [gate.to_dict() for gate in self.gates.values()],
        }


@dataclass(frozen=True, slots=True)
class Case:
    """What policies are set up with.

    Attributes:
        put: where their lines go.
        sources: as the samples were read.
        notes: about the engines, for each run header.
    """

    put: Put
    sources: Mapping[Signal, list[Source]]
    notes: Notes


def judge(
    classes: Sequence[type[Policy]],
    taken: Iterable[Taken],
    case: Case,
    tick: Callable[[], None] = lambda: None,
) -> list[Judged]:
    """Runs each policy, at its defaults, over the samples.

    Args:
        classes: the policies.
        taken: the samples, in order.
        case: what they are set up with.
        tick: called after each sample.

    Returns:
        One result each, in the order given.
    """
    clock = Recorded()
    made = [(cls.name, _set_up(cls, case, clock)) for cls in classes]
    found = {name: Judged(name) for name, _ in made}
    running: dict[str, Policy] | None = None
    for one in taken:
        if running is None:
            running = _those_that_can(made, one, found)
        clock.stand_at(one.t_us)
        for name, policy in running.items():
            found[name].take(policy(one.reading))
        tick()
    return list(found.values())


def _set_up(cls: type[Policy], case: Case, clock: Recorded) -> Policy | str:
    """A policy at its defaults; in words why it has none to stand on."""
    lines = RunLines(case.put, readings=False)
    try:
        lines.policy = cls(
            log=lines,
            clock=clock,
            enforce=0.0,
            raw="reference",
            sources=case.sources,
            notes=case.notes,
        )
    except ConfigError as error:
        return f"its defaults alone do not set it up: {'; '.join(error.faults)}"
    except Exception as error:  # noqa: BLE001  a plug-in may do anything at set-up
        return f"it cannot be set up: {in_words(error)}"
    return lines.policy


def _those_that_can(
    made: Iterable[tuple[str, Policy | str]], first: Taken, found: dict[str, Judged]
) -> dict[str, Policy]:
    """The policies that samples can judge; of the others, why not."""
    able: dict[str, Policy] = {}
    for name, policy in made:
        why = policy if isinstance(policy, str) else _beyond(policy, first)
        if why is not None:
            found[name].why_not = why
        elif not isinstance(policy, str):
            able[name] = policy
    return able


def _beyond(policy: Policy, first: Taken) -> str | None:
    """What a policy needs that no sample has; None = nothing."""
    facts = [
        one if isinstance(one, str) else one.name
        for one in policy.requires
        if isinstance(one, str) or one.origin == "request"
    ]
    counted = [
        one.name
        for one in policy.requires
        if isinstance(one, Signal)
        and one.origin == "ledger"
        and first.reading.read_signal(one) is None
    ]
    said = []
    if facts:
        said.append(f"goes by {', '.join(facts)} of each request")
    if counted:
        said.append(f"counts {', '.join(counted)} from the requests it let in")
    return f"it {' and '.join(said)}; a sample has no request" if said else None
