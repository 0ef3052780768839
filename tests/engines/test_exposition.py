"""The parser on lines and bodies of every shape."""

import gzip
import json
import math
import timeit

import pytest

from admitperf.engines import exposition
from admitperf.engines.exposition import parse


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("a 1", "a", 1.0),
        ("a{} 2", "a", 2.0),
        ('a{x="1"} 3', 'a{x="1"}', 3.0),
        ('a{x="1",} 3', 'a{x="1"}', 3.0),
        ('  a  {  x = "1" ,\ty="2" , }\t3  ', 'a{x="1",y="2"}', 3.0),
        ('a{x="1"}3', 'a{x="1"}', 3.0),
        ('a{b="2",a="1"} 3', 'a{b="2",a="1"}', 3.0),
        (r'a{x="q\"b\\n\n{,}=#"} 4', r'a{x="q\"b\\n\n{,}=#"}', 4.0),
        ('a{x="} 0.99",y=" , "} 0.25', 'a{x="} 0.99",y=" , "}', 0.25),
        ('a{x="模型"} 5', 'a{x="模型"}', 5.0),
        ('{"a.b"} 6', "a.b", 6.0),
        ('{"a.b",x="1"} 6', 'a.b{x="1"}', 6.0),
        ('{"vllm:x" , "l.m"="1"} 6', 'vllm:x{"l.m"="1"}', 6.0),
        ('{"a b",x="1"} 6', '{"a b",x="1"}', 6.0),
        ("a 1e+06", "a", 1e6),
        ("a 1.0322907136e+011", "a", 1.0322907136e11),
        ("a 9223372036854775794", "a", 9.223372036854775794e18),
        ("a -0.5", "a", -0.5),
        ("a .5", "a", 0.5),
        ("a +Inf", "a", math.inf),
        ("a -Inf", "a", -math.inf),
        ('a{x="1"} 9 # {trace_id="b # c"} 0.43 1790000000.2', 'a{x="1"}', 9.0),
        ('a 9 1790000000 # {trace_id="b"} 0.43', "a", 9.0),
    ],
)
def test_a_line_gives_its_series_and_its_value(line, key, value):
    """One line is one sample under its normalised series."""
    page = parse(f"{line}\n")
    assert dict(page) == {key: value}
    assert page.errors == 0


@pytest.mark.parametrize("text", ["NaN", "Nan", "nan", "+NaN"])
def test_not_a_number_is_kept_for_whoever_judges(text):
    """The parser keeps NaN; the signal skips it."""
    assert math.isnan(parse(f"a {text}\n")["a"])


