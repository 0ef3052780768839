"""What a page or a log says about an engine's size and its requests."""

import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard, cast

from admitperf.core.series import Series
from admitperf.core.signals import KV_CAPACITY_TOKENS
from admitperf.lab.fault import LabError
from admitperf.lab.reach import MOST
from admitperf.lab.recorded import applied
from admitperf.reports.files.shape import fault
from admitperf.reports.quantile import Spread
from admitperf.reports.wording import number, plural
from admitperf.scrape.simulated import INFO, simulated_by

_GZIP = b"\x1f\x8b"
_PEEK = 65_536

# Tokens in, tokens out, requests they belong to: of finished requests where an engine
# says so, else since its start.
_TOKENS = (
    (
        "vllm_request_prompt_tokens_sum",
        "vllm_request_generation_tokens_sum",
        "vllm_request_prompt_tokens_count",
    ),
    (
        "sglang_prompt_tokens_total",
        "sglang_generation_tokens_total",
        "sglang_num_requests_total",
    ),
)
_SLOTS = "dynamo_frontend_model_max_num_seqs"

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Known:
    """A number and who says it.

    Attributes:
        value: in the unit of its name.
        origin: where it comes from, in words.
        n: requests it is the mean of; None = it is no mean.
    """

    value: float
    origin: str
    n: float | None = None


Sizes = dict[str, Known]
"""By name: kv_tokens, block_tokens, max_num_seqs, tokens_per_request, tokens_p95,
running and kv_pressure (the largest seen), and simulated, which is 1 when the page or
the log says that the engine is. What is not known is absent."""


def from_page(page: Mapping[str, float]) -> Sizes:
    """What a metrics page says.

    Of several engines on it the smallest memory counts, since a request lands in one.
    """
    series = Series(page)
    found: Sizes = {}
    _, capacity, _ = KV_CAPACITY_TOKENS.find(series)
    if capacity is not None and capacity.value is not None:
        sizes = capacity.parts.values() or (capacity.value,)
        of = f"the smallest of {len(sizes)} engines" if len(sizes) > 1 else "the page"
        found["kv_tokens"] = Known(min(sizes), of)
    blocks = {_block(labels) for labels, _ in series.samples("vllm_cache_config_info")}
    if len(blocks) == 1 and None not in blocks:
        found["block_tokens"] = Known(blocks.pop() or 1, "the page")
    slots = {value for _, value in series.samples(_SLOTS)}
    if len(slots) == 1:
        found["max_num_seqs"] = Known(slots.pop(), "the page")
    return found | _mean_tokens(series) | _simulated(page, "the page")


def is_log(path: str) -> bool:
    """Whether a file begins like a log, plain or gzipped.

    Raises:
        OSError: it cannot be read.
    """
    with _opened(path) as file:
        first = file.readline(_PEEK).lstrip(b"\0\xef\xbb\xbf \r\n")
    return first.startswith(b"{") and b'"k"' in first


def from_log(path: str) -> Sizes:
    """What a log or a trace says: sizes of requests, and the largest that was seen.

    Raises:
        LabError: it cannot be read, or holds no decision.
    """
    seen = _Seen()
    try:
        for line in _lines(path):
            seen.take(line)
    except (OSError, EOFError) as error:
        raise LabError(f"{path}: {_why(error)}") from None
    if not seen.decisions:
        raise LabError(f"{path}: no decision in it, so it is no log or an empty one")
    return seen.sizes()


