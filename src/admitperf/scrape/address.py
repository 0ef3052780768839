"""Where a metrics page is, and how that may be shown."""

import base64
import re
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from admitperf.scrape.fault import ScrapeError

_PORTS = {"http": 80, "https": 443}
_HOST_AND_PORT = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}(?:[/?].*)?")
_ODD_PORT = re.compile(r":(?![0-9]*\]?$)[^:\]]*$")
_KEPT = "/%:=&?~+!$,;'@()*[]"
_DEFAULT_PATH = "/metrics"


@dataclass(frozen=True, slots=True)
class Address:
    """One endpoint.

    Attributes:
        scheme: "http" or "https".
        host: name or number, lower case.
        port: the scheme's own where none was given.
        resource: path and query, as they go on the wire.
        shown: the address without credentials: user information is left out, and what
            a query holds is replaced, since it may be a token.
        credentials: user information for basic authentication; empty = none.
    """

    scheme: str
    host: str
    port: int
    resource: str = field(repr=False)
    shown: str
    credentials: str = field(default="", repr=False)

    @classmethod
    def of(cls, text: str) -> Self:
        """Reads an address; a bare `host:port` is http, an empty path is /metrics.

        Raises:
            ScrapeError: it is no address of a web server.
        """
        whole = text if "://" in text else f"http://{text}"
        try:
            parts = urlsplit(whole)
            port = parts.port
        except ValueError:
            raise _no_address(whole, "its host or port cannot be read") from None
        if parts.scheme not in _PORTS:
            raise _no_address(whole, "only http:// and https:// are read")
        if not parts.hostname:
            raise _no_address(whole, "it names no host")
        return cls._made(parts, port or _PORTS[parts.scheme])

    @classmethod
    def _made(cls, parts: SplitResult, port: int) -> Self:
        host = parts.hostname or ""
        path = quote(
            parts.path if parts.path not in ("", "/") else _DEFAULT_PATH, _KEPT
        )
        place = f"[{host}]" if ":" in host else host
        place += "" if port == _PORTS[parts.scheme] else f":{port}"
        return cls(
            scheme=parts.scheme,
            host=host,
            port=port,
            resource=path + (f"?{quote(parts.query, _KEPT)}" if parts.query else ""),
            shown=f"{parts.scheme}://{place}{path}" + ("?***" if parts.query else ""),
            credentials=parts.netloc.rpartition("@")[0],
        )

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: what a token must not leave."""
        return self.scheme, self.host, self.port

    def joined(self, location: str) -> Self:
        """Where a redirect from here leads, with our credentials only if that is here.

        Raises:
            ScrapeError: that is no address of a web server.
        """
        here = f"{self.scheme}://{self._place()}{self.resource}"
        try:
            target = type(self).of(urljoin(here, location))
        except ValueError:
            raise _no_address(location, "its host or port cannot be read") from None
        if target.origin != self.origin or target.credentials:
            return target
        return replace(target, credentials=self.credentials)

    def authorization(self, token: str | None) -> str | None:
        """The header that shows who asks; None = nobody in particular."""
        if token is not None:
            return f"Bearer {token}"
        if not self.credentials:
            return None
        plain = unquote(self.credentials).encode()
        return f"Basic {base64.b64encode(plain).decode()}"

    def _place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def is_address(text: str) -> bool:
    """Whether a word reads as an address rather than as a path."""
    return "://" in text or _HOST_AND_PORT.fullmatch(text) is not None


def _no_address(text: str, why: str) -> ScrapeError:
    fix = "write http://HOST:PORT/metrics"
    return ScrapeError("bad_address", _named(text), f"not usable: {why}", fix)


def _named(text: str) -> str:
    """What was typed, without what may be a password or a token in it.

    Since it is no address, nobody knows where its parts end: all before the last @, all
    behind the first ? or #, and a port that is no number are left out.
    """
    scheme, mark, rest = text.partition("://") if "://" in text else ("", "", text)
    shown, *hidden = re.split("[?#]", rest.rpartition("@")[2], maxsplit=1)
    place, slash, path = shown.partition("/")
    place = _ODD_PORT.sub(":***", place)
    return f"{scheme}{mark}{place}{slash}{path}" + ("?***" if hidden else "")
