"""Parameters of a policy, from the annotations on its class.

    threshold: Annotated[float, Param("KV fraction", low=0.0, high=1.0)] = 0.90

An annotation without a value is a required parameter. `float | None` may be None.
"""

import math
import types
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

from admitperf.core.errors import ConfigError
from admitperf.core.param import Param

REQUIRED = object()

_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared parameter: its type, default and `Param`."""

    name: str
    type: Any
    default: object
    param: Param

    def fault(self, value: object) -> str | None:
        """What is wrong with a value, or None."""
        if value is None:
            return None if _optional(self.type) else f"{self.name} must not be None"
        kinds = _kinds(self.type)
        if kinds and not _is(value, kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            return f"{self.name} = {value!r} is not {names}"
        if self.param.choices and value not in self.param.choices:
            return f"{self.name} = {value!r} is not {self.range_text()}"
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._range_fault(value)
        return None

    def _range_fault(self, value: float) -> str | None:
        p = self.param
        if isinstance(value, float) and not math.isfinite(value):
            return f"{self.name} = {value!r} is not finite"
        low = p.low is not None and value < p.low
        high = p.high is not None and value > p.high
        above = p.above is not None and value <= p.above
        return (
            f"{self.name} = {value!r} is not {self.range_text()}"
            if low or high or above
            else None
        )

    def divided(self, value: float, count: int) -> float:
        """One process's part of a value: whole numbers rounded up, at least 1."""
        if float in _kinds(self.type):
            return value / count
        return max(1, -(-int(value) // count))

    def range_text(self) -> str:
        """The legal range in words."""
        p = self.param
        if p.choices:
            return f"one of {', '.join(p.choices)}"
        parts = [f"above {p.above:g}"] if p.above is not None else []
        if p.low is not None and p.high is not None:
            parts.append(f"from {p.low:g} to {p.high:g}")
        elif p.low is not None:
            parts.append(f"at least {p.low:g}")
        elif p.high is not None:
            parts.append(f"at most {p.high:g}")
        return ", ".join(parts) or "any"


def plain(text: str) -> str | int | float | bool | None:
    """What a word stands for where a parameter is typed: a number, true, false or none.

    Else the text itself.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def declared(cls: type, stop: type) -> dict[str, Declared]:
    """The parameters a class annotates, in order, those of its parents first.

    Args:
        stop: the parent whose own annotations are no parameters, here or redeclared.
    """
    return {
        name: _declare(cls, name, annotation)
        for owner in reversed(cls.__mro__)
        if owner is not stop and issubclass(owner, stop)
        for name, annotation in _hints(owner).items()
        if not name.startswith("_")
        and ClassVar not in (annotation, get_origin(annotation))
        and (name not in vars(stop) or _is_behaviour(vars(stop)[name]))
    }


def _is_behaviour(of_stop: object) -> bool:
    """Whether it is a method or a property: an annotation makes no parameter of it."""
    return callable(of_stop) or isinstance(of_stop, (property, classmethod))


def bind(
    where: str, known: Mapping[str, Declared], given: Mapping[str, object]
) -> dict[str, object]:
    """The value of every parameter.

    Raises:
        ConfigError: with every unknown, missing and illegal one.
    """
    faults = [
        f"{name} is no parameter (known: {', '.join(known) or 'none'})"
        for name in given
        if name not in known
    ]
    values: dict[str, object] = {}
    for name, parameter in known.items():
        value = given.get(name, parameter.default)
        if value is REQUIRED:
            faults.append(f"{name} is required ({parameter.param.doc})")
            continue
        fault = parameter.fault(value)
        faults += [fault] if fault else []
        values[name] = value
    if faults:
        raise ConfigError(where, faults)
    return values


def _hints(owner: type) -> dict[str, Any]:
    """Each annotation by itself: one that cannot be read hides no other."""
    return {
        name: _hint(owner, name, annotation)
        for name, annotation in get_annotations(owner).items()
    }


def _hint(owner: type, name: str, annotation: Any) -> Any:  # noqa: ANN401
    alone = {"__annotations__": {name: annotation}, "__module__": owner.__module__}
    try:
        hints = get_type_hints(
            type(owner.__name__, (), alone),
            None,
            dict(vars(owner)),
            include_extras=True,
        )
    except Exception:  # noqa: BLE001  a name only a type checker knows: no check by type
        is_class_variable = str(annotation).startswith(("ClassVar", "typing.ClassVar"))
        return ClassVar if is_class_variable else Any
    return hints[name]


def _declare(cls: type, name: str, annotation: Any) -> Declared:  # noqa: ANN401
    param, kind = Param(), annotation
    if get_origin(annotation) is Annotated:
        kind, *extras = get_args(annotation)
        param = next((extra for extra in extras if isinstance(extra, Param)), param)
    return Declared(name, kind, getattr(cls, name, REQUIRED), param)


def _kinds(annotation: Any) -> tuple[type, ...]:  # noqa: ANN401
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [p for p in get_args(annotation) if p is not type(None)]
        kinds = [_kinds(part) for part in parts]
        return () if () in kinds else tuple(k for some in kinds for k in some)
    return (annotation,) if annotation in (int, float, bool, str) else ()


def _optional(annotation: Any) -> bool:  # noqa: ANN401
    return annotation is Any or type(None) in get_args(annotation)


def _is(value: object, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in kinds
    if float in kinds and isinstance(value, int):
        return True
    return isinstance(value, kinds)
