"""Advice on a log: the questions, the shapes that follow, and what could not fire."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from admitperf.core.declared import REQUIRED
from admitperf.core.errors import BadPlugin, PolicyNotFound
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.lab.advice.candidates import COMMON, Candidate
from admitperf.lab.advice.shape import Shape, shapes, why_none
from admitperf.lab.advice.trial import (
    COULD_NOT,
    KEPT_LOW,
    Setting,
    Trial,
    never,
    not_tried,
    set_up,
    trial,
)
from admitperf.policies import load
from admitperf.reports.pages import stated
from admitperf.reports.questions.asked import questions
from admitperf.reports.questions.question import Question
from admitperf.reports.questions.seen import Looked, Seen, looked
from admitperf.reports.ratio import Share
from admitperf.reports.runs.log import Files
from admitperf.reports.runs.patterns import Rows
from admitperf.reports.runs.slo import Slo

SCHEMA = 1
"""Number of the JSON document's format, `docs/reference/advise.md`."""


@dataclass(frozen=True, slots=True)
class Need:
    """A signal or a fact that a policy requires, and on how many decisions it is."""

    name: str
    carried: Share


@dataclass(frozen=True, slots=True)
class Tried:
    """A policy, what it needs, and whether it could have fired.

    Attributes:
        policy: its name.
        missing: why it cannot be loaded here; None = it can.
        defaults: its parameters where nothing is given, by name; one that must be given
            is not among them.
        needs: what it requires, in its order.
        trial: whether it could have fired at its defaults.
    """

    policy: str
    missing: str | None
    defaults: dict[str, object]
    needs: tuple[Need, ...]
    trial: Trial


@dataclass(frozen=True, slots=True)
class Also:
    """Another policy that was put before the same samples, and what came of it."""

    policy: str
    finding: str
    says: str


@dataclass(frozen=True, slots=True)
class RunAdvice:
    """Advice on one run.

    Attributes:
        seen: the run.
        questions: the seven, answered.
        shapes: what follows, the main one first; empty when nothing does.
        why_none: why nothing follows; None = something does.
        tried: the candidates of the shapes, then what is commonly tried.
        also: the other runs over the same samples, as `watch` leaves them.
    """

    seen: Seen
    questions: tuple[Question, ...]
    shapes: tuple[Shape, ...]
    why_none: str | None
    tried: tuple[Tried, ...]
    also: tuple[Also, ...] = ()

    @property
    def inert(self) -> tuple[Tried, ...]:
        """Those that could not have fired."""
        return tuple(one for one in self.tried if one.trial.word == COULD_NOT)

    @property
    def kept_low(self) -> tuple[Tried, ...]:
        """Those that did not fire, on signals that the log's own policy kept low."""
        return tuple(one for one in self.tried if one.trial.word == KEPT_LOW)

    def policy(self, name: str) -> Tried:
        """What became of one of them."""
        return next(one for one in self.tried if one.policy == name)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        run = self.seen.run
        return {
            "run": list(run.ids),
            "policy": run.header.get("policy"),
            "basis": run.basis,
            "decisions": self.seen.offered,
            "simulated": stated.simulated(run),
            "oracle": stated.oracle(run),
            "questions": [asdict(one) for one in self.questions],
            "shapes": [asdict(one) for one in self.shapes],
            "why_none": self.why_none,
            "policies": [asdict(one) for one in self.tried],
            "also": [asdict(one) for one in self.also],
            "fitted": False,
        }


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on every run of some logs."""

    runs: tuple[RunAdvice, ...]
    files: Files

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "schema": SCHEMA,
            "runs": [run.to_dict() for run in self.runs],
            "files": asdict(self.files),
        }


def advise(
    paths: Iterable[str],
    slo: Slo | None = None,
    *,
    warmup: str | None = None,
    memory_limit: str | None = None,
) -> Advice:
    """Reads logs and says what follows from each run in them.

    Takes and raises what `reports.report.report` does.
    """
    with looked(paths, slo, warmup=warmup, memory_limit=memory_limit) as found:
        runs = tuple(_on(found, group) for group in _groups(found.seen))
        return Advice(runs, found.files)


def _groups(seen: Sequence[Seen]) -> list[list[int]]:
    """The numbers of runs that say the same; what is told of comes first.

    `watch` puts every policy before the same samples: a run each, of equal signals.
    """
    groups: dict[object, list[int]] = {}
    for number, one in enumerate(seen):
        same = one.run.paths if one.samples else number
        groups.setdefault(same, []).append(number)
    return [
        sorted(group, key=lambda number: not _baseline(seen[number]))
        for group in groups.values()
    ]


def _baseline(seen: Seen) -> bool:
    """Whether it is the run that has every signal."""
    taxonomy = seen.run.header.get("taxonomy")
    return isinstance(taxonomy, dict) and taxonomy.get("baseline") is True


def _also(seen: Seen) -> Also:
    finding = seen.run.finding
    policy = str(seen.run.header.get("policy"))
    return Also(policy, finding.word, finding.says[0])


def _on(found: Looked, group: Sequence[int]) -> RunAdvice:
    number, *others = group
    seen = found.seen[number]
    followed = shapes(seen)
    columns = {
        name: f"s{place}"
        for place, name in enumerate(found.log.names.signals)
        if seen.signal(name).n
    }
    rows = Rows(found.log.store, number, columns)
    return RunAdvice(
        seen,
        questions(seen),
        followed,
        None if followed else why_none(seen),
        tuple(_tried(one, seen, rows) for one in _all(followed)),
        tuple(_also(found.seen[one]) for one in others),
    )


def _all(followed: Iterable[Shape]) -> Iterator[Candidate]:
    """Each policy once, those that follow first."""
    named = {one.name: one for shape in followed for one in shape.candidates}
    yield from named.values()
    yield from (one for one in COMMON if one.name not in named)


def _tried(candidate: Candidate, seen: Seen, rows: Rows) -> Tried:
    try:
        cls = load(candidate.name)
    except (PolicyNotFound, BadPlugin) as error:
        missing = not_tried("it is not installed here")
        return Tried(candidate.name, str(error), {}, (), missing)
    policy = set_up(cls)
    defaults = {
        name: one.default
        for name, one in cls.declared().items()
        if one.default is not REQUIRED
    }
    requires = cls.requires if isinstance(policy, str) else policy.requires
    needs = tuple(_need(one, seen) for one in requires)
    found = _trial(candidate, policy, seen, rows)
    return Tried(candidate.name, None, defaults, needs, found)


def _trial(candidate: Candidate, policy: Policy | str, seen: Seen, rows: Rows) -> Trial:
    if isinstance(policy, str):
        return not_tried(policy)
    fact = candidate.rests_on
    if fact and seen.offered and not seen.samples and not seen.fact(fact).n:
        return Trial(never(seen.offered, seen.made), f"no request carried {fact}")
    return trial(policy, rows, Setting(seen.made, seen.samples, seen.shielded))


def _need(one: Signal | str, seen: Seen) -> Need:
    if isinstance(one, str):
        return Need(one, seen.fact(one))
    return Need(one.name, Share.part(seen.signal(one.name).n, seen.offered))
