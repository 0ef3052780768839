"""Records a real engine under a small load, as JSON lines.

    python benchmarks/record_engine.py --out run.jsonl --shape plain --rate 3.5
    python benchmarks/record_engine.py --out run.jsonl --shape plain --closed 8
    python benchmarks/record_engine.py --out run.jsonl --shape prefix --rate 3.5
    python benchmarks/record_engine.py --out run.jsonl --shape agent --rate 0.4

Needs aiohttp and an OpenAI completions server on the loopback address. Three shapes:
`plain` asks for unrelated prompts; `prefix` puts one of a few shared texts in front of
each; `agent` runs sessions of several calls, each prompt being the one before, its
answer and some new tokens. `--rate` counts requests a second, for `agent` sessions a
second, both Poisson. Prompts are random token ids, so any model will do.

The lines: one `meta`; `scrape` with the engine's gauges and counters a few times a
second, and the busy jiffies of the machine (`busy`), the engine (`eng`) and this client
(`me`), which show foreign load; one `req` for each request. Times are seconds since the
start of the run, `chunks` are [seconds since sent, tokens]. `prefix` names the content
of the prompt from its start as [chain, tokens]: equal names are equal content, and a
session's chain goes on with each answer.
"""

import argparse
import asyncio
import json
import os
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import aiohttp

LONGEST_S = 120
"""A recording and its drain are each cut off here."""
FIRST_TOKEN_ID = 10
"""Below are special tokens in the models that we record."""

KEPT = re.compile(
    r"^(vllm:(?:num_requests_running|num_requests_waiting|"
    r"num_requests_waiting_by_reason|kv_cache_usage_perc|num_preemptions_total|"
    r"prompt_tokens_total|generation_tokens_total|request_success_total|"
    r"admission_rejections_total|prefix_cache_(?:hits|queries)_total|"
    r"(?:time_to_first_token_seconds|inter_token_latency_seconds|"
    r"request_queue_time_seconds|request_prefill_time_seconds|"
    r"request_decode_time_seconds|e2e_request_latency_seconds|"
    r"iteration_tokens_total)_(?:sum|count))|llamacpp:[a-z_]+)"
    r"(\{[^}]*\})?\s+(\S+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Call:
    """What one request asks for, and what its prompt is made of."""

    prompt: list[int]
    max_tokens: int
    prefix: list[tuple[str, int]] = field(default_factory=list)
    session: str | None = None


def seeded(*parts: object) -> random.Random:
    """Chance of its own for each thing that has a name, whatever else happens."""
    return random.Random("/".join(map(str, parts)))  # noqa: S311 - load, not secrets


class Shapes:
    """Makes the calls: the same seed makes the same ones."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.systems = [self._system(index) for index in range(options.prefixes)]

    def tokens(self, chance: random.Random, count: int) -> list[int]:
        """So many random token ids."""
        return [
            chance.randrange(FIRST_TOKEN_ID, self.options.vocab) for _ in range(count)
        ]

    def _system(self, index: int) -> tuple[str, list[int]]:
        chance = seeded(self.options.seed, "system", index)
        return f"sys{index}", self.tokens(chance, chance.randint(*self.options.shared))

    def call(self, index: int) -> Call:
        """The call of that number, for shapes without sessions."""
        chance = seeded(self.options.seed, "call", index)
        tail = self.tokens(chance, chance.randint(*self.options.prompt))
        asked = chance.randint(*self.options.output)
        if self.options.shape == "plain":
            return Call(tail, asked)
        name, system = chance.choice(self.systems)
        prefix = [(name, len(system)), (f"u{index}", len(tail))]
        return Call([*system, *tail], asked, prefix)

    def session(self, index: int) -> "Session":
        """The session of that number."""
        return Session(self, index)


class Session:
    """One agent: what it knows grows with each answer and each tool's result."""

    def __init__(self, shapes: Shapes, index: int) -> None:
        options = shapes.options
        self._shapes, self.name = shapes, f"s{index}"
        self._chance = seeded(options.seed, "session", index)
        self.calls = self._chance.randint(*options.calls)
        self._head: list[tuple[str, int]] = []
        self._system: list[int] = []
        if shapes.systems:
            name, self._system = self._chance.choice(shapes.systems)
            self._head = [(name, len(self._system))]
        self._own: list[int] = []

    def think_s(self) -> float:
        """Seconds until its next call."""
        return self._chance.uniform(*self._shapes.options.think)

    def next(self, answer: list[int]) -> Call | None:
        """The call after that answer; None where the context would be too long."""
        options, chance = self._shapes.options, self._chance
        new = options.tool if self._own else options.prompt
        self._own += [
            *answer,
            *self._shapes.tokens(chance, chance.randint(*new)),
        ]
        prompt, asked = [*self._system, *self._own], chance.randint(*options.output)
        if len(prompt) + asked > options.max_model_len:
            return None
        prefix = [*self._head, (self.name, len(self._own))]
        return Call(prompt, asked, prefix, self.name)


def gauges(page: str) -> dict[str, float]:
    """The kept samples of a metrics page, a reason label joined to the name."""
    kept = {}
    for name, labels, value in KEPT.findall(page):
        reason = re.search(r'(?:finished_reason|reason)="([^"]*)"', labels)
        kept[f"{name}.{reason[1]}" if reason else name] = float(value)
    return kept


def jiffies(path: str) -> tuple[int, int]:
    """Process group of a /proc/PID/stat, and the time it used; zeros where gone."""
    try:
        fields = Path(path).read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except OSError:
        return 0, 0
    return int(fields[2]), int(fields[11]) + int(fields[12])


class Machine:
    """Who keeps the processors busy."""

    def __init__(self, group: int) -> None:
        """`group` is the engine's process group; 0 where it is not known."""
        every = Path("/proc").glob("[0-9]*/stat")
        self._engine = [str(p) for p in every if group and jiffies(str(p))[0] == group]

    def busy(self) -> dict[str, int]:
        """Busy jiffies so far: of the machine, of the engine, of this client."""
        line = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0]
        spent = [int(part) for part in line.split()[1:]]
        return {
            "busy": sum(spent) - spent[3] - spent[4],
            "eng": sum(jiffies(path)[1] for path in self._engine),
            "me": jiffies("/proc/self/stat")[1],
        }


