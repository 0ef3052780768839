"""Reads a result file, whatever tool wrote it: told by what is in it, not its name."""

import json
from pathlib import Path
from typing import Any

from admitperf.bench.interchange import aiperf, guidellm, inference_perf, vllm
from admitperf.bench.interchange.foreign import Foreign
from admitperf.core.errors import LogError

TOOLS = (vllm.TOOL, guidellm.TOOL, aiperf.TOOL, inference_perf.TOOL)

_MOST_BYTES = 1 << 30
"""Plain choice: a gigabyte, of which Python makes several in memory."""


def read(path: Path) -> tuple[Foreign, ...]:
    """The runs in a file.

    Raises:
        LogError: it cannot be read, is no result of a tool that is known, or holds a
            value that none could be; one line that names the file.
    """
    text = _text(path)
    try:
        whole = json.loads(text, parse_constant=_endless)
    except _NotANumberError as error:
        raise LogError(f"{path}: it holds {error}, which is no number") from None
    except (ValueError, RecursionError):
        found: tuple[Foreign, ...] = (_of_lines(path, text),)
    else:
        found = _of_value(path, whole)
    return tuple(one.completed() for one in found)


class _NotANumberError(Exception):
    """A word that JSON has no place for."""


def _endless(word: str) -> float:
    """Rates may be without end; nothing else that is no number is taken."""
    if word == "Infinity":
        return float("inf")
    raise _NotANumberError(word)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise LogError(f"{path}: over {_MOST_BYTES >> 30} GiB, more than is read")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise LogError(f"{path}: {why}") from None
    except UnicodeDecodeError:
        raise LogError(f"{path}: not UTF-8") from None


def _of_value(path: Path, whole: Any) -> tuple[Foreign, ...]:  # noqa: ANN401  any JSON
    where = str(path)
    if isinstance(whole, list) and inference_perf.known_list(whole):
        return (inference_perf.read_list(where, whole),)
    if not isinstance(whole, dict):
        raise _unknown(path)
    if vllm.known(whole):
        return (vllm.read(where, whole),)
    if aiperf.known(whole):
        return (aiperf.read(where, whole),)
    if aiperf.known_line(whole):
        return (aiperf.read_lines(where, [(1, whole)]),)
    if inference_perf.known(whole):
        return (inference_perf.read(where, whole),)
    if guidellm.known(whole):
        return guidellm.read(where, whole)
    raise _unknown(path)


def _of_lines(path: Path, text: str) -> Foreign:
    lines: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line, parse_constant=_endless)
        except (ValueError, RecursionError, _NotANumberError):
            if not lines:
                raise _unknown(path) from None
            raise LogError(f"{path}:{number}: not JSON") from None
        if not isinstance(found, dict) or not aiperf.known_line(found):
            if not lines:
                raise _unknown(path)
            raise LogError(f"{path}:{number}: no request of {aiperf.TOOL}")
        lines.append((number, found))
    if not lines:
        raise LogError(f"{path}: it is empty")
    return aiperf.read_lines(str(path), lines)


def _unknown(path: Path) -> LogError:
    tools = f"{', '.join(TOOLS[:-1])} or {TOOLS[-1]}"
    return LogError(f"{path}: no result file of {tools}")
