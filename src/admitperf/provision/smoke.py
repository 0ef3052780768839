"""Tries what is up: one request, its metrics, and the signals that policies need."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.signals import QUEUE_DEPTH, RUNNING
from admitperf.policies import available
from admitperf.provision import endpoint, state
from admitperf.provision.endpoint import TOKENS, Answered, Endpoint
from admitperf.provision.fault import ProvisionError
from admitperf.provision.state import State
from admitperf.reports.wording import printable
from admitperf.scrape.survey import Survey, survey_all
from admitperf.scrape.target import Endpoint as Metrics

REQUIRED = (RUNNING, QUEUE_DEPTH)
"""Without these a run cannot be told from one in which nothing happened."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried.

    Attributes:
        name: of it.
        ok: whether it is as it should be.
        said: what was seen.
    """

    name: str
    ok: bool
    said: str


@dataclass(frozen=True, slots=True)
class Smoked:
    """What became of it.

    Attributes:
        up: what was tried.
        checks: in order.
        simulated: the page says that the engine is simulated.
        usable: installed policies that the engine supplies; none without a page.
        unusable: those that it does not, with what they lack.
    """

    up: State
    checks: tuple[Check, ...]
    simulated: bool
    usable: tuple[str, ...]
    unusable: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether everything is."""
        return all(one.ok for one in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "ok": self.ok,
            "simulated": self.simulated,
            "url": self.up.url,
            "checks": [asdict(one) for one in self.checks],
            "usable": list(self.usable),
            "unusable": self.unusable,
        }


def smoke(
    path: Path,
    token: str | None = None,
    policies: Sequence[type[Policy]] = (),
    pause: Callable[[float], object] | None = None,
) -> Smoked:
    """Tries what a state file says is up.

    Args:
        path: the state file.
        token: for the engine; None = it asks for none.
        policies: those whose signals must be there, on top of `REQUIRED`.
        pause: waits so many seconds; None = really.

    Raises:
        ProvisionError: nothing is up, or it was never healthy.
    """
    was = state.read(path)
    if was is None or was.url is None:
        raise ProvisionError(f"{path}: nothing is up; `admitperf infra up` first")
    if was.processes and not state.running(path, was):
        what = "what it names has ended; `admitperf infra down`, then up again"
        raise ProvisionError(f"{path}: {what}")
    at = endpoint.of(was.url, token)
    answered = at.ask(was.model or at.model())
    found = _surveyed(at, pause or threading.Event().wait)
    lacking = _lacking(found)
    wanted = {*REQUIRED, *(one for cls in policies for one in _signals(cls))}
    return Smoked(
        up=was,
        checks=(
            _healthy(at),
            *_request(answered),
            _metrics(found),
            _supplied(found, sorted(one.name for one in wanted)),
        ),
        simulated=found.simulated_by is not None,
        usable=tuple(sorted(set(available()) - lacking.keys())) if found.lines else (),
        unusable=lacking,
    )


def _surveyed(at: Endpoint, pause: Callable[[float], object]) -> Survey:
    (found,) = survey_all([Metrics(at.path("/metrics"), at.token)], pause)
    return found


def _healthy(at: Endpoint) -> Check:
    fault = at.unhealthy()
    said = at.url if fault is None else f"{at.url}: {fault.what}"
    return Check("health", fault is None, said)


def _request(answered: Answered) -> Iterator[Check]:
    if answered.fault is not None or answered.first_ms is None:
        yield Check("request", ok=False, said=printable(answered.fault or "no token"))
        return
    times = f"{answered.whole_ms:.0f} ms, the first after {answered.first_ms:.0f} ms"
    yield Check("request", ok=True, said=f"{answered.tokens} tokens in {times}")
    whole = answered.tokens == TOKENS
    said = f"{answered.tokens} of the {TOKENS} tokens that were asked for came"
    yield Check("ignore_eos", whole, said if whole else f"not honoured: {said}")


def _metrics(found: Survey) -> Check:
    if found.error is not None:
        return Check("metrics", ok=False, said=printable(found.error.what))
    engine = found.engine.title if found.engine else "no known engine"
    return Check("metrics", ok=True, said=f"{engine}, {found.series} series")


def _supplied(found: Survey, wanted: Sequence[str]) -> Check:
    if not found.lines:
        return Check("signals", ok=False, said="there is no page to read them from")
    there = {line.signal.name for line in found.lines if line.value is not None}
    missing = [name for name in wanted if name not in there]
    said = f"{', '.join(wanted)} are supplied"
    if missing:
        said = f"not supplied: {', '.join(missing)}; `admitperf signals` says why"
    return Check("signals", not missing, said)


def _lacking(found: Survey) -> dict[str, str]:
    """The installed policies that this engine is not enough for, and what they lack."""
    there = {line.signal.name for line in found.lines if line.value is not None}
    lacking = {}
    for name, cls in available().items() if found.lines else ():
        missing = [one.name for one in _signals(cls) if one.name not in there]
        if missing:
            lacking[name] = ", ".join(missing)
    return lacking


def _signals(cls: type[Policy]) -> list[Signal]:
    """What a policy requires of the engine."""
    return [
        one
        for one in cls.requires
        if isinstance(one, Signal) and one.origin == "engine"
    ]
