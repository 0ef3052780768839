"""Only the clock asks the time."""

import ast

CLOCK = "admitperf.core.clock"
ASKS = {
    ("datetime", "now"),
    ("datetime", "today"),
    ("datetime", "utcnow"),
    ("date", "today"),
    ("asyncio", "sleep"),
    ("os", "times"),
    ("loop", "time"),
}


def asks(module):
    """The lines where a module reaches for a clock of its own."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names) if "time" in [name.name for name in names]:
                yield node.lineno
            case ast.ImportFrom(module="time"):
                yield node.lineno
            case ast.Attribute(attr=attr) if (owner(node), attr) in ASKS:
                yield node.lineno


def owner(node):
    """The last name before the attribute: `datetime` in `datetime.datetime.now`."""
    value = node.value
    return getattr(value, "attr", None) or getattr(value, "id", None)


def test_only_the_clock_asks_the_time(modules):
    """Everything else is told the time, so a test can set it."""
    found = {m.name: list(asks(m)) for m in modules}
    assert found.pop(CLOCK), "the clock itself is not seen asking: this test is blind"
    assert {name: lines for name, lines in found.items() if lines} == {}
