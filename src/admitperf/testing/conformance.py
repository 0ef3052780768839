"""Does a policy keep to the rules that hosts, logs and reports rely on?"""

import re
from collections.abc import Iterator
from importlib.metadata import entry_points

from admitperf.core.declared import REQUIRED
from admitperf.core.errors import ConfigError
from admitperf.core.notice import hushed
from admitperf.core.policy import Policy
from admitperf.core.reasons import DEFAULT
from admitperf.core.signal import Signal
from admitperf.testing.fake_clock import FakeClock
from admitperf.testing.posture import ill_postured
from admitperf.testing.shadowed import shadowed
from admitperf.testing.situations import DAY, FACT_OF, facts_for, raw_for
from admitperf.testing.trial import Trial

GROUP = "admitperf.policies"

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAXONOMY = {
    "unit": ("request", "agent-session", "tenant"),
    "setting": ("online", "offline"),
    "slo_awareness": ("deadline", "latency", "throughput", "fairness", "cost", "none"),
    "signal_quantity": (
        "kv_pressure",
        "queue_depth",
        "deadline_slack",
        "wait_estimate",
        "predicted_length",
        "batch_state",
        "rate",
        "prefix_reuse",
        "analytic",
        "none",
    ),
    "signal_structure": ("scalar", "dual-gate", "lp-composite", "formal-bound"),
}
_NOBODYS = "no_parameter_has_this_name"
_CROWD = 300
_STEP_S = 45_001.0
"""Half a day, half an hour and a second: another hour and minute each time."""


def check_policy(policy: type[Policy] | str, **parameters: object) -> None:
    """Runs the conformance kit over one policy class.

    It constructs the policy several times on a fake clock, with a log in memory, and
    puts it through quiet, full, empty, broken and absurd situations.

    Args:
        policy: the class, or the name an installed package offers it under.
        parameters: its parameters, where the defaults do not do.

    Raises:
        AssertionError: listing every fault.
    """
    cls, faults = _resolve(policy)
    if cls is not None:
        with hushed():
            faults = _faults(cls, parameters)
    if faults:
        told = "".join(f"\n- {fault}" for fault in dict.fromkeys(faults))
        raise AssertionError(f"policy {policy!r} does not conform:{told}")


def _faults(cls: type[Policy], parameters: dict[str, object]) -> list[str]:
    """What a policy is and how it is made come first: behaviour rests on them."""
    faults = [*_identity(cls), *_construction(cls, parameters)]
    return faults or list(_behaviour(cls, parameters))


def _resolve(policy: type[Policy] | str) -> tuple[type[Policy] | None, list[str]]:
    if not isinstance(policy, str):
        known = isinstance(policy, type) and issubclass(policy, Policy)
        return (policy, []) if known else (None, ["it is no subclass of Policy"])
    offers = list(entry_points(group=GROUP, name=policy))
    if len(offers) != 1:
        return None, [f"{len(offers)} entry points offer it, not one"]
    try:
        found: object = offers[0].load()
    except Exception as error:  # noqa: BLE001  whatever a package does when imported
        return None, [f"{offers[0].value} cannot be imported: {error!r}"]
    if isinstance(found, type) and issubclass(found, Policy):
        return found, []
    return None, [f"{offers[0].value} is no subclass of Policy"]


def _identity(cls: type[Policy]) -> Iterator[str]:
    """What the class says about itself."""
    if not _NAME.fullmatch(cls.name):
        yield f"name = {cls.name!r} is not lower case with underscores"
    if not (cls.__dict__.get("__doc__") or "").strip():
        yield "the class has no docstring"
    for offer in entry_points(group=GROUP, name=cls.name):
        if offer.value != f"{cls.__module__}:{cls.__qualname__}":
            yield f"the entry point {offer.name} leads to {offer.value}"
    yield from _misplaced(cls)
    for name, parameter in cls.declared().items():
        if not parameter.param.doc:
            yield f"parameter {name} has no Param with a sentence about it"


def _misplaced(cls: type[Policy]) -> Iterator[str]:
    for attribute, words in _TAXONOMY.items():
        word = getattr(cls, attribute)
        if word not in words:
            yield f"{attribute} = {word!r} is not one of {', '.join(words)}"


