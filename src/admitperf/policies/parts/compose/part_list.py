"""The parts of a composition, from a text or from Python."""

import dataclasses
from collections.abc import Iterable, Mapping

from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.core.policy import Policy
from admitperf.core.settings import RESERVED, Settings
from admitperf.policies import load
from admitperf.policies.parts.compose import shape, written

_OWN = ("clock", "reports_outcomes")
"""Settings of a part made in Python that change nothing: it is asked on what the whole
one sees."""

_NOT_ITS = "is a setting of the whole, not of a part"


def parts_of(told: object) -> list[Policy]:
    """The policies that `policies` names, in order.

    Args:
        told: a text, `tenant_share; kv_threshold:threshold=0.85,action=reject`, where a
            value with one of `;`, `,` or a space in it stands in brackets; or a
            sequence of policies and of what `written.part` reads.

    Raises:
        ConfigError: with every fault of every part, each with the part's name.
    """
    made, faults = list[Policy](), list[str]()
    try:
        shape.check(told)
        every = shape.listed(told)
    except ConfigError as error:
        every, faults = [], error.faults
    for one in every:
        try:
            made.append(_part(one))
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError("policies", [f"policies: {fault}" for fault in faults])
    return made


def divided(told: object, count: int) -> object:
    """The same parts, each with its share of what it bounds in a process.

    What cannot be read is returned as it is: who makes the policy says what is wrong.

    Args:
        told: as for `parts_of`.
        count: processes that share the work.
    """
    try:
        shape.check(told)
        return [_share(one, count) for one in shape.listed(told)]
    except Exception:  # noqa: BLE001  whatever somebody's constructor does
        return told


def _share(one: object, count: int) -> object:
    """One of them; only of an object another one is made, which is one whole's."""
    if isinstance(one, Policy):
        given = {name: getattr(one, name) for name in one.given}
        return type(one)(**type(one).divided(given, count))
    name, given = written.part(one)
    return name, load(name).divided(given, count)


def spelt(parts: Iterable[Policy]) -> str:
    """The text that makes the same parts, with every parameter."""
    return "; ".join(
        written.spelt(type(one).name, one.parameters, one.declared()) for one in parts
    )


def _part(one: object) -> Policy:
    if isinstance(one, Policy):
        return _plain(one)
    name, given = written.part(one)
    try:
        return _made(name, given)
    except ConfigError as error:
        if isinstance(one, str) and written.strange(name, given):
            error.faults[-1] += f"; {written.FORM}"
        raise


def _made(name: str, given: Mapping[str, object]) -> Policy:
    own = {key: value for key, value in given.items() if key not in RESERVED}
    faults = [f"{name}: {key} {_NOT_ITS}" for key in given if key in RESERVED]
    try:
        made = load(name)(**own)
    except ConfigError as error:
        faults += [f"{name}: {fault}" for fault in error.faults]
    except AdmitPerfError as error:
        faults.append(str(error))
    except Exception as error:  # noqa: BLE001  whatever somebody's constructor does
        told = f"{name}: {type(error).__name__}: {error}"
        faults.append(" ".join(told.split()))
    if faults:
        raise ConfigError("policies", faults)
    return made


def _plain(part: Policy) -> Policy:
    """Itself, if it has no settings of its own, which nobody would look at."""
    usual = Settings(**{name: getattr(part.settings, name) for name in _OWN})
    wrong = [
        f"{part.name}: {field.name} {_NOT_ITS}"
        for field in dataclasses.fields(Settings)
        if getattr(part.settings, field.name) != getattr(usual, field.name)
    ]
    if wrong:
        raise ConfigError("policies", wrong)
    return part
