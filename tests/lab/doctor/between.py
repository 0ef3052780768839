"""What stands in between and spoils things: a proxy, and servers made of a dict."""

import gzip
import http.client
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class Spoil:
    """What a proxy does to what passes; by default nothing.

    Attributes:
        lost_in, lost_out: headers it strips, on the way in and out.
        buffered: it keeps an answer back until it is whole.
        packed: it packs answers.
        page: what it makes of a metrics page.
        wait_s: how long it takes over a metrics page.
        date: what it says as `date`.
        seen: requests that came, as (method, path).
    """

    lost_in: tuple = ()
    lost_out: tuple = ()
    buffered: bool = False
    packed: bool = False
    page: object = None
    wait_s: float = 0.0
    date: str = ""
    seen: list = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.0"
    timeout = 20

    def log_message(self, *_):
        """Nothing."""

    def do_GET(self):
        """Pass it on."""
        self.server.serve(self)

    def do_POST(self):
        """Pass it on."""
        self.server.serve(self)

    def begin(self, status, headers):
        """The head of an answer."""
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()


class Server(ThreadingHTTPServer):
    """A server on a loopback port."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


class Proxy(Server):
    """Passes on to one server, spoilt."""

    def __init__(self, target, spoil):
        super().__init__()
        self.target, self.spoil = urlsplit(target).netloc, spoil

    def serve(self, handler):
        """One exchange."""
        spoil = self.spoil
        spoil.seen.append((handler.command, handler.path))
        given = {
            name: value
            for name, value in handler.headers.items()
            if name.lower() not in spoil.lost_in
        }
        length = int(handler.headers.get("content-length") or 0)
        body = handler.rfile.read(length) or None
        connection = http.client.HTTPConnection(self.target, timeout=20)
        try:
            connection.request(handler.command, handler.path, body, given)
            self.answer(handler, connection.getresponse())
        finally:
            connection.close()

    def answer(self, handler, answer):
        """What comes back."""
        spoil, is_page = self.spoil, handler.path == "/metrics"
        gone = {"transfer-encoding", "content-length", "connection", *spoil.lost_out}
        headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in gone]
        if spoil.date:
            headers = [(n, v) for n, v in headers if n.lower() != "date"]
            headers.append(("date", spoil.date))
        if spoil.packed:
            headers.append(("content-encoding", "gzip"))
        if is_page and spoil.wait_s:
            threading.Event().wait(spoil.wait_s)
        handler.begin(answer.status, headers)
        if spoil.buffered or spoil.packed or (is_page and spoil.page):
            whole = answer.read()
            if is_page and spoil.page:
                whole = spoil.page(whole.decode()).encode()
            handler.wfile.write(gzip.compress(whole) if spoil.packed else whole)
            return
        while piece := answer.read1(65536):
            handler.wfile.write(piece)
            handler.wfile.flush()


class Pages(Server):
    """Serves pages: path to (status, content type, text), or a function of nothing."""

    def __init__(self, pages):
        super().__init__()
        self.pages = pages

    def serve(self, handler):
        """One page."""
        length = int(handler.headers.get("content-length") or 0)
        handler.rfile.read(length)
        page = self.pages.get(handler.path, (404, "text/plain", "not found"))
        status, kind, text = page() if callable(page) else page
        handler.begin(status, [("content-type", kind)])
        handler.wfile.write(text.encode())


@contextmanager
def serving(server):
    """Serves in a thread; afterwards it is gone."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
