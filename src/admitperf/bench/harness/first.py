"""What an experiment was planned as before its first run: what it may claim later.

A verdict is worth its word only on a design that was set before anyone looked. So the
first start writes it down, every plan's hash holds its claims, and later starts leave
it as it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from admitperf.bench.design.design import Design
from admitperf.core.digest import blake2b
from admitperf.core.errors import AdmitPerfError
from admitperf.core.record import dumps

KEY = "planned_first"
"""Of experiment.json."""


class FirstPlanError(AdmitPerfError, ValueError):
    """What stands there as the first plan is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """A design as it was before the first run.

    Attributes:
        loads: multiples of capacity.
        blocks: of each load.
        arms: names, the baseline and its twin included.
        baseline: the arm the others are held against.
        metric: what claims are made on.
        margin: the smallest difference that matters.
        hash: 16 hex digits over these and workload, client, SLO and window.
    """

    loads: tuple[float, ...]
    blocks: int
    arms: tuple[str, ...]
    baseline: str
    metric: str
    margin: float
    hash: str

    @classmethod
    def of(cls, design: Design, metric: str, asked: Mapping[str, Any]) -> Self:
        """Of a design that is about to be run.

        Args:
            design: after the budget.
            metric: what claims are made on.
            asked: workload, client, slo and window, as plain data.
        """
        told: dict[str, Any] = {
            "loads": tuple(design.loads),
            "blocks": design.blocks,
            "arms": tuple(design.arms),
            "baseline": design.baseline,
            "metric": metric,
            "margin": design.margin,
        }
        whole = dumps(told | dict(asked)).encode()
        return cls(**told, hash=blake2b(whole, digest_size=8).hexdigest())

    @classmethod
    def read(cls, told: object) -> Self:
        """From its document.

        Raises:
            FirstPlanError: it is none.
        """
        try:
            given = dict(told)  # type: ignore[call-overload]
            return cls(
                loads=tuple(map(float, given["loads"])),
                blocks=int(given["blocks"]),
                arms=tuple(map(str, given["arms"])),
                baseline=str(given["baseline"]),
                metric=str(given["metric"]),
                margin=float(given["margin"]),
                hash=str(given["hash"]),
            )
        except (KeyError, TypeError, ValueError):
            raise FirstPlanError(f"experiment.json: its {KEY} is none") from None

    def document(self) -> dict[str, Any]:
        """As plain data, from which it can be read back."""
        plain: dict[str, Any] = json.loads(dumps(asdict(self)))
        return plain

    def claims(self) -> tuple[str, ...]:
        """What it claims, as every plan's hash holds it."""
        design = self._design()
        arms = ", ".join(design.claiming)
        return (
            f"gain of {arms} against {self.baseline} over {_loads(design.above)}",
            f"no harm of {arms} over {_loads(design.below)}",
            f"all: {', '.join(self.arms)} at {_loads(self.loads)}",
            f"blocks {self.blocks}",
            f"metric {self.metric}",
            f"margin {self.margin:g}",
        )

    def departures(self, design: Design, metric: str) -> Iterator[str]:
        """What a later start has otherwise, each in a few words."""
        if design.blocks != self.blocks:
            yield f"blocks {self.blocks}, now {design.blocks}"
        if tuple(design.loads) != self.loads:
            yield f"loads {_loads(self.loads)}, now {_loads(design.loads)}"
        if set(design.arms) != set(self.arms):
            yield f"arms {', '.join(self.arms)}, now {', '.join(design.arms)}"
        if design.baseline != self.baseline:
            yield f"baseline {self.baseline}, now {design.baseline}"
        if metric != self.metric:
            yield f"metric {self.metric}, now {metric}"
        if design.margin != self.margin:
            yield f"margin {self.margin:g}, now {design.margin:g}"

    def _design(self) -> Design:
        twin = Design(arms=self.arms, baseline=self.baseline).again
        return Design(
            arms=self.arms,
            loads=self.loads,
            blocks=self.blocks,
            baseline=self.baseline,
            margin=self.margin,
            aa=twin in self.arms,
        )


def _loads(loads: Sequence[float]) -> str:
    return ", ".join(f"{load:g}x" for load in loads) or "no load"
