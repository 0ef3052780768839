"""Which signals a page supplies, from which source, and why the others are missing."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admitperf.core.series import Series, canonical
from admitperf.core.signal import Signal
from admitperf.core.signals import ALL
from admitperf.core.source import Source
from admitperf.core.window import Window
from admitperf.engines.catalogue import ENGINES, engine_of
from admitperf.engines.engine import Engine
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.simulated import simulated_by
from admitperf.scrape.target import Sample, Target, counted_lines

BETWEEN_S = 1.0
"""Seconds between the two readings of an endpoint. Plain choice: several engine steps,
and a person waits for it."""

NEAREST = 3
# Counters and the parts of histograms: none is the value of a signal as it stands.
_NO_GAUGE = ("_bucket", "_count", "_created", "_sum", "_total")
_OLD_S = 1.5  # the least age limit of a policy: core.resolver.MIN_AGE_LIMIT_S

ELSEWHERE = {
    "request": "comes with each request: the host passes it to the policy",
    "ledger": "counted by the policy from its own calls, once outcomes are reported",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One signal on one target.

    Attributes:
        signal: which.
        value: in the signal's unit; None = not supplied.
        source: who supplies it, as a log would name it.
        parts: value by engine or replica, where there are several.
        age_s: how old the value was when it came in: since it was asked for, or since
            the time the page itself gives it; None = not known.
        refresh_s: how often the engine itself renews it; 0.0 = always fresh.
        skipped: series left out, with why.
        why: why it is not supplied.
        nearest: the names present that look most like it.
    """

    signal: Signal
    value: float | None = None
    source: str | None = None
    parts: Mapping[str, float] | None = None
    age_s: float | None = None
    refresh_s: float = 0.0
    skipped: tuple[str, ...] = ()
    why: str | None = None
    nearest: tuple[str, ...] = ()

    @property
    def add_source(self) -> str | None:
        """The line that would map the nearest name."""
        if not self.nearest:
            return None
        return f'{self.signal.name.upper()}.add_source("{self.nearest[0]}")'

    def to_dict(self) -> dict[str, Any]:
        """The line as plain values, ready for JSON."""
        return {
            **described(self.signal),
            "supplied": self.value is not None,
            "value": self.value,
            "age_s": self.age_s,
            "source": self.source,
            "parts": dict(self.parts or {}),
            "refresh_s": self.refresh_s if self.source else None,
            "skipped": list(self.skipped),
            "why": self.why,
            "tried": [] if self.source else [one.name for one in self.signal.sources],
            "nearest": list(self.nearest),
            "add_source": self.add_source,
        }


