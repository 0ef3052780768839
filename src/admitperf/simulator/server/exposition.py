"""Metrics as the text a scraper reads."""

from collections.abc import Iterable, Mapping, Sequence

from admitperf.simulator.engine.tally import Histogram

Labels = Mapping[str, str]

SIMULATED = "admitperf_simulated_info"
"""The one family here that no real engine has: who reads the page can say so."""


class Exposition:
    """A page in the making.

    Args:
        labels: every series carries these.
        created_s: since when counters count, in seconds since the Unix epoch; None =
            the page does not say.
        blank: gauges read NaN.
    """

    def __init__(
        self, labels: Labels, created_s: float | None = None, *, blank: bool = False
    ) -> None:
        self._labels = labels
        self._created_s = created_s
        self._blank = blank
        self._lines: list[str] = []

    def gauge(self, name: str, said: str, value: float) -> None:
        """One number that goes up and down."""
        self.gauges(name, said, [({}, value)])

    def gauges(
        self, name: str, said: str, series: Iterable[tuple[Labels, float]]
    ) -> None:
        """The same with labels of its own."""
        self._head(name, said, "gauge")
        for labels, value in series:
            self._sample(name, labels, float("nan") if self._blank else value)

    def info(self, name: str, said: str, labels: Labels) -> None:
        """Facts in labels; the number says nothing."""
        self._head(name, said, "gauge")
        self._sample(name, labels, 1.0)

    def counter(self, name: str, said: str, value: float) -> None:
        """One number that only grows."""
        self.counters(name, said, [({}, value)])

    def counters(
        self, name: str, said: str, series: Sequence[tuple[Labels, float]]
    ) -> None:
        """The same with labels of its own."""
        self._head(name, said, "counter")
        for labels, value in series:
            self._sample(name, labels, value)
        bare = name.removesuffix("_total")
        self._creation(bare, said, [labels for labels, _ in series])

    def histogram(
        self, name: str, said: str, values: Histogram, labels: Labels | None = None
    ) -> None:
        """Values counted by size."""
        own = labels or {}
        self._head(name, said, "histogram")
        for bound, count in zip(values.bounds, values.up_to(), strict=True):
            self._sample(f"{name}_bucket", {**own, "le": repr(float(bound))}, count)
        self._sample(f"{name}_bucket", {**own, "le": "+Inf"}, values.count)
        self._sample(f"{name}_count", own, values.count)
        self._sample(f"{name}_sum", own, values.sum)
        self._creation(name, said, [own])

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines) + "\n"

    def _creation(self, name: str, said: str, series: Iterable[Labels]) -> None:
        if self._created_s is None:
            return
        self._head(f"{name}_created", said, "gauge")
        for labels in series:
            self._sample(f"{name}_created", labels, self._created_s)

    def _head(self, name: str, said: str, kind: str) -> None:
        self._lines += (f"# HELP {name} {said}", f"# TYPE {name} {kind}")

    def _sample(self, name: str, labels: Labels, value: float) -> None:
        every = {**self._labels, **labels}
        inner = ",".join(f'{k}="{_escaped(v)}"' for k, v in sorted(every.items()))
        number = "NaN" if value != value else repr(float(value))  # noqa: PLR0124
        self._lines.append(
            f"{name}{{{inner}}} {number}" if inner else f"{name} {number}"
        )


def stamp(profile: str) -> str:
    """The lines by which a page says that it is of no real engine.

    Args:
        profile: name of the profile that is simulated.
    """
    out = Exposition({})
    out.info(SIMULATED, "This engine is simulated, by a profile.", {"profile": profile})
    return out.text()


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
