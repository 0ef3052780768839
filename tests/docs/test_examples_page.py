"""The page of the examples says what they show."""

import tomllib

import pytest


@pytest.mark.parametrize("name", ["acme_policy", "acme_bench"])
def test_every_entry_point_of_a_package_is_named(root, name):
    """Each group it offers something in, under its own head."""
    text = (root / "examples" / "README.md").read_text(encoding="utf-8")
    section = text.split(f"\n## `{name}/`")[1].split("\n## ")[0]
    project = tomllib.loads(
        (root / "examples" / name / "pyproject.toml").read_text(encoding="utf-8")
    )
    for group in project["project"]["entry-points"]:
        assert f"`{group}`" in section


def test_every_example_has_a_section(root):
    """Whatever lies there."""
    folder = root / "examples"
    text = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.iterdir():
        if path.name[0] not in "_." and path.name != "README.md":
            assert f"\n## `{path.name}" in text, path.name
