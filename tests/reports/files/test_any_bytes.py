"""Whatever a file holds, reading it raises nothing but one clear error."""

import json
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reports import byhand

from admitperf.core.errors import LogError
from admitperf.reports.files.expand import expand
from admitperf.reports.files.lines import LogFile
from admitperf.reports.pages import render
from admitperf.reports.pages.layout import WIDTH
from admitperf.reports.report import report

QUIET = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
WHOLE = (
    byhand.header(),
    byhand.reading(1, {"a": 1.0}),
    byhand.kv(1, 0.95, reading=1, facts={"logical_id": "l", "stream": False}),
    byhand.outcome(1),
    byhand.lost(decision=2),
    byhand.control("blind"),
)


@st.composite
def bent(draw):
    """A line of ours with some fields replaced by anything, or taken away."""
    line = dict(draw(st.sampled_from(WHOLE)))
    for name in draw(st.sets(st.sampled_from(sorted(line)), max_size=3)):
        if draw(st.booleans()):
            line[name] = draw(ANY)
        else:
            del line[name]
    return json.dumps(line)


def tried(path):
    """Read, expand and print a file; nothing but LogError may come out."""
    with suppress(LogError):
        made = report([str(path)])
        text = render.text(made)
        assert text.isascii()
        assert all(len(line) <= WIDTH for line in text.splitlines())
        json.dumps(made.to_dict(), allow_nan=False)
    with suppress(LogError):
        list(expand(LogFile(str(path))))


@QUIET
@given(st.binary(max_size=300))
def test_any_bytes_as_a_log_never_raise(tmp_path, content):
    """A file of noise is one clear error or some counted lines."""
    path = tmp_path / "noise"
    path.write_bytes(content)
    tried(path)


@QUIET
@given(st.lists(bent() | ANY.map(json.dumps), max_size=8))
def test_lines_of_any_types_never_raise(tmp_path, lines):
    """Fields of absurd types and sizes are faults or absent, never a traceback."""
    path = tmp_path / "bent"
    whole = [json.dumps(line) for line in WHOLE]
    path.write_text("\n".join([*whole, *lines]), encoding="utf-8")
    tried(path)


@QUIET
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=90))
def test_names_of_any_text_stay_printable(tmp_path, policy, signal, reason):
    """No name in a log reaches a terminal as something it obeys, or breaks the page."""
    path = tmp_path / "names"
    lines = [
        byhand.header(
            policy=policy, name=reason, notes=signal, params={signal: reason}
        ),
        byhand.decision(
            1,
            "reject",
            reason,
            signals={signal: 0.5},
            gates=[[signal, 0.5, ">", 0.1, True]],
            facts={signal: reason},
        ),
        byhand.outcome(1, ok=False, error=reason),
        byhand.control(signal),
    ]
    path.write_text(byhand.jsonl(*lines), encoding="utf-8")
    tried(path)
    printed = render.text(report([str(path)]))
    assert all(" " <= character <= "~" for character in printed.replace("\n", ""))
