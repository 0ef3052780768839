"""A recorded run of a real engine: its metrics, its requests and how they ended."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Self

DEMO = "vllm-0.32-2x.jsonl.gz"
"""vLLM 0.32.0 at twice its capacity; `tools/make_demo_run.py` made it."""

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Scrape:
    """One reading of the engine.

    Attributes:
        t_s: when it was asked for, seconds since the recording's start.
        took_s: how long the answer took; before that nobody could know it.
        raw: metric name to number.
    """

    t_s: float
    took_s: float
    raw: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived, and as it ended. Times count from its arrival.

    Attributes:
        id: its name.
        t_s: when it arrived, seconds since the recording's start.
        input_tokens, max_output_tokens: its size.
        ok: whether the answer ended properly.
        ttft_ms: to the first token; None = it had none.
        max_gap_ms: longest gap between tokens; None = it had fewer than two.
        e2e_ms: to the end.
        output_tokens: how many came.
        finish_reason: the engine's word; None = it gave none.
    """

    id: str
    t_s: float
    input_tokens: int
    max_output_tokens: int
    ok: bool
    ttft_ms: float | None
    max_gap_ms: float | None
    e2e_ms: float
    output_tokens: int
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class Recording:
    """A run.

    Attributes:
        engine: name and version.
        wall_s: when it was made, Unix seconds.
        rate_per_s: requests offered.
        capacity_per_s: requests this engine can carry.
        scrape_s: seconds between readings.
        settings: model, engine options and sizes, as recorded.
        scrapes, calls: in the order of time.
    """

    engine: str
    wall_s: float
    rate_per_s: float
    capacity_per_s: float
    scrape_s: float
    settings: Mapping[str, Any]
    scrapes: tuple[Scrape, ...]
    calls: tuple[Call, ...]

    @classmethod
    def demo(cls) -> Self:
        """The recording that comes with the package."""
        packed = files("admitperf.bench").joinpath("data", DEMO).read_bytes()
        return cls.of(gzip.decompress(packed).decode())

    @classmethod
    def of(cls, text: str) -> Self:
        """Reads the lines of a recording.

        Raises:
            ValueError: they are of another schema.
        """
        about, *rest = (json.loads(line) for line in text.splitlines())
        if about.get("schema") != SCHEMA:
            raise ValueError(f"a recording of schema {about.get('schema')!r}")
        return cls(
            engine=about["engine"],
            wall_s=about["wall_s"],
            rate_per_s=about["rate_per_s"],
            capacity_per_s=about["capacity_per_s"],
            scrape_s=about["scrape_s"],
            settings=about["settings"],
            scrapes=tuple(
                _scrape(x, about["metrics"]) for x in rest if x["k"] == "scrape"
            ),
            calls=tuple(_call(x) for x in rest if x["k"] == "call"),
        )

    @property
    def load(self) -> float:
        """Offered over capacity."""
        return self.rate_per_s / self.capacity_per_s


def _scrape(line: Mapping[str, Any], names: list[str]) -> Scrape:
    raw = dict(zip(names, line["v"], strict=True))
    return Scrape(line["t_s"], line["took_s"], raw)


def _call(line: Mapping[str, Any]) -> Call:
    return Call(**{name: value for name, value in line.items() if name != "k"})
