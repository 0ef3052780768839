"""Policies that remember, and the gates of theirs that a log can be held against.

Such a policy cannot be tried on a log of another one. But some of its gates compare a
signal of the engine with a parameter, and how far that signal went is in the log.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from admitperf.core.policy import Policy
from admitperf.reports.runs.patterns import Bound


@dataclass(frozen=True, slots=True)
class Gate:
    """A comparison that a policy makes with one of its parameters.

    Attributes:
        signal, op: what is compared, and how.
        parameter: what it is compared with, by name.
        per: how many of the parameter's unit are one of the signal's.
    """

    signal: str
    op: str
    parameter: str
    per: float = 1.0

    def bound(self, policy: Policy) -> Bound | None:
        """As the policy is set up; None = this gate is switched off."""
        value = getattr(policy, self.parameter)
        return None if value is None else Bound(self.signal, self.op, value / self.per)


@dataclass(frozen=True, slots=True)
class Ranged:
    """The gates of one policy.

    Attributes:
        gates: of which one must hold for it to refuse, where `needed`.
        needed: whether without them it never refuses at its defaults. Where not, they
            are one of several grounds, and their range is no proof.
        moves: what else is to know of such a gate; "" = nothing.
    """

    gates: tuple[Gate, ...]
    needed: bool
    moves: str = ""


RANGED: Mapping[str, Ranged] = {
    "front_door": Ranged(
        (
            Gate("kv_pressure", ">=", "high_water"),
            Gate("oldest_wait_s", ">", "target_wait_s"),
        ),
        needed=True,
    ),
    "queue_age": Ranged(
        (Gate("oldest_wait_s", ">=", "target_s"),),
        needed=True,
        moves="it refuses once it stood there for interval_s",
    ),
    "kv_headroom": Ranged(
        (Gate("kv_pressure", ">", "high_water"),),
        needed=False,
        moves="what is still to come counts beside it",
    ),
    "aimd": Ranged(
        (Gate("oldest_wait_s", ">", "target_ms", per=1000.0),),
        needed=False,
        moves="there its limit is cut, which is small at first",
    ),
    "gradient": Ranged(
        (Gate("oldest_wait_s", ">", "base_ms", per=2000.0),),
        needed=False,
        moves="about there its limit is cut, which is small at first",
    ),
}
"""By the policy's name. Origin: their pages in docs/reference/policies/. Those of
`front_door` are the two rules that its defaults switch on. `gradient` lets half of
`base_ms` be, at its default tolerance of 1.5."""


def bounds(policy: Policy, ranged: Ranged) -> Iterator[Bound]:
    """The gates that are on."""
    found = (gate.bound(policy) for gate in ranged.gates)
    return (one for one in found if one is not None)
