"""A body's facts are read from every API, whole or damaged, with or without msgspec."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf.gateway.facts import fields
from admitperf.gateway.facts.body import Wish, read_wish

PICTURE = "data:image/png;base64," + "A" * 4000


def written(value) -> bytes:
    """JSON as the official clients write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def by_json(body: bytes) -> Wish:
    """What is read where msgspec is missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "_DECODER", None)
        return read_wish(body)


@pytest.fixture(params=[read_wish, by_json], ids=["msgspec", "json"])
def read(request):
    """Both ways to read a body, handed a value."""
    return lambda value: request.param(written(value))


CALL = {"id": "1", "type": "function", "function": {"name": "go", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("body", "text_bytes"),
    [
        ({"prompt": "grüß"}, 6),
        ({"prompt": ["ab", "cde"]}, 5),
        ({"input": "abc"}, 3),
        ({"input": ["ab", "c"]}, 3),
        ({"messages": [{"role": "user", "content": "abc"}]}, 3),
        ({"messages": [{"content": [{"type": "text", "text": "ab"}, "cd"]}]}, 4),
        ({"messages": [{"role": "assistant", "content": None}]}, 0),
        ({"messages": [{"content": None, "tool_calls": [CALL]}]}, 2 + 4),
        ({"messages": [], "tools": [{"name": "go"}]}, 15),
        ({"messages": [], "functions": [{}], "tools": None}, 4),
        ({"instructions": "ab", "input": [{"role": "user", "content": "cd"}]}, 4),
        ({"input": [{"content": [{"type": "input_text", "text": "ab"}]}]}, 2),
        ({"input": [{"type": "function_call", "name": "go", "arguments": "{}"}]}, 6),
        ({"input": [{"type": "function_call_output", "output": "done"}]}, 4),
        ({"input": [{"type": "reasoning", "summary": [{"text": "abc"}]}]}, 3),
        ({"system": "ab", "messages": [{"content": "c"}]}, 3),
        ({"system": [{"type": "text", "text": "ab"}], "messages": []}, 2),
        (
            {
                "messages": [
                    {"content": [{"type": "tool_use", "name": "go", "input": {}}]}
                ]
            },
            4,
        ),
        (
            {
                "messages": [
                    {
                        "content": [
                            {
                                "type": "tool_result",
                                "content": [{"type": "text", "text": "abcd"}],
                            }
                        ]
                    }
                ]
            },
            4,
        ),
        ({"messages": [{"content": [{"type": "thinking", "thinking": "hm"}]}]}, 2),
        (
            {
                "messages": [
                    {
                        "content": [
                            {
                                "type": "document",
                                "source": {"type": "text", "data": "abcd"},
                            }
                        ]
                    }
                ]
            },
            6,
        ),
    ],
)
def test_the_text_of_every_api_is_counted_in_bytes(read, body, text_bytes):
    """Prompts, parts, tools, calls and their answers are what the model reads."""
    wish = read(body)
    assert wish.readable
    assert wish.text_bytes == text_bytes
    assert (wish.images, wish.audio, wish.files) == (0, 0, 0)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "image_url", "image_url": {"url": PICTURE}}, "images"),
        ({"type": "input_image", "image_url": PICTURE}, "images"),
        ({"type": "image", "source": {"type": "base64", "data": PICTURE}}, "images"),
        ({"type": "input_audio", "input_audio": {"data": PICTURE}}, "audio"),
        ({"type": "file", "file": {"file_data": PICTURE}}, "files"),
        ({"type": "input_file", "file_data": PICTURE}, "files"),
        ({"type": "document", "source": {"type": "base64", "data": PICTURE}}, "files"),
    ],
)
def test_base64_is_no_text(read, part, kind):
    """An image, a sound or a file counts as one of its kind, whatever its size."""
    for body in (
        {"messages": [{"content": [part, {"type": "text", "text": "ab"}]}]},
        {"input": [{"content": [part, {"type": "text", "text": "ab"}]}]},
        {"messages": [{"content": [{"type": "tool_result", "content": [part, "ab"]}]}]},
    ):
        wish = read(body)
        assert wish.text_bytes == 2
        assert {n: getattr(wish, n) for n in ("images", "audio", "files")} == {
            "images": 0,
            "audio": 0,
            "files": 0,
            kind: 1,
        }


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"prompt": [1, 2, 3]}, 3),
        ({"prompt": [[1, 2, 3], [4]]}, 4),
        ({"input": [[7] * 300]}, 300),
        ({"prompt": [1, 2], "messages": []}, 2),
        ({"prompt": "abc"}, None),
        ({"prompt": ["ab", 1, [2]]}, None),
        ({"messages": [1, 2]}, None),
    ],
)
def test_token_ids_are_counted_exactly(read, body, tokens):
    """Where the prompt is token ids nothing has to be estimated."""
    assert read(body).prompt_tokens == tokens


def test_half_a_character_spoils_nothing():
    """Clients that cut a string inside a character send such escapes."""
    for way in (read_wish, by_json):
        wish = way(b'{"model":"m","messages":[{"content":"ab\\ud83d"}]}')
        assert (wish.model, wish.text_bytes) == ("m", 5)


def test_every_named_field_is_read(read):
    """Each API's own name for a fact ends in the same attribute."""
    wish = read(
        {
            "model": "m",
            "stream": True,
            "max_tokens": 5,
            "max_completion_tokens": 7,
            "n": 2.0,
            "priority": -3,
            "service_tier": "flex",
            "prompt_cache_key": "k",
            "user": "u",
            "metadata": {"user_id": "w"},
            "nvext": {"agent_hints": {"priority": 4, "osl": 99}},
        }
    )
    assert wish == Wish(
        model="m",
        stream=True,
        max_output_tokens=7,
        n=2,
        priority=-3,
        service_tier="flex",
        cache_key="k",
        user="u",
        hint_priority=4,
        hint_osl=99,
    )