def _construction(cls: type[Policy], parameters: dict[str, object]) -> Iterator[str]:
    needed = [name for name, p in cls.declared().items() if p.default is REQUIRED]
    try:
        cls(clock=FakeClock(), **parameters)
    except Exception as error:  # noqa: BLE001  whatever is wrong is the finding
        hint = f"; pass {', '.join(needed)} to check_policy" if needed else ""
        yield f"it cannot be constructed: {type(error).__name__}: {error}{hint}"
        return
    if not cls.declared():
        return
    try:
        cls(clock=FakeClock(), **parameters, **{_NOBODYS: 1})
    except ConfigError:
        return
    except Exception as error:  # noqa: BLE001  whatever is wrong is the finding
        yield f"an unknown keyword raises {type(error).__name__}, not ConfigError"
    else:
        yield "an unknown keyword is not refused"


def _behaviour(cls: type[Policy], parameters: dict[str, object]) -> Iterator[str]:
    yield from shadowed(cls)
    yield from _unknown_reasons(cls)
    first = Trial(cls, parameters)
    _live(first)
    yield from first.faults()
    again = Trial(cls, parameters)
    _live(again)
    if first.answers != again.answers:
        yield "two fresh instances answer the same calls differently"
    stepped = Trial(cls, parameters)
    _live(stepped, step_s=_STEP_S)
    if first.answers == again.answers != stepped.answers:
        yield "it answers differently when the wall clock is set"
    asked = Trial(cls, parameters)
    _held(asked)
    yield from asked.faults()
    shadow = Trial(cls, parameters, enforce=0.0)
    _live(shadow)
    if any(status != 200 or not admitted for status, admitted in shadow.orders):  # noqa: PLR2004
        yield "with enforce=0.0 something was refused"
    yield from _blindness(cls, parameters)
    yield from ill_postured(cls, parameters, list(first.policy.requires))
    yield from _undeclared(cls, parameters)


def _unknown_reasons(cls: type[Policy]) -> Iterator[str]:
    for reason in cls.refuses_with:
        if reason not in DEFAULT and reason not in cls.reasons:
            yield f"refuses_with: {reason!r} is no reason of the table"


def _live(trial: Trial, *, step_s: float = 0.0) -> None:
    """A life in calls: each situation twice, then a crowd, then everyone leaves.

    Args:
        step_s: the wall clock is set forward so far after each call.
    """
    wanted = [thing for thing in trial.policy.requires if isinstance(thing, Signal)]
    for label, make_raw, facts in DAY:
        for _ in range(2):
            trial.call(label, make_raw(wanted), facts)
            trial.policy.background()
            trial.clock.advance(0.1)
            if step_s:
                trial.clock.set_wall(trial.clock.wall_ns() / 1e9 + step_s)
    trial.leave()
    crowd = {"tenant": "crowd", "session": "crowd"}
    for _ in range(_CROWD):
        trial.call("a crowd of one session", raw_for(wanted, "middle"), crowd)
    trial.leave()


def _held(trial: Trial) -> None:
    """A life before a host that holds, and asks again."""
    wanted = [thing for thing in trial.policy.requires if isinstance(thing, Signal)]
    for label, make_raw, facts in DAY:
        for _ in range(2):
            trial.ask(label, make_raw(wanted), facts)
            trial.clock.advance(0.1)
    trial.leave()


def _blindness(cls: type[Policy], parameters: dict[str, object]) -> Iterator[str]:
    """Without a required signal the reason says so."""
    wanted = cls(clock=FakeClock(), **parameters).requires
    for signal in (t for t in wanted if isinstance(t, Signal)):
        trial = Trial(cls, parameters, promised=signal.origin != "ledger")
        rest = [t for t in wanted if isinstance(t, Signal) and t is not signal]
        told = {k: v for k, v in facts_for(wanted).items() if k != FACT_OF.get(signal)}
        d = trial.call(f"without {signal.name}", raw_for(rest, "full"), told)
        if d is not None and d.reason != "signal_absent":
            yield f"without {signal.name} it answers {d!r}"


def _undeclared(cls: type[Policy], parameters: dict[str, object]) -> Iterator[str]:
    """With exactly what it requires, nothing else is needed."""
    trial = Trial(cls, parameters)
    wanted = trial.policy.requires
    signals = [thing for thing in wanted if isinstance(thing, Signal)]
    if not any(signal.origin == "ledger" for signal in signals):
        trial = Trial(cls, parameters, promised=False)
    d = trial.call(
        "only what it requires", raw_for(signals, "middle"), facts_for(wanted)
    )
    if d is not None and d.reason == "signal_absent":
        yield f"it needs more than `requires` says: {d.blind}"
