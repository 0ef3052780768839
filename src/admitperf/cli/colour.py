"""Colour on a terminal: words of a finished page, painted where a person looks.

No meaning is in a colour alone: what is painted is a word that says the same.
"""

import os
import re
import sys

import click

_GOOD = ("LIVE", "BETTER", "pass", "ok")
_BAD = ("INERT", "WORSE", "VOID", "fail", "no", "problem")
_UNSURE = (
    "UNKNOWN",
    "INCONCLUSIVE",
    "SIMULATED",
    "ORACLE",
    "EXPLORATORY",
    "PARTIAL",
    "notice",
    "warning",
    "not carried",
    "cannot be asked",
)
_PLAIN = ("BASELINE", "SHADOW", "EQUIVALENT")
_COLOURS = {
    **dict.fromkeys(_GOOD, "green"),
    **dict.fromkeys(_BAD, "red"),
    **dict.fromkeys(_UNSURE, "yellow"),
    **dict.fromkeys(_PLAIN, "cyan"),
}
_WORDS = "|".join(map(re.escape, sorted(_COLOURS, key=len, reverse=True)))
_ROW = re.compile(rf"^(  (?:finding +)?)({_WORDS})(?=[: ]|$)", re.MULTILINE)
"""A word where a row begins, or where it stands as the finding."""


def echo(page: str) -> None:
    """Prints a page that ends with a line end, painted where that is wanted."""
    click.echo(painted(page) if wanted() else page, nl=False)


def painted(page: str) -> str:
    """The page with its words coloured; without the escapes it is the page."""
    return _ROW.sub(
        lambda found: found[1] + click.style(found[2], fg=_COLOURS[found[2]]), page
    )


def wanted() -> bool:
    """Whether a person looks: a terminal that takes colour, and no one said no."""
    said_no = os.environ.get("NO_COLOR") or os.environ.get("CI")
    dumb = os.environ.get("TERM", "dumb") == "dumb"
    return not said_no and not dumb and _looked_at()


def _looked_at() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()