class Recorder:
    """Sends calls to one engine and writes down what came back when."""

    def __init__(self, options: argparse.Namespace, out: TextIO) -> None:
        self.options, self._out = options, out
        self.web: aiohttp.ClientSession
        self._start_s = time.monotonic()
        self._sent = 0
        self.done: list[dict[str, Any]] = []

    def now_s(self) -> float:
        """Seconds since the start of the run."""
        return time.monotonic() - self._start_s

    def write(self, kind: str, **line: object) -> None:
        """One line of the recording."""
        self._out.write(json.dumps({"type": kind, **line}, separators=(",", ":")))
        self._out.write("\n")

    async def scrape(self, stop: asyncio.Event) -> None:
        """Read the metrics page on a fixed grid until told to stop."""
        machine, count = Machine(self.options.group), 0
        while not stop.is_set():
            at_s = self.now_s()
            line: dict[str, Any] = {}
            try:
                async with self.web.get(self.options.base + "/metrics") as answer:
                    line["m"] = gauges(await answer.text())
            except (aiohttp.ClientError, TimeoutError) as error:
                line["err"] = repr(error)[:200]
            line |= {"dt": round(self.now_s() - at_s, 4), "cpu": machine.busy()}
            self.write("scrape", t=round(at_s, 4), load1=os.getloadavg()[0], **line)
            count += 1
            await asyncio.sleep(max(0, count / self.options.scrape_hz - self.now_s()))

    def body(self, call: Call) -> dict[str, Any]:
        """The request as the engine wants it."""
        body = {
            "model": self.options.model,
            "prompt": call.prompt,
            "max_tokens": call.max_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
        }
        if self.options.api == "llamacpp":
            return body | {"cache_prompt": False}
        usage = {"stream_options": {"include_usage": True}}
        return body | usage | {"return_token_ids": True}

    async def ask(self, call: Call, due_s: float) -> list[int] | None:
        """Send a call that was due then; its answer, None where there is none."""
        self._sent += 1
        line: dict[str, Any] = {
            "id": self._sent,
            "arr": round(due_s, 5),
            "plen": len(call.prompt),
            "max_tokens": call.max_tokens,
            "prefix": call.prefix,
            "session": call.session,
            "status": 0,
            "chunks": [],
            "ntok": 0,
            "sent": round(self.now_s(), 5),
        }
        try:
            answer = await self._exchange(self.body(call), line)
        except asyncio.CancelledError:
            line["err"], answer = "cancelled", None
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            line["err"], answer = repr(error)[:200], None
        if line["chunks"]:
            line["ttft"] = line["chunks"][0][0]
        line["fin"] = round(self.now_s(), 5)
        self.done.append(line)
        self.write("req", **line)
        return answer

    async def _exchange(
        self, body: dict[str, Any], line: dict[str, Any]
    ) -> list[int] | None:
        sent_s = self.now_s()
        tokens: list[int] = []
        async with self.web.post(
            self.options.base + "/v1/completions", json=body
        ) as answer:
            line["status"] = answer.status
            line["hdr"] = round(self.now_s() - sent_s, 5)
            if answer.status != 200:
                line["body"] = (await answer.text())[:500]
                return None
            async for event in events(answer.content):
                self._take(event, line, tokens, self.now_s() - sent_s)
        return tokens if line.get("finish_reason") else None

    def _take(
        self,
        event: dict[str, Any] | None,
        line: dict[str, Any],
        tokens: list[int],
        after_s: float,
    ) -> None:
        if event is None:
            line["done"] = True
            return
        if "error" in event:
            line["err"] = json.dumps(event["error"])[:300]
        for choice in event.get("choices") or []:
            ended = choice.get("finish_reason")
            if ended:
                line["finish_reason"] = ended
            new = choice.get("token_ids") or []
            count = int(not ended) if self.options.api == "llamacpp" else len(new)
            if count:
                line["chunks"].append([round(after_s, 5), count])
                line["ntok"] += count
            tokens += new
        if event.get("usage"):
            line["usage"] = used(event["usage"])


