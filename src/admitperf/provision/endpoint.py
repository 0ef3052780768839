"""The address of an engine: whether it is healthy, what it serves, and one request."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from admitperf.core.clock import SYSTEM
from admitperf.provision.fault import ProvisionError
from admitperf.scrape.address import Address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.fetch import fetch
from admitperf.scrape.token import blanked

PROMPT = list(range(10, 42))
"""Token ids any model has: below 10 some are special."""

TOKENS = 8
_LONGEST_LINE = 2**20
_LOOK_S = 2.0
_ANSWER_S = 60.0
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one request.

    Attributes:
        fault: why it failed, in words; None = it did not.
        tokens: that came.
        first_ms: milliseconds to the first of them; None = none came.
        whole_ms: milliseconds to the end.
    """

    fault: str | None
    tokens: int = 0
    first_ms: float | None = None
    whole_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An engine's address.

    Attributes:
        url: without a path of the API and without a slash at the end.
        token: sent as a bearer token; None = none is.
    """

    url: str
    token: str | None = None

    def path(self, path: str) -> Address:
        """A path of it."""
        return Address.of(self.url + path)

    def unhealthy(self, longest_s: float = _LOOK_S) -> ScrapeError | None:
        """Why it is not healthy; None = it is.

        An engine says so on /health; a gateway may have its models only.
        """
        met = None
        for path in ("/health", "/v1/models"):
            met = self._silent(path, longest_s)
            if met is None or met.kind != "not_found":
                return met
        return met

    def _silent(self, path: str, longest_s: float) -> ScrapeError | None:
        try:
            fetch(self.path(path), token=self.token, timeout_s=longest_s)
        except ScrapeError as error:
            return error
        return None

    def model(self) -> str | None:
        """The first model it says it serves; None = it does not say."""
        try:
            got = fetch(self.path("/v1/models"), token=self.token)
            told: object = json.loads(got.body)["data"][0]["id"]
        except (ScrapeError, ValueError, LookupError, TypeError):
            return None
        return told if isinstance(told, str) else None

    def ask(self, model: str | None, longest_s: float = _ANSWER_S) -> Answered:
        """Sends one streamed request, as a benchmark does: token ids, ignore_eos."""
        begun_ns = SYSTEM.monotonic_ns()
        try:
            with self._asked(model, longest_s) as reply:
                if reply.status != HTTPStatus.OK:
                    what = reply.read(_LONGEST_LINE).decode(errors="replace")
                    said = " ".join(what.split())[:_SHOWN]
                    told = Answered(f"status {reply.status}: {said}")
                else:
                    told = _read(reply, begun_ns)
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            told = Answered(f"no answer: {why.lower()}")
        except (ValueError, TypeError, AttributeError):
            told = Answered("an answer that is no stream of a completion")
        fault = told.fault and blanked(told.fault, self.token)
        return replace(told, fault=fault, whole_ms=_since(begun_ns))

    @contextmanager
    def _asked(
        self, model: str | None, longest_s: float
    ) -> Iterator[http.client.HTTPResponse]:
        address = self.path("/v1/completions")
        secure = address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        headers = {"content-type": "application/json", "connection": "close"}
        if authorization := address.authorization(self.token):
            headers["authorization"] = authorization
        with closing(kind(address.host, address.port, timeout=longest_s)) as one:
            one.request("POST", address.resource, _body(model), headers)
            with closing(one.getresponse()) as reply:
                yield reply


def of(url: str, token: str | None) -> Endpoint:
    """The engine behind an address as people type it.

    Raises:
        ProvisionError: it is none, or holds what must not be written down.
    """
    try:
        address = Address.of(url)
    except ScrapeError as error:
        raise ProvisionError(str(error)) from None
    if address.credentials or "?" in url or "#" in url:
        what = "an engine's address is HOST:PORT or http://HOST:PORT and no more"
        raise ProvisionError(f"{address.shown}: {what}; a token goes into a variable")
    whole = (url if "://" in url else f"http://{url}").rstrip("/")
    for path in ("/metrics", "/v1"):
        whole = whole.removesuffix(path)
    return Endpoint(whole, token)


def _body(model: str | None) -> str:
    wish: dict[str, Any] = {"prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0}
    wish |= {"ignore_eos": True, "stream": True}
    wish |= {"stream_options": {"include_usage": True}}
    return json.dumps(wish if model is None else {"model": model, **wish})


def _read(reply: http.client.HTTPResponse, begun_ns: int) -> Answered:
    tokens, first_ms = 0, None
    for event in _events(reply):
        if "error" in event:
            said = json.dumps(event["error"])[:_SHOWN]
            return Answered(f"an error in the stream: {said}", tokens, first_ms)
        if any(one.get("text") for one in event.get("choices") or ()):
            first_ms = _since(begun_ns) if first_ms is None else first_ms
            tokens += 1
        if event.get("usage"):
            tokens = int(event["usage"].get("completion_tokens", tokens))
    fault = None if tokens else "a stream without a token"
    return Answered(fault, tokens, first_ms)


def _events(reply: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    while line := reply.readline(_LONGEST_LINE):
        word, _, text = line.partition(b":")
        if word == b"data" and text.strip() != b"[DONE]":
            told = json.loads(text)
            if not isinstance(told, dict):
                raise ValueError("no event of a completion")
            yield told


def _since(begun_ns: int) -> float:
    return (SYSTEM.monotonic_ns() - begun_ns) / 1e6
