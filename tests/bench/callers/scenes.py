"""Scenes in which every number can be counted by hand."""

import heapq
from itertools import count

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.callers.client import client
from admitperf.simulator import Answer
from admitperf.simulator.traffic.sessions import Call, Session


def call(after=None, gap_s=0.0, input_tokens=100, output_tokens=10, **more):
    """A call of a hundred tokens with an answer of ten."""
    return Call(
        after=after,
        gap_s=gap_s,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        **more,
    )


def line_of(name, calls, gap_s=1.0, **more):
    """A session of calls one after the other, a second between them."""
    first = call()
    rest = [call(after=place, gap_s=gap_s) for place in range(calls - 1)]
    return Session(name, (first, *rest), 50, **more)


def alone(name, **more):
    """A session of one call."""
    return Session(name, (call(**more),), 50)


def yes(ttft_ms=100.0, e2e_ms=200.0, **more):
    """A whole answer."""
    told = {"output_tokens": 10, "cached_tokens": 0, **more}
    return Answer(ok=True, ttft_ms=ttft_ms, max_gap_ms=10.0, e2e_ms=e2e_ms, **told)


def no(**more):
    """A refusal."""
    return Answer(ok=False, refused=True, **{"status": 503, "reason": "busy", **more})


def made(*begun, lasts_s=100.0, scored_s=None, of=None, **more):
    """A plan of sessions, each by (instant, session)."""
    of = of or client("none")
    return planned(begun, lasts_s, scored_s or (0.0, lasts_s), of, **more)


class Target:
    """Answers attempts as it is told, in the order of their times.

    Args:
        answer: what an attempt gets: a function of the arrival, to an `Answer`, whose
            end is `e2e_ms`, else `after_ms`, after the arrival.
        after_ms: when refusals and failures come.
    """

    def __init__(self, answer, after_ms=0.0):
        self._answer = answer
        self._after_ms = after_ms
        self.asked = []

    def drive(self, callers, until_s=float("inf")):
        """Everything that is asked until then; what is open at the end stays open."""
        number, heap = count(), []

        def push(at_s, *what):
            heapq.heappush(heap, (at_s, next(number), *what))

        for one in callers.first():
            push(one.at_s, one, None)
        while heap and heap[0][0] <= until_s:
            at_s, _, one, answer = heapq.heappop(heap)
            if answer is None:
                self.asked.append(one)
                got = self._answer(one)
                took_ms = got.e2e_ms if got.e2e_ms is not None else self._after_ms
                push(at_s + took_ms / 1000, one, got)
                continue
            for following in callers.after(one, at_s, answer):
                assert following.at_s >= at_s
                push(following.at_s, following, None)
        return callers


def driven(plan, answer, of=None, seed=1, *, until_s=float("inf"), **more):
    """The callers of a plan after everything was asked, and what was asked."""
    callers = Callers(plan, of or client("none"), seed, **more)
    target = Target(answer)
    target.drive(callers, until_s)
    return callers, target.asked


def told(*answers):
    """Answers by the order of asking, the last one for the rest."""
    left = list(answers)
    return lambda _arrival: left.pop(0) if len(left) > 1 else left[0]


def by_attempt(*answers):
    """Answers by the number of the attempt, the last one for the rest."""
    return lambda arrival: answers[min(arrival.attempt, len(answers) - 1)]
