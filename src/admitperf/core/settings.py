"""The keywords every policy takes besides its parameters."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.notes import Notes
from admitperf.core.notes import faults as note_faults
from admitperf.core.reasons import PRESETS
from admitperf.core.signal import Signal
from admitperf.core.sink import Sink
from admitperf.core.slo import faults as slo_faults
from admitperf.core.source import Source

POSTURES = ("degrade", "admit", "defer", "reject", "hold_last")
_HIGHEST = 1e9
"""Largest number a setting may be: thirty years in seconds; infinity is no time."""

RAW_MODES = ("auto", "inline", "reference")

AnySource = str | Source | Callable[[Mapping[str, Any]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Reserved keywords of a policy.

    Attributes:
        log: path of the decision log, or an object that takes its lines; None = the
            path that follows from `experiment` and `run`, or no log.
        experiment, run: identity in the log; grouping is declared, never inferred
            from a folder.
        notes: what the log cannot know by itself, as text or by name; see
            docs/reference/host.md for the names a report understands.
        provenance: where a parameter's value comes from: `{"threshold": "fitted"}`.
        enforce: share of traffic governed, 0.0 (declared shadow) to 1.0.
        slo: `{"ttft_ms": 1500, "stall_ms": 500}`, or one such mapping per class.
        sources: sources asked before a signal's own, by signal.
        on_blind: the answer when the policy cannot see: degrade, admit, defer, reject
            or hold_last.
        blind_cap: own open requests that `degrade` allows; None = the 95th percentile
            seen over at least 100 decisions on good readings.
        hold_last_s: seconds `hold_last` trusts the last good reading.
        max_age_s: age limit of a reading in seconds; None = max(1.5 s, 3 scrape
            intervals, the engine's own refresh).
        max_defer_s: longest wait sent, in seconds; beyond it a defer is a reject.
        preset: how reasons become codes: default, openai, anthropic or mesh-safe.
        raw: raw metrics in the log: auto (inline up to 32 entries), inline, reference.
        log_max_mb: size in megabytes at which the log is rotated; None = never.
        log_keep: rotated files kept.
        clock: source of time; for tests and replays.
        reports_outcomes: the host's word that it calls `outcome` for every request.
    """

    log: Any = None
    experiment: str | None = None
    run: str | None = None
    notes: Notes | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    enforce: float = 1.0
    slo: Mapping[str, object] | None = None
    sources: Mapping[Signal, Iterable[AnySource]] = field(default_factory=dict)
    on_blind: str = "degrade"
    blind_cap: int | None = None
    hold_last_s: float = 5.0
    max_age_s: float | None = None
    max_defer_s: float = 60.0
    preset: str = "default"
    raw: str = "auto"
    log_max_mb: float | None = None
    log_keep: int = 5
    clock: Clock = SYSTEM
    reports_outcomes: bool = False

    def faults(self) -> list[str]:
        """Everything that is wrong, in words."""
        return [
            *_one_of("on_blind", self.on_blind, POSTURES),
            *_one_of("raw", self.raw, RAW_MODES),
            *_one_of("preset", self.preset, PRESETS),
            *_number("enforce", self.enforce, low=0.0, high=1.0),
            *_number("hold_last_s", self.hold_last_s, low=0.0),
            *_number("max_defer_s", self.max_defer_s, low=1.0),
            *_whole("log_keep", self.log_keep),
            *(
                _number("max_age_s", self.max_age_s, low=0.0)
                if self.max_age_s is not None
                else ()
            ),
            *(
                _whole("blind_cap", self.blind_cap)
                if self.blind_cap is not None
                else ()
            ),
            *(
                _number("log_max_mb", self.log_max_mb, low=0.001)
                if self.log_max_mb is not None
                else ()
            ),
            *_name("experiment", self.experiment),
            *_name("run", self.run),
            *note_faults(self.notes),
            *self._log_faults(),
            *self._provenance_faults(),
            *slo_faults(self.slo),
            *self._source_faults(),
        ]

    def source_table(self) -> dict[Signal, tuple[Source, ...]]:
        """The user's sources by signal."""
        return {
            s: tuple(Source.of(one) for one in many) for s, many in self.sources.items()
        }

    def path(self, policy: str) -> Any:  # noqa: ANN401  whatever `log` was
        """Where the log goes: `log`, else what experiment and run say, else None."""
        if self.log is not None or not (self.experiment and self.run):
            return self.log
        return f"experiments/{self.experiment}/{policy}/{self.run}.jsonl"

    def _log_faults(self) -> list[str]:
        if self.log is None or isinstance(self.log, (str, os.PathLike, Sink)):
            return []
        return [f"log = {self.log!r} is no path and takes no lines"]

    def _provenance_faults(self) -> list[str]:
        if isinstance(self.provenance, Mapping):
            return []
        return [f"provenance = {self.provenance!r} is no mapping"]

    def _source_faults(self) -> list[str]:
        try:
            wrong = [key for key in self.source_table() if not isinstance(key, Signal)]
        except (TypeError, AttributeError) as error:
            return [f"sources: {error}"]
        single = [key for key, many in self.sources.items() if isinstance(many, str)]
        return [
            *(f"sources: {key!r} is no signal" for key in wrong),
            *(f"sources: {key!r} needs a list of sources, not one" for key in single),
        ]


RESERVED = frozenset(f.name for f in fields(Settings))
"""Names no policy may use for a parameter."""


def _one_of(name: str, value: object, known: tuple[str, ...]) -> list[str]:
    return (
        []
        if value in known
        else [f"{name} = {value!r} is not one of {', '.join(known)}"]
    )


def _number(
    name: str, value: object, *, low: float, high: float = _HIGHEST
) -> list[str]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and low <= value <= high:  # type: ignore[operator]
        return []
    top = f" to {high:g}" if high != _HIGHEST else " up"
    return [f"{name} = {value!r} is no number from {low:g}{top}"]


def _whole(name: str, value: object) -> list[str]:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return [] if whole else [f"{name} = {value!r} is no whole number from 0 up"]


def _name(name: str, value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str) or not value or value.startswith("."):
        return [f"{name} = {value!r} is no name"]
    if any(mark in value for mark in ("/", os.sep, "\0")):
        return [f"{name} = {value!r} must not contain a path separator"]
    return []
