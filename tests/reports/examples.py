"""One small log per finding, as a reader of the golden reports would meet them."""

import math

from tests.reports.byhand import (
    START_US,
    call,
    control,
    decision,
    header,
    kv,
    lost,
    outcome,
    reading,
)

SLO = {"ttft_ms": 1500, "stall_ms": 500}
DUAL = {
    "policy": "dual_gate",
    "class": "admitperf.policies.dual_gate:DualGate",
    "params": {"threshold": 0.9, "max_waiting": 32},
    "provenance": {"threshold": "fitted", "max_waiting": "default"},
    "requires": ["kv_pressure", "queue_depth"],
    "config": "dual",
}


def wave(seq, low, high, period=40):
    """A value that rises and falls between two bounds."""
    turn = (1 - math.cos(2 * math.pi * seq / period)) / 2
    return round(low + (high - low) * turn, 4)


def inert():
    """A KV threshold out of reach while the queue grows."""
    yield header()
    for seq in range(1, 201):
        pressure, waiting = wave(seq, 0.07, 0.44), round(wave(seq, 0, 60))
        yield kv(seq, pressure, signals={"queue_depth": waiting, "running": 4})


def live():
    """A dual gate under an SLO, with retries, a split class and some failures."""
    yield header(slo=SLO, experiment="pilot", name="week-2", **DUAL)
    for seq in range(1, 201):
        yield from _dual(seq, wave(seq, 0.5, 0.97), round(wave(seq, 0, 60)))
    yield lost(decision=1, outcome=2)
    yield control("blind", reason="signal_stale", why="kv_pressure 4.2 s old")
    yield control("sighted")


def _dual(seq, pressure, waiting):
    full = pressure >= 0.9
    gates = [["kv_pressure", pressure, ">=", 0.9, full]]
    over = full and waiting > 32
    if full:
        gates.append(["queue_depth", waiting, ">", 32, over])
    answer = ("defer", "queue_depth") if over else ("admit", None)
    facts = {"logical_id": f"call-{seq // 2}", "attempt": seq % 2, "stream": True}
    changes = {"retry_after_ms": 1000 + seq, "wait": "measured"} if over else {}
    yield decision(
        seq,
        *answer,
        signals={"kv_pressure": pressure, "queue_depth": waiting},
        gates=gates,
        facts=facts,
        age_ms=seq % 250,
        **changes,
    )
    if not over:
        failed = seq % 25 == 0
        yield outcome(
            seq,
            ok=not failed,
            ttft_ms=100 + 9 * seq,
            **({"error": "upstream reset"} if failed else {}),
        )


def unknown():
    """A KV threshold on an engine that exports no KV pressure under a known name."""
    yield header(params={"threshold": 0.8}, provenance={"threshold": "unstated"})
    yield reading(1, {'acme_kv_cache_used{engine="0"}': 0.4, "acme_kv_cache_total": 9})
    for seq in range(1, 101):
        yield decision(
            seq,
            reason="signal_absent",
            blind="signal_absent",
            why="kv_pressure is not supplied",
            signals={"queue_depth": seq % 30},
            reading=1,
        )


def baseline():
    """No admission control, with outcomes."""
    yield header(
        policy="no_admission",
        params={},
        provenance={},
        requires=[],
        taxonomy={"baseline": True},
        config="none",
    )
    for seq in range(1, 31):
        yield decision(seq, signals={"queue_depth": 2 * seq})
        yield outcome(seq, ttft_ms=100 * seq)


def shadow():
    """A KV threshold that only watches."""
    yield header(enforce=0.0, slo=SLO)
    for seq in range(1, 51):
        pressure = wave(seq, 0.4, 0.96)
        free = {"enforced": False, "admitted": True, "status": 200}
        yield {**kv(seq, pressure), **free}
        yield outcome(seq, ttft_ms=40 * seq)


def few():
    """Six requests, one of them on a damaged line."""
    yield header()
    for seq in range(1, 6):
        yield kv(seq, 0.9 + seq / 100)
    yield '{"k":"decision","seq":6,"verdict":"adm'


NOTES = {
    "model": "Qwen2.5-7B",
    "engine": "vllm",
    "engine_version": "0.32.0",
    "hardware": "1x A100-40GB",
    "workload": "110 calls of a coding agent",
    "plan": "8f2c",
    "capacity_per_s": 4,
    "load": 2.5,
    "slo_from": "5x unloaded TTFT",
}


