"""A page that says what something does says also what that cannot see."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *sorted((DOCS / "reference" / "policies").glob("*.md")),
    *sorted((DOCS / "fidelity").glob("*.md")),
    DOCS / "landscape.md",
    DOCS / "results" / "policies.md",
    DOCS / "results" / "adaptive.md",
    DOCS / "reference" / "advise.md",
    DOCS / "how-to" / "choose-a-policy.md",
]
FEWEST = 2


def named(page):
    """A page's path, as its test's name."""
    return str(page.relative_to(ROOT))


def cannot_see(text):
    """The bullets of the section, in whichever place it stands; None without it."""
    found = re.search(
        r"^## Cannot see\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    return None if found is None else re.findall(r"^- \S", found[1], re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_says_what_it_cannot_see(page):
    """A section of its own, with two things at least."""
    bullets = cannot_see(page.read_text(encoding="utf-8"))
    assert bullets is not None
    assert len(bullets) >= FEWEST


def test_a_section_without_bullets_would_be_found():
    """So is one whose bullets stand under the next heading, or that is not there."""
    assert cannot_see("## Cannot see\n\nMuch.\n\n## Next\n\n- a\n- b\n") == []
    assert cannot_see("# Page\n\n- a\n- b\n") is None
    assert len(cannot_see("# P\n\n## Cannot see\n\n- a\n- b\n")) == FEWEST
