"""The site has no page that a reader cannot reach, and no link into nothing."""

import json
import re
import runpy
import unicodedata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
INDEX = DOCS / "index.md"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?![a-z]+:)([^)\s]+)\)|<img [^>]*src=\"(?![a-z]+:)([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def named(page):
    """A page's path, as its test's name."""
    return str(page.relative_to(ROOT))


def prose(page):
    """A page without its fenced blocks, where a bracket or a # is something else."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page):
    """What a page points at inside the checkout: file, and anchor or nothing."""
    for pointed, drawn in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        path, _, anchor = (pointed or drawn).partition("#")
        yield ((page.parent / path).resolve() if path else page), anchor


def slug(heading):
    """The anchor of a heading, as the site tool makes it (Python-Markdown's rule)."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    plain = unicodedata.normalize("NFKD", shown).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(page):
    """Every anchor of a page; a heading that comes again gets a number."""
    found: set[str] = set()
    for heading in HEADING.findall(prose(page)):
        own, again = slug(heading), 0
        while (made := f"{own}_{again}" if again else own) in found:
            again += 1
        found.add(made)
    return found


def reached(first):
    """The pages a reader comes to who follows every link."""
    seen, ahead = set(), [first]
    while ahead:
        page = ahead.pop()
        if page in seen:
            continue
        seen.add(page)
        ahead += [
            to for to, _ in links(page) if to.suffix == ".md" and DOCS in to.parents
        ]
    return seen


def listed(entries):
    """The pages of a navigation, however deep."""
    for entry in entries:
        if isinstance(entry, dict):
            for inner in entry.values():
                yield from listed([inner] if isinstance(inner, str) else inner)
        else:
            yield entry


@pytest.fixture(scope="module")
def navigation():
    """The pages of the site's navigation."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return [DOCS / page for page in listed(settings["nav"])]


def test_every_page_is_reached_from_the_first_by_links():
    """No page waits for a reader who knows its address."""
    assert sorted(set(PAGES) - reached(INDEX)) == []


def test_every_page_stands_in_the_navigation(navigation):
    """The same pages, each once, the first one first."""
    assert sorted(navigation) == PAGES
    assert navigation[0] == INDEX


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=named)
def test_every_link_and_anchor_resolves(page):
    """The file is there, and the heading in it."""
    for to, anchor in links(page):
        assert to.exists(), to
        assert not anchor or anchor in anchors(to), f"{to.name}#{anchor}"


def test_a_page_of_the_site_links_nothing_outside_it():
    """What lies outside docs/ is not published, so such a link would be broken."""
    outside = {
        (named(page), str(to))
        for page in PAGES
        for to, _ in links(page)
        if DOCS not in to.parents
    }
    assert outside == set()


@pytest.mark.parametrize("page", [INDEX, ROOT / "README.md"], ids=named)
def test_the_first_screen_has_who_it_is_for_and_a_report(page):
    """What, for whom, and a report, before the first head."""
    first, _, _ = page.read_text(encoding="utf-8").partition("\n## ")
    what, whom, shown = (
        first.find(said)
        for said in ("decides about", "It is for", "$ admitperf report")
    )
    assert 0 < what < whom < shown
    assert re.search(r"^  finding +(INERT|LIVE)", first[shown:], re.MULTILINE)


def test_both_first_screens_show_the_same_report():
    """Who comes from the one to the other finds what they saw."""
    shown = [
        re.search(
            r"^\$ (admitperf report .*\n(?:.*\n)*?)(?:\$|```)", text, re.MULTILINE
        )
        for text in (
            page.read_text(encoding="utf-8") for page in (INDEX, ROOT / "README.md")
        )
    ]
    assert all(shown)
    assert shown[0][1] == shown[1][1]


def test_the_report_is_on_a_log_that_a_recorded_run_makes(tmp_path, monkeypatch):
    """`tools/make_example_log.py` writes each line; versions of programs may differ."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    made = tmp_path / "made.jsonl"
    runpy.run_path(str(ROOT / "tools" / "make_example_log.py"))["make"](made)
    kept = ROOT / "examples" / "logs" / "kv_threshold.jsonl"
    lines = [
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (made, kept)
    ]
    for head, *_ in lines:
        head["python"] = head["version"] = None
    assert lines[0] == lines[1]


def test_a_link_in_a_block_or_in_code_is_none(tmp_path):
    """The walk reads what the site would make a link of, and nothing else."""
    page = tmp_path / "page.md"
    page.write_text("[a](b.md#c)\n`[d](e.md)`\n```\n[f](g.md)\n```\n[h](https://i)\n")
    assert list(links(page)) == [(tmp_path / "b.md", "c")]


def test_anchors_are_those_of_the_site(tmp_path):
    """Options, code, links and heads that come twice."""
    page = tmp_path / "page.md"
    page.write_text("# A *b*, `--c D`\n## [E](f.md)\n## `--html FILE`\n## E\n")
    assert anchors(page) == {"a-b-c-d", "e", "-html-file", "e_1"}