def calls():
    """A queue bound under an SLO: retries, due times, sizes and a configuration."""
    yield header(
        policy="queue_depth",
        params={"max_waiting": 32},
        provenance={"max_waiting": "fitted"},
        requires=["queue_depth"],
        slo=SLO,
        experiment="agents",
        name="r1",
        notes=NOTES,
        config="queue",
    )
    for number in range(1, 111):
        seq, waiting = 2 * number, round(wave(number, 0, 60))
        over = waiting > 32
        for attempt in range(1 + over):
            yield from _call(seq + attempt, f"c{number}", attempt, waiting, over)


def _call(seq, logical, attempt, waiting, over):
    """An attempt in a long queue is deferred, and comes back 2 s later."""
    refused = over and not attempt
    length = 0 if attempt else waiting
    sizes = {"input_tokens": 900 + seq, "max_output_tokens": 256}
    yield decision(
        seq,
        *(("defer", "queue_depth") if refused else ("admit", None)),
        t_us=START_US + seq * 50_000 + attempt * 2_000_000,
        signals={"queue_depth": length, **sizes},
        gates=[["queue_depth", length, ">", 32, refused]],
        facts={
            "logical_id": logical,
            "attempt": attempt,
            **sizes,
            "late_ms": 40.0 if seq % 20 == 0 else 0.5,
        },
    )
    if not refused:
        yield outcome(seq, ttft_ms=150 + 20 * length, output_tokens=190)


def samples():
    """What `watch` leaves: a threshold asked on an engine's metrics, nothing more."""
    yield header(basis="samples", enforce=0.0)
    for seq in range(1, 61):
        free = {"enforced": False, "admitted": True, "status": 200}
        yield {**kv(seq, wave(seq, 0.3, 0.95)), **free}
    yield control("scrape_failed", target="http://10.0.0.7:8000", kind="timeout")


def repeats():
    """Three runs of one policy in one experiment, of unequal size."""
    for repeat, n in enumerate((40, 40, 30), start=1):
        run = f"r{repeat}"
        yield header(run=run, experiment="pilot", name=run, slo=SLO)
        for seq in range(1, n + 1):
            pressure = wave(seq, 0.4, 0.96)
            yield kv(seq, pressure, run=run)
            if pressure < 0.9:
                yield outcome(seq, run=run, ttft_ms=30 * seq + repeat)


def planned():
    """A benchmark's run: calls that a refusal kept from being asked, and a window."""
    notes = {"load": 1.2, "load_reached": 1.17, "capacity_per_s": 2.5}
    yield header(slo=SLO, experiment="pilot", name="x1.2-b1", notes=notes)
    for seq in range(1, 41):
        refused = seq % 4 == 0
        facts = {"logical_id": f"s{seq}/0"}
        yield kv(seq, 0.95 if refused else 0.5, facts=facts)
        if refused:
            yield call(seq, "refused", slo_class="", status=503, refused_ms=0)
            yield call(seq, "never_sent", slo_class="", id=f"s{seq}/1", place=1)
            continue
        ttft_ms = 2000 if seq % 5 == 0 else 400
        yield outcome(seq, ttft_ms=ttft_ms)
        yield call(seq, slo_class="", ttft_ms=ttft_ms, scored=seq > 4)


def held():
    """A gateway that lets deferred requests wait: three refused, 44 of 70 held."""
    yield header(
        policy="queue_depth",
        params={"max_waiting": 8},
        provenance={"max_waiting": "fitted"},
        requires=["queue_depth"],
        slo=SLO,
        config="held",
    )
    for seq in range(1, 71):
        over = seq in (20, 40, 65)
        waiting = 9 + seq % 3 if over else 8 - seq % 5
        gate = ["queue_depth", waiting, ">", 8, over]
        changes = {"signals": {"queue_depth": waiting}, "gates": [gate]}
        changes |= {"held_ms": 50.0 * (seq - 10)} if 10 < seq <= 54 else {}
        if seq == 30:
            changes |= {"by": "host", "why": "client_closed", "gates": []}
        answer = ("defer", "queue_depth") if over or seq == 30 else ("admit", None)
        yield decision(seq, *answer, **changes)
        if answer[0] == "admit":
            yield outcome(seq, ttft_ms=400 + changes.get("held_ms", 0))


ALL = {
    "inert": inert,
    "live": live,
    "unknown": unknown,
    "baseline": baseline,
    "shadow": shadow,
    "few": few,
    "calls": calls,
    "samples": samples,
    "planned": planned,
    "held": held,
}
"""One run each."""

PAGES = {**ALL, "repeats": repeats}
"""All pages worth reading letter by letter."""
