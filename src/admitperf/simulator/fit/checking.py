"""A profile held against a recorded run: what was, and what the model makes of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, median

from admitperf.core.errors import ConfigError
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.fit.recorded import Recorded, Sight
from admitperf.simulator.fit.replay import Played, drained_per_s, engine_of, replay
from admitperf.simulator.profile import Profile
from admitperf.simulator.streams import stream

REPEATS = 20
"""Seeds of the noise and of how fast the machine is on the day. The middle 90 % of them
leaves out one at each end."""

COSTS = (
    "front_ms",
    "step_ms",
    "ms_per_resident_token",
    "ms_per_prefill_token",
    "ms_per_sequence",
)
"""What a slower day makes longer."""

TIGHT, WIDE = 0.20, 0.35
"""Rules for times to the first token: as fractions, of light or heavy loads, and of
loads near capacity and closed loops, where small errors of speed make long queues."""

NEAR_CAPACITY = (1.0, 1.5)
"""Loads, from and below, that the wide rule is for."""


_ROUNDING = 1e-9
"""What a bound is missed by when only the last digit differs."""


@dataclass(frozen=True, slots=True)
class Line:
    """One metric of a run.

    Attributes:
        metric: its name, unit last.
        real: in the recorded run.
        simulated: median over the repeats.
        low, high: where the middle 90 % of the repeats lie; None = nothing was left to
            chance, so they say nothing.
        rule: what is allowed, in words.
        ok: whether it holds.
    """

    metric: str
    real: float
    simulated: float
    low: float | None
    high: float | None
    rule: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A run beside its prediction.

    Attributes:
        run: its name.
        profile: the profile's name.
        load: offered over capacity; None = clients or sessions wait for their answers.
        capacity_per_s: requests a second; None = as above.
        capacity_from: who says so.
        repeats: of the simulation.
        fitted: whether the profile was fitted to this run.
        lines: one a metric.
        refused: requests that the simulated engine turned away, in the worst repeat.
        log_simulated: whether the run came from a simulated engine, so that "real" is
            not.
        profile_simulated: whether the profile was fitted to such runs.
        differences: sizes of the profile that are not the run's, in words.
    """

    run: str
    profile: str
    load: float | None
    capacity_per_s: float | None
    capacity_from: str
    repeats: int
    fitted: bool
    lines: tuple[Line, ...]
    refused: int
    log_simulated: bool
    profile_simulated: bool
    differences: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """How many rules hold, and what is wrong where they do not."""
        held = sum(line.ok for line in self.lines)
        said = f"{held} of {len(self.lines)} rules hold"
        return "; ".join([said, *_wrongs(self.lines)])

    @property
    def ok(self) -> bool:
        """Whether every rule holds."""
        return all(line.ok for line in self.lines)


def checked(
    profile: Profile,
    run: Recorded,
    *,
    repeats: int = REPEATS,
    capacity_per_s: float | None = None,
) -> Table:
    """A profile's prediction of a run, beside the run.

    Args:
        profile: its costs are used; its sizes where the run states none.
        run: what was recorded.
        repeats: seeds of the noise.
        capacity_per_s: requests a second that the engine can end; None = as the model
            has it. It decides which rule holds.

    Raises:
        ConfigError: the run's engine is none that can be, or its requests never fit.
    """
    try:
        return _checked(profile, run, repeats, capacity_per_s)
    except ValueError as error:
        raise ConfigError(f"run {run.name}", [str(error)]) from None


