"""What `first_of`, `all_of` and `any_of` have in common."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.reasons import Reason, table
from admitperf.core.signal import Signal
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.compose.part_list import divided, parts_of, spelt
from admitperf.policies.parts.compose.shape import DEPTH_MOST, PARTS, PARTS_MOST
from admitperf.policies.parts.compose.written import spelt as written

_TAKEN = "_taken"
"""What a part has that belongs to a whole: its name and its accounts are that one's."""


class Composition(Policy):
    """One policy made of several.

    The parts see what the whole sees, on its clock and with its ledger, and have no
    settings of their own. Only what the whole admits is charged, and each part is told
    the end of what it was charged for.

    Raises:
        ConfigError: with every fault of every part.
    """

    signal_structure = "dual-gate"

    policies: Annotated[
        str | Sequence[object],
        Param(
            "its parts, in order: name:param=value,param=value, split by semicolons",
            origin="only the host knows which rules it wants together",
        ),
    ]

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        where = f"policy {self.name}"
        try:
            self.parts = tuple(parts_of(self.policies))
        except ConfigError as error:
            raise ConfigError(where, error.faults) from None
        faults = [*_misshapen(self), *_clashing(self.parts)]
        if faults:
            raise ConfigError(where, [f"policies: {fault}" for fault in faults])
        self.parameters = {"policies": spelt(self.parts)}
        self.own_reasons = _reasons(self.parts)
        self._reasons = table(self.settings.preset, self.own_reasons)
        self.require(*_required(self.parts))
        _tell_apart(self)
        self._adopted_by(self)

    @classmethod
    def divided(cls, parameters: Mapping[str, object], count: int) -> dict[str, object]:
        """The parameters of one process of several: those of each part are divided."""
        made = super().divided(parameters, count)
        if count > 1 and "policies" in made:
            made["policies"] = divided(made["policies"], count)
        return made

    def ask_part(self, metrics: Snapshot, number: int) -> Decision:
        """What one part says; a gate with its name records whether it refuses.

        Args:
            number: its place, from 0.
        """
        part, before = self.parts[number], len(metrics.gates)
        d = part.decide(metrics)
        no = refuses(d)
        if no and not isinstance(part, Composition):
            d.rests_on = tuple(metrics.gates[before:])
        metrics.gate(self._labels[number], float(no), 1.0)
        return d

    def refusals(self, metrics: Snapshot) -> list[Decision]:
        """Asks every part, so that all are on the record; those that refuse."""
        answers = (self.ask_part(metrics, n) for n in range(len(self.parts)))
        return [d for d in answers if refuses(d)]

    def wait_ms(self, metrics: Snapshot, d: Decision) -> float:
        """The wait that a part's refusal would be answered with, in milliseconds."""
        return self._whole.wait_told_ms(metrics, d)

    def decided(self, metrics: Snapshot, d: Decision) -> object:
        """Tells every part the final answer; what each charges, in their order."""
        charges = tuple(self._charged(part, metrics, d) for part in self.parts)
        return charges if any(one is not None for one in charges) else None

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Tells every part, with its own charge."""
        for number, part in enumerate(self.parts):
            own = outcome
            if outcome is not None and isinstance(outcome.charge, tuple):
                own = replace(outcome, charge=outcome.charge[number])
            try:
                part.observe(metrics, own)
            except Exception as error:  # noqa: BLE001  the others are told all the same
                self._hook_failed("observe", error)

    def task(self, metrics: Snapshot) -> Callable[[], object] | None:
        """The work of those parts that have any, one after the other."""
        works = {}
        for part in self.parts:
            try:
                work = part.task(metrics)
            except Exception as error:  # noqa: BLE001  the others are asked all the same
                self._hook_failed("task", error)
            else:
                if work is not None:
                    works[part] = work
        return partial(_worked, works) if works else None

    def task_done(self, metrics: Snapshot, result: object) -> None:
        """Hands each part what came of its own."""
        results = result if isinstance(result, dict) else {}  # it is `_worked`'s
        for part, one in results.items():
            if isinstance(one, Exception):
                self._hook_failed("task", one)
                continue
            try:
                part.task_done(metrics, one)
            except Exception as error:  # noqa: BLE001  the others are told all the same
                self._hook_failed("task", error)

    def _charged(self, part: Policy, metrics: Snapshot, d: Decision) -> object:
        try:
            return part.decided(metrics, d)
        except Exception as error:  # noqa: BLE001  what the others charge must be held
            self._hook_failed("decided", error)
            return None

    def _adopted_by(self, whole: Policy) -> None:
        """Only the outermost one sees readings, and so knows how fast they drain."""
        self._whole = whole
        self._labels = [
            f"{self.name}: {number} {type(part).name}"
            for number, part in enumerate(self.parts, 1)
        ]
        for part in self.parts:
            if isinstance(part, Composition):
                part._adopted_by(whole)  # noqa: SLF001  the same class


def _worked(
    works: Mapping[Policy, Callable[[], object]],
) -> dict[Policy, object]:
    """What came of each part's work; of one that failed, its error."""
    results: dict[Policy, object] = {}
    for part, work in works.items():
        try:
            results[part] = work()
        except Exception as error:  # noqa: BLE001  said when it is handed in
            results[part] = error
    return results


