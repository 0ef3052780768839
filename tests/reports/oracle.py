"""A report's numbers by brute force: plain loops over the lines of one run.

Written from what the dataclasses promise, not from the SQL. Slow, and short enough to
be checked by eye.
"""

import math
from collections import Counter
from itertools import pairwise
from operator import ge, gt, le, lt

HOLDS = {">=": ge, ">": gt, "<=": le, "<": lt}
MOST_BOUNDS = 8
APART = ("client_closed", "upstream_refused")
CUT_SHORT = ("length", "max_tokens", "max_output_tokens")


def spread(values):
    """(n, min, p50, p95, p99, max) by nearest rank; p95 from 20 on, p99 from 100."""
    ordered = sorted(value for value in values if value is not None)
    n = len(ordered)

    def rank(hundredths, fewest):
        return None if n < fewest else ordered[-(-hundredths * n // 100) - 1]

    ends = (ordered[0], ordered[-1]) if n else (None, None)
    return n, ends[0], rank(50, 1), rank(95, 20), rank(99, 100), ends[1]


class Oracle:
    """The lines of one run, each record once."""

    def __init__(self, lines, slo=None):
        self.decisions = [arrived(d) for d in once(lines, "decision", "seq")]
        self.outcomes = once(lines, "outcome", "of")
        self.slo = slo or {}
        self.by_number = {(d["run"], d["seq"]): d for d in self.decisions}
        self.calls = {}
        for decision in self.decisions:
            self.calls.setdefault(call_of(decision), []).append(decision)
        for attempts in self.calls.values():
            attempts.sort(key=lambda one: one["t_us"])

    # ------------------------------------------------------------------ answers

    def answers(self):
        """Counts by verdict, reason and blindness."""
        rows = Counter(
            (d["verdict"], reason_of(d), bool(d.get("blind"))) for d in self.decisions
        )
        own = [
            d
            for d in self.decisions
            if d["verdict"] != "admit" and not blind(d) and not by_host(d)
        ]
        acted = [d for d in self.decisions if not blind(d) and (d in own or held(d))]
        return {
            "offered": len(self.decisions),
            "enforced": sum(d["enforced"] for d in self.decisions),
            "turned_away": sum(map(away, self.decisions)),
            "refused": len(own),
            "refused_enforced": sum(d["enforced"] and "probe" not in d for d in own),
            "acted": len(acted),
            "acted_enforced": sum(
                d["enforced"] and ("probe" not in d or held(d)) for d in acted
            ),
            "held": self.held(),
            "probes": sum("probe" in d for d in self.decisions),
            "host": dict(
                Counter(d["why"] for d in self.decisions if by_host(d) and not held(d))
            ),
            "blind": dict(Counter(d["blind"] for d in self.decisions if blind(d))),
            "rows": dict(rows),
        }

    def held(self):
        """How many were held, what became of them, and for how long."""
        some = [d for d in self.decisions if held(d)]
        return (
            len(some),
            sum(d["admitted"] for d in some),
            sum(map(away, some)),
            sum(map(gone, some)),
            spread(d["held_ms"] for d in some),
        )

    # --------------------------------------------------------------------- cost

    def cost(self):
        """What was let in, reported and good, by attempt."""
        matched = [(o, self.decision_of(o)) for o in self.outcomes]
        matched = [(o, d) for o, d in matched if d is not None]
        served = sum(not d["admitted"] for _, d in matched)
        ok = [(o, d) for o, d in matched if o["ok"]]
        ended = Counter(o["error"] for o, _ in matched if not o["ok"])
        why = Counter(self.missed(o, d, 0.0) for o, d in ok)
        outputs = [(asked(d), got(o)) for o, d in ok if None not in (asked(d), got(o))]
        due = [add(fact(d, "late_ms"), o.get("ttft_ms")) for o, d in ok]
        return {
            "let_in": sum(d["admitted"] for d in self.decisions) + served,
            "refused_but_served": served,
            "reported": len(matched),
            "without_decision": len(self.outcomes) - len(matched),
            "ok": len(ok),
            "goodput": why[None] if self.outcomes else None,
            "missed": {k: n for k, n in why.items() if k and not k.startswith("no ")},
            "unjudged": {k: n for k, n in why.items() if k and k.startswith("no ")},
            "ok_alone": sum(not self.bounds(d) for _, d in ok),
            "errors": {why: n for why, n in ended.items() if why not in APART},
            "left": ended[APART[0]],
            "engine_refused": ended[APART[1]],
            "failed": sum(n for why, n in ended.items() if why not in APART),
            "truncated": sum(o.get("finish_reason") in CUT_SHORT for o, _ in ok),
            "ttft_ms": spread(o.get("ttft_ms") for o, _ in ok),
            "ttft_due_ms": spread(due),
            "output": tuple(map(sum, zip(*outputs, strict=True))) if outputs else None,
        }

    def requests(self):
        """The same by call; None when no decision carries a logical id."""
        if all(fact(d, "logical_id") is None for d in self.decisions):
            return None
        let_in = good = good_last = 0
        user_ms, last_ms = [], []
        for attempts in self.calls.values():
            ended = [
                (o, d)
                for d in attempts
                for o in self.outcomes
                if (o["run"], o["of"]) == (d["run"], d["seq"])
            ]
            ok = [(o, d, self.later_ms(d, attempts)) for o, d in ended if o["ok"]]
            let_in += bool(ended) or any(d["admitted"] for d in attempts)
            good += any(self.missed(o, d, later) is None for o, d, later in ok)
            good_last += any(self.missed(o, d, 0.0) is None for o, d, _ in ok)
            first = [(o, later) for o, _, later in ok if o.get("ttft_ms") is not None]
            for o, later in first[:1]:
                user_ms.append(o["ttft_ms"] + later)
                last_ms.append(o["ttft_ms"])
        return {
            "offered": len(self.calls),
            "let_in": let_in,
            "goodput": good if self.outcomes else None,
            "goodput_last": good_last if self.outcomes else None,
            "without_id": sum(fact(d, "logical_id") is None for d in self.decisions),
            "ttft_user_ms": spread(user_ms),
            "ttft_last_ms": spread(last_ms),
        }

    def decision_of(self, outcome):
        """The decision an outcome belongs to; None when the log has none."""
        return self.by_number.get((outcome["run"], outcome["of"]))

    def later_ms(self, decision, attempts):
        """How much later than for the attempt everything came for the caller."""
        first = attempts[0]
        waited_ms = (decision["t_us"] - first["t_us"]) / 1000
        return waited_ms + (fact(first, "late_ms") or 0.0)

    def bounds(self, decision):
        """The bounds that a decision's class has."""
        if any(isinstance(value, dict) for value in self.slo.values()):
            return self.slo.get(fact(decision, "slo_class"), {})
        return self.slo

    def missed(self, outcome, decision, later_ms):
        """The first bound that was missed, or could not be judged; None when met."""
        bounds, missing = self.bounds(decision), None
        whole = fact(decision, "stream") is False
        names = {"ttft_ms": "e2e_ms" if whole else "ttft_ms", "e2e_ms": "e2e_ms"}
        if not whole:
            names["stall_ms"] = "max_gap_ms"
        for bound in ("ttft_ms", "stall_ms", "e2e_ms"):
            if bound not in bounds or bound not in names:
                continue
            value = outcome.get(names[bound])
            if value is None:
                missing = missing or f"no {names[bound]}"
            elif value + (0.0 if bound == "stall_ms" else later_ms) > bounds[bound]:
                return bound
        return missing

    # -------------------------------------------------------------------- gates

    def gates(self):
        """Per gate: counts, completed counts, range, distance to the bound."""
        asked = {}
        for d in self.decisions:
            for name, value, op, bound, _ in d["gates"]:
                if d.get("blind") is None or value is None:
                    asked.setdefault((name, op), []).append((value, bound))
        found = []
        for (name, op), pairs in asked.items():
            bounds = {bound for _, bound in pairs}
            if len(bounds) > MOST_BOUNDS:
                found.append(self.gate(name, op, pairs, None))
            else:
                for bound in bounds:
                    some = [pair for pair in pairs if pair[1] == bound]
                    found.append(self.gate(name, op, some, bound))
        return sorted(found, key=str)

    def gate(self, name, op, pairs, still):
        """One gate; `still` is its bound when that did not move."""
        own = [(value, bound) for value, bound in pairs if value is not None]
        column = [d["signals"].get(name) for d in self.decisions]
        sighted = [
            d["signals"].get(name)
            for d in self.decisions
            if "blind" not in d and not by_host(d)
        ]
        whole = own
        if still is not None and any(value is not None for value in column):
            whole = [(value, still) for value in sighted if value is not None]
            whole = whole if len(whole) >= len(own) else own
            completed = len(whole) - len(own)
        else:
            completed = None
        held = sum(HOLDS[op](value, bound) for value, bound in own)
        all_held = sum(HOLDS[op](value, bound) for value, bound in whole)
        values = [value for value, _ in whole]
        return (
            name,
            op,
            len(own),
            held,
            len(pairs) - len(own),
            completed,
            None if completed is None else max(all_held - held, 0),
            min(values, default=None),
            max(values, default=None),
            min((abs(value - bound) for value, bound in whole), default=None),
        )

    def joint(self):
        """(held, of, nearest distance) over all gates; None when it cannot be said."""
        gates = {
            (name, op, bound)
            for d in self.decisions
            for name, value, op, bound, _ in d["gates"]
            if d.get("blind") is None or value is None
        }
        moving = Counter((name, op) for name, op, _ in gates)
        known = {name for d in self.decisions for name in known_signals(d)}
        if len(gates) < 2 or any(n > MOST_BOUNDS for n in moving.values()):
            return None
        if any(name not in known for name, _, _ in gates):
            return None
        held, distances = 0, []
        for d in self.decisions:
            names = {name for name, _, _ in gates}
            if "blind" in d or by_host(d) or not names <= known_signals(d):
                continue
            values = d["signals"]
            held += all(HOLDS[op](values[name], bound) for name, op, bound in gates)
            distances.append(
                max(short(values[name], op, bound) for name, op, bound in gates)
            )
        return held, len(distances), min(distances, default=None)

    # ------------------------------------------------------------------- others

    def signals(self):
        """Each signal's spread over the decisions."""
        names = {name for d in self.decisions for name in known_signals(d)}
        return {
            name: spread(d["signals"].get(name) for d in self.decisions)
            for name in names
        }

    def load(self):
        """Attempts, calls, span, rate, and how late requests were sent."""
        late = [fact(d, "late_ms") for d in self.decisions]
        moments = sorted(d["t_us"] for d in self.decisions)
        span_s = (moments[-1] - moments[0]) / 1e6 if moments else None
        firsts = sorted(attempts[0]["t_us"] for attempts in self.calls.values())
        named = self.requests() is not None
        arrivals = firsts if named else moments
        width_s = sum(b - a for a, b in pairwise(arrivals)) / 1e6
        return {
            "attempts": len(self.decisions),
            "calls": len(self.calls) if named else None,
            "span_s": span_s,
            "rate_per_s": (len(arrivals) - 1) / width_s if width_s else None,
            "late_ms": spread(late),
            "late": sum(value is not None and value > 10 for value in late),
        }


def once(lines, kind, number):
    """The first record of a kind with each number of its process."""
    found = {}
    for line in lines:
        if line["k"] == kind:
            found.setdefault((line["run"], line[number]), line)
    return list(found.values())


def call_of(decision):
    """What attempts of one call share."""
    logical = fact(decision, "logical_id")
    return logical if logical is not None else (decision["run"], decision["seq"])


def arrived(decision):
    """A decision whose time is that of its arrival."""
    held_us = int(decision.get("held_ms", 0) * 1000)
    return {**decision, "t_us": decision["t_us"] - held_us}


def by_host(decision):
    """Whether the host refused by itself."""
    return decision.get("by") == "host"


def held(decision):
    """Whether the host held it before it answered."""
    return decision.get("held_ms", 0) > 0


def gone(decision):
    """Whether its caller left while it was held."""
    left = by_host(decision) and decision["why"] == "client_closed"
    return held(decision) and left and not decision["admitted"]


def away(decision):
    """Whether its caller got a refusal."""
    return not decision["admitted"] and not gone(decision)


def reason_of(decision):
    """What a row of the answers calls it."""
    said = decision["reason"] or ""
    return f"host: {decision['why']}" if by_host(decision) else said


def blind(decision):
    """Whether a decision was made blind."""
    return bool(decision.get("blind"))


def fact(decision, name):
    """A fact of the request; None when it is not known."""
    return decision.get("facts", {}).get(name)


def asked(decision):
    """Tokens asked for."""
    return fact(decision, "max_output_tokens")


def got(outcome):
    """Tokens that came."""
    return outcome.get("output_tokens")


def add(one, other):
    """The sum; None when either is not known."""
    return None if one is None or other is None else one + other


def known_signals(decision):
    """The names of the signals a decision has values of."""
    return {name for name, value in decision["signals"].items() if value is not None}


def short(value, op, bound):
    """How far a value is from holding, over the size of the bound."""
    missing = bound - value if op in (">=", ">") else value - bound
    return max(missing, 0.0) / (math.fabs(bound) or 1.0)
