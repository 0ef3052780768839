"""Logs by hand, one for each branch of the decision tree."""

from tests.reports.byhand import START_US, decision, header, outcome

SLO = {"ttft_ms": 1500}
BASELINE = {
    "policy": "no_admission",
    "class": "admitperf.policies.no_admission:NoAdmission",
    "params": {},
    "provenance": {},
    "requires": [],
    "taxonomy": {"baseline": True},
    "config": "none",
}


def head(**changes):
    """The header of a run without admission control, under an SLO."""
    return header(**{**BASELINE, "slo": SLO, **changes})


def row(seq, ttft_ms=None, facts=None, **signals):
    """A decision that admits, and the outcome when it has a TTFT."""
    yield decision(seq, signals=signals, facts=facts or {})
    if ttft_ms is not None:
        yield outcome(seq, ttft_ms=ttft_ms, e2e_ms=ttft_ms + 1000)


def rows(n, made):
    """The lines of n decisions, each by its number from 1 on."""
    for seq in range(1, n + 1):
        yield from made(seq)


def slots(n=100, *, outcomes=True, facts=None):
    """Four slots, always taken; half a percent of memory; a queue up to 24."""
    yield head()

    def made(seq):
        waiting = 24 * seq // n
        ttft_ms = 100 + 200 * waiting if outcomes else None
        signals = {"queue_depth": waiting, "kv_pressure": 0.005, "running": 4}
        return row(seq, ttft_ms, facts(seq) if facts else None, **signals)

    yield from rows(n, made)


def memory(n=100, hits=None):
    """A cache that is full whenever requests wait, and ample capacity known."""
    yield head()

    def made(seq):
        full = seq > n // 2
        signals = {
            "kv_pressure": 0.95 if full else 0.6,
            "queue_depth": 9 if full else 0,
            "kv_capacity_tokens": 10_000,
        }
        if hits is not None:
            signals["prefix_hit_rate"] = hits
        return row(seq, 3000 if full else 300, **signals)

    yield from rows(n, made)


def agents(n=200):
    """Sessions of ten calls before slots that are all taken."""
    yield from slots(n, facts=lambda seq: {"session": f"s{seq // 10}"})


def everything(n=100):
    """What a host may say of requests and engine; a queue, and a cache that fills."""
    yield head()

    def made(seq):
        waiting = 24 * seq // n
        signals = {
            "queue_depth": waiting,
            "kv_pressure": 0.95 if seq > 0.9 * n else 0.44,
            "kv_capacity_tokens": 10_000,
            "running": 4,
            "in_flight": 4 + waiting,
            "oldest_wait_s": waiting / 10,
            "input_tokens": 200,
        }
        facts = {
            "tenant": "a" if seq % 5 else "b",
            "session": f"s{seq // 10}",
            "priority": seq % 2,
            "input_tokens": 200,
            **({"deadline_s": 5.0} if seq % 4 == 0 else {}),
        }
        return row(seq, 100 + 200 * waiting, facts, **signals)

    yield from rows(n, made)


def reuse(n=100):
    """A cache that is full of prefixes, and nobody waits."""
    yield head()
    signals = {"kv_pressure": 0.97, "queue_depth": 0, "prefix_hit_rate": 0.9}
    yield from rows(n, lambda seq: row(seq, 200, **signals))


def idle(n=100):
    """Nothing waits, and all is good."""
    yield head()
    signals = {"kv_pressure": 0.2, "queue_depth": 0, "running": 3}
    yield from rows(n, lambda seq: row(seq, 200, **signals))


def prefill(n=100):
    """A queue, few running, and long prompts that wait ten times longer."""
    yield head()

    def made(seq):
        tokens = 100 * seq
        running = 8 if seq == 1 else 2
        signals = {"queue_depth": 5, "kv_pressure": 0.1, "running": running}
        return row(
            seq,
            30 * seq,
            {"input_tokens": tokens},
            **signals,
            input_tokens=tokens,
        )

    yield from rows(n, made)


def calm(n=100):
    """One request met a queue, and all is good."""
    yield head()

    def made(seq):
        return row(seq, 200, queue_depth=int(seq == 1), kv_pressure=0.05)

    yield from rows(n, made)


def tight(n=100, policy="first_of", kv_pressure=0.01, running=4, ttft_ms=200):
    """A policy that refuses nine of ten before an engine that idles."""
    yield head(policy=policy, taxonomy={"baseline": False}, config="tight")
    signals = {"kv_pressure": kv_pressure, "running": running, "oldest_wait_s": 0.1}
    for seq in range(1, n + 1):
        shown = {**signals, "queue_depth": int(seq == 1)}
        if seq % 10:
            yield decision(seq, "defer", "in_flight_cap", signals=shown)
        else:
            yield from row(seq, ttft_ms, **shown)


def refusing(n=100):
    """A policy that refuses half, and behind it nothing waits."""
    yield head(policy="rate_limit", taxonomy={"baseline": False}, config="limit")
    for seq in range(1, n + 1):
        answer = ("reject", "rate_limit") if seq % 2 else ("admit", None)
        yield decision(seq, *answer, signals={"queue_depth": 0})


def watched(n=60):
    """What `watch` leaves: every signal once, and two policies over them."""
    free = {"enforced": False, "admitted": True, "status": 200}
    policies = {
        "samples": BASELINE,
        "kv": {"policy": "kv_threshold", "config": "kv"},
        "queue": {"policy": "queue_depth", "config": "queue"},
    }
    for run, changes in policies.items():
        yield header(run=run, basis="samples", enforce=0.0, **changes)
        for seq in range(1, n + 1):
            signals = {"kv_pressure": 0.3, "queue_depth": seq}
            fires = run == "queue" and seq > 32
            answer = ("defer", "queue_depth") if fires else ("admit", None)
            at = {"run": run, "t_us": START_US + seq}
            yield {**decision(seq, *answer, signals=signals), **free, **at}
