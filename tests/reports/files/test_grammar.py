"""The pattern that lets a line pass unread: what matches is what the check takes."""

import json
import random
from contextlib import suppress

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reports import byhand
from tests.reports.examples import ALL

from admitperf import Policy
from admitperf.core.reading import Reading
from admitperf.core.request import FACTS as OUR_FACTS
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH
from admitperf.reports.files import forms
from admitperf.reports.files.grammar import LINE, NEEDED
from admitperf.reports.files.lines import parse
from admitperf.reports.files.shape import FACTS, KINDS

QUIET = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
LARGEST = 1e288  # from about there on, numbers are left to the check
TEXT = st.text(max_size=12) | st.sampled_from(
    ["\ud800", "\x00", '"\\', "\x7f é \u2028"]
)
NUMBER = st.floats(-LARGEST, LARGEST) | st.integers(-(2**62), 2**62)
SMALL = st.floats(0, 1e6) | st.integers(0, 10**6)
ODD = st.sampled_from([float("nan"), float("inf"), 10**30, None, True, "x"])
NAMES = st.sampled_from(["a", 'vllm:x{engine="0"}', "kv_pressure", "é", "queue_depth"])
FULL = {
    "run": byhand.header(slo={"ttft_ms": 1500}, notes={"load": 1.5, "model": None}),
    "reading": byhand.reading(
        7,
        {"a": 1, 'b{c="d"}': None},
        taken_us=5,
        replica="r1",
        gone=["x"],
        signals={"kv_pressure": {"value": 0.5, "source": "a", "parts": {"e=0": 1}}},
    ),
    "decision": byhand.kv(
        1,
        0.95,
        facts={"logical_id": "c", "attempt": 0, "stream": True, "late_ms": 0.5},
        reading=7,
        replica="r1",
        age_ms=3,
        raw={"a": 1.0},
        sources={"kv_pressure": "a"},
        blind="signal_stale",
        why="old",
        by="host",
        probe=True,
        held_ms=12.5,
        added={"queue_depth": 2.0},
    ),
    "outcome": byhand.outcome(
        1,
        error="e",
        finish_reason=None,
        output_tokens=9,
        input_tokens=7,
        first_text_ms=1,
    ),
    "lost": byhand.lost(decision=3),
    "control": byhand.control("blind", seq=3, why={"deep": [1, {"a": None}]}),
    "call": byhand.call(3, tenant="t", kind="read", late_ms=0.5, computed_tokens=340),
}
FULL["run"]["basis"] = "samples"
# As JSON text: what a field may wrongly hold, and what no JSON reader should take.
WRONG = (
    "1.5", "12.0", "1e2", '"12"', "12", "-1", "true", '"true"', "null", "0", "1e999",
    "-1e999", "9223372036854775808", "123456789012345678901", "1" + "0" * 400, "{}",
    "[]", "[1]", '["a"]', '{"a":"1"}', '{"a":true}', '{"a":[]}', '{"a":1e999}', '""',
    '{"a":{"source":1}}', '{"attempt":"1"}', '{"attempt":1.5}', '{"stream":1}',
    '{"late_ms":"2"}', '[["a",1,">=",2,true,0]]', '[["a","1",">=",2,true]]',
    '[["a",1,"==",2,true]]', '[[1,1,">=",2,true]]', '[["a",1,">=",2,1]]', '"maybe"',
    '{"a":{"b":{"c":{"d":{"e":1}}}}}',
)  # fmt: skip
NO_JSON = (
    "NaN",
    "Infinity",
    "-Infinity",
    "nan",
    "True",
    "None",
    "",
    "'a'",
    "1.5.5",
    "[1,]",
    '{"a":1,}',
    "[,1]",
    "{,}",
)


class Wall(Policy):
    """Two gates, the second behind the first."""

    name = "wall_of_grammar"

    def decide(self, metrics):
        """Refuse at a bound, for a reason that may be anything."""
        if KV_PRESSURE.read(metrics) >= 0.9:
            return self.reject("kv_pressure")
        if QUEUE_DEPTH.read(metrics) > 32:
            return self.defer("queue_depth", retry_after_ms=200)
        return self.admit()


@pytest.fixture(scope="module")
def database():
    """DuckDB, once."""
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def matches(database):
    """Ask DuckDB which lines match."""
    pattern = LINE.replace("'", "''")
    query = f"SELECT regexp_full_match(line, '{pattern}') FROM unnest($1) AS t(line)"

    def _matches(*lines):
        return [found for (found,) in database.execute(query, [list(lines)]).fetchall()]

    return _matches