@pytest.mark.parametrize(
    "line",
    [
        "a", "a b", "a 1 2 3", "a 1_000", "a 0x10", "a-5", "a{x=1} 1", 'a{x="1} 1',
        'a{x="1"y="2"} 1', 'a{,x="1"} 1', "{} 1", '{x="1"} 1', '{"a","b"} 1', "5 1",
        'a{"b"} 1', "a 1 x", "a 1 # trailing", "<html>", "\x00\x01", "a \u0661",
        'a{x="1"} 1 NaN',
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_counted_and_left_out(line):
    """What cannot be read is one error, and nothing else of the page is lost."""
    page = parse(f"before 1\n{line}\nafter 2\n")
    assert dict(page) == {"before": 1.0, "after": 2.0}
    assert page.errors == 1


def test_blank_lines_and_comments_are_no_errors():
    """A comment that only looks like the end is a comment."""
    page = parse("\n \t\n# free text\n#EOF-like\n# EOFs\n#\n# TYPE\na 1\n")
    assert dict(page) == {"a": 1.0}
    assert page.errors == 0
    assert not page.eof


def test_types_are_read_wherever_they_stand():
    """TYPE may be repeated, come late, be spaced out or name a quoted metric."""
    page = parse(
        "a 1\n# TYPE a gauge\n# TYPE a counter\n#  TYPE  b\thistogram \n"
        '# TYPE "c.d" gauge\n# HELP a TYPE a summary\n'
    )
    assert page.types == {"a": "counter", "b": "histogram", "c.d": "gauge"}


def test_of_a_series_printed_twice_the_last_counts():
    """The last line wins, also when the two are spelled differently."""
    assert dict(parse('a{x="1"} 1 1000\na { x="1" } 2\n')) == {'a{x="1"}': 2.0}
    assert dict(parse('a { x="1" } 2\na{x="1"} 1\n')) == {'a{x="1"}': 1.0}


@pytest.mark.parametrize("lines", ["a 1 5000\na 2\n", "a 1 5000\n a 2\n"])
def test_a_sample_without_a_time_takes_none_from_an_earlier_one(lines):
    """A timestamp belongs to its own line."""
    assert parse(lines).timestamps == {}


@pytest.mark.parametrize(
    ("body", "content_type", "seconds"),
    [
        ("a 1 1790000000500\n", "", 1790000000.5),
        (" a 1 1790000000500\n", "", 1790000000.5),
        ("a 1 1790000000500\n", "text/plain; version=0.0.4", 1790000000.5),
        ("a 1 1790000000.5\n# EOF\n", "", 1790000000.5),
        (
            "a 1 1790000000.5\n",
            "application/openmetrics-text; version=1.0.0",
            1.7900000005e9,
        ),
        ("a 1 1790000000500\n# EOF\n", "text/plain", 1790000000.5),
        ("a 1 -1\n", "", -0.001),
    ],
)
def test_timestamps_are_milliseconds_in_text_and_seconds_in_openmetrics(
    body, content_type, seconds
):
    """The content type says which; without it `# EOF` does."""
    assert parse(body, content_type).timestamps == {"a": seconds}


def test_fresh_leaves_out_only_what_says_it_is_old():
    """A sample without its own time stays, whatever the limit."""
    page = parse("# TYPE a gauge\na 1 1000\nb 2 61000\nc 3\n?\nd 4")
    fresh = page.fresh(61.0, 30.0)
    assert dict(fresh) == {"b": 2.0, "c": 3.0}
    assert fresh.timestamps == {"b": 61.0}
    assert (fresh.types, fresh.errors, fresh.truncated) == ({"a": "gauge"}, 1, True)
    assert dict(page) == {"a": 1.0, "b": 2.0, "c": 3.0}


@pytest.mark.parametrize("end", ["# EOF", "# EOF\n", "# EOF \r\n", "# EOF\nb 2\n"])
def test_nothing_after_the_end_is_read(end):
    """`# EOF` ends a page, with or without a line's end of its own."""
    page = parse(f"a 1\n{end}")
    assert dict(page) == {"a": 1.0}
    assert page.eof
    assert not page.truncated


@pytest.mark.parametrize("rest", ["b 1", "b", 'b{x="', "# EO", "# HELP b x"])
def test_a_last_line_without_an_end_is_dropped(rest):
    """Half a number is no number."""
    page = parse(f"a 1\n{rest}")
    assert dict(page) == {"a": 1.0}
    assert page.truncated
    assert page.errors == 0


def test_line_ends_of_windows_are_line_ends():
    """CRLF reads as LF."""
    page = parse(b'# TYPE a gauge\r\na{x="1"} 1\r\n\r\nb 2\r\n')
    assert dict(page) == {'a{x="1"}': 1.0, "b": 2.0}
    assert (page.types, page.errors, page.truncated) == ({"a": "gauge"}, 0, False)


@pytest.mark.parametrize("body", ["", b"", "\n", " \n\t", "\ufeff", b"\xef\xbb\xbf"])
def test_an_empty_body_is_a_page_without_samples(body):
    """Nothing is nothing, not an error and not a cut page."""
    page = parse(body)
    assert dict(page) == {}
    assert (page.errors, page.truncated, page.eof) == (0, False, False)


def test_a_byte_order_mark_belongs_to_no_name():
    """A mark at the start is dropped."""
    assert dict(parse(b"\xef\xbb\xbfa 1\n")) == {"a": 1.0}


def test_an_error_page_has_no_samples():
    """HTML with status 200 is errors, not an idle engine."""
    page = parse("<html>\n<body>503 Service Unavailable</body>\n</html>\n")
    assert dict(page) == {}
    assert page.errors == 3


def test_binary_rubbish_is_counted():
    """Bytes that are no text give errors, not exceptions."""
    page = parse(bytes(range(256)) * 4 + b"\n")
    assert dict(page) == {}
    assert page.errors > 0


def test_a_compressed_body_is_read():
    """A body is known by its first bytes, several members included."""
    page = parse(gzip.compress(b"a 1\n") + gzip.compress(b"b 2\n"))
    assert dict(page) == {"a": 1.0, "b": 2.0}
    assert not page.truncated


def test_a_compressed_body_cut_short_gives_its_whole_lines():
    """What came through is read, and the page says that it was cut."""
    lines = "".join(f'a{{x="{number * 7919}"}} {number}\n' for number in range(2000))
    body = gzip.compress(lines.encode())
    page = parse(body[: len(body) // 2])
    assert 0 < len(page) < 2000
    assert all(key == f'a{{x="{value * 7919:.0f}"}}' for key, value in page.items())
    assert page.truncated


def test_rubbish_that_begins_like_gzip_is_an_error():
    """Two right bytes do not make a compressed body."""
    page = parse(b"\x1f\x8b rubbish")
    assert dict(page) == {}
    assert page.errors == 1
    assert page.truncated


def test_a_compressed_body_may_not_grow_without_bound(monkeypatch):
    """A few kilobytes cannot make us hold gigabytes, in one member or in several."""
    monkeypatch.setattr(exposition, "MAX_BODY_BYTES", 1000)
    lines = b"a 1\n" * 250
    full, rest = gzip.compress(lines), gzip.compress(b"a 1\n" * 100_000)
    assert dict(parse(full)) == {"a": 1.0}
    for bomb in (rest, full + rest, full + gzip.compress(b"\n"), full + full):
        page = parse(bomb)
        assert dict(page) == {}
        assert page.oversized
        assert page.truncated


def test_a_body_exactly_at_the_bound_may_end_in_empty_members(monkeypatch):
    """No room left is still a bound, and what adds nothing is within it."""
    monkeypatch.setattr(exposition, "MAX_BODY_BYTES", 4)
    page = parse(gzip.compress(b"a 1\n") + gzip.compress(b""))
    assert (dict(page), page.oversized, page.truncated) == ({"a": 1.0}, False, False)


def test_a_body_of_very_many_members_is_refused_fast():
    """Twenty bytes a member, 16 MiB of them: time is in proportion to the bound."""
    body = gzip.compress(b"a 1\n") + gzip.compress(b"") * 800_000
    pages = []
    assert timeit.timeit(lambda: pages.append(parse(body)), number=1) < 2
    assert pages[0].oversized


def test_a_long_compressed_body_is_read_whole():
    """Members longer than one piece join without a seam."""
    lines = "".join(f'a{{x="{n * n * 7919}"}} {n}\n' for n in range(60_000)).encode()
    packed = gzip.compress(lines, 1)
    assert len(packed) > 200_000
    assert parse(packed * 2) == parse(lines)


def test_the_newest_element_of_iteration_statistics_is_flattened():
    """TensorRT-LLM's JSON gives names with dots; what is no number is left out."""
    body = json.dumps(
        [
            {"iter": 1, "kv": {"used": 5}},
            {"iter": 2, "kv": {"used": 7, "deep": {"x": 0.5}}, "on": True, "s": "1",
             "none": None, "list": [1]},
        ]
    )  # fmt: skip
    assert dict(parse(body)) == {"iter": 2.0, "kv.used": 7.0, "kv.deep.x": 0.5}
    assert dict(parse(f"\n {body}", "application/json")) == dict(parse(body))


@pytest.mark.parametrize("body", ["[]", " [ ] \n", b"[]"])
def test_no_statistics_are_no_samples_and_no_error(body):
    """`[]` is a good answer that says nothing."""
    page = parse(body)
    assert dict(page) == {}
    assert page.errors == 0


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ('{"error": {"code": 401}}', "application/json"),
        ("[1, 2]", ""),
        ("17", "application/json"),
        ("[" * 100_000, ""),
        ('[{"a": 1', ""),
    ],
)
def test_other_json_is_no_page(body, content_type):
    """An error body in JSON has no samples, however deep it is."""
    page = parse(body, content_type)
    assert dict(page) == {}
    assert page.errors or page.truncated


def test_a_number_too_large_for_a_float_is_infinite():
    """JSON may hold any integer; the signal skips what is infinite."""
    assert parse(f'[{{"a": 1{"0" * 400}}}]')["a"] == math.inf


LONG = 200_000
MOST_S = 5.0
"""A hundred times what one pass takes; reading a line twice per character takes
minutes."""


@pytest.mark.parametrize(
    "line",
    [
        " " * LONG + "a",
        "a 1 " + " " * LONG + "x",
        'a{x="1"' + " " * LONG + "y",
        "a{" + " " * LONG + "=",
        'a{x="' + '\\"' * LONG,
        "a{" + 'x="1",' * LONG,
        "# TYPE a" + " " * LONG + "!",
        "# EOF" + " " * LONG + "x",
    ],
    ids=lambda line: repr(line[:8]),
)
def test_a_hostile_line_is_read_in_one_pass(line):
    """No line makes the reader start over at each of its characters."""
    assert timeit.timeit(lambda: parse(f"{line}\n"), number=1) < MOST_S
