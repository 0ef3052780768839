"""What holds for every page, not only for those we thought of."""

import gzip
import math
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.pages import FIXTURES, text_pages

from admitperf.core.series import Series, canonical
from admitperf.core.signals import ALL
from admitperf.core.window import Window
from admitperf.engines.catalogue import engine_of
from admitperf.engines.exposition import parse
from admitperf.engines.readings import read

patient = settings(deadline=None)
REAL = [(FIXTURES / name).read_bytes() for name in text_pages()[::3]]

names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
label_names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name != "__name__"
)
nasty = st.text(
    st.one_of(
        st.sampled_from(list('"\\\n{},= \t#\r\x85\u2028')),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=12,
)
blanks = st.sampled_from(["", "", " ", "\t", "  "])
numbers = st.floats() | st.integers(-(2**70), 2**70).map(float)


@dataclass(frozen=True, slots=True)
class Sample:
    """One series with its value, and how it is printed."""

    name: str
    labels: dict
    value: float
    gap: str
    comma: bool

    def line(self):
        """The line, with the blanks and escapes an exporter may use."""
        gap = self.gap
        pairs = [f'{n}{gap}={gap}"{escaped(v)}"' for n, v in self.labels.items()]
        inside = f"{gap},{gap}".join(pairs) + ("," if pairs and self.comma else "")
        braces = f"{gap}{{{gap}{inside}{gap}}}" if pairs or self.comma else ""
        return f"{gap}{self.name}{braces} {printed(self.value)}{gap}"


def escaped(text):
    """A label value as the formats print it."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def printed(value):
    """A number as Go and Python print it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


samples = st.builds(
    Sample,
    names,
    st.dictionaries(label_names, nasty, max_size=4),
    numbers,
    blanks,
    st.booleans(),
)
pages = st.lists(
    samples,
    max_size=8,
    unique_by=lambda it: (canonical(it.name), frozenset(it.labels.items())),
)


def body_of(lines):
    """Lines as a page."""
    return "".join(f"{line}\n" for line in lines)


values = st.one_of(
    st.floats(-1e300, 1e300),
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 2.0**63]),
    st.none(),
    st.booleans(),
    st.text(max_size=3),
    st.integers(-(10**9), 10**9) | st.just(10**400),
    st.just(object()),
)
known_keys = st.sampled_from(
    sorted(
        {
            key
            for body in REAL
            for key in parse(body)
            if "_bucket" not in key and "python" not in key
        }
    )
)
mappings = st.dictionaries(known_keys | st.text(max_size=20), values, max_size=30)


def same_page(one, other):
    """Whether two pages hold the same samples; NaN is NaN."""
    return {k: repr(v) for k, v in one.items()} == {
        k: repr(v) for k, v in other.items()
    }


@patient
@given(st.text() | st.binary(), st.sampled_from(["", "application/json", "text/plain"]))
def test_no_body_raises(body, content_type):
    """Whatever an endpoint answers, there is a page, and it can be read."""
    page = parse(body, content_type)
    assert all(isinstance(value, float) for value in page.values())
    read(page)
    engine_of(page)


@patient
@given(st.sampled_from(REAL), st.integers(0), st.binary(max_size=6), st.integers(0, 9))
def test_no_damaged_page_raises(body, at, rubbish, dropped):
    """Bytes lost or replaced in a real page cost lines, not the page."""
    half = len(body) // 2
    at = half + at % half
    damaged = body[:at] + rubbish + body[at + dropped :]
    page = parse(damaged)
    assert page
    read(page)


@patient
@given(mappings, mappings, st.floats(-1.0, 60.0))
def test_no_mapping_raises_and_no_value_is_out_of_range(before, after, seconds):
    """Whatever a host hands over, a signal is in its range or not known."""
    window = Window.between(Series(before), Series(after), seconds)
    for known in (read(after), read(after, window)):
        for signal in ALL:
            value = known[signal.name]
            assert value is None or signal.low <= value <= signal.high
        numbers_read = [it for it in known.values() if isinstance(it, float)]
        assert all(math.isfinite(it) for it in numbers_read)


@patient
@given(pages)
def test_a_page_comes_back_as_it_was_printed(printed_samples):
    """Names, label values and numbers survive, whatever they hold."""
    page = parse(body_of(it.line() for it in printed_samples))
    assert page.errors == 0
    assert len(page) == len(printed_samples)
    series = Series(page)
    for it in printed_samples:
        found = [(read, repr(value)) for read, value in series.samples(it.name)]
        assert (it.labels, repr(it.value)) in found


@patient
@given(pages, st.randoms(use_true_random=False))
def test_the_order_of_lines_changes_nothing(printed_samples, chance):
    """A page shuffled holds the same samples."""
    lines = [it.line() for it in printed_samples]
    shuffled = lines[:]
    chance.shuffle(shuffled)
    assert same_page(parse(body_of(lines)), parse(body_of(shuffled)))


@patient
@given(pages, numbers)
def test_a_repeated_line_changes_nothing_and_a_later_value_wins(printed_samples, value):
    """Two exporters merged by a sidecar do not add up."""
    lines = [it.line() for it in printed_samples]
    once = parse(body_of(lines))
    assert same_page(parse(body_of(lines + lines)), once)
    stale = [
        Sample(it.name, it.labels, value, it.gap, it.comma).line()
        for it in printed_samples
    ]
    assert same_page(parse(body_of(stale + lines)), once)


@patient
@given(st.sampled_from(REAL), st.integers(0))
def test_a_cut_page_never_holds_half_a_number(body, at):
    """Every value of the beginning of a page is that of the whole page."""
    whole = parse(body)
    part = parse(body[: at % (len(body) + 1)])
    assert all(repr(whole[key]) == repr(value) for key, value in part.items())


@patient
@given(st.sampled_from(REAL))
def test_reading_only_some_names_changes_no_value(body):
    """Filtering lines by name before parsing gives the same samples."""
    whole = parse(body)
    kept = [line for line in body.decode().splitlines() if "requests" in line]
    some = parse(body_of(kept))
    expected = {key: whole[key] for key in whole if "requests" in key.partition("{")[0]}
    assert {key: some[key] for key in expected} == expected


@patient
@given(st.sampled_from(REAL))
def test_compression_changes_nothing(body):
    """A gzip body is the same page."""
    assert same_page(parse(gzip.compress(body, 1)), parse(body))
