"""What came of one planned call, and the line that says so."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Literal, get_args

from admitperf.core.errors import LogError

Ended = Literal[
    "answered", "cancelled", "refused", "failed", "never_sent", "unfinished"
]
"""How a call ended: with a whole answer; closed by its caller, as planned or out of
patience; refused by the policy in the end; otherwise without an answer; not asked at
all; still under way when the run was ended."""


@dataclass(slots=True, kw_only=True)
class CallRecord:
    """One call that the plan offered, whatever became of it.

    Attributes:
        id: of the call, which all its attempts share.
        session: whose it is.
        tenant: who pays; None = nobody is told apart.
        slo_class: whose deadlines it has; empty = there is only one class.
        kind: what it is for; empty = nothing is told apart.
        place: of the call in its session, from 0.
        due_s: when its first attempt was due, in seconds from the start of the run;
            None = it was never sent.
        input_tokens: prompt, as planned.
        output_tokens: answer as planned; of a planned hang-up, what is taken of it.
        new_tokens: of the prompt, those that the session had not sent before.
        begun_s: when its session began, in seconds from the start of the run.
        attempts: that were answered in some way.
        refusals: of them, those that the policy refused.
        ended: how.
        status: HTTP status of the last attempt; 0 = none was seen.
        reason: the policy's, if the last attempt was refused.
        error: what was wrong with the last attempt.
        ttft_ms: from `due_s` to the first token of the attempt that counts, waits and
            refusals included; None = it had none.
        last_ttft_ms: the same from that attempt's own arrival.
        max_gap_ms: longest time between two tokens; None = it had fewer than two.
        e2e_ms: from `due_s` to the end of the answer; None = it has none.
        refused_ms: from `due_s` to the last refusal; None = it did not end so.
        got_tokens: of answers, received over all attempts.
        computed_tokens: prompt tokens that were not cached, and tokens of answers, over
            all attempts that the engine began. Where the engine does not say what was
            cached it is taken to have cached all but `new_tokens`.
        late_ms: how late the harness sent an attempt, at most; 0 in virtual time.
        scored: its session began in the window that is scored.
    """

    id: str
    session: str
    tenant: str | None
    slo_class: str
    kind: str
    place: int
    due_s: float | None
    input_tokens: int
    output_tokens: int
    new_tokens: int
    begun_s: float = 0.0
    attempts: int = 0
    refusals: int = 0
    ended: Ended = "never_sent"
    status: int = 0
    reason: str | None = None
    error: str | None = None
    ttft_ms: float | None = None
    last_ttft_ms: float | None = None
    max_gap_ms: float | None = None
    e2e_ms: float | None = None
    refused_ms: float | None = None
    got_tokens: int = 0
    computed_tokens: int = 0
    late_ms: float = 0.0
    scored: bool = True

    @property
    def served(self) -> bool:
        """It got what its caller had planned to take."""
        if self.ended == "cancelled":
            return self.ttft_ms is not None
        return self.ended == "answered"

    @property
    def ended_s(self) -> float | None:
        """When its answer ended, from the start of the run; None = it has none."""
        if self.due_s is None or self.e2e_ms is None:
            return None
        return self.due_s + self.e2e_ms / 1000


KIND = "call"
"""The kind of line a call makes, `k` in the log."""


def line(record: CallRecord) -> dict[str, Any]:
    """The call as an object of strict JSON; what is None is left out."""
    values = ((name, getattr(record, name)) for name in _FIELDS)
    return {"k": KIND, **{name: value for name, value in values if value is not None}}


def record(line: Mapping[str, Any]) -> CallRecord:
    """The call that a line tells of; keys that no call has are passed over.

    Raises:
        LogError: it is no call line, or a value is missing or of another type.
    """
    if line.get("k") != KIND:
        raise LogError(f"a line of kind {line.get('k')!r} is no {KIND} line")
    faults = [fault for field in _FIELDS.values() for fault in _fault(field, line)]
    if faults:
        raise LogError(f"{KIND} line {line.get('id')!r}: {'; '.join(faults)}")
    told = {name: line[name] for name in _FIELDS if name in line}
    return CallRecord(**{"tenant": None, "due_s": None, **told})


_FIELDS: dict[str, Field[Any]] = {field.name: field for field in fields(CallRecord)}

_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str,),
    "int": (int,),
    "float": (int, float),
    "float | None": (int, float),
    "bool": (bool,),
    "Ended": (str,),
}


def _fault(field: "Field[Any]", line: Mapping[str, Any]) -> list[str]:
    name, kind = field.name, getattr(field.type, "__name__", str(field.type))
    if name not in line:
        needed = field.default is MISSING and not str(field.type).endswith("None")
        return [f"{name} is missing"] if needed else []
    value, kinds = line[name], _TYPES.get(kind, _TYPES.get(str(field.type), (str,)))
    if name == "ended" and value not in get_args(Ended):
        return [f"ended = {value!r} is none of {', '.join(get_args(Ended))}"]
    is_bool = isinstance(value, bool)
    if not isinstance(value, kinds) or is_bool != (bool in kinds):
        return [f"{name} = {value!r} is no {kinds[-1].__name__}"]
    return []
