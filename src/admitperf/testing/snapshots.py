"""A snapshot made by hand, to call `decide` directly."""

from collections.abc import Mapping
from typing import Unpack

from admitperf.core.facts import Facts
from admitperf.core.gate import Gate
from admitperf.core.ledger import Ledger
from admitperf.core.reading import Reading
from admitperf.core.request import Request
from admitperf.core.resolver import Resolver
from admitperf.core.signal import Signal
from admitperf.core.signals import ALL
from admitperf.core.snapshot import Snapshot
from admitperf.core.value import SignalValue
from admitperf.core.view import View

_BY_NAME = {signal.name: signal for signal in ALL}


def snapshot(
    signals: Mapping[Signal | str, float | None] | None = None,
    *,
    raw: Mapping[str, object] | None = None,
    now_s: float = 0.0,
    **facts: Unpack[Facts],
) -> Snapshot:
    """What `decide` would see: `policy.decide(snapshot({KV_PRESSURE: 0.95}))`.

    Args:
        signals: value by signal or by the name of one of ours, whoever would supply it
            (engine, ledger or request); None = not known, whatever `raw` says.
        raw: raw metrics; the signals they supply are known too.
        now_s: the policy's monotonic clock, in seconds.
        facts: as for a policy's call.

    Raises:
        KeyError: no signal of ours has this name.
        ValueError: a value outside its signal's range, or a fact that a policy would
            not believe: neither ever reaches `decide`.
    """
    gates: list[Gate] = []
    request = Request(facts)
    if request.faults:
        raise ValueError("; ".join(request.faults))
    now_ns = round(now_s * 1e9)
    view = Resolver(0, gates, {}, None, _unheard).view(
        Reading(raw or {}, taken_ns=now_ns), timed=False
    )
    given = {_signal(key): value for key, value in (signals or {}).items()}
    ledger = Ledger(reports_outcomes=False)
    return Snapshot(_with(view, given, gates), request, ledger, now_ns, gates)


def _with(view: View, given: Mapping[Signal, float | None], gates: list[Gate]) -> View:
    kept = {
        signal: value for signal, value in view.values.items() if signal not in given
    }
    told = {
        signal: SignalValue(_legal(signal, value), signal.name, gates)
        for signal, value in given.items()
        if value is not None
    }
    return View(
        view.number,
        view.reading,
        view.supplies,
        {**kept, **told},
        view.absent,
        view.stale,
        timed=False,
    )


def _signal(key: Signal | str) -> Signal:
    return key if isinstance(key, Signal) else _BY_NAME[key]


def _legal(signal: Signal, value: float) -> float:
    if not signal.low <= value <= signal.high or value == float("inf"):
        raise ValueError(
            f"{signal.name} = {value!r} is outside {signal.low:g} to {signal.high:g}"
        )
    return value


def _unheard(event: str, details: dict[str, object]) -> None:
    """Takes what a policy would write down."""