def refuses(d: Decision) -> bool:
    """Whether a part says no."""
    return d.verdict is not Verdict.ADMIT


def spelt_short(part: Policy) -> str:
    """The text that makes the same part, with the parameters that it was given."""
    given = {n: value for n, value in part.parameters.items() if n in part.given}
    if isinstance(part, Composition):
        given = {PARTS: "; ".join(map(spelt_short, part.parts))}
    return written(type(part).name, given, part.declared())


def _all_of(parts: Sequence[Policy]) -> Iterator[Policy]:
    """The parts and theirs."""
    for part in parts:
        yield part
        if isinstance(part, Composition):
            yield from _all_of(part.parts)


def _depth(whole: Composition) -> int:
    inner = [one for one in whole.parts if isinstance(one, Composition)]
    return 1 + max((_depth(one) for one in inner), default=0)


def _misshapen(whole: Composition) -> Iterator[str]:
    parts = list(_all_of(whole.parts))
    if not parts:
        yield "there is none"
    if len(parts) > PARTS_MOST:
        yield f"{len(parts)} are more than {PARTS_MOST}"
    if _depth(whole) > DEPTH_MOST:
        yield f"they are nested more than {DEPTH_MOST} deep"
    if len(set(map(id, parts))) < len(parts):
        yield "one object stands there twice; make two"
    for part in whole.parts:
        if _TAKEN in vars(part):
            yield f"{part.name}: this one is a part of another; make a new one"
        elif part._seq:  # noqa: SLF001  it has accounts, and requests, of its own
            yield f"{part.name}: this one has decided by itself; make a new one"


def _own(part: Policy) -> Mapping[str, Reason]:
    return part.own_reasons if isinstance(part, Composition) else part.reasons


def _reasons(parts: Sequence[Policy]) -> dict[str, Reason]:
    return {name: one for part in parts for name, one in _own(part).items()}


def _clashing(parts: Sequence[Policy]) -> Iterator[str]:
    """Reasons of one name that differ: a status must follow from the reason alone."""
    known = _reasons(parts)
    for part in parts:
        for name, one in _own(part).items():
            if one != known[name]:
                yield f"{part.name}: another part means something else by {name}"


def _required(parts: Sequence[Policy]) -> list[Signal | str]:
    """What any of them requires, each once: signals, then facts."""
    asked = dict.fromkeys(thing for part in parts for thing in part.requires)
    return sorted(asked, key=lambda thing: isinstance(thing, str))


def _tell_apart(whole: Composition) -> None:
    """Gives parts of one class names of their own, and so accounts of their own."""
    every = [type(whole).name, *(type(one).name for one in _all_of(whole.parts))]
    met = Counter([type(whole).name])
    for one in _all_of(whole.parts):
        name = type(one).name
        met[name] += 1
        vars(one)[_TAKEN] = True
        if every.count(name) > 1:
            vars(one)["name"] = f"{name} {met[name]}"