@pytest.fixture
def loaded(database, tmp_path):
    """Load one line with a typed column for each of its fields, as a report would."""

    def _loaded(kind, line):
        path = tmp_path / "line.jsonl"
        path.write_text(line + "\n", encoding="utf-8", errors="surrogatepass")
        columns = {"k": "VARCHAR"} | {
            name: _column(form) for name, form in _forms(kind).items()
        }
        found = database.execute(
            f"SELECT * FROM read_json('{path}', format = 'newline_delimited',"
            f" columns = {columns})"
        )
        names = [column[0] for column in found.description]
        return dict(zip(names, found.fetchall()[0], strict=True))

    return _loaded


def _forms(kind):
    return {**KINDS[kind].needed, **KINDS[kind].optional}


def _column(form):
    """The type that DuckDB silently turns other values into."""
    if form == KINDS["decision"].optional["facts"]:
        return f"STRUCT({', '.join(f'{n} {_column(one)}' for n, one in FACTS.items())})"
    if form in {KINDS["decision"].needed["verdict"], KINDS["run"].optional["basis"]}:
        return "VARCHAR"
    return {
        forms.TEXT: "VARCHAR",
        forms.FLAG: "BOOLEAN",
        forms.DURATION: "DOUBLE",
        forms.NUMBER: "DOUBLE",
        forms.COUNT: "BIGINT",
        forms.WHOLE: "BIGINT",
        forms.TEXTS: "VARCHAR[]",
        forms.NUMBERS: "MAP(VARCHAR, DOUBLE)",
    }.get(form, "JSON")


def _with(line, name, text):
    """A line as JSON text, one field of it replaced by a text."""
    return json.dumps({**line, name: "@"}).replace('"@"', text, 1)


def _refused(line):
    return parse(1, line.encode(errors="surrogatepass") + b"\n").fault


page = st.dictionaries(NAMES, NUMBER | ODD, max_size=5)
facts = st.fixed_dictionaries(
    {},
    optional={
        name: TEXT | ODD if form is forms.TEXT else SMALL | ODD | st.booleans()
        for name, form in FACTS.items()
    },
)
ends = st.fixed_dictionaries(
    {"ok": st.booleans() | TEXT},
    optional={
        "ttft_ms": SMALL | ODD,
        "max_gap_ms": SMALL | ODD,
        "e2e_ms": SMALL | ODD,
        "output_tokens": SMALL | ODD,
        "cached_tokens": SMALL | ODD,
        "finish_reason": TEXT | ODD,
        "error": TEXT,
    },
)


@QUIET
@given(
    raw=st.sampled_from(["inline", "reference"]),
    calls=st.lists(st.tuples(page, facts, TEXT, ends), min_size=1, max_size=6),
    notes=TEXT | st.dictionaries(TEXT.filter(bool), NUMBER | TEXT | st.none()),
    params=st.dictionaries(st.sampled_from(["a", "b"]), NUMBER | TEXT),
)
def test_every_line_we_write_matches(matches, tmp_path, raw, calls, notes, params):
    """Runs, readings, decisions, outcomes and control lines, whatever is in them."""
    path = tmp_path / "ours.jsonl"
    path.unlink(missing_ok=True)
    with Wall(
        log=str(path), raw=raw, notes=notes, on_blind="admit", **params
    ) as policy:
        for metrics, given_facts, request_id, end in calls:
            made = policy(
                Reading(metrics, replica=request_id or None),
                request_id=request_id,
                **given_facts,
            )
            policy.outcome(made.request_id, **end)
            policy.outcome(made.request_id, **end)
    lines = path.read_text(encoding="ascii").splitlines()
    assert [
        line for line, ok in zip(lines, matches(*lines), strict=True) if not ok
    ] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_we_know_matches_in_any_order(matches, kind):
    """Behind `k` no order is asked for, and a space may stand behind `,` and `:`."""
    names = [name for name in FULL[kind] if name != "k"]
    for seed in range(5):
        random.Random(seed).shuffle(names)
        line = {name: FULL[kind][name] for name in ("k", *names)}
        assert matches(json.dumps(line), json.dumps(line, separators=(",", ":"))) == [
            True,
            True,
        ], line


def test_the_small_logs_of_the_goldens_match(matches):
    """All of their lines but the one that is torn."""
    texts = [
        line if isinstance(line, str) else json.dumps(line)
        for make in ALL.values()
        for line in make()
    ]
    left = [text for text, ok in zip(texts, matches(*texts), strict=True) if not ok]
    assert left == ['{"k":"decision","seq":6,"verdict":"adm']


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_of_the_wrong_type_matches(matches, kind):
    """What matches, `shape.fault` takes: each field with each odd value."""
    lines = [_with(FULL[kind], name, text) for name in _forms(kind) for text in WRONG]
    matched = [line for line, ok in zip(lines, matches(*lines), strict=True) if ok]
    assert {line: _refused(line) for line in matched if _refused(line)} == {}
    assert len(matched) < len(lines)


