"""What each policy says, as a table: the tests and the pages both read it.

Each policy has a file `tables/<name>.py` with

- `TABLE`: rows, one snapshot each;
- `WITH_MEMORY`: (reason, verdict) that no single snapshot can show, tested with the
  policy's own calls;
- `OTHERWISE`: parameters besides the defaults under which it must conform;
- `NEEDED`: parameters without which it cannot be made.
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from admitperf.policies import available


class Case(NamedTuple):
    """One row: under these parameters, with this known, the policy says that."""

    policy: str
    parameters: dict
    signals: dict
    facts: dict
    verdict: str
    reason: str | None


def case(policy, signals, says, facts=None, **parameters):
    """A row; `says` is "admit", or "verdict reason"."""
    verdict, _, reason = says.partition(" ")
    return Case(policy, parameters, signals, facts or {}, verdict, reason or None)


TENANT = {"tenant": "t"}
SESSION = {"session": "s"}
BOTH = {**TENANT, **SESSION}


def _tables():
    """The module of each policy's table, in alphabetical order."""
    folder = Path(__file__).parent / "tables"
    names = sorted(path.stem for path in folder.glob("*.py"))
    return [(name, import_module(f"tests.policies.tables.{name}")) for name in names]


def all_rows():
    """The rows of all policies."""
    return [row for _, table in _tables() for row in getattr(table, "TABLE", ())]


def with_memory():
    """(policy, reason, verdict) that no single snapshot can show."""
    return {
        (name, reason, verdict)
        for name, table in _tables()
        for reason, verdict in getattr(table, "WITH_MEMORY", ())
    }


def otherwise():
    """(policy, parameters) besides the defaults."""
    return [
        (name, parameters)
        for name, table in _tables()
        for parameters in getattr(table, "OTHERWISE", ())
    ]


def needed(name):
    """Parameters without which a policy cannot be made; mostly none."""
    return next((getattr(t, "NEEDED", {}) for n, t in _tables() if n == name), {})


def installed():
    """What makes each installed policy, with what it needs, by name."""
    return {
        name: partial(cls, **needed(name)) if needed(name) else cls
        for name, cls in available().items()
    }
