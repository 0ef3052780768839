"""What else can void an arm of a benchmark: it must not be no."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from admitperf.bench.design.guard import EVERY, Ask, Row, lacking, others
from admitperf.bench.design.results import (
    OF_CAPACITY,
    Experiment,
    Run,
    finite,
    number_at,
    unreadable,
    whole,
)
from admitperf.bench.design.steady import MOST_DRIFT, drift
from admitperf.reports.comparison.conditions import FEWEST_KNOWN, MOST_LATE_MS
from admitperf.reports.pages.checks import NO, NOT_ASKED, OK, checks
from admitperf.reports.pages.items import MOST_OFF_LOAD
from admitperf.reports.report import RunReport
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.wording import number, plural, printable, share

MOST_ERRORS = 0.005
"""Calls that may fail though nothing refused them, of those offered: the method's."""

MOST_SHORT = 0.01
"""Of whole answers, the most that may be shorter than planned. Plain choice."""

_INSTRUMENT = (
    "records lost",
    "decided blind",
    "outcomes reported",
    "no record twice",
)


# ----------------------------------------------------------------------- on time


def _on_time(of: Experiment) -> Iterator[Row]:
    yield from lacking(of, "simulated")
    for run in of.runs:
        p99 = number_at(run.summary, "late_ms", "p99")
        late = number_at(run.summary, "late_ms", "max") if p99 is None else p99
        if late is None:
            simulated = run.manifest.get("simulated") is True
            answer = OK if simulated else NOT_ASKED
            said = "Virtual time: nothing is sent late." if simulated else "No lag."
            yield Row(run.arm, answer, said)
        elif late > MOST_LATE_MS:
            told = f"the latest hundredth was sent {number(late)} ms late or more"
            yield Row(run.arm, NO, f"{run.name}: {told}; at most {MOST_LATE_MS:g} ms.")
        else:
            told = f"p99 of how late they were sent: below {MOST_LATE_MS:g} ms"
            yield Row(run.arm, OK, f"{told} in each run.")


# -------------------------------------------------------------------------- load


def _as_stated(of: Experiment) -> Iterator[Row]:
    """The mean over the blocks of a load, which differ as traces do."""
    yield from lacking(of, "load_reached")
    own: dict[tuple[str, float], list[Run]] = defaultdict(list)
    for run in of.runs:
        if finite(run.manifest.get("load_reached")) is not None:
            own[run.arm, run.load].append(run)
    for (arm, load), runs in own.items():
        reached = [number_at(run.manifest, "load_reached") or 0.0 for run in runs]
        mean = fmean(reached)
        if abs(mean - load) > max(MOST_OFF_LOAD * load, 2 * _error(load, runs)):
            told = f"{load:g}x is stated and {mean:.2f}x was offered"
            yield Row(arm, NO, f"{told}, mean of {plural(len(runs), 'block')}.")
        else:
            within = f"{100 * MOST_OFF_LOAD:g} %"
            said = f"Offered within {within} of each stated multiple, or within two"
            yield Row(arm, OK, f"{said} standard errors of its blocks.")


def _error(load: float, runs: Sequence[Run]) -> float:
    """The standard error of the load that some blocks offer together.

    From how they differ, and not below that of a Poisson plan of so few beginnings.
    """
    reached = [number_at(run.manifest, "load_reached") or 0.0 for run in runs]
    spread = stdev(reached) / sqrt(len(reached)) if len(reached) > 1 else 0.0
    begun = sum(
        (finite(run.manifest.get("rate_per_s"), 0) or 0.0)
        * (finite(run.manifest.get("lasts_s"), 0) or 0.0)
        for run in runs
    )
    return max(spread, load / sqrt(begun) if begun else 0.0)


def _same_capacity(of: Experiment) -> Iterator[Row]:
    stated = of.stated.get("capacity")
    wrong = [*unreadable(stated, OF_CAPACITY)]
    if wrong:
        yield Row(EVERY, NO, f"Of the capacity {wrong[0]}.")
        return
    low, high = number_at(stated, "low"), number_at(stated, "high")
    after = number_at(stated, "after", "per_s")
    if low is None or high is None or after is None:
        yield Row(EVERY, NOT_ASKED, "The capacity was not measured again at the end.")
        return
    bottom, top = number_at(stated, "after", "low"), number_at(stated, "after", "high")
    bottom, top = after if bottom is None else bottom, after if top is None else top
    told = (
        f"{number(number_at(stated, 'per_s'))} a second before, {number(low)} to"
        f" {number(high)}; {number(after)} after, {number(bottom)} to {number(top)}"
    )
    if bottom > high or top < low:
        yield Row(EVERY, NO, f"The capacity changed: {told}.")
    else:
        yield Row(EVERY, OK, f"The intervals overlap: {told}.")