@pytest.mark.parametrize("kind", KINDS)
def test_what_only_lenient_readers_take_never_matches(matches, kind):
    """NaN, words of other languages, trailing commas and bytes, in any field."""
    whole = json.dumps(FULL[kind])
    lines = [
        *(_with(FULL[kind], name, text) for name in FULL[kind] for text in NO_JSON),
        *(_with(FULL[kind], "unknown", text) for text in NO_JSON),
        whole[:-1] + ",}",
        whole + " ",
        whole + "x",
        whole + whole,
        " " + whole,
        whole[:-1],
        f"[{whole}]",
        json.dumps(whole),
        "null",
        "{}",
        "",
    ]
    assert not any(matches(*lines))


@pytest.mark.parametrize("kind", KINDS)
def test_fields_nobody_knows_are_let_through(matches, kind):
    """A newer writer may add some: every simple value, and lists of them."""
    for name in ("colour", "zz-top", "0"):
        for value in ("blue", 1.5, None, True, [1, "a"], {"a": 1}):
            assert matches(json.dumps({**FULL[kind], name: value})) == [True], name


@pytest.mark.parametrize("kind", KINDS)
def test_a_needed_field_is_never_null(matches, kind):
    """So that a null in its column means that it was not there."""
    for name in NEEDED[kind]:
        assert matches(_with(FULL[kind], name, "null")) == [False], name
        assert (
            _refused(_with(FULL[kind], name, "null")) == f"{kind} line without {name}"
        )


@pytest.mark.parametrize("name", ["k", "\\u006b", "seq", "s\\u0065q"])
def test_no_second_spelling_of_a_name_is_taken_for_an_unknown_one(matches, name):
    """A field in disguise would keep its type from being looked at."""
    line = json.dumps(FULL["decision"])[:-1] + f', "{name}": "x"}}'
    assert matches(line) == [False]


bent_value = st.sampled_from([*WRONG, *NO_JSON]) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | TEXT, inner, max_size=3)
    ),
    max_leaves=6,
).map(json.dumps)


@settings(QUIET, max_examples=250)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    changes=st.dictionaries(st.integers(0, 30), bent_value, max_size=3),
    noise=st.none() | st.tuples(st.integers(0, 2000), TEXT),
)
def test_what_matches_and_loads_is_usable_and_unchanged(
    matches, loaded, kind, changes, noise
):
    """Whatever is done to a line: no match, or an error, or what the line said."""
    line = FULL[kind]
    names = [*_forms(kind), "colour"]
    for number in changes:
        name = names[number % len(names)]
        line = json.loads(_with(line, name, "0")) | {name: f"@{number}@"}
    text = json.dumps(line)
    for number, value in changes.items():
        text = text.replace(f'"@{number}@"', value, 1)
    if noise:
        at, extra = noise
        text = text[: at % len(text)] + extra + text[at % len(text) :]
    if "\n" in text or "\ud800" in text or matches(text) != [True]:
        return
    with suppress(duckdb.Error):
        row = loaded(kind, text)
        if all(row[name] is not None for name in NEEDED[kind]):
            read = parse(1, text.encode() + b"\n")
            assert read.fault is None
            for name, form in _forms(kind).items():
                assert _same(row[name], read.fields.get(name), form), name


def _same(loaded_value, value, form):
    """Whether DuckDB's value is the one that stands in the line."""
    column = _column(form)
    if value is None or column in {"VARCHAR", "BOOLEAN", "BIGINT", "VARCHAR[]"}:
        return loaded_value == value and type(loaded_value) is type(value)
    if column == "DOUBLE":
        return loaded_value == float(value)
    if column.startswith("MAP"):
        floats = {k: None if v is None else float(v) for k, v in value.items()}
        return loaded_value == floats
    if column.startswith("STRUCT"):
        return all(loaded_value[name] == value.get(name) for name in FACTS)
    return json.loads(loaded_value) == value


def test_the_facts_with_a_form_are_the_facts_there_are():
    """No fact of a request goes unchecked."""
    assert set(FACTS) == OUR_FACTS


def test_the_pattern_stays_small_enough_for_its_automaton():
    """Twice as long, and DuckDB's 8 MB no longer hold it: 10 times slower."""
    assert len(LINE) < 26_000
