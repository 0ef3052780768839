"""A report out of its JSON document: the classes that `document` wrote.

The sentences of a page are made from these classes. Who has only a document, such as a
dashboard with a cache, makes the same ones.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from admitperf.reports.report import RunReport
from admitperf.reports.runs.log import Files

_Kind = TypeVar("_Kind")


def run_report(run: Mapping[str, Any]) -> RunReport:
    """One of a document's `runs`; what a document adds to it is left out."""
    made: RunReport = _made(RunReport, run)
    return made


def read_files(files: Mapping[str, Any]) -> Files:
    """A document's `files`."""
    made: Files = _made(Files, files)
    return made


def read(kind: type[_Kind], value: Mapping[str, Any]) -> _Kind:
    """A part of any document as the class it was made of.

    Args:
        kind: a dataclass.
        value: what `dataclasses.asdict` made of one; more that stands there is left
            out.
    """
    made: _Kind = _made(kind, value)
    return made


def _made(kind: Any, value: Any) -> Any:  # noqa: ANN401  any field of any class
    """A value of a document as the type its field has."""
    origin, inside = get_origin(kind), get_args(kind)
    if value is None or not (inside or is_dataclass(kind)):
        return value
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: _made(hints[name], value[name]) for name in hints})
    if origin in (Union, UnionType):
        return _made(next(one for one in inside if one is not type(None)), value)
    if origin is dict:
        return {name: _made(inside[1], one) for name, one in value.items()}
    if origin in (tuple, list):
        return origin(_made(inside[0], one) for one in value)
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:  # noqa: ANN401  a dataclass
    """The type of each field that is not left out of a document."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