async def events(content: aiohttp.StreamReader) -> AsyncIterator[dict[str, Any] | None]:
    """The events of a stream, None for the one that says it is done."""
    async for row in content:
        if row.startswith(b"data:"):
            text = row[5:].strip()
            yield None if text == b"[DONE]" else json.loads(text)


def used(usage: dict[str, Any]) -> dict[str, Any]:
    """The token counts that an engine gave; None where it did not say."""
    details = usage.get("prompt_tokens_details") or {}
    return {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_tokens": details.get("cached_tokens"),
    }


class Load:
    """When calls are made."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._options = recorder, recorder.options
        self._shapes = Shapes(recorder.options)
        self._begun = 0
        self.too_long = 0

    def _arrivals_s(self, start_s: float) -> Iterator[float]:
        chance, at_s = seeded(self._options.seed, "arrivals"), start_s
        for _ in range(self._options.max_requests):
            at_s += chance.expovariate(self._options.rate)
            if at_s > start_s + self._options.duration:
                return
            yield at_s

    async def one(self, due_s: float) -> None:
        """A call, or a whole session."""
        self._begun += 1
        if self._options.shape != "agent":
            await self._recorder.ask(self._shapes.call(self._begun), due_s)
            return
        session = self._shapes.session(self._begun)
        answer: list[int] | None = []
        for _ in range(session.calls):
            call = session.next(answer or [])
            if call is None:
                self.too_long += 1
                return
            answer = await self._recorder.ask(call, self._recorder.now_s())
            if answer is None:
                return
            await asyncio.sleep(session.think_s())

    async def _client(self, end_s: float) -> None:
        while self._recorder.now_s() < end_s:
            if self._begun >= self._options.max_requests:
                return
            await self.one(self._recorder.now_s())

    async def run(self) -> None:
        """All of it, and what is then still under way for as long as the drain."""
        start_s = self._recorder.now_s()
        end_s = start_s + self._options.duration
        clients = self._options.closed
        tasks = {asyncio.create_task(self._client(end_s)) for _ in range(clients)}
        for due_s in () if clients else self._arrivals_s(start_s):
            await asyncio.sleep(max(0, due_s - self._recorder.now_s()))
            tasks.add(asyncio.create_task(self.one(due_s)))
        left_s = max(0, end_s - self._recorder.now_s()) + self._options.drain
        _, late = await asyncio.wait(tasks, timeout=left_s) if tasks else ((), ())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


async def record(recorder: Recorder) -> None:
    """The whole run, with a quiet second before and after the load."""
    options = recorder.options
    recorder.write(
        "meta",
        t0_wall=time.time(),
        args=vars(options) | {"out": Path(options.out).name},
        note=options.note,
        meta=json.loads(options.meta),
    )
    # llama.cpp drops connections that were kept alive without a word.
    wire = aiohttp.TCPConnector(limit=0, force_close=options.api == "llamacpp")
    patience = aiohttp.ClientTimeout(total=2 * LONGEST_S)
    load, stop = Load(recorder), asyncio.Event()
    async with aiohttp.ClientSession(connector=wire, timeout=patience) as recorder.web:
        scraper = asyncio.create_task(recorder.scrape(stop))
        await asyncio.sleep(1)
        await load.run()
        await asyncio.sleep(1)
        stop.set()
        await scraper
    recorder.write("end", t=round(recorder.now_s(), 4), too_long=load.too_long)


def summary(done: list[dict[str, Any]]) -> dict[str, Any]:
    """A few figures for the terminal."""
    good = [line for line in done if line["status"] == 200 and "err" not in line]
    if not good:
        return {"n": len(done), "good": 0}
    begun_s = min(line["sent"] for line in good)
    wall_s = max(line["fin"] for line in good) - begun_s
    firsts = sorted(line["ttft"] for line in good)
    cached = sum(line.get("usage", {}).get("cached_tokens") or 0 for line in good)
    return {
        "n": len(done),
        "good": len(good),
        "wall_s": round(wall_s, 2),
        "req_s": round(len(good) / wall_s, 3),
        "out_tok_s": round(sum(line["ntok"] for line in good) / wall_s, 1),
        "ttft_p50": firsts[len(firsts) // 2],
        "ttft_p95": firsts[int(0.95 * (len(firsts) - 1))],
        "cached_fraction": round(cached / sum(line["plen"] for line in good), 3),
    }


def span(read: Callable[[str], float]) -> Callable[[str], tuple[float, float]]:
    """Reads `LOW-HIGH`."""

    def _span(text: str) -> tuple[float, float]:
        low, high = text.split("-")
        return read(low), read(high)

    return _span


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Which engine is recorded, where to, and what is known about it."""
    add = parser.add_argument
    add("--base", default="http://127.0.0.1:8000")
    add("--api", default="vllm", choices=["vllm", "llamacpp"])
    add("--model", default="tiny")
    add("--out", required=True)
    add("--vocab", type=int, default=440)
    add("--scrape-hz", type=float, default=5)
    add("--group", type=int, default=0, help="the engine's process group")
    add("--note", default="")
    add("--meta", default="{}", help="JSON about the engine")


