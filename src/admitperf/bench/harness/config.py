"""What a benchmark is told: a YAML file, or flags that say the same.

Every fault of a document is said at once, each with its path: `arms[1].policy`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from importlib import import_module, resources
from pathlib import Path
from typing import Any, Literal

from admitperf.bench.callers.client import CLIENTS, Client, client
from admitperf.bench.callers.metrics import installed
from admitperf.bench.design.design import BLOCKS, LOADS
from admitperf.bench.design.measures import METRICS
from admitperf.bench.design.results import EXPERIMENT
from admitperf.bench.harness.target import Arm
from admitperf.core.digest import blake2b
from admitperf.core.errors import ConfigError, MissingExtra
from admitperf.core.record import dumps
from admitperf.core.settings import Settings
from admitperf.policies.parts.compose.written import with_none
from admitperf.reports.comparison.verdict import MARGIN

BASELINE = "no_admission"
CALLS = 600
"""Calls of a run at capacity, from which its length follows. Plain choice: 100 calls a
window of a tenth, and a run of a small engine takes a second."""

FITTED = "fitted"
"""In place of a parameter's value: what follows from the calibration."""

_BASIS = (
    "target",
    "workload",
    "client",
    "calls",
    "lasts_s",
    "slo",
    "deadlines",
    "seed",
    "warmup_s",
)
_MOST_ARMS = 50
_LONGEST_NAME = 100  # of a folder, with room for what stands behind it
_MOST_RUNS = 100_000
_MOST_RATE = 1e6
_MOST_S = 31 * 86_400.0
_ROUTINGS = ("least", "turns", "session")
_OVERS = ("virtual", "http")
_EXECUTORS = ("local", "ray")
_LIMITS = ("ttft_ms", "stall_ms")

