"""Callers of a server: what they send, byte by byte, and when what came arrived."""

import json
import socket
from contextlib import suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
EMBEDDINGS = "/v1/embeddings"
MESSAGES = "/v1/messages"
JUDGED = (CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS, MESSAGES)
STREAMED = (CHAT, COMPLETIONS, RESPONSES, MESSAGES)
JSON = {"content-type": "application/json"}


def wish(path, model="m", *, stream=False, text="hello"):
    """What a client of this path asks for, as bytes."""
    talk = {"messages": [{"role": "user", "content": text}]}
    said = {
        CHAT: talk,
        COMPLETIONS: {"prompt": text},
        RESPONSES: {"input": text},
        EMBEDDINGS: {"input": text},
        MESSAGES: {**talk, "max_tokens": 64},
    }[path]
    streamed = {"stream": True} if stream else {}
    return json.dumps({"model": model, **said, **streamed}).encode()


class Reply:
    """An answer whose body is read as the test wants it.

    Attributes:
        status: of HTTP.
        pairs: headers as they came, names in lower case.
    """

    def __init__(self, response):
        self._response = response
        self.status = response.status
        self.pairs = [(name.lower(), value) for name, value in response.getheaders()]

    def all(self, name):
        """Every value of a header."""
        return [value for given, value in self.pairs if given == name]

    def one(self, name):
        """The value of a header that must be there exactly once."""
        values = self.all(name)
        assert len(values) == 1, (name, self.pairs)
        return values[0]

    def piece(self):
        """What one read brings; empty at the end."""
        return self._response.read1(1 << 20)

    def rest(self):
        """All that is left of the body."""
        return self._response.read()

    def json(self):
        """The body as JSON."""
        return json.loads(self.rest())

    def close(self):
        """Read no further."""
        self._response.close()


class Caller:
    """One connection, kept open; used as a context it is closed at the end."""

    def __init__(self, url, timeout_s=30):
        where = urlsplit(url)
        self._connection = HTTPConnection(where.hostname, where.port, timeout=timeout_s)
        self._reply = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    def ask(self, path, body=None, headers=None, method="POST"):
        """Send a request; its answer, of which the head is there."""
        self._connection.request(method, path, body, {**JSON, **(headers or {})})
        self._reply = Reply(self._connection.getresponse())
        return self._reply

    def send(self, path, body, headers=None):
        """Send a request and wait for nothing."""
        self._connection.request("POST", path, body, {**JSON, **(headers or {})})

    def leave(self):
        """Close the connection, whatever is on its way."""
        if self._connection.sock is not None:
            with suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        if self._reply is not None:
            self._reply.close()
        self._connection.close()


def post(url, path, body, headers=None, timeout_s=30):
    """Ask once; the answer, and its whole body."""
    with Caller(url, timeout_s) as caller:
        reply = caller.ask(path, body, headers)
        return reply, reply.rest()


def get(url, path, headers=None, timeout_s=30):
    """Look once; the answer, and its whole body."""
    with Caller(url, timeout_s) as caller:
        reply = caller.ask(path, None, headers, method="GET")
        return reply, reply.rest()


def raw(url, sent, timeout_s=10):
    """Send bytes as they are; everything that comes back until the server closes."""
    where, came = urlsplit(url), b""
    with socket.create_connection((where.hostname, where.port), timeout_s) as line:
        with suppress(OSError):
            line.sendall(sent)
        with suppress(OSError):
            while piece := line.recv(65536):
                came += piece
    return came
