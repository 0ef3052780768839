"""A gateway loop in front of one llama.cpp server: the standard library and AdmitPerf.

    python examples/gateway_loop.py --engine http://127.0.0.1:18200 --port 18300

Every POST is decided on the engine's last metrics, then refused, or forwarded and its
end reported. A worked example, not a proxy to deploy: one thread a request, no TLS,
and a caller that leaves while its request waits is noticed at the first token.
"""

import argparse
import json
import signal
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from admitperf import Policy
from admitperf.core.clock import SYSTEM
from admitperf.core.errors import AdmitPerfError
from admitperf.core.reading import Reading
from admitperf.engines.exposition import parse
from admitperf.policies import load

JSON = {"content-type": "application/json"}
SCRAPE_EVERY_S = 0.25
LONGEST_BODY_BYTES = 16 * 2**20  # far above any prompt; room for it is made at once


def scrape(engine: str) -> Reading:
    """Fetch the engine's metrics once.

    Raises:
        OSError, HTTPException: it did not answer, or not with a page.
    """
    asked_ns = SYSTEM.monotonic_ns()
    with closing(HTTPConnection(engine, timeout=1.0)) as connection:
        connection.request("GET", "/metrics")
        reply = connection.getresponse()
        if reply.status != HTTPStatus.OK:  # an error page is no idle engine
            raise HTTPException(f"/metrics answers {reply.status}")
        page = parse(reply.read())
    return Reading(page, taken_ns=asked_ns, interval_s=SCRAPE_EVERY_S)


class Answer:
    """What is seen of one answer while it passes: what `policy.outcome` is told."""

    def __init__(self) -> None:
        self.began_ns = SYSTEM.monotonic_ns()
        self.tokens_ns: list[int] = []
        self.end: dict[str, Any] = {"ok": False, "error": "unfinished"}

    def note(self, line: bytes) -> None:
        """Take one line: an event of a stream, or the whole answer."""
        data = line.removeprefix(b"data:").strip()
        event = {} if data in (b"", b"[DONE]") else json.loads(data)
        if "error" in event:  # a stream can fail after it began with status 200
            self.end["error"] = str(event["error"])
        elif event and (reason := event["choices"][0]["finish_reason"]):
            tokens = event["timings"]["predicted_n"]
            self.end = {"ok": True, "finish_reason": reason, "output_tokens": tokens}
        elif event:
            self.tokens_ns.append(SYSTEM.monotonic_ns())

    def facts(self) -> dict[str, Any]:
        """The end, with the times in milliseconds; a time not seen is left out."""
        facts = {"e2e_ms": (SYSTEM.monotonic_ns() - self.began_ns) / 1e6, **self.end}
        if self.tokens_ns:
            facts["ttft_ms"] = (self.tokens_ns[0] - self.began_ns) / 1e6
        if gaps_ns := [after - before for before, after in pairwise(self.tokens_ns)]:
            facts["max_gap_ms"] = max(gaps_ns) / 1e6
        return facts


class Gateway(BaseHTTPRequestHandler):
    """One request: decide, then refuse or forward."""

    engine: str
    policy: Policy
    reading: Reading
    timeout = 30.0  # seconds in which a caller must have sent its request

    def do_POST(self) -> None:
        """Read the request, decide, act."""
        try:
            length = int(self.headers["content-length"])
            if length > LONGEST_BODY_BYTES:
                return self.answer(413, JSON, {"error": {"message": "too long"}})
            body = self.rfile.read(max(length, 0))  # what is negative reads for ever
            wish = dict(json.loads(body))
        except (OSError, RecursionError, TypeError, ValueError):
            return self.answer(400, JSON, {"error": {"message": "send a JSON object"}})
        prompt = wish.get("prompt")  # token ids can be counted here, text cannot
        decision = self.policy(
            self.reading,
            request_id=self.headers["x-request-id"],
            session=self.headers["x-session-id"],
            input_tokens=len(prompt) if isinstance(prompt, list) else None,
            max_output_tokens=wish.get("max_tokens"),
            stream=bool(wish.get("stream")),
        )
        if not decision.admitted:
            headers = JSON | decision.headers()
            return self.answer(decision.status, headers, decision.body())
        return self.forward(body, decision.request_id)

    def forward(self, body: bytes, request_id: str) -> None:
        """Relay the engine's answer line by line and report its end, whatever it is."""
        seen, reply = Answer(), None
        engine = HTTPConnection(self.engine, timeout=60.0)
        try:
            engine.request("POST", self.path, body, JSON)
            reply = engine.getresponse()  # comes when a slot is free
            self.answer(reply.status, {"content-type": reply.headers["content-type"]})
            for line in reply:
                self.wfile.write(line)
                waiting = not seen.tokens_ns
                seen.note(line)
                if waiting and seen.tokens_ns:
                    self.policy.first_token(request_id)
        except (OSError, HTTPException) as error:  # the caller or the engine went away
            seen.end = {"ok": False, "error": type(error).__name__}
            if reply is None:
                self.answer(502, JSON, {"error": {"message": "engine unreachable"}})
        finally:
            engine.close()  # frees the slot of a caller that left
            self.policy.outcome(request_id, **seen.facts())

    def answer(
        self, status: int, headers: Mapping[str, str], body: object = None
    ) -> None:
        """Send the head of an answer, and its body when it is our own."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        with suppress(OSError):  # the caller left; relaying will find out
            self.end_headers()
            self.wfile.write(json.dumps(body).encode() if body else b"")

    def log_message(self, *_: object) -> None:
        """Say nothing: the decision log says more."""


def keep_scraping() -> None:
    """Renew the reading; when a scrape fails the old one stays and is seen to age."""
    pause = threading.Event()
    while not pause.wait(SCRAPE_EVERY_S):
        with suppress(OSError, HTTPException):
            Gateway.reading = scrape(Gateway.engine)


def main() -> None:
    """Check that the engine supplies what the policy reads, then serve.

    When it does not, say so in one line and exit with 2: what is decided blind from
    the first request on is no gateway.
    """
    parser = argparse.ArgumentParser(description="A worked example of a host.")
    parser.add_argument("--engine", default="http://127.0.0.1:18200")
    parser.add_argument("--port", type=int, default=18300, help="0: any free one")
    parser.add_argument("--log", default="decisions.jsonl")
    parser.add_argument("--max-waiting", type=int, default=4)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    ThreadingHTTPServer.request_queue_size = 128  # a burst should reach the policy
    Gateway.engine = urlsplit(given.engine).netloc or given.engine
    bound, log = given.max_waiting, given.log
    try:
        Gateway.policy = load("queue_depth")(max_waiting=bound, log=log)
        Gateway.reading = scrape(Gateway.engine)
        Gateway.policy.check(Gateway.reading)
    except (AdmitPerfError, OSError, HTTPException) as error:
        parser.exit(2, f"gateway_loop: engine {given.engine}: {error}\n")
    threading.Thread(target=keep_scraping, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Gateway)
    print(f"http://127.0.0.1:{server.server_port} -> {given.engine}", flush=True)
    with Gateway.policy, server, suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
