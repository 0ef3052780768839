"""Where a finding sends its reader."""

import re

import pytest

from admitperf.lab.doctor.finding import LINKS, fine, not_asked, problem, warning


def anchors(text):
    """The anchors of a page, as the site tool makes them of its headings."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", plain, flags=re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", one).strip().lower() for one in headings)
    return {re.sub(r"[-\s]+", "-", one) for one in words}


@pytest.mark.parametrize("check", LINKS)
def test_every_link_leads_to_a_heading_that_is_there(root, check):
    """A page of ours, and a heading on it."""
    path, _, anchor = LINKS[check].partition("#")
    page = root / path
    assert page.is_file(), path
    assert not anchor or anchor in anchors(page.read_text(encoding="utf-8")), anchor


@pytest.mark.parametrize("check", LINKS)
def test_every_check_is_in_the_reference(root, check):
    """A reader finds the name that was printed."""
    text = (root / "docs/reference/doctor.md").read_text(encoding="utf-8")
    assert f"`{check}`" in text


def test_a_finding_has_the_link_of_its_check():
    """Whatever its level."""
    made = [problem("log.lines", "a", "b"), warning("log.lines", "a", "b")]
    made += [fine("log.lines", "a"), not_asked("log.lines", "a")]
    assert {one.link for one in made} == {LINKS["log.lines"]}
    levels = [one.level for one in made]
    assert levels == ["problem", "warning", "ok", "not asked"]
