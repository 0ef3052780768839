"""A run: everything one policy with one configuration decided, in every process."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from admitperf.reports.shape import Fields
from admitperf.reports.tally import Tally


@dataclass(frozen=True, slots=True)
class Run:
    """The lines of the processes that share a header's identity, added up.

    Attributes:
        ids: the `run` ids, one per process.
        tally: their lines.
    """

    ids: tuple[str, ...]
    tally: Tally

    @property
    def header(self) -> Fields:
        """The newest header; empty when the log holds none."""
        return self.tally.header or {}

    def said(self, name: str) -> Any:  # noqa: ANN401  as the host wrote it
        """A field of the header; None when it is absent or there is no header."""
        return self.header.get(name)

    @property
    def taxonomy(self) -> Fields:
        """The policy's taxonomy; empty when the log does not carry it."""
        return self.said("taxonomy") or {}


def runs(tallies: Iterable[Tally]) -> list[Run]:
    """Adds up the processes of each run; runs come in the order they began."""
    groups: dict[str, list[Tally]] = {}
    for tally in tallies:
        tally.close()
        groups.setdefault(_identity(tally), []).append(tally)
    made = [_added(group) for group in groups.values()]
    return sorted(made, key=lambda run: (_began_us(run.tally), run.ids))


def _identity(tally: Tally) -> str:
    """What makes two processes one run; a process without a header is its own."""
    header = tally.header
    if header is None:
        return f"id {tally.run}"
    names = ("policy", "class", "config", "params", "experiment", "name", "enforce")
    return json.dumps([header.get(name) for name in names], sort_keys=True)


def _began_us(tally: Tally) -> int:
    return tally.decisions.when.first_us or 0


def _added(group: list[Tally]) -> Run:
    group.sort(key=lambda tally: (_began_us(tally), tally.run))
    first, *others = group
    for other in others:
        first.absorb(other)
    return Run(tuple(tally.run for tally in group), first)
