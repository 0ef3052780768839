"""What a source found."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """The value of a signal, and what it was made of.

    Attributes:
        value: in the signal's unit; None when series were there but none was usable.
        parts: value per engine or replica, by the labels that tell them apart
            (`{"engine=0": 0.91}`); empty when there is only one.
        skipped: one note per series left out, with its value.
    """

    value: float | None
    parts: dict[str, float] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
