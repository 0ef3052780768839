"""What is wrong with a gateway: blind, in shadow, unread replicas, bounds never met."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from admitperf.core.resolver import MIN_AGE_LIMIT_S
from admitperf.core.signals import KV_PRESSURE
from admitperf.lab.doctor.clocks import clock_finding
from admitperf.lab.doctor.door import Door, shown
from admitperf.lab.doctor.finding import (
    Finding,
    fine,
    not_asked,
    problem,
    warning,
)
from admitperf.lab.fault import LabError
from admitperf.lab.reach import MOST, Reach, Shape, reach
from admitperf.lab.sizes import Sizes
from admitperf.policies import load
from admitperf.reports.wording import number, plural, share

_OK = 200
_UNAVAILABLE = 503
_MOST_BLIND = 0.01  # the brief's bound: above it a run is UNKNOWN
_MOST_UNREADABLE = 0.01  # plain choice: a scanner's traffic, not a client's
_BASELINE = "no_admission"

_DEEPEST = 8  # plain choice: a composition of compositions is two

FEWEST_SIZED = 20
"""Plain choice: the mean of fewer requests says nothing of how big they are."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known besides of the engine and its requests.

    Attributes:
        sizes: by name, as `lab.sizes` has them.
        slots: requests an engine runs at once, as a person says; None = not said.
    """

    sizes: Sizes
    slots: int | None


def findings(door: Door, asked: Asked) -> Iterator[Finding]:
    """Every check on a gateway that answers."""
    yield fine("gateway.reachable", f"{shown(door.address)} answers")
    if not _is_gateway(door):
        yield _another(door)
        return
    yield _ready(door)
    yield clock_finding("gateway.clock", "the gateway's", door.health.ahead_s)
    yield _seen(door)
    yield from _policies(door)
    yield from _shadow(door)
    yield from _replicas(door)
    yield from _fresh(door)
    yield _blind(door)
    yield _lossless(door)
    yield from _leases(door)
    yield from _alone(door)
    yield from _bodies(door)
    yield from _bounds(door, asked)


def _is_gateway(door: Door) -> bool:
    told = door.health.json()
    healthy = isinstance(told, dict) and told.get("status") == "ok"
    return bool(door.samples("build_info")) or bool(door.pools) or healthy


def _another(door: Door) -> Finding:
    says = (
        f"/health says {door.health.status} and /metrics is not a gateway's: another"
        " server, or a proxy that passes on /v1 only"
    )
    fix = "give the gateway's own address, the one it printed when it started"
    return problem("gateway.itself", says, fix)


def _ready(door: Door) -> Finding:
    answer = door.ready
    if answer is None or answer.status not in (_OK, _UNAVAILABLE):
        return not_asked("gateway.ready", "/ready does not answer")
    if answer.status == _OK:
        return fine("gateway.ready", "it is ready")
    told = answer.json()
    reasons = told.get("reasons") if isinstance(told, dict) else None
    why = "; ".join(map(str, reasons)) if isinstance(reasons, list) else "it is not"
    fix = "read what it says on standard error; `admitperf gateway --check` says more"
    return problem("gateway.ready", f"it is not ready: {why}", fix)


def _seen(door: Door) -> Finding:
    if door.pools:
        names = ", ".join(door.pools)
        return fine("gateway.state", f"{plural(len(door.pools), 'pool')}: {names}")
    why = "/admitperf/state is shown on the gateway's own machine only"
    return not_asked("gateway.state", why, "run doctor there for all it knows")


def _policies(door: Door) -> Iterator[Finding]:
    for name, pool in door.pools.items():
        policy, said = pool.get("policy"), _parameters(pool)
        told = ", ".join(f"{key} {value}" for key, value in said.items())
        if policy == _BASELINE:
            fix = "if it is to refuse, choose one: front_door is the one to begin with"
            says = f"pool {name}: {_BASELINE}, which refuses nothing"
            yield warning("gateway.policy", says, fix)
        else:
            yield fine("gateway.policy", f"pool {name}: {policy} {told}".strip())


def _parameters(pool: Mapping[str, Any]) -> dict[str, Any]:
    """What is set; a rule that is off is left out."""
    found = pool.get("parameters")
    told = found if isinstance(found, dict) else {}
    return {name: value for name, value in told.items() if value is not None}


def _shadow(door: Door) -> Iterator[Finding]:
    """Refusals that were let in: the policy does not govern all traffic."""
    let_in = refused = 0.0
    for labels, count in door.samples("decisions_total"):
        if labels.get("verdict") != "admit":
            refused += count
            let_in += count if labels.get("admitted") == "true" else 0
    if let_in:
        said = share(int(let_in), int(refused))
        says = f"{said} of what the policy would refuse was let in: shadow, or a share"
        fix = "if it is to govern all: --enforce 1, or enforce: 1 in its file"
        yield warning("gateway.shadow", says, fix)


def _replicas(door: Door) -> Iterator[Finding]:
    """Replicas whose pages it cannot read."""
    ups = door.samples("up")
    down = [labels.get("replica") or "the engine" for labels, up in ups if not up]
    why = {
        str(replica): str(said)
        for pool in door.pools.values()
        if isinstance(pool.get("unread"), dict)
        for replica, said in pool["unread"].items()
    }
    for replica in down:
        says = f"it cannot read {replica}: {why.get(replica, 'not said why')}"
        fix = "look at that page with `admitperf signals URL`; see metrics_url"
        yield problem("gateway.replicas", says, fix)
    if ups and not down:
        yield fine("gateway.replicas", f"it reads {plural(len(ups), 'replica')}")


def _fresh(door: Door) -> Iterator[Finding]:
    ages = [value for _, value in door.samples("reading_age_seconds")]
    if not ages:
        return
    says = f"its newest reading is {max(ages):.1f} s old"
    if max(ages) > MIN_AGE_LIMIT_S:
        fix = "see whether the engine's /metrics is slow, or scrape.interval_s too long"
        yield problem("gateway.fresh", f"{says}: no policy trusts it", fix)
    else:
        yield fine("gateway.fresh", says)


def _blind(door: Door) -> Finding:
    blind, of = door.total("blind_decisions_total"), door.total("decisions_total")
    fix = "see that the engine supplies what the policy reads, and how old it is"
    if any(value for _, value in door.samples("blind")):
        return problem("gateway.blind", "its policy is blind now", fix)
    if not of:
        return fine("gateway.blind", "it decided nothing yet")
    said = share(int(blind or 0), int(of))
    if (blind or 0) > _MOST_BLIND * of:
        return problem("gateway.blind", f"{said} decisions were made blind", fix)
    return fine("gateway.blind", f"{said} decisions were made blind")


def _lossless(door: Door) -> Finding:
    lost = door.total("lost_records_total")
    if lost is None:
        return not_asked("gateway.lossless", "its metrics do not say")
    if lost:
        says = f"{plural(int(lost), 'log record')} could not be written"
        fix = "see that the log's folder exists, may be written and is not full"
        return problem("gateway.lossless", says, fix)
    return fine("gateway.lossless", "no log record was lost")


def _leases(door: Door) -> Iterator[Finding]:
    drift = door.total("lease_drift")
    expired = door.total("expired_leases_total")
    if drift:
        says = f"{number(drift)} open by the ledger, of no request under way"
        yield warning("gateway.leases", says, "look again when nothing is under way")
    if expired:
        says = f"{plural(int(expired), 'lease')} ended because nothing was heard"
        yield warning("gateway.leases", says, "see which requests never end")


def _alone(door: Door) -> Iterator[Finding]:
    drift = door.total("engine_drift")
    if drift is not None and drift > 0:
        says = f"the engines hold {number(drift)} more requests than went through it"
        fix = "send all traffic through one gateway: it sees only its own"
        yield warning("gateway.alone", says, fix)


def _bodies(door: Door) -> Iterator[Finding]:
    unread, of = door.total("unreadable_bodies_total"), door.total("decisions_total")
    if unread and of and unread > _MOST_UNREADABLE * of:
        says = f"{share(int(unread), int(of))} bodies were no JSON object"
        fix = "see whether a proxy in front packs or cuts what callers send"
        yield warning("gateway.bodies", says, fix)


def _bounds(door: Door, asked: Asked) -> Iterator[Finding]:
    """Whether each mark on KV pressure can be reached on this engine."""
    for name, pool in door.pools.items():
        for policy, mark in _marks(pool.get("policy"), pool.get("parameters")):
            yield _bound(_Mark(name, policy, mark), pool, asked)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A mark on KV pressure, of one policy of one pool."""

    pool: str
    policy: str
    value: float

    def __str__(self) -> str:
        return f"pool {self.pool}: {self.policy}'s {self.value:g}"

    @property
    def alone(self) -> bool:
        """Whether the policy goes by nothing else."""
        return tuple(load(self.policy).requires) == (KV_PRESSURE,)


