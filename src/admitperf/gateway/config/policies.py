"""What the policies that a file names find wrong with what they are given."""

from collections.abc import Iterator

from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.core.settings import RESERVED
from admitperf.gateway.setup import PoolSetup
from admitperf.policies import load

_ELSEWHERE = {
    "slo": "slo",
    "log": "log.path",
    "log_max_mb": "log.max_mb",
    "log_keep": "log.keep",
    "raw": "log.raw",
}
"""Where a file has the settings that do not stand with its policy."""


def faults(pool: PoolSetup, path: str) -> list[str]:
    """Everything that its policy finds wrong, each with its path in the file.

    Args:
        pool: what was told.
        path: where it stands, such as `pools[1]`.
    """
    twice = sorted(RESERVED.intersection(pool.parameters))
    if twice:
        return [f"{path}.policy.params.{name} is no parameter" for name in twice]
    try:
        kind = load(pool.policy)
        settings = {n: v for n, v in pool.settings.items() if n != "log"}
        kind(**settings, **pool.parameters)
    except ConfigError as error:
        return list(_placed(error.faults, pool, path))
    except AdmitPerfError as error:
        return [f"{path}.policy.name: {error}"]
    except Exception as error:  # noqa: BLE001  whatever somebody's constructor does
        return [f"{path}.policy: {type(error).__name__}: {error}"]
    return []


def _placed(told: list[str], pool: PoolSetup, path: str) -> Iterator[str]:
    """A fault begins with the name that it is about, mostly."""
    known = {*pool.parameters, *load(pool.policy).declared()}
    for fault in told:
        name, _, rest = fault.partition(" ")
        name, colon = name.removesuffix(":"), ":" if name.endswith(":") else ""
        if name in _ELSEWHERE:
            yield f"{path}.{_ELSEWHERE[name]}{colon} {rest}"
        elif name in RESERVED:
            yield f"{path}.policy.{name}{colon} {rest}"
        elif name in known:
            yield f"{path}.policy.params.{name}{colon} {rest}"
        else:
            yield f"{path}.policy: {fault}"
