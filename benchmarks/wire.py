"""A client and an engine made of bare sockets: next to nothing of a figure is theirs.

    python benchmarks/wire.py           serve as the engine, on a port that it prints

The engine answers `/v1/chat/completions` at once, or as a stream whose events carry
the time they were sent at; the client takes that from the time they arrive. Both clocks
are the machine's monotonic one. `max_tokens` asks for that many events, `seed` for the
milliseconds between two.
"""

import asyncio
import json
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

PAGE = Path(__file__).parent.parent / "tests/data/cases/s-met-14/scrape_42k.txt"
PATH = "/v1/chat/completions"
STAMP = b"at-"
"""What is written before the time in an event."""
DIGITS = 16
END = b"\r\n0\r\n\r\n"
"""How a body in chunks ends."""
T = TypeVar("T")

HEADERS = {
    "host": "127.0.0.1",
    "accept": "application/json",
    "user-agent": "OpenAI/Python 2.0.0",
    "x-stainless-lang": "python",
    "x-stainless-package-version": "2.0.0",
    "x-stainless-os": "Linux",
    "x-stainless-arch": "x64",
    "x-stainless-runtime": "CPython",
    "x-stainless-runtime-version": "3.11.7",
    "x-stainless-async": "async:asyncio",
    "x-stainless-retry-count": "0",
    "x-stainless-read-timeout": "600",
    "authorization": "Bearer sk-benchmark-0123456789abcdef",
    "content-type": "application/json",
}
"""What the official client sends."""

ANSWER = json.dumps(
    {
        "id": "chatcmpl-7f0c2f0f3a7b4f0f9a3c1d2e3f405162",
        "object": "chat.completion",
        "created": 1764500000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Twelve words " * 8},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 60, "completion_tokens": 24, "total_tokens": 84},
    }
).encode()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the fastest loop there is."""
    try:
        from uvloop import new_event_loop  # noqa: PLC0415
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def ask(
    *,
    events: int | None = None,
    every_ms: int = 40,
    prompt: str = "Say it. " * 30,
    host: str = "127.0.0.1",
) -> bytes:
    """One request, head and body; streamed when `events` says how many are wanted."""
    body: dict[str, object] = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You answer in few words."},
            {"role": "user", "content": prompt},
        ],
    }
    if events is not None:
        body |= {"stream": True, "max_tokens": events, "seed": every_ms}
    content = json.dumps(body).encode()
    fields = {**HEADERS, "host": host, "content-length": str(len(content))}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {PATH} HTTP/1.1\r\n{head}\r\n".encode() + content


# ------------------------------------------------------------------------ engine


@dataclass
class State:
    """What the engine's own page says of it."""

    running: int = 0
    answered: int = 0

    def page(self) -> bytes:
        """A page of a real size, of which these figures move."""
        moving = {
            "kv_cache_usage_perc": min(1.0, self.running / 1000),
            "num_requests_running": self.running,
            "num_requests_waiting": 0,
            "generation_tokens_total": self.answered,
        }
        lines = [f"vllm:{name}{_LABELS} {value}\n" for name, value in moving.items()]
        return _PAGE + "".join(lines).encode()


_LABELS = '{engine="0",model_name="m"}'
_MOVING = re.compile(rb"vllm:(kv_cache_usage|num_requests_|generation_tokens)")
_PAGE = b"".join(
    line
    for line in PAGE.read_bytes().splitlines(keepends=True)
    if not _MOVING.match(line)
)


def event(delta: str, finish: str = "null") -> bytes:
    """One event of a chat, about 170 bytes."""
    data = (
        '{"id":"chatcmpl-7f0c2f0f3a7b4f0f","object":"chat.completion.chunk",'
        '"created":1764500000,"model":"m","choices":[{"index":0,"delta":'
        f'{delta},"finish_reason":{finish}}}]}}'
    )
    return f"data: {data}\n\n".encode()