def _marks(
    policy: object, parameters: object, depth: int = 0
) -> Iterator[tuple[str, float]]:
    """The marks on KV pressure of a policy, and of its parts."""
    if not isinstance(policy, str) or not isinstance(parameters, dict):
        return
    if depth > _DEEPEST:
        return
    parts = parameters.get("policies")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            yield from _marks(part.get("name"), part.get("params"), depth + 1)
    mark = parameters.get("threshold", parameters.get("high_water"))
    if isinstance(mark, int | float) and 0 < mark <= 1 and _reads_kv(policy):
        yield policy, float(mark)


def _reads_kv(policy: str) -> bool:
    try:
        return KV_PRESSURE in load(policy).requires
    except Exception:  # noqa: BLE001  a policy that is installed there and not here
        return False


def _bound(mark: _Mark, pool: Mapping[str, Any], asked: Asked) -> Finding:
    known = _known(pool, asked)
    lacking = _LACKING.keys() - {name for name, value in known.items() if value}
    if lacking:
        why = "; ".join(_LACKING[name] for name in sorted(lacking))
        fix = "`admitperf reach` does the arithmetic on numbers you give"
        return not_asked("gateway.reach", f"{mark}: {why}", fix)
    shape = Shape(
        kv_tokens=int(known["kv_tokens"]),
        max_num_seqs=int(known["max_num_seqs"]),
        tokens_per_request=known["tokens_per_request"],
        threshold=mark.value,
        block_tokens=int(known.get("block_tokens", 1)),
    )
    try:
        return _reached(mark, shape, reach(shape))
    except LabError as error:
        return not_asked("gateway.reach", f"{mark}: {error}")


