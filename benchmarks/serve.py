"""What the simulated server costs with many streams, and how even their tokens come.

Starts `admitperf sim serve` with an engine whose steps take 20 ms, opens streams on
it, and reads them while its metrics are scraped five times a second. Prints a table.

    python benchmarks/serve.py [--streams 50 100 200 400] [--seconds 10]
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, cast
from urllib.request import urlopen

STEP_MS = 20.0
SCRAPES_PER_S = 5
WARM_S = 1.5


class Reader(asyncio.Protocol):
    """Reads one stream and notes when its tokens come."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.at_s: list[float] = []
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asks."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Counts the events in what came."""
        self.at_s += [time.perf_counter()] * data.count(b'"token_ids":null')


@dataclass
class Result:
    """What was seen of a run.

    Attributes:
        streams: open at once.
        tokens_per_s: of all.
        cpu_fraction: of one core, by the server.
        gaps_ms: between two tokens of a stream, sorted.
        scrapes_ms: how long scrapes took, sorted.
    """

    streams: int
    tokens_per_s: float = 0.0
    cpu_fraction: float = 0.0
    gaps_ms: list[float] = field(default_factory=list)
    scrapes_ms: list[float] = field(default_factory=list)


def profile(streams: int) -> str:
    """A profile in which every stream runs and each step takes the same time."""
    engine = {
        "max_num_seqs": streams,
        "kv_blocks": 100 * streams,
        "step_ms": STEP_MS,
        "max_num_batched_tokens": 64 * streams,
    }
    provenance = {"source": "published arithmetic"}
    document = {"schema": 1, "name": "even", "engine": engine, "provenance": provenance}
    return json.dumps({**document, "residuals": None})


def request(place: int) -> bytes:
    """A stream that lasts longer than any run."""
    body = json.dumps(
        {
            "prompt": f"stream {place} counts what it is given",
            "max_tokens": 1400,
            "ignore_eos": True,
            "stream": True,
        }
    )
    head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json"
    return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


def cpu_s(pid: int) -> float:
    """Seconds of CPU a process has used."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    ticks = stat.rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def at(values: Sequence[float], fraction: float) -> float:
    """A quantile of sorted values, by nearest rank."""
    return values[min(len(values) - 1, int(fraction * len(values)))]


def scrape(port: int) -> float:
    """Reads the metrics once; returns how long that took, in ms."""
    began_s = time.perf_counter()
    with urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        page.read()
    return (time.perf_counter() - began_s) * 1e3


async def load(port: int, pid: int, result: Result, seconds: float) -> None:
    """Opens the streams, waits until all run, and measures."""
    loop = asyncio.get_running_loop()
    readers = []
    for place in range(result.streams):
        made = await loop.create_connection(
            lambda place=place: Reader(request(place)), "127.0.0.1", port
        )
        readers.append(made[1])
    await asyncio.sleep(WARM_S)
    began_s, cpu = time.perf_counter(), cpu_s(pid)
    for _ in range(int(seconds * SCRAPES_PER_S)):
        took = loop.run_in_executor(None, scrape, port)
        await asyncio.sleep(1 / SCRAPES_PER_S)
        result.scrapes_ms.append(await took)
    ended_s = time.perf_counter()
    result.cpu_fraction = (cpu_s(pid) - cpu) / (ended_s - began_s)
    tokens = 0
    for reader in readers:
        seen = [s for s in reader.at_s if began_s <= s < ended_s]
        tokens += len(seen)
        result.gaps_ms += [(b - a) * 1e3 for a, b in pairwise(seen)]
        cast("asyncio.Transport", reader.transport).close()
    result.tokens_per_s = tokens / (ended_s - began_s)
    result.gaps_ms.sort()
    result.scrapes_ms.sort()


def measured(streams: int, seconds: float) -> Result:
    """One run against a server of its own."""
    result = Result(streams)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "even.json")
        path.write_text(profile(streams), encoding="utf-8")
        call = "from admitperf.cli.sim_serve import command; command()"
        server = subprocess.Popen(
            [sys.executable, "-c", call, "--profile", path, "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            said = cast("IO[str]", server.stdout).readline()
            port = int(said.split("://")[1].split()[0].rpartition(":")[2])
            asyncio.run(load(port, server.pid, result, seconds))
        finally:
            server.kill()
            server.wait()
    return result


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[50, 100, 200, 400])
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    print(f"Steps of {STEP_MS:g} ms, {SCRAPES_PER_S} scrapes a second; times in ms.\n")
    print("| streams | due tok/s | tok/s | server, of a core | gap p50 | p99 | max"
          " | scrape p50 | p99 |")  # fmt: skip
    print("|--:" * 9 + "|")
    for streams in asked.streams:
        seen = measured(streams, asked.seconds)
        due = streams * 1e3 / STEP_MS
        gaps, scrapes = seen.gaps_ms, seen.scrapes_ms
        print(f"| {streams} | {due:.0f} | {seen.tokens_per_s:.0f}"
              f" | {seen.cpu_fraction:.2f} | {at(gaps, 0.5):.1f} | {at(gaps, 0.99):.1f}"
              f" | {gaps[-1]:.1f} | {at(scrapes, 0.5):.1f} | {at(scrapes, 0.99):.1f} |",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
