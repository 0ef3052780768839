"""What a gateway says of itself: its pages, read as any caller could."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from admitperf.core.series import Series
from admitperf.lab.doctor.call import Answer, UnansweredError, call
from admitperf.scrape.address import Address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.target import read_page

STATE = "/admitperf/state"
EXPLAIN = "/admitperf/explain/"
_OK = 200


@dataclass(frozen=True, slots=True)
class Door:
    """A gateway, looked at once.

    Attributes:
        address: where it listens.
        token: for what stands behind it; None = none is sent.
        timeout_s: for each question.
        health: the answer to /health.
        ready: the answer to /ready; None = there was none.
        pools: what it says of each pool, by name; empty = it does not say.
        page: its own metrics; empty = none.
    """

    address: Address
    token: str | None = field(repr=False)
    timeout_s: float
    health: Answer
    ready: Answer | None
    pools: Mapping[str, Mapping[str, Any]]
    page: Mapping[str, float]

    def ask(self, path: str) -> Answer | None:
        """One more page; None = no answer."""
        try:
            return call(self.address, path, self.timeout_s, token=self.token)
        except UnansweredError:
            return None

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """The finite series of one of its metrics, named without `admitperf_`."""
        found = Series(self.page).samples(f"admitperf_{name}")
        return [(labels, value) for labels, value in found if isfinite(value)]

    def total(self, name: str) -> float | None:
        """Their sum; None = there are none."""
        found = self.samples(name)
        return sum(value for _, value in found) if found else None


def shown(address: Address) -> str:
    """Scheme, host and port."""
    return address.shown.partition("://")[0] + "://" + _place(address)


def _place(address: Address) -> str:
    return address.shown.partition("://")[2].partition("/")[0]


def open_door(address: Address, token: str | None, timeout_s: float) -> Door:
    """Reads what a gateway says of itself.

    Raises:
        UnansweredError: nobody answers there.
    """
    health = call(address, "/health", timeout_s, token=token)
    door = Door(address, token, timeout_s, health, None, {}, {})
    ready, state, page = (door.ask(path) for path in ("/ready", STATE, "/metrics"))
    return Door(address, token, timeout_s, health, ready, pools_of(state), _page(page))


def pools_of(state: Answer | None) -> dict[str, Mapping[str, Any]]:
    """What the state says of each pool, by name; empty = it was not shown."""
    told = state.json() if state is not None and state.status == _OK else None
    pools = told.get("pools") if isinstance(told, dict) else None
    if not isinstance(pools, dict):
        return {}
    return {name: one for name, one in pools.items() if isinstance(one, dict)}


def _page(answer: Answer | None) -> Mapping[str, float]:
    if answer is None or answer.status != _OK:
        return {}
    kind = answer.headers.get("content-type", "")
    try:
        return read_page("the gateway", answer.body, kind)[0]
    except ScrapeError:
        return {}
