"""A small engine in four dialects that does what the model's name says.

Run as a script it serves, on a port it prints; with `--policy` behind our middleware,
as any ASGI app may be.

Models: `ok`; `slow` (a token each 50 ms); `flood` (50 MB at once); `late` (its head
well before the rest); `silent` (no answer at all); `stalled` (a head and no more);
`cut` (a stream that ends cleanly in the middle); `torn` (in the middle of an event);
`busy` (an error as the first event of a 200); `dies` (an error in the middle);
`status-N` (that status, with Retry-After 7).
"""

import argparse
import asyncio
import hashlib
import json
import socket
import sys

import uvicorn

TOKENS = 6
SLOW_TOKENS = 40
GAP_S = 0.05
FLOOD_TOKENS = 800
LATE_S = 0.6
LIMIT = 1 << 20
OF_PATH = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/responses": "responses",
    "/v1/embeddings": "embeddings",
    "/v1/messages": "messages",
}
USAGE = {"prompt_tokens": 5, "completion_tokens": TOKENS, "total_tokens": 5 + TOKENS}
OUR_USAGE = {"input_tokens": 5, "output_tokens": TOKENS, "total_tokens": 5 + TOKENS}


def event(data, name=None):
    """One event of a stream."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if data == '[DONE]' else json.dumps(data)}\n\n".encode()


def typed(kind, **fields):
    """One event that is named after its type."""
    return event({"type": kind, **fields}, kind)


def chat(kind="chat.completion.chunk", **choice):
    """One chunk in the shape of OpenAI."""
    whole = {"index": 0, "finish_reason": None, **choice}
    head = {"id": "c1", "object": kind, "created": 1, "model": "ok"}
    return {**head, "choices": [whole]}


def response(status, **more):
    """The object that Responses events carry."""
    told = {"id": "r1", "object": "response", "created_at": 1, "model": "ok"}
    return {**told, "status": status, "output": [], **more}


MESSAGE = {
    "id": "m1", "type": "message", "role": "assistant", "model": "ok",
    "content": [], "stop_reason": None, "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 1},
}  # fmt: skip
BLOCK = {"type": "text", "text": ""}
STOP = {"stop_reason": "end_turn", "stop_sequence": None}

FIRST = {
    "chat": [event(chat(delta={"role": "assistant", "content": ""}))],
    "completions": [],
    "responses": [typed("response.created", response=response("in_progress"))],
    "messages": [
        typed("message_start", message=MESSAGE),
        typed("content_block_start", index=0, content_block=BLOCK),
        typed("ping"),
    ],
}
LAST = {
    "chat": [
        event(chat(delta={}, finish_reason="stop")),
        event({**chat(), "choices": [], "usage": USAGE}),
        event("[DONE]"),
    ],
    "completions": [
        event(chat("text_completion", text="", finish_reason="stop")),
        event({**chat("text_completion"), "choices": [], "usage": USAGE}),
        event("[DONE]"),
    ],
    "responses": [
        typed("response.completed", response=response("completed", usage=OUR_USAGE))
    ],
    "messages": [
        typed("content_block_stop", index=0),
        typed("message_delta", delta=STOP, usage={"output_tokens": TOKENS}),
        typed("message_stop"),
    ],
}


def token(dialect, number):
    """The event of one piece of text."""
    text = f"t{number} "
    if dialect == "chat":
        return event(chat(delta={"content": text}))
    if dialect == "completions":
        return event(chat("text_completion", text=text))
    if dialect == "responses":
        where = {"item_id": "i1", "output_index": 0, "content_index": 0}
        return typed("response.output_text.delta", delta=text, **where)
    delta = {"type": "text_delta", "text": text}
    return typed("content_block_delta", index=0, delta=delta)


def error(dialect):
    """What an engine says inside a stream that it gives up."""
    if dialect == "messages":
        what = {"type": "overloaded_error", "message": "Overloaded"}
        return [typed("error", error=what)]
    if dialect == "responses":
        why = {"code": "server_error", "message": "Server is busy", "param": None}
        return [typed("error", sequence_number=1, **why)]
    what = {"message": "Server is busy", "type": "ServiceUnavailableError"}
    return [event({"error": {**what, "param": None, "code": 503}}), event("[DONE]")]


def whole(dialect):
    """The answer that is not streamed."""
    text = "".join(f"t{n} " for n in range(TOKENS))
    if dialect == "chat":
        said = {"message": {"role": "assistant", "content": text}}
        one = chat("chat.completion", finish_reason="stop", **said)
        return {**one, "usage": USAGE}
    if dialect == "completions":
        one = chat("text_completion", text=text, finish_reason="stop")
        return {**one, "usage": USAGE}
    if dialect == "responses":
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": "i1", "role": "assistant"}
        item |= {"status": "completed", "content": [part]}
        return response("completed", output=[item], usage=OUR_USAGE)
    if dialect == "embeddings":
        one = {"object": "embedding", "index": 0, "embedding": [0.5]}
        usage = {"prompt_tokens": 5, "total_tokens": 5}
        return {"object": "list", "model": "ok", "data": [one], "usage": usage}
    content = [{"type": "text", "text": text}]
    return {**MESSAGE, "content": content, **STOP, "usage": OUR_USAGE}


def script(dialect, model):
    """What a stream of this model writes, and the pause before each write."""
    tokens = [token(dialect, n) for n in range(TOKENS)]
    half = [*FIRST[dialect], *tokens[: TOKENS // 2]]
    if model == "busy":
        return error(dialect), 0
    if model == "flood":
        return [token(dialect, "x" * 65536)] * FLOOD_TOKENS, 0
    if model == "slow":
        many = [token(dialect, n) for n in range(SLOW_TOKENS)]
        return [*FIRST[dialect], *many, *LAST[dialect]], GAP_S
    if model in ("cut", "torn"):
        return [*half, *([token(dialect, TOKENS)[:-9]] * (model == "torn"))], 0
    if model == "dies":
        return [*half, *error(dialect)], GAP_S / 5
    return [*FIRST[dialect], *tokens, *LAST[dialect]], 0


class Engine:
    """The ASGI app; `GET /seen` tells what became of the requests it was given."""

    def __init__(self):
        self.seen = []
        self.running = 0

    async def __call__(self, scope, receive, send):
        """Answer one request; there is no start-up to speak of."""
        if scope["type"] != "http":
            return None
        if scope["method"] == "GET":
            return await self._look(scope["path"], send)
        body = await whole_body(receive)
        headers = {k.decode(): v.decode("latin-1") for k, v in scope["headers"]}
        digest = hashlib.sha256(body).hexdigest()
        told = {"path": scope["path"], "bytes": len(body), "sha256": digest}
        told |= {"headers": headers, "raw_path": scope["raw_path"].decode(), "end": ""}
        self.seen.append(told)
        self.running += 1
        try:
            told["end"] = await self._answer(scope, body, receive, send, told)
        except (OSError, asyncio.CancelledError):
            told["end"] = "left"
        finally:
            self.running -= 1
        return None

    async def _look(self, path, send):
        gauges = {"running": self.running, "waiting": 0}
        page = "".join(f"vllm:num_requests_{k} {n}\n" for k, n in gauges.items())
        page += f"vllm:kv_cache_usage_perc {min(1.0, self.running / 100)}\n"
        known = {
            "/seen": (200, json.dumps(self.seen).encode()),
            "/metrics": (200, page.encode()),
            "/v1/models": (200, b'{"object":"list","data":[{"id":"ok"}]}'),
            "/health": (200, b"well"),
        }
        status, body = known.get(path, (404, b"{}"))
        kind = b"text/plain" if path == "/metrics" else b"application/json"
        await reply(send, status, body, [(b"content-type", kind)])

    async def _answer(self, scope, body, receive, send, told):
        try:
            asked = json.loads(body)
            model, stream = str(asked.get("model")), bool(asked.get("stream"))
        except ValueError:
            await reply(send, 400, b'{"error":{"message":"bad json"}}')
            return "answered"
        told["model"] = model
        dialect = OF_PATH.get(scope["path"])
        if dialect is None:
            await reply(send, 200, b'{"input_tokens":5}')
        elif model.startswith("status-"):
            words = b'{"error":{"message":"no","type":"engine"}}'
            status = int(model.removeprefix("status-"))
            await reply(send, status, words, [(b"retry-after", b"7")])
        elif model in ("silent", "stalled"):
            if model == "stalled":
                await send(head(stream))
            await asyncio.create_task(gone(receive))
            return "left"
        elif stream and dialect != "embeddings":
            return await self._stream(script(dialect, model), receive, send, model)
        else:
            await reply(send, 200, json.dumps(whole(dialect)).encode())
        return "answered"

    async def _stream(self, written, receive, send, model):
        events, gap_s = written
        left = asyncio.create_task(gone(receive))
        await send(head(stream=True))
        if model == "late":
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            await asyncio.wait([left], timeout=LATE_S)
        for one in events:
            await send({"type": "http.response.body", "body": one, "more_body": True})
            if gap_s and (await asyncio.wait([left], timeout=gap_s))[0]:
                return "left"
        await send({"type": "http.response.body", "body": b""})
        left.cancel()
        return "answered"


def head(stream):
    """The head of a good answer."""
    kind = b"text/event-stream; charset=utf-8" if stream else b"application/json"
    headers = [(b"content-type", kind)]
    return {"type": "http.response.start", "status": 200, "headers": headers}


async def gone(receive):
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def whole_body(receive):
    """The body of a request."""
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def reply(send, status, body, headers=()):
    """Answer in one go."""
    known = {name for name, _ in headers}
    kind = () if b"content-type" in known else ((b"content-type", b"application/json"),)
    sent = [*kind, *headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


def behind_middleware(app, given):
    """The app, with our middleware around it."""
    from admitperf.gateway.middleware import AdmissionMiddleware
    from admitperf.gateway.setup import Limits
    from admitperf.policies import load

    policy = load(given.policy)(log=given.log, reports_outcomes=True)
    return AdmissionMiddleware(app, policy, limits=Limits(body_bytes=LIMIT))


def main():
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy")
    parser.add_argument("--log")
    given = parser.parse_args()
    app = behind_middleware(Engine(), given) if given.policy else Engine()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    sys.stdout.write(f"engine on http://127.0.0.1:{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(app, log_level="error", lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
