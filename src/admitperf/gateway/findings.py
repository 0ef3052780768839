"""What is found at start-up: can each pool's policy see what it reads, can it fire."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from os import PathLike, fspath
from typing import Any

from admitperf.core.errors import MissingSignal
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.core.series import Series
from admitperf.core.settings import Settings
from admitperf.core.signal import Signal
from admitperf.core.signals import ENGINE, KV_CAPACITY_TOKENS, KV_PRESSURE
from admitperf.core.source import Source
from admitperf.core.window import Window
from admitperf.engines.catalogue import engine_of
from admitperf.gateway.edge import Edge
from admitperf.gateway.pool import Pool
from admitperf.gateway.setup import PoolSetup
from admitperf.policies.parts.compose.composition import Composition, spelt_short
from admitperf.scrape.simulated import simulated_by

_ALIKE = 0.85
"""How like a name that was tried one on the page must be. Plain choice: a letter or an
ending apart; vLLM's `waiting` and `running`, two things, are 0.84 alike."""
_NAMED_MOST = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One pool before its first request.

    Attributes:
        pool: what it was told to be.
        parameters: of its policy, the defaults too.
        parts: of a composition, each with the parameters it was given; else empty.
        settings: likewise.
        engine: whose metrics they are; None = not known, or none was read.
        simulated: whether the page says that the engine is simulated.
        unread: why a replica's page cannot be read, by its name.
        required: what the policy cannot do without, signals and facts.
        supplied: where each signal comes from, by its name.
        absent: names of the engine's signals that nothing supplies.
        capacity_tokens: what the KV memory of the engines holds; None = not told.
        reach: whether a threshold on KV pressure can be reached; None = there is none.
        stop: why it must not be started; None = it may.
    """

    pool: PoolSetup
    parameters: dict[str, object]
    parts: tuple[str, ...]
    settings: Settings
    engine: str | None
    simulated: bool
    unread: dict[str, str]
    required: tuple[str, ...]
    supplied: dict[str, str]
    absent: tuple[str, ...]
    capacity_tokens: float | None
    reach: str | None
    stop: str | None

    @property
    def ok(self) -> bool:
        """Whether all replicas were read and nothing is missing."""
        return self.stop is None and not self.unread

    @property
    def shadow(self) -> bool:
        """Whether it only watches: it decides, and every request goes through."""
        return self.settings.enforce == 0

    @property
    def log(self) -> str | None:
        """Where its decisions are written; None = nowhere."""
        path = self.settings.path(self.pool.policy)
        return fspath(path) if isinstance(path, str | PathLike) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON. No token is among them."""
        holding = self.pool.holding
        return {
            "pool": self.pool.name,
            "models": list(self.pool.models),
            "upstreams": [
                {"name": one.name, "url": one.url, "unread": self.unread.get(one.name)}
                for one in self.pool.upstreams
            ],
            "policy": self.pool.policy,
            "parameters": self.parameters,
            "parts": list(self.parts),
            "shadow": self.shadow,
            "enforce": self.settings.enforce,
            "preset": self.settings.preset,
            "on_blind": self.settings.on_blind,
            "blind_cap": self.settings.blind_cap,
            "holding": {**asdict(holding), "never": sorted(holding.never)},
            "log": self.log,
            "slo": dict(self.settings.slo) if self.settings.slo else None,
            "scrape": asdict(self.pool.scrape),
            "timeouts": asdict(self.pool.timeouts),
            "engine": self.engine,
            "simulated": self.simulated,
            "required": list(self.required),
            "supplied": self.supplied,
            "absent": list(self.absent),
            "capacity_tokens": self.capacity_tokens,
            "reach": self.reach,
            "stop": self.stop,
        }


def look(edge: Edge) -> list[Finding]:
    """Reads every replica once and says what came of it, pool by pool."""
    return [_look(pool) for pool in edge.pools.values()]


def _look(pool: Pool) -> Finding:
    unread = pool.seen.first()
    reading, policy = pool.seen.pool, pool.policy
    supplied = _supplied(reading, policy)
    capacity = KV_CAPACITY_TOKENS.read(reading)
    page: Any = reading.raw
    return Finding(
        pool=pool.setup,
        parameters=dict(policy.parameters),
        parts=tuple(map(spelt_short, _parts(policy))),
        settings=policy.settings,
        engine=engine_of(page),
        simulated=simulated_by(page) is not None,
        unread=dict(unread),
        required=tuple(_name(one) for one in policy.requires),
        supplied={signal.name: source for signal, source in supplied.items()},
        absent=tuple(s.name for s in _wanted(policy) if page and s not in supplied),
        capacity_tokens=capacity,
        reach=_reach(list(_thresholds(policy)), pool.setup, capacity) if page else None,
        stop=_missing(policy, reading) if page else None,
    )


def _name(required: Signal | str) -> str:
    return required.name if isinstance(required, Signal) else required


def _parts(policy: Policy) -> tuple[Policy, ...]:
    return policy.parts if isinstance(policy, Composition) else ()


def _wanted(policy: Policy) -> tuple[Signal, ...]:
    """The signals of an engine: the usual ones, and those of the policy's package."""
    asked = (one for one in policy.requires if isinstance(one, Signal))
    own = (one for one in asked if one.origin == "engine")
    return tuple(dict.fromkeys((*ENGINE, *own)))


def _supplied(reading: Reading, policy: Policy) -> dict[Signal, str]:
    """Where each signal comes from; one counted over time, as if it had counted."""
    series = reading.series
    moved = Series({key: _moved(value) for key, value in reading.raw.items()})
    window = Window.between(series, moved, 1.0)
    own: dict[Signal, tuple[Source, ...]] = policy.settings.source_table()
    found = {}
    for signal in _wanted(policy):
        source, _, _ = signal.find(series, window, own.get(signal, ()))
        if source is not None:
            found[signal] = source.describe(signal.combine)
    return found


def _moved(value: object) -> object:
    return value * 2 + 1 if isinstance(value, (int, float)) else value


def _missing(policy: Policy, reading: Reading) -> str | None:
    try:
        policy.check(reading)
    except MissingSignal as error:
        near = _near(error.tried, reading.series)
        named = list(dict.fromkeys((*near, *error.nearest)))[:_NAMED_MOST]
        told = error.signal, error.tried, named
        return str(MissingSignal(*told, also=error.also) if near else error)
    return None


def _near(tried: Iterable[str], series: Series) -> list[str]:
    """Names on a page that are almost one that was tried: renamed, or mistyped."""
    names = list(series.names())
    found = (get_close_matches(one, names, 1, _ALIKE) for one in tried)
    return list(dict.fromkeys(name for near in found for name in near))


def _thresholds(policy: Policy) -> Iterator[float]:
    """The marks on KV pressure, those of a composition's parts too."""
    for part in _parts(policy):
        yield from _thresholds(part)
    told = policy.parameters
    threshold = told.get("threshold", told.get("high_water"))
    if KV_PRESSURE in policy.requires and isinstance(threshold, (int, float)):
        yield threshold


def _reach(
    thresholds: list[float], setup: PoolSetup, capacity: float | None
) -> str | None:
    """What thresholds on KV pressure ask of the requests that run."""
    if not thresholds:
        return None
    page = setup.upstreams[0].name if setup.upstreams else "URL"
    more = f"whether requests can hold that much: admitperf reach {page}"
    if capacity is None:
        return f"the engine does not say how much KV memory it has; {more}"
    said = ", ".join(
        f"{one:g} of the KV memory is {one * capacity:,.0f} of {capacity:,.0f} tokens"
        for one in sorted(set(thresholds))
    )
    return f"{said}; {more}"