Kind = Literal["sim", "http"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetConfig:
    """What is driven.

    Attributes:
        kind: "sim", an engine in virtual time, or "http", a server at an address.
        over: of a simulated one "virtual" time, or "http": it is started as a server.
        profile: of a simulated one.
        engine: sizes that differ from the profile's.
        url, metrics_url, model: of a server; None = what it says itself.
        hardware: what a server runs on, in words; None = this machine when it is on it.
        replicas, routing: of a simulated one.
        scrape_interval_s: between two looks at its metrics.
        token: name of the environment variable that holds the server's token.
    """

    kind: Kind = "sim"
    over: str = "virtual"
    profile: str | None = None
    engine: Mapping[str, object] = field(default_factory=dict)
    url: str | None = None
    metrics_url: str | None = None
    model: str | None = None
    hardware: str | None = None
    replicas: int = 1
    routing: str = "least"
    scrape_interval_s: float = 0.25
    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadConfig:
    """What is asked.

    Attributes:
        name: a named workload, or one an entry point offers.
        trace: files to replay it from; empty = it is generated.
        divisor: of a trace's token counts; None = the workload's own choice.
        parameters: of the workload.
    """

    name: str = "tool-tight"
    trace: tuple[str, ...] = ()
    divisor: int | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A whole benchmark.

    Attributes:
        experiment: its name, and that of its folder.
        root: where experiments are.
        target, workload, client: what is driven, what is asked, by whom.
        arms: the policies, the baseline among them.
        loads: multiples of the measured capacity; empty when rates are given.
        rates_per_s: beginnings a second in place of loads; empty = none are given.
        blocks: repeats of each load, each with traffic of its own.
        calls: of a run at capacity; ignored when `lasts_s` is given.
        lasts_s: how long calls or sessions begin in a run; None = by `calls`.
        margin: the smallest difference that matters.
        slo: deadlines in ms by class, under "" for everyone; None = calibrated.
        deadlines: callers send their deadline along.
        gpu_cost_per_hour: of one engine; None = no cost is worked out.
        seed: of all chance.
        jobs: processes; None = one a core.
        executor: who runs them.
        aa: the baseline is tried against itself as well.
        warmup_s: seconds cut at the start of each run; None = measured.
        metric: the metric claims are made on.
    """

    experiment: str
    root: Path = Path("experiments")
    target: TargetConfig = TargetConfig()
    workload: WorkloadConfig = WorkloadConfig()
    client: Client = CLIENTS["none"]
    arms: tuple[Arm, ...] = ()
    loads: tuple[float, ...] = LOADS
    rates_per_s: tuple[float, ...] = ()
    blocks: int = BLOCKS
    calls: int = CALLS
    lasts_s: float | None = None
    margin: float = MARGIN
    slo: Mapping[str, Mapping[str, float]] | None = None
    deadlines: bool = False
    gpu_cost_per_hour: float | None = None
    seed: int = 1
    jobs: int | None = None
    executor: str = "local"
    aa: bool = False
    warmup_s: float | None = None
    metric: str = "goodput"

    @property
    def folder(self) -> Path:
        """Where its runs are."""
        return self.root / self.experiment

    def document(self) -> dict[str, Any]:
        """All of it as plain data."""
        told: dict[str, Any] = _plain(asdict(self) | {"root": str(self.root)})
        return told

    def basis(self) -> str:
        """A hash of what its calibration follows from, and so each of its runs."""
        told = self.document()
        text = dumps({name: told[name] for name in _BASIS})
        return blake2b(text.encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


# ---------------------------------------------------------------- where it is read


def preset(name: str) -> dict[str, Any]:
    """A preset's document.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in presets():
        known = ", ".join(presets())
        raise ConfigError("--preset", [f"{name!r} is none of {known}"])
    file = resources.files("admitperf.bench") / "presets" / f"{name}.yaml"
    return document(file.read_text(encoding="utf-8"), f"preset {name}")


def presets() -> list[str]:
    """Names of the presets, sorted."""
    folder = resources.files("admitperf.bench") / "presets"
    names = (entry.name for entry in folder.iterdir())
    return sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml"))


def read(path: Path) -> dict[str, Any]:
    """A file's document.

    Raises:
        ConfigError: it cannot be read, or is no YAML mapping.
        MissingExtra: there is no YAML reader.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise ConfigError(str(path), [f"cannot be read: {why}".lower()]) from None
    return document(text, str(path))


def document(text: str, where: str) -> dict[str, Any]:
    """The mapping a YAML text holds.

    Raises:
        ConfigError: it holds none.
        MissingExtra: there is no YAML reader.
    """
    yaml = _yaml()
    try:
        told = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise ConfigError(where, [f"is no YAML: {said}"]) from None
    if not isinstance(told, dict):
        raise ConfigError(where, ["holds no mapping of keys to values"])
    return told


def _yaml() -> Any:  # noqa: ANN401  a module of another package
    try:
        return import_module("yaml")
    except ImportError:
        said = "this needs yaml, of the extra admitperf[bench]: pip install pyyaml"
        raise MissingExtra(said) from None


# -------------------------------------------------------------------- what it says


def parsed(told: Mapping[str, Any], where: str) -> Config:
    """A benchmark from a document.

    Raises:
        ConfigError: something in it is wrong; lists every fault with its path.
    """
    top = _Reader(told, "")
    made = _config(top)
    if not top.faults:
        top.faults += _faults(made)
    if top.faults:
        raise ConfigError(where, top.faults)
    return made


def _config(top: "_Reader") -> Config:
    top.known(f.name for f in fields(Config))
    target, workload = _target(top.inner("target")), _workload(top.inner("workload"))
    rates = top.numbers("rates_per_s", ())
    return Config(
        experiment=top.text("experiment") or _named(target, workload),
        root=Path(top.text("root") or "experiments"),
        target=target,
        workload=workload,
        client=_client(top),
        arms=_arms(top),
        loads=() if rates else top.numbers("loads", LOADS),
        rates_per_s=rates,
        blocks=top.whole("blocks", BLOCKS, 1, 1000),
        calls=top.whole("calls", CALLS, 10, 1_000_000),
        lasts_s=top.number("lasts_s", None, _MOST_S),
        margin=top.number("margin", MARGIN, 1.0) or MARGIN,
        slo=_slo(top),
        deadlines=top.flag("deadlines"),
        gpu_cost_per_hour=top.number("gpu_cost_per_hour", None, 1e6),
        seed=top.whole("seed", 1, 0, 2**53),
        jobs=top.whole("jobs", 0, 0, 10_000) or None,
        executor=top.choice("executor", _EXECUTORS),
        aa=top.flag("aa"),
        warmup_s=top.number("warmup_s", None, _MOST_S, low=True),
        metric=top.text("metric") or "goodput",
    )


def _named(target: TargetConfig, workload: WorkloadConfig) -> str:
    what = target.profile or "http"
    return f"{workload.name}-{Path(what).stem if '/' in what else what}"


def _target(told: "_Reader") -> TargetConfig:
    told.known(f.name for f in fields(TargetConfig))
    url, profile = told.text("url"), told.text("profile")
    kind: Any = told.choice("kind", ("http", "sim") if url else ("sim", "http"))
    needed, given = ("url", url) if kind == "http" else ("profile", profile)
    if given is None:
        told.fault(needed, f"is missing: a target of kind {kind} needs it")
    return TargetConfig(
        kind=kind,
        over=told.choice("over", _OVERS),
        profile=profile,
        engine=told.inner("engine").told,
        url=url,
        metrics_url=told.text("metrics_url"),
        model=told.text("model"),
        hardware=told.text("hardware"),
        replicas=told.whole("replicas", 1, 1, 1000),
        routing=told.choice("routing", _ROUTINGS),
        scrape_interval_s=told.number("scrape_interval_s", 0.25, 60.0) or 0.25,
        token=told.text("token"),
    )


def _workload(told: "_Reader") -> WorkloadConfig:
    told.known(f.name for f in fields(WorkloadConfig))
    trace = told.told.get("trace") or ()
    files = [trace] if isinstance(trace, str) else trace
    if not isinstance(files, Sequence) or not all(isinstance(f, str) for f in files):
        told.fault("trace", "is no path and no list of paths")
        files = ()
    return WorkloadConfig(
        name=told.text("name") or "tool-tight",
        trace=tuple(files),
        divisor=told.whole("divisor", 0, 0, 10_000) or None,
        parameters=told.inner("parameters").told,
    )


def _client(top: "_Reader") -> Client:
    told = top.told.get("client", "none")
    given = {"name": told} if isinstance(told, str) else told
    name = given.get("name") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or str(name) not in CLIENTS:
        top.fault("client", f"{told!r:.60} names none of {', '.join(CLIENTS)}")
        return CLIENTS["none"]
    changed = {name: value for name, value in given.items() if name != "name"}
    known = [f.name for f in fields(Client)]
    wrong = [name for name in changed if name not in known]
    for name in wrong:
        top.fault(f"client.{name}", "is unknown")
    for name, value in changed.items():
        if isinstance(value, int) and abs(value) > _MOST_RATE:
            top.fault(f"client.{name}", f"is over {_MOST_RATE:g}")
            wrong.append(name)
    try:
        return client(str(given["name"]), **({} if wrong else changed))
    except (TypeError, ValueError, OverflowError) as error:
        top.fault("client", str(error))
        return CLIENTS["none"]


def _arms(top: "_Reader") -> tuple[Arm, ...]:
    told = top.told.get("arms", [])
    if not isinstance(told, list) or len(told) > _MOST_ARMS:
        top.fault("arms", f"is no list of at most {_MOST_ARMS}")
        return ()
    inner = [top.of(one, f"arms[{n}]") for n, one in enumerate(told)]
    arms = [arm for one in inner for arm in _arm(one)]
    if not any(arm.policy == BASELINE for arm in arms):
        arms.insert(0, Arm(name=BASELINE, policy=BASELINE))
    names = [arm.name for arm in arms]
    for name in sorted({name for name in names if names.count(name) > 1}):
        top.fault("arms", f"{name!r} is the name of two: give one a name of its own")
    return tuple(arms)


def _arm(told: "_Reader") -> Iterator[Arm]:
    told.known(f.name for f in fields(Arm))
    policy = told.text("policy")
    if policy is None:
        told.fault("policy", "is missing")
        return
    parameters = with_none(policy, told.inner("parameters").told)
    words = {str(n): str(w) for n, w in told.inner("provenance").told.items()}
    name = told.text("name") or policy
    for fault in Settings(run=name).faults():
        told.fault("name", fault.removeprefix("run = "))
    if name == EXPERIMENT or len(name) > _LONGEST_NAME or not name.isprintable():
        told.fault("name", f"{name!r:.60} is no name for a folder of runs")
    yield Arm(
        name=name,
        policy=policy,
        parameters=parameters,
        provenance=words,
        url=told.text("url"),
    )


def _slo(top: "_Reader") -> dict[str, dict[str, float]] | None:
    told = top.inner("slo")
    if not told.told:
        return None
    flat = any(name in _LIMITS for name in told.told)
    sets = {"": told} if flat else {n: told.inner(n) for n in told.told}
    return {name: _limits(one) for name, one in sets.items()}


def _limits(told: "_Reader") -> dict[str, float]:
    told.known(_LIMITS)
    given = {name: told.number(name, None, 1e9) for name in _LIMITS}
    return {name: value for name, value in given.items() if value is not None}


def _faults(made: Config) -> Iterator[str]:
    """What is wrong with values that are right each by itself."""
    yield from Settings(experiment=made.experiment).faults()
    runs = max(len(made.loads), len(made.rates_per_s)) * made.blocks * len(made.arms)
    if runs > _MOST_RUNS:
        yield f"{runs:,} runs are planned and {_MOST_RUNS:,} is the most"
    for name in ("loads", "rates_per_s"):
        shown = [f"{one:g}" for one in getattr(made, name)]
        if len(set(shown)) < len(shown):
            yield f"{name}: two of {', '.join(shown)} cannot be told apart"
    if made.metric not in METRICS and made.metric not in installed():
        known = ", ".join([*METRICS, *installed()])
        yield f"metric: {made.metric!r} is none of {known}"
    if made.target.kind == "http" and (made.target.engine or made.target.profile):
        yield "target: engine and profile are of a simulated one, not of a server"
    if len(made.arms) == 1 and not made.aa:
        yield "arms: there is only the baseline: name a policy, or set aa"
    if made.target.kind == "sim":
        yield from (
            f"arms: {arm.name}: a simulated target has no url of its own"
            for arm in made.arms
            if arm.url
        )


class _Reader:
    """A mapping of a document, which collects what is wrong with it.

    Args:
        told: what stands there.
        path: where it stands.
        faults: of the whole document; shared by all its readers.
    """

    def __init__(
        self, told: object, path: str, faults: list[str] | None = None
    ) -> None:
        self.faults = [] if faults is None else faults
        self._path = path
        if not isinstance(told, Mapping):
            self.faults.append(f"{path or 'the document'} is no mapping")
            told = {}
        self.told: dict[str, Any] = {str(name): value for name, value in told.items()}

    def of(self, told: object, path: str) -> "_Reader":
        """A reader of something inside."""
        return _Reader(told, path, self.faults)

    def inner(self, name: str) -> "_Reader":
        """A reader of a key's mapping; of an empty one when it is absent."""
        told = self.told.get(name)
        return self.of({} if told is None else told, self._at(name))

    def fault(self, name: str, why: str) -> None:
        """Something is wrong with a key."""
        self.faults.append(f"{self._at(name)} {why}")

    def known(self, names: Iterator[str] | Sequence[str]) -> None:
        """Other keys are mistakes."""
        listed = list(names)
        for name in self.told:
            if name not in listed:
                self.fault(name, f"is unknown; known: {', '.join(listed)}")

    def text(self, name: str) -> str | None:
        """A text; None when it is absent or wrong."""
        found = self._found(name, _is_text, "a text")
        return None if found is None else str(found)

    def flag(self, name: str) -> bool:
        """True or false; false when it is absent or wrong."""
        return bool(self._found(name, _is_flag, "true or false"))

    def choice(self, name: str, known: Sequence[str]) -> str:
        """One of several; the first when it is absent or wrong."""
        words = f"one of {', '.join(known)}"
        return str(self._found(name, known.__contains__, words) or known[0])

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number within bounds; the default when it is absent or wrong."""
        words = f"a whole number from {low} to {high}"
        found = self._found(name, partial(_is_whole, low, high), words)
        return default if found is None else int(found)

    def number(
        self, name: str, default: float | None, high: float, *, low: bool = False
    ) -> float | None:
        """A number above 0, or from 0 when that may be; else the default."""
        words = f"a number {'from' if low else 'above'} 0 up to {high:g}"
        fits = partial(_is_from_0 if low else _is_above_0, high)
        found = self._found(name, fits, words)
        return default if found is None else float(found)

    def numbers(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Different numbers above 0, in ascending order; else the default."""
        words = f"a list of different numbers above 0 up to {_MOST_RATE:g}"
        found = self._found(name, _are_rates, words)
        return default if found is None else tuple(sorted(map(float, found)))

    def _found(self, name: str, fits: Callable[[Any], bool], words: str) -> Any:  # noqa: ANN401
        """What stands there; None when it is absent, or wrong, which is noted."""
        value = self.told.get(name)
        if value is None or fits(value):
            return value
        self.fault(name, f"= {value!r:.60} is not {words}")
        return None

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_whole(low: int, high: int, value: Any) -> bool:  # noqa: ANN401
    return type(value) is int and low <= value <= high


def _is_above_0(high: float, value: Any) -> bool:  # noqa: ANN401
    return type(value) in (int, float) and 0 < value <= high


def _is_from_0(high: float, value: Any) -> bool:  # noqa: ANN401
    return type(value) in (int, float) and 0 <= value <= high


def _are_rates(value: object) -> bool:
    """NaN is above nothing, so that it is none."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(_is_above_0(_MOST_RATE, one) for one in value) and (
        len(set(value)) == len(value)
    )
