"""Asks everything that was named, one subject after the other."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from admitperf.lab.doctor import engine, gateway, log, probe
from admitperf.lab.doctor.call import UnansweredError
from admitperf.lab.doctor.door import STATE, Door, open_door, pools_of, shown
from admitperf.lab.doctor.engine import Looked
from admitperf.lab.doctor.finding import LEVELS, Finding, Level, problem
from admitperf.lab.fault import LabError
from admitperf.lab.sizes import Sizes, from_log, from_page
from admitperf.scrape.address import Address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.token import blanked

_WAITS, _WAIT_S = 20, 0.1
_FIX = "see that it is up, and give the host and port it printed"


@dataclass(frozen=True, slots=True)
class Patient:
    """What to examine.

    Attributes:
        engine: address of its metrics; None = not named.
        gateway: address of a gateway; None = not named.
        log: path of a decision log; None = not named.
        token: for both addresses; None = none.
        timeout_s: longest a step may take; the probe may take four times as long.
        probe: whether one small request may be sent through the gateway.
        slots: requests the engine runs at once; None = not said.
    """

    engine: str | None
    gateway: str | None
    log: str | None
    token: str | None = field(repr=False)
    timeout_s: float
    probe: bool = True
    slots: int | None = None


@dataclass(slots=True)
class Diagnosis:
    """What was found.

    Attributes:
        findings: in the order in which they were asked.
        reached: whether anything that was named answered or could be read.
    """

    findings: list[Finding] = field(default_factory=list)
    reached: bool = False

    def at(self, level: Level) -> Sequence[Finding]:
        """The findings of one level."""
        return [one for one in self.findings if one.level == level]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: the findings by level, problems first."""
        ranked = sorted(self.findings, key=lambda one: LEVELS.index(one.level))
        return {
            "reached": self.reached,
            "counts": {level: len(self.at(level)) for level in LEVELS},
            "findings": [one.to_dict() for one in ranked],
        }


def examine(
    patient: Patient,
    pause: Callable[[float], object],
    tell: Callable[[str], object] = lambda _: None,
) -> Diagnosis:
    """Asks everything that was named.

    Args:
        patient: what.
        pause: waits so many seconds.
        tell: is told what is asked now, in a few words.
    """
    return _Visit(patient, pause, tell).made()


class _Visit:
    """One examination; what an earlier subject said is used for the later ones."""

    def __init__(
        self,
        patient: Patient,
        pause: Callable[[float], object],
        tell: Callable[[str], object],
    ) -> None:
        self.patient, self.pause, self.tell = patient, pause, tell
        self.diagnosis = Diagnosis()
        self.looked: Looked | None = None
        self.door: Door | None = None

    def made(self) -> Diagnosis:
        for part in (self._engine, self._gateway, self._probe, self._log):
            self.diagnosis.findings += map(self._safe, part())
        return self.diagnosis

    def _safe(self, one: Finding) -> Finding:
        """Without the token, which a server may have said."""
        token = self.patient.token
        says, fix = blanked(one.says, token), blanked(one.fix, token)
        return replace(one, says=says, fix=fix)

    def _engine(self) -> Iterator[Finding]:
        patient = self.patient
        if patient.engine is None:
            return
        self.tell("the engine's metrics")
        try:
            end = engine.endpoint_of(patient.engine, patient.token, patient.timeout_s)
            self.looked = engine.look(end, self.pause)
        except ScrapeError as error:
            self.diagnosis.reached |= error.kind not in engine.NOT_REACHED
            yield engine.unread(error)
            return
        self.diagnosis.reached = True
        yield from engine.findings(self.looked)

    def _gateway(self) -> Iterator[Finding]:
        patient = self.patient
        if patient.gateway is None:
            return
        self.tell("the gateway")
        try:
            address = Address.of(patient.gateway)
        except ScrapeError as error:
            yield problem("gateway.reachable", f"{error.target}: {error.what}", _FIX)
            return
        try:
            self.door = open_door(address, patient.token, patient.timeout_s)
        except UnansweredError as error:
            yield problem("gateway.reachable", f"{shown(address)}: {error}", _FIX)
            return
        self.diagnosis.reached = True
        asked = gateway.Asked(self._sizes(), patient.slots)
        yield from gateway.findings(self.door, asked)

    def _sizes(self) -> Sizes:
        """What the engine's page and the log say of sizes; the page comes first."""
        found = from_page(self.looked.page) if self.looked is not None else {}
        path = self.patient.log
        if path is not None and log.there(path) and log.short(path):
            try:
                told = from_log(path)
            except LabError:
                return found
            wanted = ("kv_tokens", "block_tokens", "tokens_per_request")
            found = {name: told[name] for name in wanted if name in told} | found
        return found

    def _probe(self) -> Iterator[Finding]:
        door, path = self.door, self.patient.log
        if door is None or not self.patient.probe:
            return
        self.tell("one small request through the gateway")
        end = self.looked.endpoint.address if self.looked is not None else None
        logged = None
        if path is not None and log.there(path):
            logged = partial(log.line_of, path)
        yield from probe.findings(door, end, logged, self.pause)

    def _log(self) -> Iterator[Finding]:
        path = self.patient.log
        if path is None:
            return
        self.tell("the log")
        yield from log.of_file(path)
        if not log.there(path):
            return
        runs = self._runs()
        self._settle(path, runs)
        got = log.read(path)
        if isinstance(got, Finding):
            yield got
            return
        self.diagnosis.reached = True
        yield from log.findings(got, runs)

    def _runs(self) -> list[str]:
        """The runs of the gateway that decided something, so that a log has them."""
        state = self.door.ask(STATE) if self.door is not None else None
        return [
            str(pool.get("run"))
            for pool in pools_of(state).values()
            if pool.get("run") and pool.get("decisions")
        ]

    def _settle(self, path: str, runs: Sequence[str]) -> None:
        """Waits a moment until what the gateway decided just now is written."""
        for _ in range(_WAITS):
            if not runs or any(log.names(path, run) for run in runs):
                return
            self.pause(_WAIT_S)
