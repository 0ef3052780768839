"""The members of an object are found as `json` has them, however it is written."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admitperf.gateway.facts import skim
from admitperf.gateway.facts.skim import members

TREES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.sampled_from('a"\\\\{}[],: \u00e9\U0001f600'), max_size=30),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), TREES, max_size=4)


@pytest.fixture(params=[1 << 16, 2, 7], ids=["usual", "tiny", "small"])
def pieces(request, monkeypatch):
    """Pieces of several sizes, so that each edge falls everywhere."""
    monkeypatch.setattr(skim, "_PIECE", request.param)
    monkeypatch.setattr(skim, "_FIRST", min(request.param, 1 << 8))


patiently = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)


@patiently
@given(OBJECTS, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_every_member_is_found_where_it_is(pieces, tree, escaped, indent):
    """Name by name, what stands between begin and end is that member's value."""
    text = json.dumps(tree, ensure_ascii=escaped, indent=indent)
    body = text.encode("utf-8", "surrogatepass")
    found = {name: body[begin:end] for name, begin, end in members(body)}
    assert list(found) == list(tree)
    for name, raw in found.items():
        again = json.loads(raw.decode("utf-8", "surrogatepass"))
        assert repr(again) == repr(json.loads(json.dumps(tree[name])))


@patiently
@given(OBJECTS, st.data())
def test_what_is_not_whole_is_no_object(pieces, tree, data):
    """A body cut anywhere is told from a whole one, as is one with more behind it."""
    body = json.dumps(tree).encode()
    cut = data.draw(st.integers(0, len(body) - 1))
    for broken in (body[:cut], body + b"}", body + b","):
        with pytest.raises(ValueError, match=r"."):
            list(members(broken))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1,}',
        b"{a:1}",
        b'{"a":nul}',
        b'{"a":01}',
        b'{"a":1.}',
        b'{"a":1 "b":2}',
        b'{"a\x00":1}',
        b'{"a":"\\',
        b'{"a":"\\"}',
        b'{"a":["]}',
        b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    ],
    ids=range(15),
)
def test_what_is_no_object_is_refused(pieces, body):
    """An odd name, value, comma or end is a fault, and so is nesting without end."""
    with pytest.raises(ValueError, match=r"."):
        list(members(body))


def test_long_strings_and_deep_values_are_passed_over():
    """Neither a text of many pieces nor its escapes lose the place."""
    text = '\\"{[' * 100_000
    tree = {"a": text, "b": [text, [[[{"c": text}]] * 3]], text[:999]: 1, "d": 2}
    body = json.dumps(tree).encode()
    found = [(name, json.loads(body[at:end])) for name, at, end in members(body)]
    assert found == list(tree.items())
