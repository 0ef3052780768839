"""Small policies and readers that the tests of the core share."""

import json
from functools import partial

from admitperf import Policy, Reading
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH

QUIET = {"kv_pressure": 0.2, "queue_depth": 0.0, "running": 1.0}
FULL = {"kv_pressure": 0.95, "queue_depth": 0.0, "running": 9.0}


class KvWall(Policy):
    """The brief's own sample."""

    name = "kv_wall"

    def decide(self, metrics):
        """Memory first, then the queue."""
        if KV_PRESSURE.read(metrics) >= self.threshold:
            return self.reject("kv_pressure")
        if QUEUE_DEPTH.read(metrics) > self.max_waiting:
            return self.defer("queue_depth", retry_after_ms=200)
        return self.admit()


_ON_CLASS = (
    "requires", "reasons", "observe", "decided", "task", "task_done", "name",
    "baseline",
)  # fmt: skip


def wall(**given):
    """The sample with the sample's parameters."""
    return KvWall(**{"threshold": 0.90, "max_waiting": 32, **given})


def rule(decide, **given):
    """A policy around a function of (policy, metrics).

    What belongs on the class (`requires`, `reasons`, hooks, `name`) is put there, the
    rest goes to the constructor.
    """
    on_class = {"name": "rule", "decide": decide}
    for name in _ON_CLASS:
        if name in given:
            on_class[name] = given.pop(name)
    return type("Rule", (Policy,), on_class)(**given)


def admits(policy, _metrics):
    """Starts everything."""
    return policy.admit()


def refuses(verdict, reason, **hints):
    """A rule with one answer."""
    return lambda policy, _metrics: getattr(policy, verdict)(reason, **hints)


defers = partial(refuses, "defer")
rejects = partial(refuses, "reject")


def sees(seen, *signals):
    """A rule that notes what these signals read, by name, and starts everything."""

    def decide(policy, metrics):
        seen.append({signal.name: signal.read(metrics) for signal in signals})
        return policy.admit()

    return decide


def reading(clock, raw, **given):
    """What a scraper would hand over at this moment of a fake clock."""
    return Reading(raw, taken_ns=clock.monotonic_ns(), **given)


def strict(text):
    """A line as the strictest reader takes it.

    Raises:
        ValueError: a bare NaN or infinity, a key twice, an integer over 64 bits,
            a lone surrogate, or anything outside ASCII.
    """
    if not text.isascii():
        raise ValueError(f"not ASCII: {text!r}")
    value = json.loads(
        text, parse_constant=_refused, parse_int=_int64, object_pairs_hook=_once
    )
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _refused(constant):
    raise ValueError(f"{constant} is no JSON")


def _int64(digits):
    value = int(digits)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{digits} is longer than 64 bits")
    return value


def _once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"a key stands twice: {pairs}")
    return dict(pairs)
