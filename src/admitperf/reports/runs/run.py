"""A run: everything one policy with one configuration decided, in every process."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from admitperf.reports.files.shape import Fields
from admitperf.reports.runs.log import Log
from admitperf.reports.runs.store import Store

Basis = Literal["requests", "samples"]


@dataclass(frozen=True, slots=True)
class Run:
    """The processes that share a header's identity.

    Attributes:
        number: what its rows carry as `run_n` in the views `decisions` and `outcomes`.
        ids: the `run` ids, one per process.
        header: the newest header of the first process; empty when the log holds none.
            `notes` is a mapping when the run's folder has a manifest.
        paths: the files its lines came from, in order of name.
    """

    number: int
    ids: tuple[str, ...]
    header: Fields
    paths: tuple[str, ...]

    def said(self, name: str) -> Any:  # noqa: ANN401  as the host wrote it
        """A field of the header; None when it is absent or there is no header."""
        return self.header.get(name)

    @property
    def taxonomy(self) -> Fields:
        """The policy's taxonomy; empty when the log does not carry it."""
        return self.said("taxonomy") or {}

    @property
    def basis(self) -> Basis:
        """What its decisions were made on."""
        return "samples" if self.said("basis") == "samples" else "requests"


@dataclass(slots=True)
class _Process:
    """One `run` id: one policy object in one process."""

    id: str
    began_us: int = 0
    header: Fields | None = None
    files: set[int] = field(default_factory=set)

    @property
    def order(self) -> tuple[int, str, str]:
        """When it began, then its policy's name, since ids are random."""
        return self.began_us, (self.header or {}).get("policy", ""), self.id

    @property
    def identity(self) -> str:
        """What makes two processes one run; one without a header is its own."""
        if self.header is None:
            return f"id {self.id}"
        return json.dumps([self.header.get(name) for name in _SAME], sort_keys=True)


_SAME = ("policy", "class", "config", "params", "experiment", "name", "enforce")


def runs(log: Log) -> list[Run]:
    """The runs of a log, in the order they began.

    Makes the table `process` and the views `decisions` and `outcomes`.
    """
    groups: dict[str, list[_Process]] = {}
    for process in _processes(log.store):
        groups.setdefault(process.identity, []).append(process)
    ordered = sorted(
        (sorted(group, key=lambda one: one.order) for group in groups.values()),
        key=lambda group: [one.order for one in group],
    )
    _number(log.store, ordered)
    return [_run(log, number, group) for number, group in enumerate(ordered)]


def _processes(store: Store) -> Iterable[_Process]:
    found: dict[str, _Process] = {}
    for table in ("decision", "other"):
        for run, file in store.rows(f"SELECT DISTINCT run, file FROM {table}"):
            found.setdefault(run, _Process(run)).files.add(file)
    for run, t_us in store.rows("SELECT run, min(t_us) FROM decision GROUP BY run"):
        found[run].began_us = t_us or 0
    for run, line in store.rows(
        """SELECT run, arg_max(line, {'t_us': t_us, 'row': rowid})
        FROM other WHERE k = 'run' GROUP BY run"""
    ):
        found[run].header = json.loads(line)
    return found.values()


def _number(store: Store, groups: list[list[_Process]]) -> None:
    """Lets every row say which run it belongs to."""
    members = [(number, one) for number, group in enumerate(groups) for one in group]
    store.table(
        "process",
        {
            "run VARCHAR": [process.id for _, process in members],
            "process_n INTEGER": list(range(len(members))),
            "run_n INTEGER": [number for number, _ in members],
        },
    )
    store.rows(
        """CREATE OR REPLACE VIEW decisions AS
        SELECT run_n, process_n, decision.rowid AS row, decision.*
        FROM decision JOIN process USING (run)"""
    )
    store.rows(
        """CREATE OR REPLACE VIEW outcomes AS
        SELECT run_n, process_n, outcome.* FROM outcome JOIN process USING (run)"""
    )


def _run(log: Log, number: int, group: list[_Process]) -> Run:
    files = sorted({file for process in group for file in process.files})
    header = group[0].header or {}
    manifests = [log.sources[file].manifest for file in files]
    return Run(
        number,
        tuple(process.id for process in group),
        _with_manifest(header, [one for one in manifests if one]),
        tuple(sorted(log.sources[file].path for file in files)),
    )


def _with_manifest(header: Fields, manifests: list[Mapping[str, Any]]) -> Fields:
    """The header with what its folder's manifest adds to its notes.

    A manifest with `notes` of its own has them there, and beside them much that is no
    note; one without is all notes.
    """
    if not header or not manifests:
        return header
    notes, stated = header.get("notes"), dict(manifests[0])
    if isinstance(stated.get("notes"), dict):
        beside = {name: stated[name] for name in _BESIDE if name in stated}
        stated = stated["notes"] | beside
    said = {"notes": notes} if isinstance(notes, str) else notes or {}
    return header | {"notes": stated | said}


_BESIDE = ("load", "load_reached", "plan", "calls_offered", "simulated")