def _checked(
    profile: Profile, run: Recorded, repeats: int, capacity_per_s: float | None
) -> Table:
    model = engine_of(profile.engine, run)
    load, from_whom = None, "not needed"
    if not run.waits_for_answers:
        from_whom = "given" if capacity_per_s else "the model drains so many"
        capacity_per_s = capacity_per_s or drained_per_s(run.asked, model)
        load = (run.offered_per_s or 0.0) / capacity_per_s
    models = _occasions(profile, model, repeats)
    played = [replay(run, one, seed) for seed, one in enumerate(models)]
    near = load is None or NEAR_CAPACITY[0] <= load < NEAR_CAPACITY[1]
    chance = _chance(profile)
    rule = _tight if not near else _wide if chance else _within(WIDE)
    return Table(
        run=run.name,
        profile=profile.name,
        load=load,
        capacity_per_s=capacity_per_s if load is not None else None,
        capacity_from=from_whom,
        repeats=repeats,
        fitted=run.name in profile.provenance.runs,
        lines=tuple(_settled(_lines(run, played, rule), chance=chance)),
        refused=max(one.refused for one in played),
        log_simulated=run.simulated,
        profile_simulated=profile.simulated,
        differences=tuple(_differences(profile.engine, model)),
    )


def _chance(profile: Profile) -> bool:
    """Whether repeats can differ."""
    return bool(profile.engine.noise) or bool(_run_to_run(profile))


def _run_to_run(profile: Profile) -> float:
    return profile.residuals.run_to_run if profile.residuals else 0.0


def _settled(lines: Sequence[Line], *, chance: bool) -> Iterator[Line]:
    """The lines, without a middle 90 % where nothing is left to chance."""
    for line in lines:
        yield line if chance else replace(line, low=None, high=None)


def _differences(told: EngineModel, used: EngineModel) -> Iterator[str]:
    """Slots and memory of the profile that are not those of the run's engine."""
    for what, of_profile, of_run in (
        ("slots", told.max_num_seqs, used.max_num_seqs),
        ("tokens of KV cache", told.kv_tokens, used.kv_tokens),
    ):
        if of_profile != of_run:
            yield f"the profile has {of_profile} {what}, the run's engine {of_run}"


_WRONG: Mapping[str, tuple[str, str]] = {
    "req_per_s": ("it is too slow", "it is too fast"),
    "ttft_p50_ms": ("its waits are too short", "its waits are too long"),
    "ttft_p95_ms": ("its waits are too short", "its waits are too long"),
    "max_waiting": ("its queue is too short", "its queue is too long"),
    "mean_running": ("too few requests run in it", "too many requests run in it"),
    "max_kv_fraction": ("its memory is too empty", "its memory is too full"),
    "preemptions": ("it preempts too seldom", "it preempts too often"),
    "cached_fraction": ("its cache finds too little", "its cache finds too much"),
}
"""What a miss means, when the model is below what was, and above it."""


def wrong(line: Line) -> str:
    """What it means that a rule does not hold, in words."""
    return _WRONG[line.metric][line.simulated > line.real]


def _wrongs(lines: Sequence[Line]) -> Iterator[str]:
    """What is wrong, each once, with the metrics that say it."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if not line.ok:
            found.setdefault(wrong(line), []).append(line.metric)
    for words, metrics in found.items():
        yield f"{words} ({', '.join(metrics)})"


def _occasions(
    profile: Profile, model: EngineModel, repeats: int
) -> Iterator[EngineModel]:
    """The engine as fast as it is on one day and another: a repeat is a run anew.

    How far two runs on a machine lie apart is the profile's `run_to_run`; a profile
    that was not fitted has none.
    """
    sigma = _run_to_run(profile)
    for seed in range(repeats):
        factor = stream(seed, "occasion").lognormvariate(0.0, sigma) if sigma else 1.0
        costs = {name: factor * getattr(model, name) for name in COSTS}
        yield replace(model, **costs)


_Rule = Callable[[float, "Spread"], tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Spread:
    """A metric over the repeats: its median, and its middle 90 %."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of some values; there is at least one."""
        rising = sorted(values)
        cut = int(0.05 * len(rising))
        return cls(median(rising), rising[cut], rising[-1 - cut])


def _within(fraction: float, least: float = 0.0) -> _Rule:
    said = f"{fraction:.0%}" + (f" or {least:g}" if least else "")

    def rule(real: float, spread: Spread) -> tuple[str, bool]:
        off = abs(spread.middle - real)
        return said, off <= max(fraction * abs(real), least) + _ROUNDING

    return rule