@dataclass(frozen=True, slots=True)
class Survey:
    """What one target says.

    Attributes:
        target: its name, without credentials.
        error: why it could not be read, or not to the end; None = it was.
        engine: whose page it is; None = not known.
        simulated_by: profile of the simulated engine it is of; None = the page does
            not say that it is simulated.
        series: how many it has.
        took_s: seconds the newest answer took; None for a file.
        window_s: seconds between two readings; None = there was one.
        lines: every signal, supplied or not; empty when nothing was read.
        warnings: what to be careful about.
    """

    target: str
    error: ScrapeError | None = None
    engine: Engine | None = None
    simulated_by: str | None = None
    series: int = 0
    took_s: float | None = None
    window_s: float | None = None
    lines: tuple[Line, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The survey as plain values, ready for JSON."""
        error = self.error
        told = error and {"kind": error.kind, "what": error.what, "fix": error.fix}
        return {
            "target": self.target,
            "read": error is None,
            "error": told,
            "engine": self.engine and self.engine.name,
            "simulated": self.simulated_by is not None,
            "profile": self.simulated_by or None,
            "series": self.series,
            "took_s": self.took_s,
            "window_s": self.window_s,
            "signals": [line.to_dict() for line in self.lines],
            "warnings": list(self.warnings),
        }


def described(signal: Signal) -> dict[str, Any]:
    """What a signal is, as plain values; an open end of its range is None."""
    return {
        "name": signal.name,
        "unit": signal.unit,
        "low": signal.low if math.isfinite(signal.low) else None,
        "high": signal.high if math.isfinite(signal.high) else None,
        "origin": signal.origin,
        "serves": signal.serves,
        "fails_when": signal.fails_when,
    }


def legal(signal: Signal) -> str:
    """A signal's range in a word, such as `0..1`."""
    if not math.isfinite(signal.low):
        return "any"
    high = f"{signal.high:g}" if math.isfinite(signal.high) else ""
    return f"{signal.low:g}..{high}"


def survey_all(
    targets: Sequence[Target],
    pause: Callable[[float], object],
    *,
    once: bool = False,
) -> list[Survey]:
    """Reads every target, an endpoint twice, and says what each supplies.

    Args:
        targets: what to read.
        pause: waits so many seconds.
        once: no second reading, so that nothing counted over time is known.
    """
    firsts = [_read(target) for target in targets]
    again = [
        not once and target.again and isinstance(first, Sample) and not first.drains
        for target, first in zip(targets, firsts, strict=True)
    ]
    if any(again):
        pause(BETWEEN_S)
    seconds = [
        _read(target) if twice else None
        for target, twice in zip(targets, again, strict=True)
    ]
    return [
        Survey(target.shown, error=first)
        if isinstance(first, ScrapeError)
        else survey(target.shown, first, second)
        for target, first, second in zip(targets, firsts, seconds, strict=True)
    ]


def _read(target: Target) -> Sample | ScrapeError:
    try:
        return target.read()
    except ScrapeError as error:
        return error


def survey(
    target: str,
    first: Sample,
    second: Sample | ScrapeError | None = None,
) -> Survey:
    """Says what one target supplies.

    Args:
        target: its name, without credentials.
        first: a page of it.
        second: a later one, or why there is none although one was asked for.
    """
    newest = second if isinstance(second, Sample) else first
    window, seconds = _window(first, newest)
    page = newest.page
    name = engine_of(page)
    engine = next((one for one in ENGINES if one.name == name), None)
    reader = _Reader(newest, window, seconds, engine)
    lines = tuple(reader.line(signal) for signal in ALL)
    error = second if isinstance(second, ScrapeError) else None
    return Survey(
        target=target,
        error=error or _shortcoming(target, newest, lines, engine),
        engine=engine,
        simulated_by=simulated_by(page),
        series=len(page),
        took_s=newest.took_s,
        window_s=seconds,
        lines=lines,
        warnings=(*_page_warnings(newest), *_line_warnings(lines, newest)),
    )


def _window(first: Sample, newest: Sample) -> tuple[Window, float | None]:
    if newest is first or first.asked_ns is None or newest.asked_ns is None:
        return Window.EMPTY, None
    seconds = (newest.asked_ns - first.asked_ns) / 1e9
    return Window.between(Series(first.page), Series(newest.page), seconds), seconds


def _shortcoming(
    target: str, sample: Sample, lines: tuple[Line, ...], engine: Engine | None
) -> ScrapeError | None:
    if engine is None and all(line.value is None for line in lines):
        count = len(sample.page)
        what = f"none of its {count} series is of a known engine: nothing can be read"
        fix = "is it the engine's port and path, with metrics switched on?"
        return ScrapeError("no_known_series", target, what, fix)
    if sample.cut:
        what = "ends too early, so that what is shown may lack engines or signals"
        return ScrapeError("cut", target, what)
    return None


def _page_warnings(sample: Sample) -> list[str]:
    warnings = []
    if sample.drains:
        warnings.append(
            "TensorRT-LLM hands each iteration's numbers out once: this reading took"
            " them from whoever else reads here, so there was no second one;"
            " /prometheus/metrics, where there is one, does not drain"
        )
    if sample.page.errors:
        bad = counted_lines(sample.page.errors)
        warnings.append(f"{bad} of the page cannot be read")
    return warnings


def _line_warnings(lines: tuple[Line, ...], sample: Sample) -> list[str]:
    warnings = [
        f"{line.signal.name} ({legal(line.signal)}): skipped {note}"
        for line in lines
        for note in line.skipped
    ]
    if sample.asked_ns is not None:
        warnings += [
            f"{line.signal.name}: {line.age_s:.1f} s old; no policy would trust it"
            for line in lines
            if line.age_s is not None and line.age_s > max(_OLD_S, line.refresh_s)
        ]
    return warnings


class _Reader:
    """Reads signals off one page."""

    def __init__(
        self,
        sample: Sample,
        window: Window,
        seconds: float | None,
        engine: Engine | None,
    ) -> None:
        self._sample = sample
        self._series = Series(sample.page)
        self._window = window
        self._seconds = seconds
        self._engine = engine
        # As if every number had risen: what this supplies needs a second page only.
        moved = {key: value * 2 + 1 for key, value in sample.page.items()}
        self._moving = Window.between(self._series, Series(moved), 1.0)

    def line(self, signal: Signal) -> Line:
        source, found, notes = signal.find(self._series, self._window)
        if source is None or found is None:
            return self._missing(signal, notes)
        return Line(
            signal,
            value=found.value,
            source=source.describe(signal.combine),
            parts=found.parts,
            age_s=self._age_s(source),
            refresh_s=source.refresh_s,
            skipped=notes,
        )

    def _missing(self, signal: Signal, notes: tuple[str, ...]) -> Line:
        why = self._counted_over_time(signal)
        if why is not None:
            return Line(signal, why=why, skipped=notes)
        if notes:
            return Line(signal, why="on the page, but not usable", skipped=notes)
        return Line(signal, why=self._why(signal), nearest=self._nearest(signal))

    def _nearest(self, signal: Signal) -> tuple[str, ...]:
        if signal.origin in ELSEWHERE:
            return ()
        found = self._series.nearest(signal.name, len(self._sample.page) or 1)
        return tuple(one for one in found if not one.endswith(_NO_GAUGE))[:NEAREST]

    def _counted_over_time(self, signal: Signal) -> str | None:
        source, _, _ = signal.find(self._series, self._moving)
        if source is None:
            return None
        if self._seconds is None:
            return f"needs two readings: {source.name}"
        return f"nothing counted in {self._seconds:.1f} s: {source.name}"

    def _why(self, signal: Signal) -> str:
        if signal.origin in ELSEWHERE:
            return ELSEWHERE[signal.origin]
        lacks = self._engine.lacks.get(signal) if self._engine else None
        if self._engine and lacks:
            return f"{self._engine.title}: {lacks}"
        return (
            f"nothing on the page is a known source of it ({len(signal.sources)} tried)"
        )

    def _age_s(self, source: Source) -> float | None:
        """By the samples' own times where they carry one, else by when we asked."""
        stamps = self._sample.page.timestamps
        name = canonical(source.name)
        own = [
            stamp
            for key, stamp in stamps.items()
            if canonical(key.partition("{")[0]) == name
        ]
        if own:
            return max(0.0, self._sample.wall_s - min(own))
        return self._sample.took_s