_BEFORE, _AFTER = event('{"content":"at-|"}').split(b"|")
_USAGE = (
    b'data: {"id":"chatcmpl-7f0c2f0f3a7b4f0f","object":"chat.completion.chunk",'
    b'"created":1764500000,"model":"m","choices":[],"usage":{"prompt_tokens":60,'
    b'"completion_tokens":24,"total_tokens":84}}\n\n'
)
_LAST = event("{}", '"stop"') + _USAGE + b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    """A body chunk on the wire."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Engine(asyncio.Protocol):
    """One connection of the engine."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._got = bytearray()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0
        self._every_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the way back."""
        self._out = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answers each request that is whole."""
        self._got += data
        while (end := self._got.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._got[:end])
            size = length_of(head)
            if len(self._got) < end + 4 + size:
                return
            body = bytes(self._got[end + 4 : end + 4 + size])
            del self._got[: end + 4 + size]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if b'"stream":true' in body or b'"stream": true' in body:
            self._stream(json.loads(body))
        elif head.startswith(b"GET /metrics"):
            self._whole(b"text/plain; version=0.0.4", self._state.page())
        elif head.startswith(b"GET"):
            self._whole(b"application/json", b'{"object":"list","data":[{"id":"m"}]}')
        else:
            self._state.answered += 1
            self._whole(b"application/json", ANSWER)

    def _whole(self, kind: bytes, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
        self._out.write(head % (kind, len(body)) + body)

    def _stream(self, asked: dict[str, Any]) -> None:
        self._left, self._every_s = asked["max_tokens"], asked["seed"] / 1e3
        self._state.running += 1
        head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        first = chunk(event('{"role":"assistant","content":""}'))
        self._out.write(head + first)
        self._due_s = self._loop.time()
        self._next()

    def _next(self) -> None:
        self._left -= 1
        if self._left < 0:
            self._end()
            return
        self._due_s += self._every_s
        stamp = b"%0*d" % (DIGITS, time.monotonic_ns())
        self._out.write(chunk(_BEFORE + stamp + _AFTER))
        self._timer = self._loop.call_at(self._due_s, self._next)

    def _end(self) -> None:
        self._timer = None
        self._state.running -= 1
        self._state.answered += 1
        self._out.write(chunk(_LAST) + b"0\r\n\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        """A caller that goes takes its stream along."""
        del exc
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._state.running -= 1


def length_of(head: bytes) -> int:
    """The body's length that a head tells; 0 without one, -1 when it is in chunks."""
    low = head.lower()
    place = low.find(b"content-length:")
    if place < 0:
        return -1 if b"transfer-encoding: chunked" in low else 0
    return int(low[place + 15 : place + 30].split(b"\r\n", 1)[0])


async def serve() -> None:
    """Serves as the engine until it is killed."""
    state = State()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Engine(state), "127.0.0.1", 0, backlog=2048
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# ------------------------------------------------------------------------ client


class Caller(asyncio.Protocol):
    """One connection of the client: asks once at a time.

    Attributes:
        on_answer: called with the status when an answer is whole, or with 0 when the
            connection went before that.
        on_data: called with each piece of an answer, and when it came.
    """

    def __init__(self) -> None:
        self.on_answer: Callable[[int], None] | None = None
        self.on_data: Callable[[bytes, int], None] | None = None
        self._status = 0
        self._left = 0
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the way out."""
        self.out = cast("asyncio.Transport", transport)

    def ask(self, request: bytes, on_answer: Callable[[int], None]) -> None:
        """Sends a request."""
        self.on_answer, self._status, self._tail = on_answer, 0, b""
        self.out.write(request)

    def data_received(self, data: bytes) -> None:
        """Finds the end of an answer."""
        if self.on_data is not None:
            self.on_data(data, time.monotonic_ns())
        if self._status == 0:
            head, _, rest = data.partition(b"\r\n\r\n")
            self._status = int(head[9:12])
            self._left = length_of(head)
            if self._left >= 0:
                self._left -= len(rest)
        elif self._left > 0:
            self._left -= len(data)
        if self._left < 0:
            self._tail = (self._tail + data)[-len(END) :]
        if self._left == 0 or self._tail == END:
            self._ended(self._status)

    def connection_lost(self, exc: Exception | None) -> None:
        """Says that there will be no answer."""
        del exc
        self._ended(0)

    def _ended(self, status: int) -> None:
        told, self.on_answer, self._status = self.on_answer, None, 0
        if told is not None:
            told(status)


async def caller(port: int) -> Caller:
    """A new connection."""
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(Caller, "127.0.0.1", port))[1]


@dataclass
class Answers:
    """What came back of many requests.

    Attributes:
        took_ms: from sending to the whole answer, of those with 200.
        statuses: how many came with each; 0 = the connection broke.
        lasted_s: of the whole.
    """

    took_ms: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    lasted_s: float = 0.0

    def add(self, status: int, began_ns: int) -> None:
        """Counts one."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status == 200:
            self.took_ms.append((time.monotonic_ns() - began_ns) / 1e6)

    @property
    def failed(self) -> int:
        """Those that were not 200."""
        return sum(n for status, n in self.statuses.items() if status != 200)


async def closed(port: int, connections: int, seconds: float) -> Answers:
    """Each connection asks again as soon as it has its answer."""
    seen, request, loop = Answers(), ask(), asyncio.get_running_loop()
    until_s = loop.time() + seconds
    ends = [loop.create_future() for _ in range(connections)]

    def again(one: Caller, end: asyncio.Future[None]) -> None:
        if loop.time() >= until_s or one.out.is_closing():
            if not end.done():
                end.set_result(None)
            return
        began_ns = time.monotonic_ns()

        def answered(status: int) -> None:
            seen.add(status, began_ns)
            again(one, end)

        one.ask(request, answered)

    callers = [await caller(port) for _ in range(connections)]
    for one, end in zip(callers, ends, strict=True):
        again(one, end)
    await asyncio.wait(ends, timeout=seconds + 10)
    seen.lasted_s = loop.time() - until_s + seconds
    for one in callers:
        one.out.close()
    return seen


class Open:
    """Requests at a rate, whatever becomes of them; connections are used again."""

    def __init__(self, port: int, requests: Callable[[int], bytes]) -> None:
        self._port = port
        self._requests = requests
        self._idle: deque[Caller] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self.seen = Answers()
        self.open = 0

    async def run(self, per_s: float, seconds: float) -> Answers:
        """Asks for that long, then waits for what is open."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for place in range(int(per_s * seconds)):
            ahead_s = began_s + place / per_s - loop.time()
            await asyncio.sleep(max(0.0, ahead_s))
            self._ask(self._requests(place))
        for _ in range(600):
            if not self.open:
                break
            await asyncio.sleep(0.05)
        self.seen.lasted_s = loop.time() - began_s
        for one in self._idle:
            one.out.close()
        return self.seen

    def _ask(self, request: bytes) -> None:
        self.open += 1
        while self._idle:
            one = self._idle.pop()
            if not one.out.is_closing():
                self._send(one, request)
                return
        task = asyncio.ensure_future(self._dial(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, request: bytes) -> None:
        self._send(await caller(self._port), request)

    def _send(self, one: Caller, request: bytes) -> None:
        began_ns = time.monotonic_ns()

        def answered(status: int) -> None:
            self.open -= 1
            self.seen.add(status, began_ns)
            if status:
                self._idle.append(one)

        one.ask(request, answered)


@dataclass
class Delays:
    """How late the events of streams came.

    Attributes:
        at_ns: when each came.
        late_ns: how long after it was sent; in the same order.
    """

    at_ns: list[int] = field(default_factory=list)
    late_ns: list[int] = field(default_factory=list)

    def took(self, data: bytes, now_ns: int) -> None:
        """Counts the events in a piece."""
        place = data.find(STAMP)
        while place >= 0:
            place += len(STAMP)
            self.at_ns.append(now_ns)
            self.late_ns.append(now_ns - int(data[place : place + DIGITS]))
            place = data.find(STAMP, place)

    def ms(self) -> list[float]:
        """All delays, sorted."""
        return sorted(late / 1e6 for late in self.late_ns)

    def worst_ms(self, begin_ns: int, end_ns: int) -> float:
        """The largest delay of the events that came in a span; 0 when none did."""
        within = (
            late
            for at, late in zip(self.at_ns, self.late_ns, strict=True)
            if begin_ns <= at <= end_ns
        )
        return max(within, default=0) / 1e6


@dataclass
class Streams:
    """Streams that are open at once.

    Attributes:
        callers: their connections.
        delays: of all their events.
        ended: how many ended, well or not.
    """

    callers: list[Caller] = field(default_factory=list)
    delays: Delays = field(default_factory=Delays)
    ended: int = 0

    def _ended(self, _status: int) -> None:
        self.ended += 1

    async def start(
        self, port: int, count: int, request: bytes, *, span_s: float
    ) -> None:
        """Opens them evenly over a span, so that their events do not come together."""
        for _ in range(count):
            one = await caller(port)
            one.on_data = self.delays.took
            one.ask(request, self._ended)
            self.callers.append(one)
            await asyncio.sleep(span_s / count)

    def close(self) -> None:
        """Leaves them."""
        for one in self.callers:
            one.on_answer = None
            one.out.close()


if __name__ == "__main__":
    sys.exit(run(serve()))