def _absolute(bound: float) -> _Rule:
    def rule(real: float, spread: Spread) -> tuple[str, bool]:
        return f"{bound:g} absolute", abs(spread.middle - real) <= bound + _ROUNDING

    return rule


_tight = _within(TIGHT)


def _wide(real: float, spread: Spread) -> tuple[str, bool]:
    near = abs(spread.middle - real) <= WIDE * abs(real)
    return f"{WIDE:.0%} or in the 90 %", near or spread.low <= real <= spread.high


def _lines(run: Recorded, played: Sequence[Played], rule: _Rule) -> list[Line]:
    real = [one.ttft_ms for one in run.asked if one.ttft_ms is not None]
    made = [[end.ttft_ms for end in one.ends] for one in played]
    begin_s = run.asked[0].sent_s
    end_s = max(one.end_s or one.sent_s for one in run.asked)
    lines = [
        _line(
            "req_per_s",
            len(run.asked) / max(end_s - begin_s, _ROUNDING),
            [len(one.ends) / (_last_s(one, begin_s) - begin_s) for one in played],
            _within(0.10),
        )
    ]
    for metric, shown, how, allowed in _SEEN:
        was = _shown(run.sights, shown, (begin_s, end_s))
        if was:
            spans = [(begin_s, _last_s(one, begin_s)) for one in played]
            would = [
                how(_shown(one.sights, shown, span_s) or [0.0])
                for one, span_s in zip(played, spans, strict=True)
            ]
            lines.append(_line(metric, how(was), would, allowed))
    if (cached := _cached(run, played)) is not None:
        lines.append(cached)
    for metric, part in (("ttft_p50_ms", 0.50), ("ttft_p95_ms", 0.95)):
        would = [quantile(values or [0.0], part) for values in made]
        lines.append(_line(metric, quantile(real, part), would, rule))
    return lines


def _last_s(played: Played, begin_s: float) -> float:
    """When the last simulated answer ended; just after the begin when there is none."""
    return played.ends[-1].at_s if played.ends else begin_s + _ROUNDING


def _cached(run: Recorded, played: Sequence[Played]) -> Line | None:
    """Of all prompt tokens, those found in the prefix cache; None = not recorded."""
    known = [one for one in run.asked if one.cached_tokens is not None]
    if len(known) < len(run.asked):
        return None
    asked = sum(one.input_tokens for one in known)
    made = [
        sum(end.cached_tokens for end in one.ends)
        / (sum(end.arrival.input_tokens for end in one.ends) or 1)
        for one in played
    ]
    real = sum(one.cached_tokens or 0 for one in known) / asked
    return _line("cached_fraction", real, made, _absolute(0.05))


def _line(metric: str, real: float, made: Sequence[float], rule: _Rule) -> Line:
    spread = Spread.of(made)
    said, ok = rule(real, spread)
    return Line(metric, real, spread.middle, spread.low, spread.high, said, ok)


def _risen(values: Sequence[float]) -> float:
    return values[-1] - values[0]


_SEEN: tuple[tuple[str, str, Callable[[Sequence[float]], float], _Rule], ...] = (
    ("mean_running", "running", mean, _within(0.10)),
    ("max_waiting", "waiting", max, _within(0.20, 3)),
    ("max_kv_fraction", "kv_fraction", max, _absolute(0.05)),
    ("preemptions", "preemptions", _risen, _within(0.30, 5)),
)


def _shown(
    sights: Sequence[Sight], name: str, span_s: tuple[float, float]
) -> list[float]:
    """What the scrapes of a span showed of one thing; empty = not shown."""
    begin_s, end_s = span_s
    values = [getattr(s, name) for s in sights if begin_s <= s.at_s <= end_s]
    return [value for value in values if value is not None]


def quantile(values: Sequence[float], part: float) -> float:
    """The value at a part of the values in their order: one of them, none between."""
    rising = sorted(values)
    return rising[min(len(rising) - 1, int(part * len(rising)))]
