"""A front door's own metrics page, for Prometheus.

Labels are bounded: pools, replicas and signals are set up, verdicts, reasons and
outcomes come from tables. No name that a caller chose is ever one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.values import ValueClass

from admitperf import __version__
from admitperf.core.notice import in_words, say
from admitperf.core.reading import Reading
from admitperf.core.resolver import MIN_AGE_LIMIT_S
from admitperf.core.signals import QUEUE_DEPTH, RUNNING
from admitperf.gateway.counters import Counters, Histogram
from admitperf.gateway.edge import Edge
from admitperf.gateway.pool import Pool
from admitperf.gateway.state import age_s, engine_drift, lease_drift, signals

OUTCOMES = re.compile(
    r"ok|client_closed|handler_error|shutdown|timeout_(?:first_token|gap|total)"
    r"|upstream_(?:refused|ended_early|unreachable|unreadable|no_output|error|[1-5]\d\d)"
)
"""The words of outcomes that are labels of their own; the rest is "other": an engine
may say anything."""

_NOT_SHARED = ("admitperf_engine_drift",)
"""What says nothing about one process of several: all of them are in the engine."""

_MODES = {
    "admitperf_signal": "livemax",
    "admitperf_reading_age_seconds": "livemax",
    "admitperf_draining": "livemax",
    "admitperf_blind": "livemax",
    "admitperf_up": "livemin",
    "admitperf_build_info": "livemax",
    "admitperf_gate_distance": "livemin",
}
"""What becomes of a gauge that several processes give; the others are summed."""

_OTHER = "other"
_UPWARD = (">=", ">")
_LAST_TRY = "3+"
_MICROSECONDS_IN_S = 1e6
_LAST_ATTEMPT = 3

Rows = Iterable[tuple[tuple[str, ...], float]]
InFlight = Callable[[str], Mapping[str, int]]


class _Numbers(NamedTuple):
    """One family of counters or gauges.

    Attributes:
        kind: of the family.
        name: without the prefix, and a counter's without `_total`.
        text: its help.
        rows: label values and number, of one pool.
        labels: beside the pool.
    """

    kind: type[CounterMetricFamily | GaugeMetricFamily]
    name: str
    text: str
    rows: Callable[[Edge, Pool], Rows]
    labels: tuple[str, ...] = ()

    def family(self, edge: Edge) -> Metric:
        """What it comes to now."""
        name = f"admitperf_{self.name}"
        family = self.kind(name, self.text, labels=("pool", *self.labels))
        for pool in edge.pools.values():
            for labels, value in self.rows(edge, pool):
                family.add_metric((pool.name, *labels), value)
        return family


class _Spread(NamedTuple):
    """One histogram, in seconds; `scale` is how many of its own units are one."""

    name: str
    text: str
    of: Callable[[Counters], Histogram]
    scale: float = 1.0

    def family(self, edge: Edge) -> Metric:
        """What it comes to now."""
        name = f"admitperf_{self.name}"
        family = HistogramMetricFamily(name, self.text, labels=("pool",))
        for pool in edge.pools.values():
            told = self.of(pool.counters)
            bounds = [f"{bound / self.scale:g}" for bound in told.bounds]
            counts = accumulate(told.counts)
            buckets = list(zip((*bounds, "+Inf"), counts, strict=True))
            family.add_metric((pool.name,), buckets, told.total / self.scale)
        return family


class _Build:
    """Which program this is."""

    name = "build_info"

    @staticmethod
    def family(_: Edge) -> Metric:
        """Always 1."""
        text = "1; the version says which program this is."
        family = GaugeMetricFamily("admitperf_build_info", text, labels=("version",))
        family.add_metric((__version__,), 1)
        return family


class Exposition(Collector):
    """Everything a front door counts, as metric families.

    Can be registered with any registry of `prometheus_client`.

    Args:
        edge: the front door.
        in_flight: open requests of each replica of a pool, by its name; None = this
            host forwards nothing.
    """

    def __init__(self, edge: Edge, in_flight: InFlight | None = None) -> None:
        self._edge = edge
        self._in_flight = in_flight
        self._said: set[str] = set()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)  # a host's page has its own

    def page(self) -> bytes:
        """The page as text, format 0.0.4, with the memory and files of the process."""
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """Nothing: so that registering does not collect."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families, with the pools in the order they were set up.

        One that fails is left out, so that it takes no others with it: the page may be
        a host's.
        """
        families: Iterable[_Build | _Numbers | _Spread] = (
            _Build(),
            *_NUMBERS,
            *self._forwarded(),
            *_SPREADS,
        )
        for one in families:
            try:
                family = one.family(self._edge)
            except Exception as error:  # noqa: BLE001  whatever a plug-in's numbers are
                if one.name not in self._said:
                    self._said.add(one.name)
                    say(f"admitperf_{one.name} is not on the page: {in_words(error)}")
            else:
                yield family

    def _forwarded(self) -> Iterator[_Numbers]:
        """What only a host that forwards requests can tell."""
        told = self._in_flight
        if told is not None:
            yield _Numbers(
                GaugeMetricFamily,
                "replica_in_flight",
                "Requests that a replica has of this process.",
                lambda _, pool: (((n,), count) for n, count in told(pool.name).items()),
                ("replica",),
            )


class Shared:
    """A front door's metrics on a page that several processes make together.

    Such a page is made of files, one a process and kind, in the folder that
    `PROMETHEUS_MULTIPROC_DIR` names; a registered collector is not on it.

    Args:
        exposition: of this process.
    """

    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition
        self._cells: dict[tuple[str, ...], Any] = {}

    def write(self) -> None:
        """Puts all numbers into the files. Belongs in a thread beside the requests."""
        for family in self._exposition.collect():
            if family.name not in _NOT_SHARED:
                below = 0.0  # a page adds buckets up, so each is written by itself
                for one in family.samples:
                    value = one.value
                    if one.name.endswith("_bucket"):
                        value -= below
                        below = 0.0 if one.labels["le"] == "+Inf" else one.value
                    if not one.name.endswith("_count"):
                        self._cell(family, one).set(value)

    def _cell(self, family: Metric, one: Sample) -> Any:  # noqa: ANN401
        key = (one.name, *one.labels.values())
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = ValueClass(
                family.type,
                family.name,
                one.name,
                tuple(one.labels),
                tuple(one.labels.values()),
                family.documentation,
                _MODES.get(family.name, "livesum"),
            )
        return cell


def _decisions(_: Edge, pool: Pool) -> Rows:
    for key, count in list(pool.counters.decisions.items()):
        verdict, reason, admitted, by = key
        yield (verdict, reason, "true" if admitted else "false", by), count


def _outcomes(_: Edge, pool: Pool) -> Rows:
    told: dict[str, int] = {}
    for word, count in list(pool.counters.outcomes.items()):
        name = word if OUTCOMES.fullmatch(word) else _OTHER
        told[name] = told.get(name, 0) + count
    return (((word,), count) for word, count in told.items())


def _attempts(_: Edge, pool: Pool) -> Rows:
    for tries, count in list(pool.counters.attempts.items()):
        yield (str(tries) if tries < _LAST_ATTEMPT else _LAST_TRY,), count


def _signals(edge: Edge, pool: Pool) -> Rows:
    for replica, reading in _readings(pool):
        for name, value in _current(edge, pool, reading).items():
            yield (replica, name), value


def _current(edge: Edge, pool: Pool, reading: Reading) -> dict[str, float]:
    """The signals of a reading that still count: without those whose time ran out."""
    view = reading.views.get(pool.policy.number)
    if view is not None:
        values = view.at(edge.clock.monotonic_ns()).values
        return {signal.name: float(value) for signal, value in values.items()}
    limit_s = pool.policy.settings.max_age_s
    if limit_s is None:
        limit_s = max(MIN_AGE_LIMIT_S, 3 * (reading.interval_s or 0.0))
    return {} if age_s(edge, reading) > limit_s else signals(reading, pool.policy)


def _engine_drift(edge: Edge, pool: Pool) -> Rows:
    current = _current(edge, pool, pool.seen.pool)
    drift = engine_drift(pool)
    if drift is not None and {RUNNING.name, QUEUE_DEPTH.name} <= current.keys():
        yield (), drift


def _ups(_: Edge, pool: Pool) -> Rows:
    """Each replica by its name; an empty one where the host has none."""
    seen, failed = pool.seen, pool.seen.failed
    if seen.rounds is None:
        return
    named = [(one.name, one.name in failed) for one in pool.setup.upstreams]
    for name, lost in named or [("", bool(failed))]:
        yield (name,), bool(seen.rounds) and not lost


def _ages(edge: Edge, pool: Pool) -> Rows:
    return (((replica,), age_s(edge, reading)) for replica, reading in _readings(pool))


def _readings(pool: Pool) -> Iterator[tuple[str, Reading]]:
    """The pool's under an empty name, then each replica's that is judged by itself."""
    yield "", pool.seen.pool
    if pool.setup.scrape.view == "replica":
        for one in pool.setup.upstreams:
            yield one.name, pool.seen.replica(one.name)


def _gates(_: Edge, pool: Pool) -> Rows:
    last = pool.last
    gates = () if last is None or last.blind is not None else last.gates
    for gate in {gate.name: gate for gate in gates}.values():
        room = gate.bound - gate.value
        yield (gate.name,), room if gate.op in _UPWARD else -room


def _one(read: Callable[[Pool], float | None]) -> Callable[[Edge, Pool], Rows]:
    """The one number of a pool; None = it has none."""

    def rows(_: Edge, pool: Pool) -> Rows:
        value = read(pool)
        return () if value is None else (((), value),)

    return rows


def _counter(name: str, text: str, read: Callable[[Pool], float | None]) -> _Numbers:
    return _Numbers(CounterMetricFamily, name, text, _one(read))


def _gauge(name: str, text: str, read: Callable[[Pool], float | None]) -> _Numbers:
    return _Numbers(GaugeMetricFamily, name, text, _one(read))


_NUMBERS = (
    _Numbers(
        CounterMetricFamily,
        "decisions",
        "Final answers. by: policy, or the front door's own word for a refusal.",
        _decisions,
        ("verdict", "reason", "admitted", "by"),
    ),
    _Numbers(
        CounterMetricFamily,
        "outcomes",
        "Admitted requests that ended, by how.",
        _outcomes,
        ("outcome",),
    ),
    _Numbers(
        CounterMetricFamily,
        "attempts",
        "Final answers, by the number of the try, 0 for the first.",
        _attempts,
        ("attempt",),
    ),
    _counter(
        "blind_decisions",
        "Decisions that the posture answered, since the policy could not see.",
        lambda pool: pool.counters.blind,
    ),
    _counter(
        "probes",
        "Requests let in to see whether a frozen signal still means anything.",
        lambda pool: pool.counters.probes,
    ),
    _counter(
        "unreadable_bodies",
        "Bodies that were no JSON object.",
        lambda pool: pool.counters.unreadable,
    ),
    _counter(
        "unfinished_bodies",
        "Bodies that never came whole.",
        lambda pool: pool.counters.unfinished,
    ),
    _counter(
        "expired_leases",
        "Leases that ended because nothing was heard of their requests.",
        lambda pool: pool.policy.ledger.expired_total,
    ),
    _counter(
        "lost_records",
        "Log records that could not be written.",
        lambda pool: pool.policy.lost_records,
    ),
    _gauge(
        "log_waiting_records",
        "Log records that are not written yet.",
        lambda pool: pool.policy.waiting_records,
    ),
    _counter(
        "reading_rounds",
        "Times the engines were read.",
        lambda pool: pool.seen.rounds,
    ),
    _counter(
        "reading_failures",
        "Times an engine could not be read.",
        lambda pool: pool.seen.failures,
    ),
    _gauge(
        "leases",
        "Admitted requests whose end was not reported yet.",
        lambda pool: pool.policy.ledger.in_flight,
    ),
    _gauge(
        "lease_drift",
        "Leases less requests really under way; 0 unless something leaks.",
        lease_drift,
    ),
    _Numbers(
        GaugeMetricFamily,
        "engine_drift",
        "Requests in the engines less leases; above 0 others send too.",
        _engine_drift,
    ),
    _gauge("held", "Deferred requests that wait here.", lambda pool: len(pool.queue)),
    _gauge(
        "draining",
        "1 while new requests are refused because this process ends.",
        lambda pool: pool.draining,
    ),
    _gauge(
        "blind",
        "1 while the policy cannot see: the posture answered the last decision.",
        lambda pool: pool.last is not None and pool.last.blind is not None,
    ),
    _Numbers(
        GaugeMetricFamily,
        "up",
        "1 if the replica's page was read in the last round.",
        _ups,
        ("replica",),
    ),
    _Numbers(
        GaugeMetricFamily,
        "signal",
        "A signal as the policy reads it; absent once too old. No replica = the pool.",
        _signals,
        ("replica", "signal"),
    ),
    _Numbers(
        GaugeMetricFamily,
        "reading_age_seconds",
        "Age of the last reading.",
        _ages,
        ("replica",),
    ),
    _Numbers(
        GaugeMetricFamily,
        "gate_distance",
        "How far the last decision was from a gate, in its unit; below 0 = past it.",
        _gates,
        ("signal",),
    ),
)
_SPREADS = (
    _Spread(
        "decision_seconds",
        "Time to decide.",
        lambda counters: counters.decide_us,
        _MICROSECONDS_IN_S,
    ),
    _Spread("wait_seconds", "Waits told to callers.", lambda counters: counters.wait_s),
    _Spread(
        "held_seconds",
        "How long requests were held.",
        lambda counters: counters.held_s,
    ),
    _Spread(
        "first_token_seconds",
        "Arrival to first output, streams only.",
        lambda counters: counters.ttft_s,
    ),
)
