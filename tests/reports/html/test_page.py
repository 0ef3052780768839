"""A page as a file: whole, safe, readable without eyes or mouse."""

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from tests.reports.byhand import decision, header, kv, outcome
from tests.reports.example_sheets import COMMAND, document_on, example_sheet
from tests.reports.examples import PAGES

from admitperf.reports.html.page import html, written
from admitperf.reports.sheets.report_sheet import report_sheet
from admitperf.reports.sheets.sheet import (
    Answer,
    Answers,
    Column,
    Figure,
    Rows,
    Section,
    Sheet,
    Source,
    Table,
    Words,
)

EMPTY = {"meta", "link", "br", "hr", "img", "input"}
RESOURCES = {"src", "srcset", "poster", "data", "action", "xlink:href"}


class Page(HTMLParser):
    """A page taken apart; a tag that is not closed in turn fails at once."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.headings = [], [], []
        self.texts = Counter()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """Opens it."""
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """One that closes itself, as in SVG."""
        self.tags.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag):
        """Closes the one that was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Counts the text inside each tag."""
        if self.open and data.strip():
            self.texts[self.open[-1]] += 1

    def all(self, tag):
        """The attributes of every tag of a kind."""
        return [attrs for name, attrs, _ in self.tags if name == tag]


def sheet_of(*blocks, **changes):
    """A page with some blocks."""
    made = {
        "title": "Run of x",
        "word": "INERT",
        "mood": "bad",
        "lead": (),
        "sections": (Section("1 Part", blocks),),
        "command": "admitperf report x",
    }
    return Sheet(**(made | changes))


@pytest.fixture(scope="module")
def pages():
    """The file of each example, taken apart once."""
    made = {}

    def _page(name):
        if name not in made:
            text = html(example_sheet(name))
            made[name] = (text, Page(text))
        return made[name]

    return _page


# --------------------------------------------------------------------------- whole


@pytest.mark.parametrize("name", PAGES)
def test_the_file_is_well_formed(pages, name):
    """Every tag closes in turn, no id stands twice, and links lead somewhere."""
    text, page = pages(name)
    assert text.startswith("<!DOCTYPE html>")
    ids = [attrs["id"] for _, attrs, _ in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for attrs in page.all("a"):
        assert attrs["href"].removeprefix("#") in ids


@pytest.mark.parametrize("name", PAGES)
def test_the_file_needs_nothing_from_anywhere(pages, name):
    """No script, no style sheet, no font, no picture; its own policy forbids them."""
    text, page = pages(name)
    tags = {tag for tag, _, _ in page.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    for _, attrs, _ in page.tags:
        assert not RESOURCES & attrs.keys()
        assert not [one for one in attrs if one.startswith("on")]
        assert all("url(" not in (attrs.get(one) or "") for one in ("style", "fill"))
    assert "@import" not in text
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert all(one.startswith("http://www.w3.org/") for one in addresses)
    (policy,) = (a["content"] for a in page.all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize("name", PAGES)
def test_the_file_is_read_without_eyes(pages, name):
    """Headings in order, a name for every drawing, heads for every table."""
    _, page = pages(name)
    levels = [int(tag[1]) for tag, _, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    for before, after in pairwise(levels):
        assert after <= before + 1
    for attrs in page.all("svg"):
        assert attrs["role"] == "img"
        assert re.search(r"\d", attrs["aria-label"])
    counts = Counter(tag for tag, _, _ in page.tags)
    assert counts["caption"] == counts["table"] > 0
    for attrs in page.all("th"):
        assert attrs["scope"] in ("col", "row")
    inside = [attrs for tag, attrs, where in page.tags if "svg" in where]
    assert not [one for one in inside if "aria-label" in one or "role" in one]
    assert page.all("html") == [{"lang": "en"}]


@pytest.mark.parametrize("name", PAGES)
def test_the_file_is_read_without_a_mouse(pages, name):
    """A way past the head, and what scrolls can be reached and has a name."""
    text, page = pages(name)
    assert text.index('class="skip"') < text.index("<h1>")
    for attrs in page.all("div"):
        if attrs.get("class") == "wide":
            assert attrs["tabindex"] == "0"
            assert attrs["role"] == "region"
            assert attrs["aria-label"]


@pytest.mark.parametrize("name", PAGES)
def test_a_table_stands_behind_every_plot(pages, name):
    """In the same figure, folded."""
    _, page = pages(name)
    plots = [where for tag, _, where in page.tags if tag == "svg"]
    behind = [where for tag, _, where in page.tags if tag == "table"]
    folded = [where for where in behind if "details" in where]
    assert len(plots) == len(folded)
    assert all("figure" in where for where in (*plots, *folded))


def test_the_page_is_as_agreed(golden):
    """A small one, letter by letter; drawings are vl-convert's and left out."""
    text = html(example_sheet("shadow"))
    text = re.sub(r"(<svg [^>]*aria-label=\"[^\"]*\")[^>]*>.*?</svg>", r"\1/>", text)
    text = re.sub(r"<style>.*?</style>", "<style/>", text, flags=re.DOTALL)
    text = re.sub(r"admitperf \d+\.\d+[^\s\"<]*", "admitperf 0", text)
    golden("report.html", text)
    assert text.count("<svg ") == text.count("<figure>") > 0


# -------------------------------------------------------------------------- safety

EVIL = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;"


