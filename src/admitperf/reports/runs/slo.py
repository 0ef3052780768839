"""Service-level objectives: which outcomes count as good."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

BOUNDS = ("ttft_ms", "stall_ms", "e2e_ms")
FROM_HEADER = "run header"
FROM_OPTION = "--slo"

Bounds = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Slo:
    """Bounds in ms for everyone, or one set per class.

    Attributes:
        everyone: bounds for every request; None when they are per class.
        classes: bounds per class.
        origin: where they come from; "" when there are none.
    """

    everyone: Bounds | None = None
    classes: Mapping[str, Bounds] = field(default_factory=dict)
    origin: str = ""

    @classmethod
    def declared(cls, value: Mapping[str, object] | None) -> Self:
        """From a run header, whose shape has been checked."""
        if not value:
            return cls()
        if any(isinstance(bounds, Mapping) for bounds in value.values()):
            classes = {name: _known(bounds) for name, bounds in value.items()}
            return cls(None, classes, FROM_HEADER)
        return cls(_known(value), {}, FROM_HEADER)

    @classmethod
    def parsed(cls, text: str) -> Self:
        """From an option like `ttft_ms=1500,stall_ms=500`.

        Raises:
            ValueError: a name that is no bound, or a value that is no positive number.
        """
        bounds = dict(_bound(part) for part in text.split(",") if part.strip())
        if not bounds:
            raise ValueError(f"no bounds: give some of {', '.join(BOUNDS)}")
        return cls(bounds, {}, FROM_OPTION)

    @property
    def sets(self) -> Mapping[str | None, Bounds]:
        """The bounds by class; by None those for everyone."""
        if self.everyone is not None:
            return {None: self.everyone}
        return dict[str | None, Bounds](self.classes.items())

    @property
    def option(self) -> str:
        """The bounds of everyone as `--slo` takes them; "" = there are none."""
        return ",".join(
            f"{name}={value:.15g}" for name, value in (self.everyone or {}).items()
        )

    @property
    def text(self) -> str:
        """One line that states the bounds."""
        if self.everyone is not None:
            return _text(self.everyone)
        return "; ".join(
            f"{name or 'others'}: {_text(bounds)}"
            for name, bounds in self.classes.items()
        )


def _known(bounds: object) -> Bounds:
    if not isinstance(bounds, Mapping):
        return {}
    return {
        name: float(bounds[name])
        for name in BOUNDS
        if isinstance(bounds.get(name), int | float)
    }


def _bound(part: str) -> tuple[str, float]:
    name, _, number = (piece.strip() for piece in part.partition("="))
    if name not in BOUNDS:
        raise ValueError(f"{name!r} is no bound: use {', '.join(BOUNDS)}")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(f"{name} needs a number of ms above 0, not {number!r}")
    return name, value


def _text(bounds: Bounds) -> str:
    return ", ".join(f"{name} {bounds[name]:g}" for name in BOUNDS if name in bounds)