@pytest.mark.parametrize(
    ("body", "user"),
    [
        ({"safety_identifier": "s", "user": "u"}, "s"),
        ({"user": "u", "metadata": {"user_id": "w"}}, "u"),
        ({"metadata": {"user_id": "w"}}, "w"),
        ({"metadata": {}}, None),
    ],
)
def test_the_user_has_three_names_in_order(read, body, user):
    """The newest name wins, Anthropic's comes last."""
    assert read(body).user == user


ODD = [None, True, 3, -1, 2.5, 1e300, "x", [], ["x", None, 1.5, [[]]], {}, {"a": [1]}]
NAMES = [name for name in fields.Fields.__annotations__ if name != "model"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_a_wrong_type_spoils_no_other(read, name, odd):
    """The rest of the body is read as if the odd field were not there."""
    body = {"model": "m", "messages": [{"content": "abc"}], "max_tokens": 5, "n": 2}
    whole = read(body)
    wish = read({**body, name: odd})
    assert wish.readable
    assert wish.model == "m"
    if name != "n":
        assert wish.n == 2
    if not name.startswith("max_"):
        assert wish.max_output_tokens == 5
    if name not in ("messages", "prompt", "input", "system", "instructions"):
        assert wish.text_bytes - whole.text_bytes <= len(written(odd))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b'{"model":"m"',
        b'{"model":"m"}}',
        b'{"model":}',
        b'{"n":NaN}',
        b'{"n":1e999}',
        b'{"n":' + b"9" * 5000 + b"}",
        b'{"model":"\xff"}',
        b'\xef\xbb\xbf{"model":"m"}',
        '{"model":"m"}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"messages":' + b"[" * 100_000,
        b'{"x":' + b'{"x":' * 100_000,
        b'{"messages":' + b'{"content":' * 50_000 + b"1" + b"}" * 50_001,
        b"--boundary\r\ncontent-disposition: form-data",
    ],
    ids=range(18),
)
def test_what_is_no_body_is_said_to_be_unreadable(body):
    """Broken, deep and huge input is answered by a value, never by an exception."""
    assert read_wish(body) == Wish(readable=False)
    assert by_json(body) == Wish(readable=False)


@given(st.binary(max_size=200))
def test_no_input_raises(body):
    """Whatever bytes come, a wish is returned."""
    assert isinstance(read_wish(body), Wish)
    assert isinstance(read_wish(b'{"messages":[' + body), Wish)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
)
PARTS = [name for name in fields.Part.__annotations__ if name != "source"]
KINDS = st.sampled_from(["text", "image_url", "file", "input_audio", "tool_use", "x"])
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(st.integers(0, 99), max_size=4),
        st.dictionaries(st.sampled_from(PARTS), inner, max_size=4),
        st.fixed_dictionaries({"type": KINDS}, optional={"text": inner}),
        st.fixed_dictionaries(
            {"type": st.just("document")},
            optional={
                "source": st.fixed_dictionaries(
                    {"type": st.sampled_from(["text", "base64", 3])},
                    optional={"data": inner},
                )
            },
        ),
    ),
    max_leaves=12,
)
BODIES = st.dictionaries(
    st.sampled_from([*fields.Fields.__annotations__, "else"]), TREES, max_size=5
)


@given(BODIES)
def test_msgspec_and_json_read_the_same(body):
    """A host without msgspec decides by the same facts."""
    assert read_wish(written(body)) == by_json(written(body))


def test_without_msgspec_the_standard_library_reads(root):
    """The module comes up, and reads, where msgspec is not installed."""
    program = (
        "import sys; sys.modules['msgspec'] = None\n"
        "from admitperf.gateway.facts.body import read_wish\n"
        "from admitperf.gateway.facts import fields\n"
        "assert fields._DECODER is None\n"
        "print(read_wish(sys.stdin.buffer.read()))"
    )
    body = written(
        {
            "model": "m",
            "messages": [{"content": [{"type": "image_url"}, "ab"]}],
            "tools": [{"name": "go"}],
            "nvext": {"agent_hints": {"osl": 3}},
        }
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=body,
        capture_output=True,
        check=False,
        env={"PYTHONPATH": str(root / "src")},
    )
    assert ran.stderr == b""
    assert ran.stdout.decode().strip() == repr(read_wish(body))


def test_a_wish_shows_no_prompt():
    """What people asked is not in what a wish prints."""
    body = written(
        {"prompt": "secret", "messages": [{"content": "secret"}], "tools": ["secret"]}
    )
    assert "secret" not in repr(read_wish(body))
