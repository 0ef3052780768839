"""A file that takes the place of another one whole, or not at all."""

import os
import secrets
from pathlib import Path
from stat import S_IMODE

from admitperf.cli.reading import UnreadableInput
from admitperf.reports.wording import printable


def replaced(output: str, text: str) -> None:
    """Writes a text to a file; what was there stays until all of it is written.

    A link stays, and what it leads to is replaced. A pipe or a device is written to.

    Raises:
        UnreadableInput: it cannot be written; what was there is as it was.
    """
    path = Path(output)
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _swapped(path.resolve(), text)
    except (OSError, ValueError, RuntimeError) as error:  # the last: a loop of links
        why = getattr(error, "strerror", None) or str(error)
        said = printable(f"{output}: cannot be written: {why}")
        raise UnreadableInput(said) from None


def _swapped(path: Path, text: str) -> None:
    new = path.with_name(f".admitperf-{secrets.token_hex(8)}.tmp")
    try:
        with new.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            new.chmod(S_IMODE(path.stat().st_mode))
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
