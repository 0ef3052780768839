"""A front door described by environment variables, for hosts that pass no arguments.

`vllm serve --middleware` builds its middleware with nothing but the app behind it.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, cast

from admitperf.core.declared import plain
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.core.policy import Policy
from admitperf.core.settings import RESERVED
from admitperf.gateway.setup import Defer, Holding, Limits, PoolSetup, Scrape
from admitperf.policies import available, load

PREFIX = "ADMITPERF_"

Value = str | int | float | bool | None

_DEFERS = ("respond", "hold")
_ALIKE = 0.8
"""How much a name must look like one of ours to be a slip of the pen. Origin: a
policy's keywords are guarded by the same number."""


class Environment:
    """Variables read one by one; what is wrong with them is collected.

    Args:
        variables: the process's own, mostly.
        processes: front doors that share the work, by the host's own account.

    Attributes:
        faults: what is wrong, each beginning with the name of its variable.
        unknown: names that look like one of ours and are none, with the one meant.
        processes: front doors that share the work: as told, else as the host counts.
        peek_ms: how long the head of a stream is held back; 0 = not at all.
    """

    def __init__(self, variables: Mapping[str, str], processes: int = 1) -> None:
        self._variables = {
            name.removeprefix(PREFIX): text.strip()
            for name, text in variables.items()
            if name.startswith(PREFIX) and text.strip()
        }
        self.faults: list[str] = []
        self.unknown = dict(self._unknown())
        self.processes = self._whole("PROCESSES", processes)
        self.peek_ms = self._number("PEEK_MS", Limits().peek_ms, low=0.0)

    def pool(self, notes: Mapping[str, Value] | None = None) -> PoolSetup:
        """The one pool of this process.

        What bounds a process is divided by the number of processes, rounded up.

        Args:
            notes: what the host knows about what it serves, for the log's header.

        Raises:
            ConfigError: with every fault.
        """
        settings = self._settings()
        parameters = self._shares(settings)
        if notes:
            settings["notes"] = dict(notes)
        setup = PoolSetup(
            policy=self._variables.get("POLICY", ""),
            parameters=parameters,
            settings=settings,
            holding=self._holding(),
            scrape=Scrape(interval_s=self._number("INTERVAL_S", 0.25)),
        )
        if self.faults:
            raise ConfigError("the environment", self.faults)
        return setup

    def _shares(self, settings: dict[str, Any]) -> dict[str, object]:
        """The policy's parameters, of all the part that is this process's."""
        policy = self._policy()
        if policy is None:
            return {}
        known = policy.declared()
        texts = {one for one in known if known[one].type is str}
        whole: dict[str, object] = {**self._pairs("PARAMS", texts)}
        for reserved in sorted(RESERVED.intersection(whole)):
            self._fault("PARAMS", f"{reserved} is no parameter")
            del whole[reserved]
        if "blind_cap" in settings:
            whole["blind_cap"] = settings["blind_cap"]
        shares = policy.divided(whole, self.processes)
        if "blind_cap" in shares:
            settings["blind_cap"] = shares.pop("blind_cap")
        return shares

    def _policy(self) -> type[Policy] | None:
        name = self._variables.get("POLICY")
        if name is None:
            known = ", ".join(available())
            self._fault("POLICY", f"is not set; the policies are {known}")
            return None
        try:
            return load(name)
        except AdmitPerfError as error:
            self._fault("POLICY", str(error))
            return None

    def _settings(self) -> dict[str, Any]:
        """The reserved keywords that were told; the policy checks their values."""
        settings: dict[str, Any] = {
            name: plain(self._variables[name.upper()])
            for name in _SETTINGS
            if name.upper() in self._variables
        }
        for name in _TEXTS:
            if name.upper() in self._variables:
                settings[name] = self._variables[name.upper()]
        if "SLO" in self._variables:
            settings["slo"] = self._pairs("SLO")
        return settings

    def _holding(self) -> Holding:
        usual = Holding()
        defer = self._variables.get("DEFER", usual.defer)
        if defer not in _DEFERS:
            self._fault("DEFER", f"{defer!r} is not one of {', '.join(_DEFERS)}")
        return Holding(
            defer=cast("Defer", defer),
            most=self._whole("HOLD_MOST", usual.most),
            longest_s=self._number("HOLD_LONGEST_S", usual.longest_s),
        )

    def _pairs(self, name: str, texts: set[str] | None = None) -> dict[str, Value]:
        """`a=1,b=two`; a name in `texts` keeps its value as it is written."""
        pairs: dict[str, Value] = {}
        for part in self._variables.get(name, "").split(","):
            key, equals, text = (piece.strip() for piece in part.partition("="))
            if not part.strip():
                continue
            if not (key and equals and text):
                self._fault(name, f"{part.strip()!r} is not NAME=VALUE")
            elif key in pairs:
                self._fault(name, f"{key} is given twice")
            else:
                pairs[key] = text if texts and key in texts else plain(text)
        return pairs

    def _whole(self, name: str, usual: int) -> int:
        return int(self._as(int, "whole number", name, usual, low=1))

    def _number(self, name: str, usual: float, low: float = 0.001) -> float:
        return self._as(float, "number", name, usual, low)

    def _as(
        self,
        kind: Callable[[str], float],
        called: str,
        name: str,
        usual: float,
        low: float,
    ) -> float:
        text = self._variables.get(name)
        if text is None:
            return usual
        try:
            value = kind(text)
        except ValueError:
            value = low - 1
        if low <= value < float("inf"):
            return value
        self._fault(name, f"{text!r} is no {called} from {low:g} up")
        return usual

    def _fault(self, name: str, what: str) -> None:
        fault = f"{PREFIX}{name}: {what}"
        if fault not in self.faults:
            self.faults.append(fault)

    def _unknown(self) -> Iterator[tuple[str, str]]:
        """Not refused: an orchestrator puts in names of its own, from a service's."""
        for name in self._variables:
            if name not in KNOWN and (
                meant := get_close_matches(name, KNOWN, 1, _ALIKE)
            ):
                yield PREFIX + name, PREFIX + meant[0]


_TEXTS = ("log", "experiment", "run", "preset", "on_blind")
_SETTINGS = (
    "enforce",
    "blind_cap",
    "hold_last_s",
    "max_age_s",
    "max_defer_s",
    "log_max_mb",
    "log_keep",
)
KNOWN = (
    "POLICY",
    "PARAMS",
    "SLO",
    "DEFER",
    "HOLD_MOST",
    "HOLD_LONGEST_S",
    "INTERVAL_S",
    "PEEK_MS",
    "PROCESSES",
    *(name.upper() for name in (*_TEXTS, *_SETTINGS)),
)
"""Every variable, without its prefix."""
