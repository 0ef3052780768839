"""Answers read the same with msgspec and without."""

import dataclasses
import json
from types import UnionType
from typing import get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf.gateway.watching import shapes
from admitperf.gateway.watching.shapes import Completion, Reader

ROOTS = [
    Completion,
    shapes.Response,
    shapes.ResponseEvent,
    shapes.AnthropicMessage,
    shapes.AnthropicEvent,
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def values(wanted):
    """JSON values that are, or nearly are, of this type."""
    if dataclasses.is_dataclass(wanted):
        hints = get_type_hints(wanted)
        fields = {name: values(hint) for name, hint in hints.items()}
        return st.one_of(st.fixed_dictionaries({}, optional=fields), ODD)
    if get_origin(wanted) is UnionType:
        return st.one_of([values(each) for each in get_args(wanted)])
    if get_origin(wanted) is list:
        return st.lists(values(get_args(wanted)[0]), max_size=2)
    known = {str: st.text(max_size=3), int: st.integers()}
    return st.one_of(known.get(wanted, st.none()), ODD)


def tree(shape):
    """A shape, whoever made it, as plain values."""
    if isinstance(shape, list):
        return [tree(one) for one in shape]
    names = getattr(type(shape), "__struct_fields__", None)
    if names is None and dataclasses.is_dataclass(shape):
        names = [field.name for field in dataclasses.fields(shape)]
    if names is None:
        return shape
    return {name: tree(getattr(shape, name)) for name in names}


@pytest.mark.parametrize("root", ROOTS)
def test_both_readers_read_the_same(root):
    """A value of a wrong type is as good as missing, and spoils no other."""
    fast, plain = Reader(root), Reader(root, fast=False)

    @given(values(root))
    def holds(value):
        data = json.dumps(value).encode()
        assert tree(fast.read(data)) == tree(plain.read(data))

    holds()


@pytest.mark.parametrize("fast", [True, False])
def test_a_wrong_value_spoils_no_other(fast):
    """Usage that is no object hides no text."""
    said = Reader(Completion, fast=fast).read(
        b'{"usage":7,"choices":[3,{"index":"x","delta":{"content":"a","refusal":0}}]}'
    )
    assert said.usage is None
    assert [choice.delta.content for choice in said.choices] == ["a"]
    assert said.choices[0].index == 0


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"7", b'"a"', b"{", b"null", b"\xff", b"[" * 100_000, b'{"a":1}x'],
)
def test_what_is_no_object_is_none(data, fast):
    """Nothing raises, however broken it is."""
    assert Reader(Completion, fast=fast).read(data) is None


def test_without_msgspec_readers_still_read(monkeypatch):
    """It is wanted for speed only."""
    monkeypatch.setitem(__import__("sys").modules, "msgspec", None)
    reader = Reader(Completion)
    assert reader._fast is None
    assert reader.read(b'{"choices":[{"text":"a"}]}').choices[0].text == "a"
