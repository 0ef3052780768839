"""Servers that answer exactly the bytes a test wants."""

import socket
import ssl
import threading
from contextlib import contextmanager


class Server:
    """Listens on a loopback port; answers each request with what `answer` makes of it.

    An answer is bytes, or pieces of bytes that are sent as they are made.
    """

    def __init__(self, answer, certificate=None, port=0):
        self.requests = []
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", port))
        self._context = certificate and ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self._context:
            self._context.load_cert_chain(certificate)
        self.port = self._socket.getsockname()[1]
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}/metrics"
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        """Answer one connection after the other until the socket is closed."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            try:
                if self._context:
                    connection = self._context.wrap_socket(connection, server_side=True)
                self._talk(connection)
            except OSError:
                pass
            finally:
                connection.close()

    def _talk(self, connection):
        """Read one request, keep it, and send its answer."""
        request = b""
        while b"\r\n\r\n" not in request:
            piece = connection.recv(65536)
            request += piece
            if not request.startswith(b"GET"):
                connection.sendall(http(status="400 Bad Request") if piece else b"")
                return
        self.requests.append(request.decode())
        answer = self._answer(request)
        for piece in [answer] if isinstance(answer, bytes) else answer:
            connection.sendall(piece)

    def close(self):
        """Stop listening; a second time there is nothing to do."""
        if self.stopped.is_set():
            return
        self.stopped.set()
        # Closing alone does not wake a thread that waits in accept().
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(timeout=5)


def http(body=b"", status="200 OK", **headers):
    """An answer as it goes over the wire."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {"content-type": "text/plain", "content-length": len(body), **given}
    lines = [f"{name}: {value}\r\n" for name, value in sent.items()]
    return f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode() + body


@contextmanager
def servers():
    """A function that starts servers; they are gone afterwards."""
    started = []

    def start(answer, **options):
        given = answer if callable(answer) else lambda _: answer
        started.append(Server(given, **options))
        return started[-1]

    try:
        yield start
    finally:
        for server in started:
            server.close()
