"""What is wrong with an engine's metrics: not there, renamed, frozen, mixed, slow."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from admitperf.core.resolver import MIN_AGE_LIMIT_S
from admitperf.core.series import Series
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH, RUNNING
from admitperf.lab.doctor.call import UnansweredError, call
from admitperf.lab.doctor.clocks import clock_finding
from admitperf.lab.doctor.finding import (
    Finding,
    fine,
    not_asked,
    problem,
    warning,
)
from admitperf.reports.wording import number, plural
from admitperf.scrape.address import Address, is_address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.survey import BETWEEN_S, Line, Survey, survey
from admitperf.scrape.target import Endpoint, Sample

CORE = (KV_PRESSURE, QUEUE_DEPTH, RUNNING)
"""What nearly every policy reads."""

SLOW_S = 0.5
"""Plain choice: twice the gateway's 0.25 s between readings, and what a saturated
engine was seen to take (0.53 s)."""

_MORE_LOOKS = 3
"""Plain choice: a step of a large engine under load takes less than so many seconds."""
_STARTED = "process_start_time_seconds"
_COUNTED = ("_total", "_count", "_sum")
_PERCENT = 100.0
_PERCENT_NAMES = ("percent", "pct", "perc")
NOT_REACHED = ("timeout", "refused", "unknown_host", "unreachable", "bad_address")
"""Kinds of a `ScrapeError` after which nobody answered at all."""

_KINDS = {
    **dict.fromkeys((*NOT_REACHED, "tls", "no_http", "redirect"), "engine.reachable"),
    "token": "engine.token",
    "no_known_series": "engine.known",
    "cut": "engine.whole",
}
_FIXES = {
    "engine.reachable": "see that the engine is up, and give its own host and port",
    "engine.page": "give the address that serves the metrics, such as"
    " http://HOST:PORT/metrics",
    "engine.known": "give the engine's own port and path, or map its names",
    "engine.whole": "see whether a proxy in between cuts long answers",
    "engine.token": "give the token",
}


@dataclass(frozen=True, slots=True)
class Looked:
    """An engine's page, looked at several times.

    Attributes:
        endpoint: what was asked.
        samples: the pages, in order.
        survey: what they supply.
        fault: why a later one could not be had; None = all could.
    """

    endpoint: Endpoint
    samples: tuple[Sample, ...]
    survey: Survey
    fault: ScrapeError | None = None

    @property
    def page(self) -> Mapping[str, float]:
        """The newest."""
        return self.samples[-1].page

    def line(self, name: str) -> Line | None:
        """What one signal came to."""
        found = (one for one in self.survey.lines if one.signal.name == name)
        return next(found, None)

    def value(self, name: str) -> float | None:
        """Its value; None = not supplied."""
        line = self.line(name)
        return None if line is None else line.value


def endpoint_of(url: str, token: str | None, timeout_s: float) -> Endpoint:
    """What a word on the command line names.

    Raises:
        ScrapeError: it is no address.
    """
    if not is_address(url):
        what = "is no address of a running engine; write HOST:PORT"
        raise ScrapeError("bad_address", url or "''", what)
    return Endpoint(Address.of(url), token, timeout_s)


def look(endpoint: Endpoint, pause: Callable[[float], object]) -> Looked:
    """Reads the page at least three times, and longer while nothing counts.

    Args:
        endpoint: of the engine.
        pause: waits so many seconds.

    Raises:
        ScrapeError: the first time it could not be read.
    """
    samples, fault = [endpoint.read()], None
    if not samples[0].drains:  # else each look would take numbers from other readers
        pause(BETWEEN_S)
        try:
            samples += [endpoint.read(), endpoint.read()]
            while len(samples) < _MORE_LOOKS + _MORE_LOOKS and _stands_still(samples):
                pause(BETWEEN_S)
                samples.append(endpoint.read())
        except ScrapeError as error:
            fault = error
    told = survey(endpoint.shown, samples[0], samples[-1])
    return Looked(endpoint, tuple(samples), told, fault)


def unread(error: ScrapeError) -> Finding:
    """Why there is no page to look at."""
    check = _KINDS.get(error.kind, "engine.page")
    return problem(check, f"{error.target}: {error.what}", error.fix or _FIXES[check])


def findings(looked: Looked) -> Iterator[Finding]:
    """Every check on the engine."""
    took_s = max(sample.took_s or 0.0 for sample in looked.samples)
    engine = looked.survey.engine
    what = engine.title if engine else "no known engine"
    series = plural(looked.survey.series, "series", "series")
    yield fine("engine.reachable", f"{looked.endpoint.shown}: {what}, {series}")
    if looked.survey.simulated_by is not None:
        yield fine("engine.known", "it is simulated: its numbers are no hardware's")
    if looked.fault is not None or looked.survey.error is not None:
        error = looked.fault or looked.survey.error
        yield unread(error)  # type: ignore[arg-type]
    yield from _signals(looked)
    yield from _percent(looked)
    yield from _labels(looked)
    yield _one(looked)
    yield from _fresh(looked)
    yield _moving(looked)
    yield _speed(took_s)
    yield _clock(looked)


def _signals(looked: Looked) -> Iterator[Finding]:
    """The core signals: supplied, almost named, or not there."""
    lines = [line for line in looked.survey.lines if line.signal in CORE]
    missing = [line for line in lines if line.value is None and not line.skipped]
    for line in missing:
        yield _missing(line, looked)
    if not missing:
        told = ", ".join(
            f"{line.signal.name} {number(line.value)}"
            for line in lines
            if line.value is not None
        )
        yield fine("engine.signals", f"supplied: {told or 'see the other findings'}")


def _missing(line: Line, looked: Looked) -> Finding:
    name, engine = line.signal.name, looked.survey.engine
    if engine is not None and line.signal in engine.lacks:
        fix = f"choose a policy that does not read {name}"
        return warning("engine.signals", f"{name} is not supplied: {line.why}", fix)
    if not line.nearest:
        fix = "switch these metrics on, or map the name your engine has for it"
        return problem("engine.signals", f"{name} is not supplied: {line.why}", fix)
    near = line.nearest[0]
    scale = ", scale=0.01" if any(one in near for one in _PERCENT_NAMES) else ""
    says = (
        f"{name} is not supplied, and the page has {', '.join(line.nearest)}: a name"
        " that was changed or mistyped?"
    )
    fix = f'if it is that one: {name.upper()}.add_source(Source("{near}"{scale}))'
    return problem("engine.names", says, fix)


def _percent(looked: Looked) -> Iterator[Finding]:
    """Fractions that go beyond 1, as a percentage does."""
    for line in looked.survey.lines:
        if line.signal.unit == "fraction":
            for note in line.skipped:
                yield from _beyond(line, note)


def _beyond(line: Line, note: str) -> Iterator[Finding]:
    name, _, text = note.rpartition(" = ")
    try:
        value = float(text)
    except ValueError:
        return
    signal = line.signal.name
    if 1 < value <= _PERCENT:
        says = (
            f"{name} says {number(value)} where {signal} goes from 0 to 1: a"
            " percentage? It is skipped, and at 1 or below it would be believed"
        )
        plain = name.partition("{")[0]
        fix = f'Source("{plain}", scale=0.01) for {signal.upper()}'
        yield problem("engine.percent", says, fix)
    else:
        says = f"{name} says {number(value)}, outside what {signal} can be: skipped"
        yield warning("engine.percent", says, "see what the exporter puts out there")


def _labels(looked: Looked) -> Iterator[Finding]:
    """What one number was made of."""
    parts = {
        line.signal.name: line.parts
        for line in looked.survey.lines
        if line.signal in CORE and line.parts
    }
    models = _models(looked.page)
    if len(models) > 1:
        says = f"one page, {plural(len(models), 'model')}: {', '.join(sorted(models))}"
        fix = "their queues are added up: give each model a pool with a page of its own"
        yield warning("engine.labels", says, fix)
    elif parts:
        said = (
            f"{name} is one number of {len(of)}: {', '.join(list(of)[:4])}"
            for name, of in parts.items()
        )
        yield fine("engine.labels", "; ".join(said))
    else:
        yield fine("engine.labels", "one series for each signal: nothing to combine")


def _models(page: Mapping[str, float]) -> set[str]:
    series = Series(page)
    names = (f"{prefix}num_requests_running" for prefix in ("vllm_", "sglang_"))
    return {
        labels["model_name"]
        for name in names
        for labels, _ in series.samples(name)
        if labels.get("model_name")
    }


def _one(looked: Looked) -> Finding:
    """Whether all looks met the same process."""
    if len(looked.samples) == 1:
        return not_asked("engine.one", "the page was read once only")
    starts = [_starts(sample.page) for sample in looked.samples]
    if len(set(starts)) > 1:
        return _several(f"{_STARTED} differs from one look to the next")
    back = _went_back(looked.samples)
    if back:
        return _several(f"{back} went backwards from one look to the next")
    n = len(looked.samples)
    return fine("engine.one", f"the same process answered {n} times")


def _several(what: str) -> Finding:
    says = (
        f"{what}: several replicas behind one address, so that each look is at another"
        " one (or it was restarted just now)"
    )
    fix = "give each replica's own address, as several upstreams of one pool"
    return problem("engine.one", says, fix)


def _starts(page: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(sorted(value for _, value in Series(page).samples(_STARTED)))


def _went_back(samples: tuple[Sample, ...]) -> str | None:
    """A counter that is lower in a later page; None = there is none."""
    for before, after in pairwise(samples):
        for key, value in before.page.items():
            name = key.partition("{")[0]
            if name.endswith(_COUNTED) and after.page.get(key, value) < value:
                return name
    return None


def _fresh(looked: Looked) -> Iterator[Finding]:
    """Samples with times of their own, which may be old."""
    old = [
        line
        for line in looked.survey.lines
        if line.age_s is not None
        and line.age_s > max(MIN_AGE_LIMIT_S, line.refresh_s)
        and line.age_s > (looked.samples[-1].took_s or 0.0)
    ]
    if old:
        worst = max(old, key=lambda line: line.age_s or 0.0)
        says = (
            f"{worst.signal.name} is {worst.age_s:.1f} s old by the page's own times:"
            f" a policy trusts nothing over {MIN_AGE_LIMIT_S:g} s"
        )
        fix = "read the engine itself, not a gateway that keeps pages for it"
        yield problem("engine.fresh", says, fix)


def _stands_still(samples: list[Sample]) -> bool:
    """Whether requests run and no counter of the page moves."""
    running = RUNNING.read(samples[-1].page)
    return bool(running) and _moves(samples) is False


def _moves(samples: list[Sample] | tuple[Sample, ...]) -> bool | None:
    """Whether anything counted on; None = the page has no counters."""
    first, last = samples[0].page, samples[-1].page
    counters = [key for key in first if key.partition("{")[0].endswith(_COUNTED)]
    if not counters:
        return None
    return any(last.get(key) != first[key] for key in counters)


def _moving(looked: Looked) -> Finding:
    """Whether the page lives, which only shows while something runs."""
    running, samples = looked.value(RUNNING.name), looked.samples
    moves = _moves(samples) if len(samples) > 1 else None
    if moves:
        return fine("engine.moving", "its counters move")
    if moves is None:
        return not_asked("engine.moving", "the page has no counters that could move")
    if not running:
        why = "nothing runs, so nothing has to move"
        return not_asked("engine.moving", why, "run it again under load")
    seconds = ((samples[-1].asked_ns or 0) - (samples[0].asked_ns or 0)) / 1e9
    says = (
        f"the page says that {number(running)} run, and in {seconds:.1f} s none of its"
        " counters moved: it is frozen"
    )
    fix = "see whether a cache stands in between, and whether the engine hangs"
    return problem("engine.moving", says, fix)


def _speed(took_s: float) -> Finding:
    says = f"/metrics took up to {took_s:.2f} s"
    fix = "see why: many series, a saturated engine, or a proxy in between"
    if took_s > MIN_AGE_LIMIT_S:
        says += f"; a policy trusts nothing over {MIN_AGE_LIMIT_S:g} s and would be"
        return problem("engine.speed", f"{says} blind", fix)
    if took_s > SLOW_S:
        return warning("engine.speed", f"{says}: readings are that old", fix)
    return fine("engine.speed", says)


def _clock(looked: Looked) -> Finding:
    end = looked.endpoint
    try:
        path = end.address.resource
        got = call(end.address, path, end.timeout_s, token=end.token)
    except UnansweredError as error:
        return not_asked("engine.clock", str(error))
    return clock_finding("engine.clock", "the engine's", got.ahead_s)
