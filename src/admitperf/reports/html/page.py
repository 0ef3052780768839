"""A sheet as one HTML file: no network, no script, light and dark, on paper too."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from admitperf._version import __version__
from admitperf.reports.extra import needed
from admitperf.reports.html.drawing import svg
from admitperf.reports.sheets.glossary import used
from admitperf.reports.sheets.sheet import (
    Cell,
    Column,
    Figure,
    Section,
    Sheet,
)
from admitperf.reports.wording import NOT_KNOWN, number

_HERE = Path(__file__).parent
_PLAIN = re.compile(r"[^a-z0-9]+")


def html(sheet: Sheet) -> str:
    """The whole file; to be written as UTF-8.

    Raises:
        MissingExtra: Jinja or vl-convert is not installed.
    """
    whole: str = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            sheet=sheet,
            sections=list(zip(_anchors(sheet.sections), sheet.sections, strict=True)),
            terms=used(sheet),
            version=__version__,
            style=(_HERE / "page.css").read_text(encoding="utf-8"),
        )
    )
    return whole


@cache
def _environment() -> Any:  # noqa: ANN401  of a package that may be missing
    jinja, markup = needed("jinja2", "html"), needed("markupsafe", "html").Markup
    made = jinja.Environment(
        loader=jinja.FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
    )
    made.globals |= {
        "cell": written,
        "kind": lambda block: type(block).__name__,
        "drawn": lambda figure: markup(_drawn(figure)),
    }
    return made


def _drawn(figure: Figure) -> str:
    return svg(figure.chart, f"{figure.title}. {figure.says}")


def written(value: Cell, column: Column) -> str:
    """A cell as it is read: `--` when it is not known."""
    if value is None:
        return NOT_KNOWN
    if isinstance(value, str):
        return value
    return f"{100 * value:.1f} %" if column.kind == "share" else number(value)


def _anchors(sections: Sequence[Section]) -> list[str]:
    """A name in the address for each section; it and that of its title are new."""
    made: list[str] = []
    taken = {"main", "definitions-of-terms", "definitions-title"}
    for section in sections:
        name = _PLAIN.sub("-", section.title.lower()).strip("-") or "section"
        while not taken.isdisjoint((name, f"{name}-title")):
            name += "-more"
        taken |= {name, f"{name}-title"}
        made.append(name)
    return made
