"""Service-level objectives: what counts as served on time."""

from collections.abc import Mapping
from dataclasses import dataclass

from admitperf.core.errors import ConfigError

_LIMITS = ("ttft_ms", "stall_ms", "e2e_ms")


@dataclass(frozen=True, slots=True)
class Slo:
    """Limits of one class of requests. None = no limit of that kind.

    Attributes:
        ttft_ms: first token within this many milliseconds of arrival.
        stall_ms: no gap between tokens longer than this many milliseconds.
        e2e_ms: the whole answer within this many milliseconds; judged instead of the
            two others where an answer was not streamed.
    """

    ttft_ms: float | None = None
    stall_ms: float | None = None
    e2e_ms: float | None = None

    def met(
        self,
        *,
        ok: bool,
        ttft_ms: float | None,
        max_gap_ms: float | None,
        e2e_ms: float | None,
    ) -> bool | None:
        """Whether an answer met it; None when the outcome lacks what that takes.

        A streamed answer is judged by its first token and its gaps; one that reports
        no first token by its end, against `e2e_ms` or else `ttft_ms`.
        """
        if not ok:
            return False
        if ttft_ms is None and max_gap_ms is None:
            return _within(
                e2e_ms, self.e2e_ms if self.e2e_ms is not None else self.ttft_ms
            )
        checks = [
            _within(ttft_ms, self.ttft_ms),
            _within(max_gap_ms, self.stall_ms),
            _within(e2e_ms, self.e2e_ms),
        ]
        if False in checks:
            return False
        return None if None in checks else True


def _within(value: float | None, limit: float | None) -> bool | None:
    if limit is None:
        return True
    return None if value is None else value <= limit


def parse(slo: Mapping[str, object] | None) -> dict[str, Slo]:
    """Objectives by class; the key "" is the one for every other class.

    Args:
        slo: `{"ttft_ms": 1500, "stall_ms": 500}`, or one such mapping per class.

    Raises:
        ConfigError: unknown limits, or limits that are no positive numbers.
    """
    if not slo:
        return {}
    nested = all(isinstance(value, Mapping) for value in slo.values())
    classes: Mapping[str, object] = slo if nested else {"": slo}
    faults: list[str] = []
    parsed = {
        str(name): _one(limits, str(name), faults) for name, limits in classes.items()
    }
    if faults:
        raise ConfigError("slo", faults)
    return parsed


def _one(limits: object, name: str, faults: list[str]) -> Slo:
    where = f"class {name}: " if name else ""
    if not isinstance(limits, Mapping):
        faults.append(f"{where}{limits!r} is no mapping of limits")
        return Slo()
    good: dict[str, float] = {}
    for key, value in limits.items():
        if key not in _LIMITS:
            faults.append(f"{where}{key} is not one of {', '.join(_LIMITS)}")
        elif (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not value > 0
        ):
            faults.append(
                f"{where}{key} = {value!r} is no positive number of milliseconds"
            )
        else:
            good[key] = float(value)
    return Slo(**good)
