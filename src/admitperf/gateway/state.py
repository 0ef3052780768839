"""What a front door knows at the moment, for people and programs that ask."""

from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.core.signals import ENGINE, QUEUE_DEPTH, RUNNING
from admitperf.gateway.edge import Edge
from admitperf.gateway.pool import Pool


def state(edge: Edge) -> dict[str, object]:
    """Every pool: its policy, its open requests, what it sees, what it answered."""
    return {"pools": {name: _pool(edge, pool) for name, pool in edge.pools.items()}}


def explain(edge: Edge, name: str) -> dict[str, object] | None:
    """One decision, by its id or its request id; None = not known any longer."""
    found = (pool.explain(name) for pool in edge.pools.values())
    return next((one for one in found if one is not None), None)


def signals(reading: Reading, policy: Policy) -> dict[str, float]:
    """The engine's signals in a reading, as this policy reads them."""
    view = reading.views.get(policy.number)
    if view is not None:
        return {signal.name: float(value) for signal, value in view.values.items()}
    read = ((signal.name, signal.read(reading)) for signal in ENGINE)
    return {name: value for name, value in read if value is not None}


def age_s(edge: Edge, reading: Reading) -> float:
    """How old a reading is, in seconds."""
    return max(0.0, (edge.clock.monotonic_ns() - reading.taken_ns) / 1e9)


def lease_drift(pool: Pool) -> int:
    """Leases that no request under way holds; 0 unless something leaks."""
    return pool.policy.ledger.in_flight - pool.counters.live


def engine_drift(pool: Pool) -> float | None:
    """Requests in the engines less those of this host; None = they do not say.

    Above 0 others send too, or the engine still works for callers that left.
    """
    seen = signals(pool.seen.pool, pool.policy)
    inside = [seen.get(signal.name) for signal in (RUNNING, QUEUE_DEPTH)]
    if None in inside:
        return None
    return sum(one or 0.0 for one in inside) - pool.policy.ledger.in_flight


def _pool(edge: Edge, pool: Pool) -> dict[str, object]:
    policy, counters, seen = pool.policy, pool.counters, pool.seen
    return {
        "policy": policy.name,
        "parameters": dict(policy.parameters),
        "run": policy.run,
        "in_flight": policy.ledger.in_flight,
        "live": counters.live,
        "lease_drift": lease_drift(pool),
        "engine_drift": engine_drift(pool),
        "held": len(pool.queue),
        "draining": pool.draining,
        "signals": signals(seen.pool, policy),
        "reading_age_s": round(age_s(edge, seen.pool), 3),
        "unread": dict(seen.failed),
        "decisions": {
            "/".join(str(part) for part in key): count
            for key, count in counters.decisions.items()
        },
        "outcomes": dict(counters.outcomes),
    }
