"""Where a signal's value comes from: one name in a page, or a formula over it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from admitperf.core.found import Found
from admitperf.core.series import Series, Where
from admitperf.core.window import Window

Formula: TypeAlias = Callable[[Series, Window], Found | float | None]


@dataclass(frozen=True, slots=True)
class Source:
    """One way to get a signal.

    Attributes:
        name: metric name in any spelling; with a formula only its label.
        combine: sum, max, min or mean over engines; None = the signal's own way.
        scale: factor to the signal's unit (0.01 for a percentage).
        where: (label, allowed values); see `Series.combine`.
        unless: labels that disqualify the source.
        refresh_s: seconds between the engine's own refreshes; 0.0 = always fresh.
        engine: whose source this is; empty for a user's own.
        running_only: the value counts the memory of running requests only, so a high
            value with nothing running contradicts itself.
        formula: derives the value from the page and the window of counters.
    """

    name: str
    combine: str | None = None
    scale: float = 1.0
    where: Where = ()
    unless: tuple[str, ...] = ()
    refresh_s: float = 0.0
    engine: str = ""
    running_only: bool = False
    formula: Formula | None = None

    @classmethod
    def of(
        cls, source: "str | Source | Callable[[Mapping[str, Any]], object]"
    ) -> "Source":
        """A source from what users write: a name, a function of the mapping, a source.

        Raises:
            TypeError: it is none of the three.
        """
        if isinstance(source, Source):
            return source
        if isinstance(source, str):
            return cls(source)
        if not callable(source):
            msg = f"a source is a name, a function or a Source, not {source!r}"
            raise TypeError(msg)
        called = source
        label = getattr(called, "__qualname__", None) or repr(called)
        return cls(label, formula=lambda series, _: called(series.raw))  # type: ignore[arg-type,return-value]

    def describe(self, combine: str) -> str:
        """How a record names this source, e.g. `vllm_kv_cache_usage_perc max`."""
        return self.name if self.formula else f"{self.name} {self.combine or combine}"

    def read(
        self, series: Series, window: Window, combine: str, low: float, high: float
    ) -> Found | None:
        """What this source supplies; None when it supplies nothing. Never raises."""
        if self.formula is None:
            return series.combine(
                self.name,
                self.combine or combine,
                low=low,
                high=high,
                scale=self.scale,
                where=self.where,
                unless=self.unless,
            )
        try:
            return _checked(self.name, self.formula(series, window), low, high)
        except Exception:  # noqa: BLE001  a source that raises counts as not supplied
            return None


def _checked(name: str, found: Found | object, low: float, high: float) -> Found | None:
    if not isinstance(found, Found):
        if found is None or isinstance(found, (bool, str)):
            return None
        found = Found(float(found))  # type: ignore[arg-type]
    if found.value is None or (
        low <= found.value <= high and math.isfinite(found.value)
    ):
        return found
    return Found(None, {}, (*found.skipped, f"{name} = {found.value:g}"))