def test_no_text_of_a_log_becomes_a_tag(write):
    """Wherever a log may name something."""
    sheet = report_sheet(document_on([write(*evil_lines())]), EVIL)
    assert_harmless(html(sheet))


def evil_lines():
    """A log that names everything alike."""
    signals = {EVIL: 1.0}
    yield header(
        policy=EVIL,
        experiment=EVIL,
        name=EVIL,
        notes={EVIL: EVIL, "model": EVIL},
        params={EVIL: EVIL},
        provenance={EVIL: EVIL},
        slo={EVIL: {"ttft_ms": 300}},
    )
    for seq in range(1, 60):
        gate = [EVIL, float(seq), ">=", 5.0, seq >= 5]
        yield decision(
            seq, "reject", EVIL, signals={EVIL: float(seq)} | signals, gates=[gate]
        )
        yield outcome(seq, ok=False, error=EVIL)


def assert_harmless(text):
    """The tags are ours, and so are their attributes."""
    page = Page(text)
    assert not {"script", "img"} & {tag for tag, _, _ in page.tags}
    for _, attrs, _ in page.tags:
        assert not [one for one in attrs if one.startswith("on")]


def test_every_kind_of_block_is_escaped():
    """Also what this version does not put there yet."""
    table = Table(EVIL, (Column(EVIL, EVIL),), ((EVIL,),), EVIL)
    chart = {
        "data": {"values": [{"x": EVIL}]},
        "mark": {"type": "text", "aria": False},
        "encoding": {"text": {"field": "x"}},
        "title": EVIL,
    }
    blocks = (
        Words(EVIL, EVIL),
        Rows(((EVIL, EVIL),)),
        table,
        Figure(EVIL, EVIL, chart, table),
        Answers((Answer(EVIL, EVIL, (EVIL,), "good"),)),
        Source(EVIL),
    )
    sheet = sheet_of(*blocks, title=EVIL, word=EVIL, lead=blocks, command=EVIL)
    assert_harmless(html(sheet))


# ----------------------------------------------------------------------------- rest


def test_sections_of_one_name_have_an_address_each():
    """Several runs have the same parts."""
    titles = ("A", "A", "A title", "Main", "Definitions of terms", "!", "?")
    page = Page(html(sheet_of(sections=tuple(Section(one, ()) for one in titles))))
    ids = [attrs["id"] for _, attrs, _ in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids)) > 2 * len(titles)


def test_a_word_is_there_for_who_sees_no_colour():
    """A badge says in words what its colour says."""
    text = html(sheet_of(Answers((Answer("fail", "repeats", ("Why.",), "bad"),))))
    assert '<span class="badge bad">fail</span>' in text
    assert '<span class="badge bad">INERT</span>' in text


def test_the_command_that_makes_it_again_is_at_the_end():
    """None is claimed where none is known."""
    assert COMMAND in html(example_sheet("few"))
    assert "made again by" not in html(sheet_of(command=""))


def test_the_terms_used_are_defined_on_the_page():
    """Those it uses, and not the whole list."""
    text = html(sheet_of(Words("The goodput of a call.")))
    found = re.findall(r"<dt>(.*?)</dt>", text)
    assert {"goodput", "call", "INERT"} <= set(found)
    assert "MDE" not in found


def test_long_tables_are_not_printed_unless_they_are_open():
    """Three hundred rows behind each of ten plots would be a book."""
    chart = {"data": {"values": [{}]}, "mark": "point"}
    rows = tuple((one,) for one in range(60))
    for some, long in ((rows, True), (rows[:10], False)):
        table = Table("t", (Column("n", kind="number"),), some)
        text = html(sheet_of(Figure("f", "1", chart, table)))
        assert ('<details class="long">' in text) == long


@pytest.mark.parametrize(
    ("value", "column", "text"),
    [
        (None, Column("n", kind="number"), "--"),
        ("n<20", Column("p95", kind="number"), "n<20"),
        (0.12345, Column("share", kind="share"), "12.3 %"),
        (1234567, Column("n", kind="number"), "1234567"),
        (0.5, Column("x", kind="number"), "0.5"),
    ],
)
def test_cells_are_written_as_in_the_text_report(value, column, text):
    """Unknown is `--`, never 0."""
    assert written(value, column) == text


def test_the_size_does_not_grow_with_the_log(write):
    """300,000 decisions have as many bins as 3,000: at most 1.5 MB, by far."""
    names = ("kv_pressure", "queue_depth", "running", "in_flight", "oldest_wait_s")
    lines = [header(slo={"ttft_ms": 1500, "stall_ms": 500})]
    for seq in range(3000):
        signals = {
            one: (seq * 7919 * (place + 2)) % 1009 / 1009
            for place, one in enumerate(names)
        }
        lines += [kv(seq, signals.pop("kv_pressure"), signals=signals)]
        lines += [outcome(seq, ttft_ms=10 + seq % 4000, max_gap_ms=seq % 700)]
    sheet = report_sheet(document_on([write(*lines)]))
    bins = [len(one.table.rows) for one in figures_of(sheet)]
    assert max(bins) >= 290, "the finest grid, or nothing is tested"
    assert len(html(sheet).encode()) < 1_000_000


def figures_of(sheet):
    """The figures of a page."""
    return [
        one for part in sheet.sections for one in part.blocks if isinstance(one, Figure)
    ]
