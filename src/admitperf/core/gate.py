"""The trace a comparison leaves."""

import math
from json.encoder import encode_basestring_ascii as quoted

_HOLDS = {
    ">=": float.__ge__,
    ">": float.__gt__,
    "<=": float.__le__,
    "<": float.__lt__,
}


class Gate:
    """A comparison a policy made: `name value op bound`, and whether it held.

    Attributes:
        name: the signal, or the name given to a derived number.
        value, bound: in the signal's unit.
        op: ">=", ">", "<=" or "<".
        held: whether the comparison is true.
    """

    __slots__ = ("_text", "bound", "held", "name", "op", "value")

    def __init__(self, name: str, value: float, op: str, bound: float) -> None:
        self.name = name
        self.value = float(value)
        self.op = op
        self.bound = float(bound)
        self.held: bool = _HOLDS[op](self.value, self.bound)
        self._text = ""

    @property
    def text(self) -> str:
        """The same as JSON, as it stands in the log; made once it is asked for."""
        if not self._text:
            held = "true" if self.held else "false"
            numbers = f'{number(self.value)},"{self.op}",{number(self.bound)}'
            self._text = f"[{quoted(self.name)},{numbers},{held}]"
        return self._text

    def __repr__(self) -> str:
        return f"Gate({self.name} {self.value:g} {self.op} {self.bound:g}: {self.held})"

    @property
    def excess(self) -> float:
        """How far the value is past the bound, in its unit; 0.0 when it is not past."""
        return max(self.value - self.bound, 0.0)


def number(value: float) -> str:
    """A float as strict JSON: what is not finite is null."""
    return repr(value) if math.isfinite(value) else "null"