# ----------------------------------------------------------------------- signals


def _known(of: Experiment) -> Iterator[Row]:
    for arm in others(of):
        runs = [run for run in of.of(arm) if run.log]
        yield from (row for run in runs for row in _unknown(run))
        above = [run.log for run in runs if run.log and run.load > 1]
        for name in _never_moved(above):
            told = f"{printable(name)} never moved in {plural(len(above), 'run')}"
            yield Row(arm, NO, f"{printable(arm)}: {told} above capacity.")


def _unknown(run: Run) -> Iterator[Row]:
    for gate in run.log.gates if run.log else ():
        of = run.log.answers.offered if run.log else 0
        if gate.unknown > (1 - FEWEST_KNOWN) * of:
            told = f"could not be evaluated on {share(gate.unknown, of)}"
            yield Row(run.arm, NO, f"{run.name}: {gate_text(gate)} {told}.")
        else:
            told = f"known on {100 * FEWEST_KNOWN:g} % of decisions"
            yield Row(run.arm, OK, f"Each signal moved, and was {told} or more.")


def _never_moved(logs: Sequence[RunReport]) -> list[str]:
    compared = dict.fromkeys(gate.signal for log in logs for gate in log.gates)
    spreads = {
        name: [one.spread for log in logs for one in log.signals if one.name == name]
        for name in compared
    }
    return [
        name
        for name, own in spreads.items()
        if any(one.n for one in own) and not any(one.moved for one in own)
    ]


def _instrument(of: Experiment) -> Iterator[Row]:
    for run in of.runs:
        asked = checks(run.log) if run.log else ()
        bad = [
            one.says for one in asked if one.name in _INSTRUMENT and one.answer == NO
        ]
        bad += _short(run)
        yield from (Row(run.arm, NO, f"{run.name}: {why}") for why in bad)
        if asked and not bad:
            said = "At most 0.1 % lost and 1 % blind; outcomes for 99 % of those let in"
            yield Row(run.arm, OK, f"{said}; answers as long as planned.")


def _short(run: Run) -> list[str]:
    """Answers that came shorter than the plan says: then the load stayed below it."""
    n, of = (round(number_at(run.summary, "short", name) or 0) for name in ("n", "of"))
    if n <= MOST_SHORT * of:
        return []
    return [f"{share(n, of)} answers were shorter than planned: the load stayed below."]


# ------------------------------------------------------------------------ engine


def _restarts(of: Experiment) -> Iterator[Row]:
    yield from lacking(of, "simulated")
    for run in of.runs:
        n = finite(run.manifest.get("restarts"))
        if n is None:
            yield _unknown_restarts(run)
        elif n:
            yield Row(run.arm, NO, f"{run.name}: {plural(int(n), 'restart')}.")
        else:
            yield Row(run.arm, OK, f"No restart in {plural(len(of.runs), 'run')}.")


def _unknown_restarts(run: Run) -> Row:
    if run.manifest.get("simulated") is True:
        return Row(run.arm, OK, "A simulated engine does not restart.")
    return Row(run.arm, NOT_ASKED, "It is not known.")


def _no_drift(of: Experiment) -> Iterator[Row]:
    probes = {
        order: probe
        for run in of.runs
        if (order := whole(run.manifest.get("order"))) is not None
        and (probe := finite(run.manifest.get("probe_ms"))) is not None
    }
    if not probes and of.simulated:
        yield Row(EVERY, OK, "Virtual time does not drift.")
        return
    found = drift(probes)
    if found is None:
        yield Row(
            EVERY, NOT_ASKED, f"{plural(len(probes), 'probe')} of a run: too few."
        )
        return
    told = (
        f"{100 * found.change:+.1f} % over {plural(found.n, 'probe')}"
        f" (p {number(found.p)}), largest step {100 * found.shift:+.1f} %"
        f" (p {number(found.shift_p)})"
    )
    bound = f"{100 * MOST_DRIFT:g} % beyond chance is the bound"
    yield Row(EVERY, NO if found.drifts else OK, f"{told}; {bound}.")