def _known(pool: Mapping[str, Any], asked: Asked) -> dict[str, float]:
    """Sizes by name; what a person says comes first."""
    known = {
        name: one.value
        for name, one in asked.sizes.items()
        if one.n is None or one.n >= FEWEST_SIZED
    }
    if asked.slots is not None:
        known["max_num_seqs"] = asked.slots
    signals = pool.get("signals")
    told = signals.get("kv_capacity_tokens") if isinstance(signals, dict) else None
    if isinstance(told, int | float) and 0 < told <= MOST:
        known.setdefault("kv_tokens", told)
    return known


_LACKING = {
    "kv_tokens": "the engine does not say how much KV memory it has (--engine URL)",
    "max_num_seqs": "engines do not say how many requests they run at once"
    " (--max-num-seqs N)",
    "tokens_per_request": "too few requests were served to say how big one is",
}


def _reached(mark: _Mark, shape: Shape, found: Reach) -> Finding:
    of = (
        f"{shape.max_num_seqs} requests of {number(shape.tokens_per_request)} tokens"
        f" fill {found.reachable_fraction:.3f} of the KV memory"
    )
    if found.reaches:
        return fine("gateway.reach", f"{mark} can be reached: {of}")
    says = f"{mark} cannot be reached at any load: {of} at most"
    if mark.alone:
        fix = "bound the queue instead (queue_depth, front_door), or lower the mark"
        return problem("gateway.reach", f"{says}; it goes by nothing else", fix)
    fix = "nothing, if its other bounds are to do the work; else lower the mark"
    return warning("gateway.reach", says, fix)
