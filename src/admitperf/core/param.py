"""What a policy says about a parameter besides its type and default."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Param:
    """What is known about a parameter besides its type and default.

    Attributes:
        doc: one sentence, with the unit.
        low, high: legal range, inclusive; None = open.
        above: exclusive lower bound; None = open.
        origin: where the default comes from.
        choices: the words a text may be; empty = any.
        per_process: it bounds what this process does, so a host of several processes
            divides it (`Policy.divided`).
    """

    doc: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    origin: str = "plain choice"
    choices: tuple[str, ...] = ()
    per_process: bool = False
