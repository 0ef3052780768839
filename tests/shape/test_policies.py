"""File, class, name, entry point and page of a policy carry one word."""

import importlib
import tomllib

import pytest
from tests.policies.test_pages import ours

BUILT_IN = sorted(ours())
HEADINGS = ["Rule", "Reads", "Parameters", "Refuses with", "Cannot see"]


def camel(name):
    """`kv_threshold` as a class spells it: `KvThreshold`."""
    return "".join(part.capitalize() for part in name.split("_"))


@pytest.fixture(scope="module")
def entry_points(root):
    """The policies as `pyproject.toml` offers them."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return project["project"]["entry-points"]["admitperf.policies"]


def test_the_files_the_entry_points_and_the_pages_are_the_same_set(root, entry_points):
    """No policy is on disk, offered or documented without the other two."""
    files = {path.stem for path in (root / "src/admitperf/policies").glob("[!_]*.py")}
    pages = {p.stem for p in (root / "docs/reference/policies").glob("*.md")}
    assert sorted(files) == BUILT_IN
    assert sorted(entry_points) == BUILT_IN
    assert sorted(pages - {"index"}) == BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_one_word_joins_file_class_name_and_entry_point(name, entry_points):
    """Whoever knows the word in a log finds the class, and the other way round."""
    module = importlib.import_module(f"admitperf.policies.{name}")
    assert getattr(module, camel(name)).name == name
    assert entry_points[name] == f"admitperf.policies.{name}:{camel(name)}"


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_page_names_the_policy_and_says_what_it_cannot_see(name, root):
    """Each page has the fixed headings, in their order, under the policy's own word."""
    page = (root / f"docs/reference/policies/{name}.md").read_text(encoding="utf-8")
    title, *headings = [line for line in page.splitlines() if line.startswith("#")]
    assert title.strip("# `") == name
    found = [heading.strip("# ") for heading in headings]
    assert [heading for heading in found if heading in HEADINGS] == HEADINGS