# -------------------------------------------------------------------- conditions


def _one_window(of: Experiment) -> Iterator[Row]:
    yield from lacking(of, "warmup_s", "scored_s")
    cuts = {_canonical(run.manifest.get("warmup_s")) for run in of.runs}
    if len(cuts) > 1:
        told = printable(", ".join(sorted(cuts)))
        yield Row(EVERY, NO, f"The warm-ups differ: {told} s.")
    windows: dict[tuple[float, int], set[str]] = defaultdict(set)
    for run in of.runs:
        windows[run.load, run.block].add(_canonical(run.manifest.get("scored_s")))
    for (load, block), same in windows.items():
        if len(same) > 1:
            told = printable(" and ".join(sorted(same)))
            yield Row(EVERY, NO, f"x{load:g}-b{block}: scored from {told} s.")
    known = cuts - {_canonical(None)}
    said = (
        f"The first {cuts.pop()} s of each run are left out."
        if known
        else "No run says."
    )
    yield Row(EVERY, OK if known else NOT_ASKED, said)


def _one_client(of: Experiment) -> Iterator[Row]:
    yield from lacking(of, "client")
    found = _values(of, "client")
    if len(found) > 1:
        yield Row(EVERY, NO, f"The clients differ: {_told(found)}.")
    elif found:
        said = (run.manifest.get("client") for run in of.runs)
        client = next(one for one in said if one is not None)
        name = client.get("name") if isinstance(client, dict) else client
        yield Row(EVERY, OK, f"{printable(str(name))} in every run.")


def _few_errors(of: Experiment) -> Iterator[Row]:
    for arm in (of.design.baseline, *others(of)):
        parts = [
            (
                number_at(run.summary, "errors", "n"),
                number_at(run.summary, "errors", "of"),
            )
            for run in of.of(arm)
        ]
        n = round(sum(n for n, of_ in parts if n is not None and of_ is not None))
        total = round(sum(of_ for n, of_ in parts if n is not None and of_ is not None))
        if total and n > MOST_ERRORS * total:
            told = f"{share(n, total)} calls failed though nothing refused them"
            yield Row(arm, NO, f"{printable(arm)}: {told}; at most 0.5 % may.")
        elif total:
            yield Row(
                arm, OK, "At most 0.5 % of the calls failed unrefused in each arm."
            )


def _one_slo(of: Experiment) -> Iterator[Row]:
    yield from lacking(of, "slo")
    found = _values(of, "slo")
    if len(found) > 1:
        yield Row(EVERY, NO, f"The SLOs differ: {_told(found)}.")
        return
    given = of.stated.get("slo") or of.runs[0].manifest.get("slo")
    origin = given.get("from") if isinstance(given, dict) else None
    if origin == "unloaded":
        yield Row(EVERY, OK, "From the unloaded latency of this deployment.")
    elif origin is not None:
        said = "The SLO was given, not calibrated on this deployment."
        yield Row(EVERY, NOT_ASKED, said)


def _values(of: Experiment, name: str) -> Mapping[str, list[str]]:
    """The runs by what their manifests say; those that say nothing are left out."""
    found: dict[str, list[str]] = {}
    for run in of.runs:
        if run.manifest.get(name) is not None:
            found.setdefault(_canonical(run.manifest[name]), []).append(run.name)
    return found


def _canonical(given: Any) -> str:  # noqa: ANN401  whatever a manifest holds
    if isinstance(given, dict):
        inside = (f"{key}: {_canonical(given[key])}" for key in sorted(given))
        return f"{{{', '.join(inside)}}}"
    if isinstance(given, list):
        return f"{' to '.join(map(_canonical, given))}"
    plain = finite(given)
    return str(given) if plain is None else f"{plain:g}"


def _told(found: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{printable(value)} in {who[0]}" for value, who in found.items())


CONDITIONS: tuple[tuple[str, Ask], ...] = (
    ("calls were sent when they were due", _on_time),
    ("the load is the stated multiple of capacity", _as_stated),
    ("the capacity stayed what it was", _same_capacity),
    ("the signals it reads moved and were known", _known),
    ("the logs are whole", _instrument),
    ("the engine did not restart", _restarts),
    ("the engine did not drift", _no_drift),
    ("one warm-up, one window", _one_window),
    ("one client", _one_client),
    ("few errors but refusals", _few_errors),
    ("one SLO, from unloaded latency", _one_slo),
)
"""What is asked, in order."""
