"""Pages of engines with the values that are right for them."""

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

from admitperf.core.series import Series, parse_labels
from admitperf.core.window import Window
from admitperf.engines.exposition import Page, parse

ROOT = Path(__file__).resolve().parents[2]
RELATIVE = 1e-9


def folder() -> Path:
    """The shared fixtures; without them our own copy, which lacks the published."""
    shared = Path(os.environ.get("ADMITPERF_SHARED", ROOT.parent / "shared"))
    both = (shared / "fixtures", ROOT / "tests" / "data" / "fixtures")
    return next((path for path in both if path.is_dir()), both[1])


FIXTURES = folder()


@dataclass(frozen=True, slots=True)
class Case:
    """One page (or two, with a window), and what it says."""

    name: str
    expected: dict
    facts: dict

    def page(self) -> Page:
        """The page, without what the case calls too old."""
        whole = load(self.files()[-1])
        if "max_age_s" in self.facts:
            return whole.fresh(self.facts["now"], self.facts["max_age_s"])
        return whole

    def window(self) -> Window:
        """The seconds before the page; empty when the case has one page."""
        if "window" not in self.facts:
            return Window.EMPTY
        before, after = (Series(load(name)) for name in self.files())
        return Window.between(before, after, self.facts["window"]["seconds"])

    def files(self) -> list[str]:
        """The page, or both pages of the window."""
        return self.facts.get("window", {"files": [self.expected["fixture"]]})["files"]


def load(name: str) -> Page:
    """A page of the folder."""
    return parse((FIXTURES / name).read_bytes())


def expectations() -> list[tuple[str, dict]]:
    """Each `.expected.json` of the folder, by its file's name."""
    return [
        (path.name, json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FIXTURES.glob("*.expected.json"))
    ]


def cases() -> list[Case]:
    """Each case of each file; a file without `cases` is one case."""
    found = []
    for name, expected in expectations():
        several = expected.get("cases")
        for number, facts in enumerate(several or [expected]):
            stem = name.removesuffix(".expected.json")
            title = f"{stem}-{number}" if several else stem
            found.append(Case(title, expected, facts))
    return found


def same(mine, right) -> bool:
    """Whether two values agree: exactly, numbers to 1e-9 of their size."""
    if isinstance(mine, int | float) and isinstance(right, int | float):
        return math.isclose(mine, right, rel_tol=RELATIVE, abs_tol=0.0)
    return mine == right


def by_labels(page: Page) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """A page with its labels read, so that their order does not matter."""
    found = {}
    for key, value in page.items():
        name, _, labels = key.partition("{")
        read = parse_labels(labels.removesuffix("}"))
        found[read.pop("__name__", name), frozenset(read.items())] = value
    return found


def text_pages() -> list[str]:
    """The folder's Prometheus pages."""
    return sorted(path.name for path in FIXTURES.glob("*.prom"))
