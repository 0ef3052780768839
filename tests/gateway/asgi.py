"""One ASGI connection by hand: a caller that can leave, and what it was sent."""

import asyncio


class Caller:
    """Sends a body in parts, then waits; leaves when told to."""

    def __init__(self, *parts):
        self.parts = list(parts) or [b"{}"]
        self.left = asyncio.Event()
        self.sent = []
        self.fails_after = None

    async def receive(self):
        """The server's `receive`."""
        if self.parts:
            part = self.parts.pop(0)
            if part is None:
                return {"type": "http.disconnect"}
            more = bool(self.parts)
            return {"type": "http.request", "body": part, "more_body": more}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        """The server's `send`."""
        if self.fails_after is not None and len(self.sent) >= self.fails_after:
            raise ConnectionResetError
        self.sent.append(message)

    @property
    def status(self):
        """The status that was sent; None = none was."""
        heads = [m["status"] for m in self.sent if m["type"] == "http.response.start"]
        assert len(heads) <= 1
        return heads[0] if heads else None

    @property
    def headers(self):
        """Headers that were sent, as text; a name that stands twice fails."""
        (head,) = [m for m in self.sent if m["type"] == "http.response.start"]
        named = {name.decode(): value.decode() for name, value in head["headers"]}
        assert len(named) == len(list(head["headers"]))
        return named

    @property
    def body(self):
        """Everything that was sent of the body."""
        return b"".join(
            m.get("body", b"") for m in self.sent if m["type"] == "http.response.body"
        )

    @property
    def writes(self):
        """The parts of the body that are not empty, as they were written."""
        bodies = [m.get("body", b"") for m in self.sent if "body" in m]
        return [part for part in bodies if part]

    @property
    def ended(self):
        """Whether the answer is complete."""
        bodies = [m for m in self.sent if m["type"] == "http.response.body"]
        return bool(bodies) and not bodies[-1].get("more_body", False)


def scope(path="/v1/chat/completions", headers=(), client=("127.0.0.1", 5000)):
    """A POST's scope."""
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "client": client,
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }


def event(text="hi", finish=None):
    """A chat event with some text."""
    ended = f'"{finish}"' if finish else "null"
    return (
        f'data: {{"id":"c","choices":[{{"index":0,"delta":{{"content":"{text}"}},'
        f'"finish_reason":{ended}}}]}}\n\n'
    ).encode()


DONE = b"data: [DONE]\n\n"


def streams(*parts, status=200, pause=None):
    """An app that streams these parts; `pause` is awaited between them."""

    async def app(_scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        head = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if pause is not None:
                await pause()
        await send({"type": "http.response.body", "body": b""})

    return app


def answers(body, status=200, headers=()):
    """An app that answers at once with JSON."""

    async def app(_scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        head = [(b"content-type", b"application/json"), *headers]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": body})

    return app
