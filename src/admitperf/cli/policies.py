"""`admitperf policies`."""

import inspect
import json
import math
import types
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from typing import Any

import click

from admitperf.cli.layout import row, wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.core.declared import REQUIRED, Declared
from admitperf.core.errors import AdmitPerfError
from admitperf.core.policy import Policy
from admitperf.core.reasons import DEFAULT
from admitperf.core.signal import Signal
from admitperf.policies import GROUP, load
from admitperf.reports.wording import printable

SCHEMA = 1
_TAXONOMY = (
    "unit",
    "setting",
    "slo_awareness",
    "signal_quantity",
    "signal_structure",
)
_SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:")
_COLUMN = 18


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, *, as_json: bool) -> None:
    """List the installed policies, or describe one.

    Ours and those of other packages are found the same way. For each: the package it
    comes from, its rule, the signals it requires and the facts it makes use of. Of one
    policy that is named, and in the JSON of all: its parameters with range, default and
    where that comes from, and what else it says of itself.

    A package that is broken is one line on standard error; the others are listed.
    """
    offers = {offer.name: offer for offer in entry_points(group=GROUP)}
    wanted = [name] if name is not None else sorted(offers)
    found: list[dict[str, Any]] = []
    broken: list[str] = []
    for one in wanted:
        try:
            found.append(described(load(one), offers[one]))
        except AdmitPerfError as error:
            broken.append(printable(str(error)))
    if name is not None and broken:
        raise UnreadableInput(broken[0])
    if as_json:
        made = {"schema": SCHEMA, "policies": found, "broken": broken}
        click.echo(json.dumps(made, indent=2, allow_nan=False))
    else:
        for policy in found:
            click.echo("\n".join(_text(policy, whole=name is not None)) + "\n")
    for line in broken:
        click.echo(f"left out: {line}", err=True)


def described(cls: type[Policy], offer: EntryPoint) -> dict[str, Any]:
    """What a policy says about itself, as plain values."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    return {
        "name": cls.name,
        "distribution": offer.dist.name if offer.dist else None,
        "version": offer.dist.version if offer.dist else None,
        "class": offer.value,
        "rule": " ".join(doc.partition("\n\n")[0].split()),
        "doc": doc,
        "page": _page(cls),
        "requires": _signals(cls.requires),
        "makes_use_of": _facts([*cls.requires, *chain(*cls.needs.values())]),
        "needs": {name: _needed(added) for name, added in cls.needs.items()},
        "baseline": cls.baseline,
        "taxonomy": {name: getattr(cls, name) for name in _TAXONOMY},
        "metadata_assumed": list(cls.metadata_assumed),
        "reasons": sorted(cls.reasons),
        "refuses_with": _refusals(cls),
        "parameters": [_parameter(one) for one in cls.declared().values()],
    }


def _page(cls: type[Policy]) -> str | None:
    """Where its page stands among those of the documentation; None = not ours."""
    own = cls.__module__ == f"admitperf.policies.{cls.name}"
    return f"docs/reference/policies/{cls.name}.md" if own else None


def _signals(needed: Iterable[Signal | str]) -> list[str]:
    return list(dict.fromkeys(one.name for one in needed if isinstance(one, Signal)))


def _facts(needed: Iterable[Signal | str]) -> list[str]:
    return list(dict.fromkeys(one for one in needed if isinstance(one, str)))


def _needed(added: Sequence[Signal | str]) -> dict[str, list[str]]:
    return {"requires": _signals(added), "makes_use_of": _facts(added)}


def _refusals(cls: type[Policy]) -> list[dict[str, Any]]:
    """Its reasons and their usual status; one that no table has, has none."""
    known = {**DEFAULT, **cls.reasons}
    told = {name: known.get(name) for name in cls.refuses_with}
    return [
        {"reason": name, "status": found.status if found else None}
        for name, found in told.items()
    ]


def _parameter(one: Declared) -> dict[str, Any]:
    required = one.default is REQUIRED
    return {
        "name": one.name,
        "what": one.param.doc,
        "type": _type(one.type),
        "range": one.range_text(),
        "required": required,
        "default": None if required else _plain(one.default),
        "origin": one.param.origin,
        "per_process": one.param.per_process,
    }


def _plain(value: object) -> object:
    """A value as JSON has it; what JSON has not, as Python writes it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    return value if value is None or isinstance(value, (int, str)) else repr(value)


def _type(annotation: object) -> str:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


def _text(policy: dict[str, Any], *, whole: bool) -> Iterator[str]:
    package = f"{policy['distribution'] or 'unknown package'} {policy['version'] or ''}"
    yield from row(policy["name"], package.strip(), indent=0, column=_COLUMN)
    if whole:
        yield from _doc(policy["doc"])
    else:
        yield from _row("rule", policy["rule"])
    yield from _row("requires", ", ".join(policy["requires"]) or "nothing")
    if policy["makes_use_of"]:
        yield from _row("makes use of", ", ".join(policy["makes_use_of"]))
    if whole:
        yield from _with_parameters(policy)
        for parameter in policy["parameters"]:
            yield from _parameter_text(parameter)
    if not (whole and policy["parameters"]):
        names = ", ".join(parameter["name"] for parameter in policy["parameters"])
        yield from _row("parameters", names or "none")
    if whole:
        yield from _more(policy)


def _with_parameters(policy: dict[str, Any]) -> Iterator[str]:
    """What a parameter adds, once it is given."""
    for name, added in policy["needs"].items():
        names = ", ".join([*added["requires"], *added["makes_use_of"]])
        yield from _row("reads", f"{names} (with {name})")


def _doc(doc: str) -> Iterator[str]:
    """What the class says to a reader; its sections are for who constructs it."""
    for paragraph in doc.split("\n\n"):
        if paragraph.startswith(_SECTIONS):
            break
        yield ""
        yield from wrapped(" ".join(paragraph.split()), "  ", "  ")
    yield ""


def _more(policy: dict[str, Any]) -> Iterator[str]:
    if policy["metadata_assumed"]:
        yield from _row("assumes", ", ".join(policy["metadata_assumed"]))
    if policy["reasons"]:
        yield from _row("own reasons", ", ".join(policy["reasons"]))
    refusals = (f"{one['reason']} {one['status']}" for one in policy["refuses_with"])
    if said := ", ".join(refusals):
        yield from _row("refuses with", said)
    for name, word in policy["taxonomy"].items():
        yield from _row(name, str(word))
    yield from _row("baseline", "yes" if policy["baseline"] else "no")
    yield from _row("class", policy["class"])
    if policy["page"]:
        yield from _row("page", policy["page"])


def _parameter_text(parameter: dict[str, Any]) -> Iterator[str]:
    yield from _row(parameter["name"], parameter["what"])
    legal = f"{parameter['type']}, {parameter['range']}"
    default = f"default {parameter['default']}: {parameter['origin']}"
    yield from _row("", f"{legal}; {'required' if parameter['required'] else default}")
    if parameter["per_process"]:
        yield from _row("", "divided among the processes of one host")


def _row(name: str, value: str) -> Iterator[str]:
    return row(name, value, column=_COLUMN)
