"""What is measured of traces: the parameters of generators, and what describes traffic.

`benchmarks/measure_traces.py` writes the parameters; tests hold what is generated to
the same measures as what was recorded.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from math import sqrt
from statistics import fmean, pvariance
from typing import Literal

from admitperf.bench.workloads.arrivals import LEVELS, Bursts, Swells
from admitperf.bench.workloads.clients import Client, Window
from admitperf.bench.workloads.grown import Growth, common_tokens
from admitperf.bench.workloads.tables import table
from admitperf.simulator.traffic.sessions import Beginning, Call, Session

HALF = 0.5
"""Of the prompt before it; a call that keeps less is a reset, such as compaction."""

# ------------------------------------------------------------------------- arrivals


def gap_cv(times_s: Sequence[float]) -> float:
    """Coefficient of variation of the gaps; 1 = Poisson.

    Args:
        times_s: in order.
    """
    gaps = [after - before for before, after in pairwise(times_s)]
    return sqrt(pvariance(gaps)) / fmean(gaps)


def peak(times_s: Sequence[float], window_s: float) -> int:
    """The most arrivals in any window of so many seconds; in order."""
    most = first = 0
    for place, at_s in enumerate(times_s):
        while times_s[first] <= at_s - window_s:
            first += 1
        most = max(most, place - first + 1)
    return most


def dispersion(times_s: Sequence[float], window_s: float) -> float:
    """Variance over mean of the counts in windows one after the other; 1 = Poisson.

    A last window that is not whole is left out.
    """
    counts = _counts(times_s, window_s)[:-1]
    return pvariance(counts) / fmean(counts)


# -------------------------------------------------------------------------- prompts


def hit_share(begun: Iterable[Beginning]) -> float:
    """Of all prompt tokens, those that were seen before: an endless cache.

    Prompts are asked in the order given, the calls of a session one after the other.
    """
    seen, hits, asked = _Seen(), 0, 0
    for _, session in begun:
        for call in session.calls:
            prefix = [
                (chain if isinstance(chain, str) else (session.name, chain), tokens)
                for chain, tokens in call.prefix
            ]
            hits += min(seen.found(prefix), call.input_tokens)
            asked += call.input_tokens
            seen.add(prefix)
    return hits / asked


class _Seen:
    """How far each chain has been seen, by where it goes off from what is before it."""

    def __init__(self) -> None:
        self._deepest: dict[object, int] = {}

    def found(self, prefix: Iterable[tuple[object, int]]) -> int:
        """Tokens at the beginning that were seen before."""
        found = 0
        for chain, tokens in prefix:
            seen = min(tokens, self._deepest.get(chain, 0))
            found += seen
            if seen < tokens:
                break
        return found

    def add(self, prefix: Iterable[tuple[object, int]]) -> None:
        """They are seen now."""
        for chain, tokens in prefix:
            self._deepest[chain] = max(tokens, self._deepest.get(chain, 0))


# ------------------------------------------------------------------------- sessions


def following(session: Session) -> Iterator[tuple[Call, Call]]:
    """The calls that follow another one, after it; of what runs beside only the last.

    The place of a call that is followed by several is where the session went on.
    """
    for call in session.calls:
        if call.after is not None:
            yield session.calls[call.after], call


def growth(sessions: Sequence[Session], longest_gap_s: float) -> Growth:
    """How sessions grow.

    Args:
        sessions: as recorded, undivided.
        longest_gap_s: pauses are cut to it.
    """
    steps = [step for one in sessions for step in following(one)]
    kept = [
        common_tokens(before.prefix, call.prefix) / before.input_tokens
        for before, call in steps
    ]
    told = list(zip(steps, kept, strict=True))
    ordinary = [(b, c, k * b.input_tokens) for (b, c), k in told if k >= HALF]
    resets = [(b, c, k * b.input_tokens) for (b, c), k in told if k < HALF]
    calls = [call for one in sessions for call in one.calls]
    return Growth(
        calls=table(len(one.calls) for one in sessions),
        first=table(one.calls[0].input_tokens for one in sessions),
        fresh=table(c.input_tokens - common for _, c, common in ordinary),
        lost=table(b.input_tokens - common for b, _, common in ordinary),
        output=table(call.output_tokens for call in calls),
        gap_s=table(min(c.gap_s, longest_gap_s) for _, c in steps),
        resets=round(len(resets) / len(told), 4),
        kept=table(common / b.input_tokens for b, _, common in resets or ordinary),
        reset_fresh=table(c.input_tokens - n for _, c, n in resets or ordinary),
        most=max(call.input_tokens for call in calls),
    )


def clients(found: Sequence[Client]) -> list[tuple[str, Window]]:
    """Each with one window that stands for all of its own, the busiest first.

    The variation of gaps is the mean of its windows' by their requests, and the family
    that of most requests.
    """
    made = [(one.name, _window(one)) for one in found]
    return sorted(made, key=lambda one: -one[1].rate_per_s)


def _window(client: Client) -> Window:
    requests = {"G": 0.0, "W": 0.0}
    for one in client.windows:
        requests[one.family] += one.rate_per_s
    whole = sum(requests.values())
    cv = sum(one.cv * one.rate_per_s for one in client.windows) / whole
    family: Literal["G", "W"] = "W" if requests["W"] > requests["G"] else "G"
    return Window(round(client.rate_per_s, 5), round(cv, 3), family)


# ----------------------------------------------------------------- arrivals, to be made


def swells(times_s: Sequence[float]) -> Swells:
    """The rates of whole minutes; what is left of a last one is left out."""
    minutes = int((times_s[-1] - times_s[0]) / 60.0)
    counts = _counts(times_s, 60.0)[:minutes]
    mean = fmean(counts)
    shares = [round(count / mean, 4) for count in counts]
    return Swells(rate_per_s=round(mean / 60.0, 4), minutes=shares)


def bursts(times_s: Sequence[float]) -> Bursts:
    """Seconds, levels and pauses."""
    counts = _counts(times_s, 1.0)
    levels = [bisect_right(LEVELS, count) - 1 for count in counts]
    busy = range(len(LEVELS))
    return Bursts(
        rate_per_s=round(fmean(counts), 4),
        counts=[
            table(n for n, at in zip(counts, levels, strict=True) if at == level)
            for level in busy
        ],
        moves=[_shares(b for a, b in pairwise(levels) if a == level) for level in busy],
        first=_shares(b for a, b in pairwise(levels) if a < 0 <= b),
        pauses_s=table(len(list(run)) for level, run in groupby(levels) if level < 0),
    )


def _counts(times_s: Sequence[float], window_s: float) -> list[int]:
    begin_s = times_s[0]
    counts = [0] * (int((times_s[-1] - begin_s) / window_s) + 1)
    for at_s in times_s:
        counts[int((at_s - begin_s) / window_s)] += 1
    return counts


def _shares(levels: Iterable[int]) -> list[float]:
    found = list(levels)
    return [round(found.count(level) / len(found), 4) for level in range(len(LEVELS))]
