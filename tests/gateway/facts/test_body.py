"""A body's facts are read from every API, whole or damaged, with or without msgspec."""

import json
import math
import subprocess
import sys
import tracemalloc
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admitperf.core.request import bounded
from admitperf.gateway.facts import body as reading
from admitperf.gateway.facts import fields
from admitperf.gateway.facts.body import Wish, read_wish

patiently = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
PICTURE = "data:image/png;base64," + "A" * 4000


def written(value) -> bytes:
    """JSON as the official clients write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def by_json(body: bytes) -> Wish:
    """What is read where msgspec is missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "_DECODER", None)
        return read_wish(body)


def from_the_top(body: bytes) -> Wish:
    """What is read of a body that is too much to be read whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "_OBJECTS_MOST", 0)
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
        ({"prompt": [1], "messages": [{"content": "abc"}]}, None),
        ({"prompt": [1], "messages": [{"content": [{"type": "image"}]}]}, None),
    ],
)
def test_token_ids_are_counted_exactly(read, body, tokens):
    """Where a body is token ids and nothing else nothing has to be estimated."""
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
        b'{"n":' + b"9" * 5000 + b"}",
        b'{"model":"\xff"}',
        b"[" * 100_000,
        b'{"messages":' + b"[" * 100_000,
        b'{"x":' + b'{"x":' * 100_000,
        b'{"messages":' + b'{"content":' * 50_000 + b"1" + b"}" * 50_001,
        b"--boundary\r\ncontent-disposition: form-data",
    ],
    ids=range(14),
)
def test_what_is_no_body_is_said_to_be_unreadable(body):
    """Broken, deep and huge input is answered by a value, never by an exception."""
    assert read_wish(body) == Wish(readable=False)
    assert by_json(body) == Wish(readable=False)
    assert from_the_top(body) == Wish(readable=False)


WAYS = pytest.mark.parametrize("way", [read_wish, by_json, from_the_top])
ODD_NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400"]


@WAYS
@pytest.mark.parametrize("number", ODD_NUMBERS)
def test_a_number_that_is_none_is_not_known_and_spoils_nothing(way, number):
    """Engines read such a body, so that its model and its sizes are known here too."""
    body = b'{"x":[%b],"model":"m","n":%b,"max_tokens":5,"prompt":"abc"}'
    wish = way(body % (number, number))
    assert (wish.readable, wish.model, wish.n) == (True, "m", None)
    assert (wish.max_output_tokens, wish.text_bytes) == (5, 3)


@pytest.mark.parametrize("number", ODD_NUMBERS)
def test_a_number_that_is_none_is_no_token(number):
    """A list of token ids keeps those that are some."""
    for way in (read_wish, by_json):
        assert way(b'{"prompt":[7,%b,[8]]}' % number).prompt_tokens == 2


ENCODINGS = [
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-be",
    "utf-16-le",
    "utf-32",
    "utf-32-be",
    "utf-32-le",
]


@WAYS
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_that_engines_take_is_read(way, encoding):
    """A body is read in the encodings that `json` finds out by itself."""
    wish = way('{"model":"gr\u00fc\u00df","prompt":"ab"}'.encode(encoding))
    assert (wish.readable, wish.model, wish.text_bytes) == (True, "gr\u00fc\u00df", 2)


@WAYS
@pytest.mark.parametrize(
    ("body", "model", "n"),
    [
        (b'{"model":"a","n":1,"model":"b","n":2}', "b", 2),
        (b'{"model":"a","model":5,"n":1,"n":"x"}', None, None),
        (b'{"model":"a","n":3,"model":null,"n":null}', None, None),
        (b'{"model":5,"n":{},"model":"b","n":2}', "b", 2),
        (b'{"model":"a","n":NaN,"mod\\u0065l":"b","n":2}', "b", 2),
    ],
)
def test_of_two_fields_with_one_name_the_last_counts(way, body, model, n):
    """As engines have it; else a body could show them another model than here."""
    wish = way(body)
    assert (wish.readable, wish.model, wish.n) == (True, model, n)


@WAYS
def test_a_long_name_is_kept_short(way):
    """Whatever length a caller gives a name, a few hundred characters stay."""
    names = ("model", "service_tier", "prompt_cache_key", "safety_identifier")
    long = {name: letter * 5000 for name, letter in zip(names, "abcd", strict=True)}
    wish = way(written(long))
    kept = (wish.model, wish.service_tier, wish.cache_key, wish.user)
    assert kept == tuple(bounded(name) for name in long.values())
    assert all(len(name) == 256 for name in kept)


@pytest.mark.parametrize("depth", [200, 400, 600])
def test_a_body_that_engines_can_read_is_never_too_deep(depth):
    """However deep a message nests, its model is known."""
    message = b'{"content":' * depth + b"1" + b"}" * depth
    body = b'{"model":"m","messages":[%b]}' % message
    assert json.loads(body)["model"] == "m"
    for way in (read_wish, by_json, from_the_top):
        assert (way(body).readable, way(body).model) == (True, "m")


@patiently
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
    max_leaves=6,
)
BODIES = st.dictionaries(
    st.sampled_from([*fields.Fields.__annotations__, "else"]), TREES, max_size=4
)


@patiently
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


PIECES = st.sampled_from(
    [
        *(b"{", b"}", b"[", b"]", b",", b":", b" ", b'"model"', b'"m"', b'"n"', b"2"),
        *(b"NaN", b"1e400", b"null", b'"x\\""', b'"\\ud83d"', b"\xff", b"\xef\xbb\xbf"),
    ]
)
WRITTEN = st.builds(
    lambda tree, encoding, spaced: json.dumps(
        tree, separators=(" , ", " : ") if spaced else None
    ).encode(encoding),
    st.dictionaries(
        st.sampled_from(["model", "n", "x"]),
        st.one_of(st.floats(), st.text(max_size=4), st.lists(st.floats(), max_size=2)),
    ),
    st.sampled_from(ENCODINGS),
    st.booleans(),
)


def by_cpython(body):
    """The object that FastAPI makes of it; None = none."""
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


@patiently
@given(st.one_of(st.lists(PIECES, max_size=14).map(b"".join), WRITTEN))
def test_what_engines_can_read_is_read_as_they_do(body):
    """No way of writing a body hides its model or its count from the policy alone."""
    tree = by_cpython(body)
    if tree is None:
        return
    model, n = tree.get("model"), tree.get("n")
    whole = isinstance(n, int | float) and math.isfinite(n) and n == int(n) and n >= 1
    for way in (read_wish, by_json, from_the_top):
        wish = way(body)
        assert wish.readable
        assert wish.model == (bounded(model) if isinstance(model, str) else None)
        assert wish.n == (n if whole and n <= 1 << 53 else None)


MEASURED = {"text_bytes", "images", "audio", "files", "prompt_tokens", "estimated"}


@patiently
@given(BODIES.filter(bool))
def test_the_top_says_what_the_whole_says(body):
    """Of a body with too many parts each name and number is what it would be else."""
    whole, top = read_wish(written(body)), from_the_top(written(body))
    for name in Wish.__slots__:
        if name not in MEASURED:
            assert getattr(whole, name) == getattr(top, name)
    assert top.estimated


@pytest.mark.parametrize(
    ("body", "text_bytes", "tokens"),
    [
        ({"prompt": "abc"}, 3, None),
        ({"messages": [{"content": "abc"}], "tools": []}, 19 + 2, None),
        ({"system": "ab", "messages": None, "other": ["x"]}, 2, None),
        ({"prompt": [1, 2, 3]}, 0, 3),
        ({"input": [[1, 2], [3]]}, 0, 3),
        ({"prompt": [1, 2], "messages": ["a"]}, 5 + 2 * 4, None),
    ],
)
def test_of_the_top_the_bytes_of_prompts_are_its_text(body, text_bytes, tokens):
    """What is not looked into counts by its length, and token ids by their commas."""
    wish = from_the_top(written(body))
    assert (wish.text_bytes, wish.prompt_tokens) == (text_bytes, tokens)


def test_what_stands_after_thousands_of_members_counts_as_text():
    """Nobody makes a prompt small by putting it behind names that mean nothing."""
    body = b'{"model":"m",' + b'"a":0,' * 100_000 + b'"prompt":"%b"}' % (b"x" * 9000)
    assert from_the_top(body).text_bytes > 500_000
    assert from_the_top(body).model == "m"


PARTS_OF_4_MB = b",".join([b"{}"] * 1_400_000)


@pytest.mark.parametrize("way", [read_wish, by_json])
@pytest.mark.parametrize(
    "pattern",
    [
        b'{"model":"m","messages":[%b]}',
        b'{"model":"m","n":NaN,"x":[%b]}',
        b'{"model":"m","metadata":{"x":[%b]}}',
        b'{"model":"m","messages":[%b',
    ],
)
def test_a_million_parts_build_nothing(way, pattern):
    """A body that is cheap to send is cheap to hold, read in whichever way."""
    body = pattern % PARTS_OF_4_MB
    tracemalloc.start()
    wish = way(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert wish.readable == pattern.endswith(b"}")
    assert peak < 2 * len(body)


def test_large_bodies_are_read_one_at_a_time():
    """What reading takes is taken once, and no small body waits for it."""
    large = b'{"prompt":"%b"}' % (b"x" * (2 << 20))
    read = []
    thread = Thread(target=lambda: read.append(read_wish(large)))
    with reading._TURN:
        thread.start()
        thread.join(0.05)
        assert read == []
        assert read_wish(b'{"model":"m"}').model == "m"
    thread.join(10)
    assert read[0].text_bytes == 2 << 20
