"""`--html FILE`: a page as a file."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from admitperf.cli.reading import UnreadableInput
from admitperf.cli.replacing import replaced
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.wording import printable

if TYPE_CHECKING:
    from admitperf.reports.sheets.sheet import Sheet

_STDOUT = "-"
_HEAD_BYTES = 1 << 10
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def html_option(decorated: _Decorated) -> _Decorated:
    """The option `--html FILE`, as `html`."""
    return click.option(
        "--html",
        metavar="FILE",
        help="Write one HTML file that needs no network; - is standard output.",
    )(decorated)


def ready(output: str) -> None:
    """Looks at where the page is to go and starts what draws it, in the background.

    To be called before logs are read, which takes longer than either.

    Raises:
        UnreadableInput: nothing can be written there, or a part of the extra is
            missing.
    """
    from admitperf.reports.extra import needed
    from admitperf.reports.html import drawing

    if output != _STDOUT and (why := _unfit(output)):
        raise UnreadableInput(printable(f"{output}: cannot be written: {why}"))
    try:
        for module in ("jinja2", "vl_convert"):
            needed(module, "html")
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    threading.Thread(target=drawing.warm, daemon=True).start()


def _unfit(output: str) -> str | None:
    path = Path(output)
    try:
        if path.is_dir():
            return "it is a folder"
        if not path.resolve().parent.is_dir():
            return "its folder does not exist"
        if path.is_file() and not _is_page(path):
            return "what stands there is no HTML page, and would be lost"
    except (OSError, ValueError, RuntimeError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def _is_page(path: Path) -> bool:
    """Whether a file may be replaced: it is empty, or a page. A log is neither."""
    with path.open("rb") as file:
        begins = file.read(_HEAD_BYTES).lstrip().lower()
    return not begins or begins.startswith((b"<!doctype html", b"<html"))


def write(sheet: "Sheet", output: str) -> None:
    """Writes the page and says so.

    What was there before stays until all of it is written.

    Args:
        sheet: the page.
        output: a file; "-" is standard output, and then nothing is said.

    Raises:
        UnreadableInput: it cannot be written.
    """
    from admitperf.reports.html.page import html

    text = html(sheet)
    if output == _STDOUT:
        click.echo(text.encode(), nl=False)
        return
    replaced(output, text)
    size_kb = max(round(len(text.encode()) / 1000), 1)
    click.echo(f"wrote {printable(output)} ({size_kb} kB)")
