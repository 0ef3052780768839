"""Builds the repeats of two arms by hand, each run with a known goodput."""

from tests.reports.byhand import START_US, decision, header, kv, outcome

SLO = {"ttft_ms": 1500}
EVERY_US = 100_000


def repeat(policy, name, good, *, refused=0, offered=100, every_us=EVERY_US, **changes):
    """The lines of one run: so many refused, so many good, the rest too slow.

    Args:
        policy: its name; `no_admission` is a baseline.
        name: which repeat it is.
        good: how many meet the SLO.
        refused: how many are turned away.
        offered: how many there are.
        every_us: between arrivals.
        changes: of the run line; `facts` stand on every decision, `slow_ms` is the
            time to first token of those that miss; `held` of those that are let in
            were held before.
    """
    held = changes.pop("held", 0)
    facts, slow_ms = changes.pop("facts", {}), changes.pop("slow_ms", 9000)
    run = changes.pop("run", f"{policy}-{name}")
    lines = [_head(policy, name, run, changes)]
    jitter = sum(map(ord, run)) % 50  # so that no two repeats are copies
    for seq in range(1, offered + 1):
        at = {"run": run, "t_us": START_US + seq * every_us, "facts": facts}
        if seq <= refused:
            lines.append({**kv(seq, 0.95), **at})
            continue
        if seq - refused <= held:
            at |= {"held_ms": 250.0}
        lines.append({**_let_in(policy, seq), **at})
        ttft_ms = 400 if seq - refused <= good else slow_ms
        lines.append(outcome(seq, run=run, ttft_ms=ttft_ms + jitter + seq))
    return lines


def _let_in(policy, seq):
    if policy == "no_admission":
        return decision(seq, signals={"kv_pressure": 0.5})
    return kv(seq, 0.5)


def _head(policy, name, run, changes):
    baseline = policy == "no_admission"
    said = {
        "run": run,
        "policy": policy,
        "name": name,
        "experiment": "pilot",
        "slo": SLO,
        "config": f"{policy}0",
        "params": {} if baseline else {"threshold": 0.9},
        "provenance": {} if baseline else {"threshold": "fitted"},
        "requires": [] if baseline else ["kv_pressure"],
        "taxonomy": {"baseline": baseline},
    }
    return header(**{**said, **changes})


def arm(policy, goods, **changes):
    """The lines of an arm: a repeat `r1`, `r2` and so on for each number of good."""
    return [
        line
        for n, good in enumerate(goods, start=1)
        for line in repeat(policy, f"r{n}", good, **changes)
    ]


BASELINE = (50, 52, 49, 51, 50, 53)
BETTER = (70, 73, 68, 72, 71, 72)


def better(pairs=6, **changes):
    """An arm that refuses 20 and serves more in time."""
    return arm("queue_bound", BETTER[:pairs], **{"refused": 20, **changes})


def worse(pairs=6, **changes):
    """An arm that refuses 70: a short tail, and fewer served in time."""
    goods = (30, 29, 30, 28, 30, 27)
    changes = {"slow_ms": 1600, **changes}
    return arm("kv_wall", goods[:pairs], refused=70, **changes)


def baseline(pairs=6, **changes):
    """No admission: everyone is served, half of them too late."""
    return arm("no_admission", BASELINE[:pairs], **changes)