def add_load(parser: argparse.ArgumentParser) -> None:
    """When calls are made, and what they ask."""
    add = parser.add_argument
    add("--shape", default="plain", choices=["plain", "prefix", "agent"])
    add("--rate", type=float, default=0, help="requests or sessions a second")
    add("--closed", type=int, default=0, help="clients that wait for their answer")
    add("--duration", type=float, default=30)
    add("--drain", type=float, default=60)
    add("--max-requests", type=int, default=2000, help="or sessions")
    add("--seed", type=int, default=7)
    add("--prompt", type=span(int), default=(64, 256), help="without what is shared")
    add("--output", type=span(int), default=(32, 128))
    add("--prefixes", type=int, default=0, help="how many shared texts")
    add("--shared", type=span(int), default=(256, 512), help="tokens of one")
    add("--calls", type=span(int), default=(6, 10), help="of a session")
    add("--tool", type=span(int), default=(16, 64), help="new tokens of later calls")
    add("--think", type=span(float), default=(0.2, 2.0), help="seconds between calls")
    add("--max-model-len", type=int, default=1024)


def options() -> argparse.Namespace:
    """What was asked for on the command line, within bounds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add_engine(parser)
    add_load(parser)
    given = parser.parse_args()
    if not given.base.startswith("http://127.0.0.1:"):
        parser.error("--base: loopback only")
    if max(given.duration, given.drain) > LONGEST_S:
        parser.error(f"--duration, --drain: {LONGEST_S} s at most")
    if bool(given.rate) == bool(given.closed):
        parser.error("give one of --rate and --closed")
    if given.shape == "prefix" and not given.prefixes:
        parser.error("--shape prefix needs --prefixes")
    return given


def main() -> None:
    """Record, then print what it came to."""
    given = options()
    with Path(given.out).open("w", encoding="utf-8") as out:
        recorder = Recorder(given, out)
        asyncio.run(record(recorder))
    print(json.dumps({"out": Path(given.out).name} | summary(recorder.done)))


if __name__ == "__main__":
    main()