class _Seen:
    """Collects what the lines of a log say."""

    def __init__(self) -> None:
        self.decisions = 0
        self._asked: dict[tuple[str, int], tuple[float, float | None]] = {}
        self._got: dict[tuple[str, int], float] = {}
        self._high: dict[str, float] = {}
        self._capacity: set[float] = set()
        self._simulated = False
        self._raw: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)

    def take(self, line: Fields) -> None:
        """Reads one line."""
        if line["k"] == "decision":
            self._decision(line)
        elif line["k"] == "run":
            notes = line.get("notes")
            if isinstance(notes, dict) and notes.get("simulated") is True:
                self._simulated = True
        elif line["k"] == "outcome" and _is_number(line.get("output_tokens")):
            self._got[line["run"], line["of"]] = line["output_tokens"]
        elif line["k"] == "reading":
            key = (line["run"], str(line.get("replica")))
            self._raw[key] = applied(self._raw[key], line)

    def _decision(self, line: Fields) -> None:
        self.decisions += 1
        signals, facts = line.get("signals") or {}, line.get("facts") or {}
        if any(name.startswith(INFO) for name in line.get("raw") or ()):
            self._simulated = True
        for name in ("running", "kv_pressure"):
            if _is_number(signals.get(name)):
                self._high[name] = max(signals[name], self._high.get(name, 0.0))
        if _is_number(signals.get("kv_capacity_tokens")):
            self._capacity.add(signals["kv_capacity_tokens"])
        asked, most = facts.get("input_tokens"), facts.get("max_output_tokens")
        if _is_number(asked):
            self._asked[line["run"], line["seq"]] = (
                float(asked),
                most if _is_number(most) else None,
            )

    def sizes(self) -> Sizes:
        """What the whole log says."""
        raw = next(iter(self._raw.values()), {})
        found = from_page(raw)
        if self._capacity and "kv_tokens" not in found:
            found["kv_tokens"] = Known(min(self._capacity), "the log's smallest")
        for name, value in self._high.items():
            found[name] = Known(value, "the largest seen")
        for page in self._raw.values():
            found |= _simulated(page, "the log")
        if self._simulated:
            found["simulated"] = Known(1.0, "the log")
        return found | _of_requests(list(self._requests()))

    def _requests(self) -> Iterator[float]:
        """Tokens of each request: what came out where that is known, else the most."""
        for key, (asked, most) in self._asked.items():
            out = self._got.get(key, most)
            if out is not None:
                yield asked + out


def _simulated(page: Mapping[str, float], origin: str) -> Sizes:
    said = simulated_by(page) is not None
    return {"simulated": Known(1.0, origin)} if said else {}


def _of_requests(tokens: Sequence[float]) -> Sizes:
    """The mean, since requests of mixed sizes hold together what their mean says."""
    if not tokens:
        return {}
    n = f"of {plural(len(tokens), 'request')} in the log"
    mean = math.fsum(tokens) / len(tokens)
    found = {"tokens_per_request": Known(mean, f"mean {n}", len(tokens))}
    p95 = Spread.of(tokens).p95
    return found if p95 is None else {**found, "tokens_p95": Known(p95, f"p95 {n}")}


def _mean_tokens(series: Series) -> Sizes:
    for names in _TOKENS:
        given, made, count = (_total(series, name) for name in names)
        if given is not None and made is not None and count:
            mean = (given + made) / count
            origin = f"mean of {number(count)} requests on the page"
            return {"tokens_per_request": Known(mean, origin, count)}
    return {}


def _total(series: Series, name: str) -> float | None:
    values = [value for _, value in series.samples(name) if _is_number(value)]
    return sum(values) if values else None


def _block(labels: Mapping[str, str]) -> int | None:
    text = labels.get("block_size", "")
    return int(text) if text.isdecimal() and int(text) else None


def _is_number(value: object) -> TypeGuard[float]:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and 0 <= value <= MOST  # type: ignore[operator]


def _lines(path: str) -> Iterator[Fields]:
    """The lines of a log that can be used."""
    with _opened(path) as file:
        for text in file:
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict) and fault(line) is None:
                yield line


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    with Path(path).open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if packed:
            with gzip.open(file) as plain:
                yield cast("BinaryIO", plain)
        else:
            yield file


def _why(error: Exception) -> str:
    return (getattr(error, "strerror", None) or "broken off").lower()
