"""For AdmitPerf's benchmark, in a package of its own: a metric and a workload."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from admitperf.bench.callers.records import CallRecord
from admitperf.bench.callers.slo import Slo
from admitperf.bench.workloads import Recorded, Workload
from admitperf.bench.workloads.pooled import Pooled
from admitperf.simulator import stream
from admitperf.simulator.traffic.sessions import Call, Session


class FirstAnswer:
    """How long the median session waited for its first token, in seconds.

    A session that never got one waited for ever: where those are half or more, the
    median cannot be told. Refusing everybody is no way to a short one.
    """

    name = "acme_first_answer_s"
    better: ClassVar[Literal["higher", "lower"]] = "lower"

    def __call__(self, records: Sequence[CallRecord], slo: Slo) -> float | None:
        """The median over the sessions of these calls; None = there is none."""
        del slo  # it is no matter of deadlines
        first_s: dict[str, float] = {}
        for one in records:
            first_s.setdefault(one.session, float("inf"))
            if one.served and one.due_s is not None and one.ttft_ms is not None:
                got_s = one.due_s - one.begun_s + one.ttft_ms / 1000
                first_s[one.session] = min(first_s[one.session], got_s)
        waits_s = sorted(first_s.values())
        if not waits_s:
            return None
        middle_s = waits_s[(len(waits_s) - 1) // 2]
        return None if middle_s == float("inf") else middle_s


first_answer_s = FirstAnswer()


def contracts(*, sessions: int = 50, divisor: int | None = None) -> Workload:
    """Somebody reads a contract and asks three questions about it, one by one.

    Args:
        sessions: contracts to draw from.
        divisor: of token counts; None = what makes most calls fit.
    """
    recorded = Recorded(
        name="acme-contracts",
        begun=None,
        pool=tuple(_contract(number) for number in range(1, sessions + 1)),
        said=f"{sessions} contracts with three questions each, 20 s to read an answer",
        notes={"sessions": sessions},
        synthetic=True,  # every number here is a plain choice, and it says so
    )
    made = Pooled(name="acme-contracts", recorded=recorded, divisor=divisor)
    return made.fitting(None)


def _contract(number: int) -> Session:
    chance = stream(number, "acme-contracts")
    said, calls = 200 + chance.randint(2_000, 6_000), list[Call]()
    for question in range(3):
        answer = chance.randint(60, 200)
        calls.append(
            Call(
                after=question - 1 if question else None,
                gap_s=20.0 if question else 0.0,
                input_tokens=said,
                output_tokens=answer,
                # 200 tokens that all contracts begin with, then this one's own
                prefix=(("acme/system", 200), (0, said - 200)),
                kind="question",
            )
        )
        said += answer + chance.randint(10, 40)
    return Session(f"contract-{number}", tuple(calls), max_output_tokens=400)
