"""Profiles: an engine's model with where its numbers come from, as strict JSON.

Shipped ones lie in `simulator/profiles/`; `admitperf sim fit` writes others.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from admitperf.core.errors import ConfigError
from admitperf.simulator.engine.model import EngineModel

SCHEMA = 1
"""Number of the format."""

MEASURED, ARITHMETIC, SIMULATED = "measured", "published arithmetic", "simulated"
_MOST = 1e18
"""Of any number in a profile: what is beyond it is no measurement. Plain choice."""

_MOST_APART = 10.0
"""Of the sigma of runs: as of the noise of an engine. Plain choice."""

SOURCES = (MEASURED, ARITHMETIC, SIMULATED)
"""Where the times of a profile can come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One number that went into a calculated profile.

    Attributes:
        value: in the unit its name ends in.
        source: where it was published, or how it was chosen.
    """

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the numbers of a profile come from.

    Attributes:
        source: "measured", "published arithmetic", or "simulated": fitted to runs of
            which one or more came from a simulated engine.
        runs: names of the runs it was fitted to.
        date: when those were recorded, as 2026-11-29; None = not known.
        machine: what they ran on, in words; None = not known.
        versions: the engine and the model, in words; None = not known.
        identified: coefficients that the runs determine.
        priors: the others, each with the words that say what was taken in its place.
        constants: what a calculated profile was calculated from, by name.
        notes: what a reader should know before trusting it.
    """

    source: str
    runs: tuple[str, ...] = ()
    date: str | None = None
    machine: str | None = None
    versions: str | None = None
    identified: tuple[str, ...] = ()
    priors: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Constant] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """How far the model is from the runs it was fitted to.

    Attributes:
        observations: steps, first tokens or answers that were compared.
        left_out: of the runs, stalls and starts after a preemption.
        median_abs_fraction: median of |measured / modelled - 1|.
        p95_abs_fraction: its 95th percentile.
        sum_fraction: sum of what was measured over the sum modelled, minus 1.
        run_to_run: how far two runs on one machine lie apart in speed, as the sigma of
            a lognormal factor: what no longer run averages out.
    """

    observations: int
    left_out: int
    median_abs_fraction: float
    p95_abs_fraction: float
    sum_fraction: float
    run_to_run: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """An engine that can be simulated.

    Attributes:
        name: of the profile.
        engine: what it is and what its steps cost.
        provenance: where that comes from.
        residuals: how far it is from its runs; None = it was not fitted to any.
    """

    name: str
    engine: EngineModel
    provenance: Provenance
    residuals: Residuals | None = None

    @property
    def measured(self) -> bool:
        """Whether its times were measured; else they are arithmetic, or simulated."""
        return self.provenance.source == MEASURED

    @property
    def simulated(self) -> bool:
        """Whether it was fitted to what a simulated engine gave."""
        return self.provenance.source == SIMULATED

    @property
    def stamp(self) -> str:
        """Where its times come from, as it is printed: what is simulated shouts."""
        source = self.provenance.source
        return source.upper() if self.simulated else source

    def document(self) -> dict[str, Any]:
        """The profile as plain data, every key in its place."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "simulated": self.simulated,
            "engine": _plain(self.engine),
            "provenance": _plain(self.provenance),
            "residuals": None if self.residuals is None else _plain(self.residuals),
        }

    def text(self) -> str:
        """The profile as the text of a file."""
        return json.dumps(self.document(), indent=2, allow_nan=False) + "\n"


def shipped() -> list[str]:
    """Names of the profiles that come with the package, sorted."""
    folder = resources.files("admitperf.simulator") / "profiles"
    names = (entry.name for entry in folder.iterdir())
    return sorted(n.removesuffix(".json") for n in names if n.endswith(".json"))


def profile(name_or_path: str | Path) -> Profile:
    """A shipped profile by its name, or one in a file.

    Raises:
        ConfigError: there is none, or it is no profile; lists every fault.
    """
    said = str(name_or_path)
    if said in shipped():
        folder = resources.files("admitperf.simulator") / "profiles"
        return parsed((folder / f"{said}.json").read_text(encoding="utf-8"), said)
    path = Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"profile {said}", [_unread(path, error)]) from None
    return parsed(text, said)


def _unread(path: Path, error: Exception) -> str:
    if path.suffix or path.parent != Path():
        why = getattr(error, "strerror", None) or "is not UTF-8 text"
        return f"cannot be read: {why}"
    return f"is none of those shipped ({', '.join(shipped())}) and no file"


def parsed(text: str, where: str) -> Profile:
    """A profile from the text of its file.

    Args:
        text: JSON.
        where: what an error calls it.

    Raises:
        ConfigError: it is no profile; lists every fault.
    """
    try:
        document = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        why = "is no profile: it is nested too deeply"
        raise ConfigError(f"profile {where}", [why]) from None
    except ValueError as error:
        raise ConfigError(f"profile {where}", [f"is no JSON: {error}"]) from None
    faults: list[str] = []
    made = _profile(document, faults)
    if faults or made is None:
        raise ConfigError(f"profile {where}", faults or ["is no profile"])
    return made


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not allowed")


def _profile(document: object, faults: list[str]) -> Profile | None:
    top = _object(document, "the file", faults)
    known = ("schema", "name", "engine", "provenance", "residuals", "simulated")
    faults += _keys(top, known, known[:-2], "the file")
    if top.get("schema", SCHEMA) != SCHEMA:
        faults.append(f"schema {top['schema']!r} is not {SCHEMA}")
    if not isinstance(top.get("name", ""), str):
        faults.append(f"name {top['name']!r} is no text")
    engine = _engine(_object(top.get("engine", {}), "engine", faults), faults)
    provenance = _provenance(top.get("provenance", {}), faults)
    left = top.get("residuals")
    residuals = None if left is None else _made(Residuals, left, "residuals", faults)
    if residuals is not None and not 0 <= residuals.run_to_run <= _MOST_APART:
        apart = f"{residuals.run_to_run:g} is not from 0 to {_MOST_APART:g}"
        faults.append(f"residuals.run_to_run {apart}")
    if faults or engine is None or provenance is None:
        return None
    made = Profile(
        name=top["name"], engine=engine, provenance=provenance, residuals=residuals
    )
    if top.get("simulated", made.simulated) is not made.simulated:
        faults.append("simulated is not what provenance.source says")
    return made


def _engine(told: dict[str, Any], faults: list[str]) -> EngineModel | None:
    before = len(faults)
    faults += _fields(EngineModel, told, "engine")
    if len(faults) > before:
        return None
    try:
        return EngineModel(**told)
    except ValueError as error:
        faults.append(f"engine: {error}")
        return None


def _provenance(document: object, faults: list[str]) -> Any:  # noqa: ANN401
    told = dict(_object(document, "provenance", faults))
    if told.get("source", MEASURED) not in SOURCES:
        faults.append(f"provenance.source {told['source']!r} is none of {SOURCES}")
    constants = _object(told.get("constants", {}), "provenance.constants", faults)
    told["constants"] = {
        name: _made(Constant, value, f"provenance.constants.{name}", faults)
        for name, value in constants.items()
    }
    for name in ("runs", "identified", "notes"):
        told[name] = _texts(told.get(name, []), f"provenance.{name}", faults)
    told["priors"] = _object(told.get("priors", {}), "provenance.priors", faults)
    _texts(list(told["priors"].values()), "provenance.priors", faults)
    return _made(Provenance, told, "provenance", faults)


def _texts(value: object, where: str, faults: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        faults.append(f"{where} is no list of texts")
        return ()
    return tuple(value)


def unfit(sizes: Mapping[str, object]) -> list[str]:
    """What is wrong with the kinds of some fields of an engine, each in words."""
    known = {f.name: str(f.type) for f in fields(EngineModel)}
    return [
        f"{name} {value!r:.60} is no {_words(known[name])}"
        for name, value in sizes.items()
        if not _fits(known[name], value)
    ]


def _made(kind: Any, value: object, where: str, faults: list[str]) -> Any:  # noqa: ANN401
    """One of the records above; None when it cannot be made."""
    told, before = _object(value, where, faults), len(faults)
    faults += _fields(kind, told, where)
    return None if len(faults) > before else kind(**told)


def _object(value: object, where: str, faults: list[str]) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    faults.append(f"{where} is no object")
    return {}


def _fields(kind: Any, told: Mapping[str, Any], where: str) -> Iterable[str]:  # noqa: ANN401
    """What is wrong with the keys and the kinds of value of a record."""
    known = {f.name: f for f in fields(kind)}
    needed = [
        name
        for name, f in known.items()
        if f.default is MISSING and f.default_factory is MISSING
    ]
    yield from _keys(told, list(known), needed, where)
    for name, value in told.items():
        if name in known and not _fits(str(known[name].type), value):
            kind = _words(str(known[name].type))
            yield f"{where}.{name} {value!r:.60} is no {kind}"


def _keys(
    told: Mapping[str, Any], known: Iterable[str], needed: Iterable[str], where: str
) -> list[str]:
    names = list(known)
    unknown = [f"{where}: {key!r} is unknown" for key in told if key not in names]
    return unknown + [
        f"{where}: {key!r} is missing" for key in needed if key not in told
    ]


def _fits(kind: str, value: object) -> bool:
    """Whether a JSON value can stand where a field of a kind is."""
    if "None" in kind and value is None:
        return True
    if "bool" in kind:
        return isinstance(value, bool)
    if "int" in kind or "float" in kind:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return abs(value) <= _MOST and ("float" in kind or isinstance(value, int))
    return "str" not in kind or "[" in kind or isinstance(value, str)


def _words(kind: str) -> str:
    for word, said in (("bool", "true or false"), ("int", "whole number")):
        if word in kind:
            return said
    return "number" if "float" in kind else "text"


def _plain(record: Any) -> dict[str, Any]:  # noqa: ANN401  any of the records above
    return {f.name: _value(getattr(record, f.name)) for f in fields(record)}


def _value(value: object) -> object:
    if isinstance(value, Constant):
        return _plain(value)
    if isinstance(value, Mapping):
        return {name: _value(inner) for name, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value
