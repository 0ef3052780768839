"""A simulated engine behind HTTP, in a process of its own."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Self

from admitperf.core.errors import AdmitPerfError

_END_S = 10.0
_RUN = "import sys; from admitperf.cli import main; sys.exit(main())"


class SimServe:
    """`admitperf sim serve` on a free port; ends with the `with` it is used in.

    Args:
        profile: the engine, as `--profile`.
        options: more options of the command, such as `--max-num-queued-reqs 8`.

    Attributes:
        url: where it listens, once it was entered.
    """

    def __init__(self, profile: str, options: Sequence[str] = ()) -> None:
        self.url = ""
        self._command = [sys.executable, "-c", _RUN, "sim", "serve", "--port", "0"]
        self._command += ["--profile", profile, "--shutdown", "cut", *options]
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Starts it, and waits until it listens.

        Raises:
            AdmitPerfError: it did not start, in its own words.
        """
        with tempfile.TemporaryFile("w+") as errors:  # a pipe nobody reads gets full
            self._child = subprocess.Popen(  # noqa: S603  our own Python
                self._command, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            out = self._child.stdout
            line = out.readline() if out else ""
            if not line:
                self._child.communicate()
                errors.seek(0)
                why = errors.read().strip().rpartition("\n")[2] or "no word why"
                raise AdmitPerfError(f"sim serve did not start: {why}")
        self.url = next(word for word in line.split() if word.startswith("http"))
        return self

    def __exit__(self, *_: object) -> None:
        child = self._child
        if child is None:
            return
        child.terminate()
        try:
            child.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
