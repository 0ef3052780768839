"""One page over HTTP: it comes, or one clear message says why not."""

import gzip
import shutil
import socket
import subprocess

import pytest
from tests.scrape.server import http

from admitperf.core.clock import SYSTEM
from admitperf.engines import exposition
from admitperf.scrape import fetch as module
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.fetch import fetch

PAGE = b'vllm:kv_cache_usage_perc{engine="0"} 0.5\n'
TOKEN = "s3cret-token"


def fault(url, **options):
    """The fault of a fetch that must fail."""
    with pytest.raises(ScrapeError) as caught:
        fetch(url, **options)
    assert "\n" not in str(caught.value)
    return caught.value


def authorization(server):
    """The Authorization header of each request a server has seen."""
    lines = [line for text in server.requests for line in text.split("\r\n")]
    return [line for line in lines if line.lower().startswith("authorization")]


def test_a_page_comes_with_its_type_and_how_long_it_took(serve):
    """The body is what the engine sent, and the classic text format is asked for."""
    server = serve(http(PAGE, content_type="text/plain; version=0.0.4"))
    got = fetch(server.url)
    assert got.body == PAGE
    assert got.content_type == "text/plain; version=0.0.4"
    assert 0 < got.took_s < 5
    assert not got.cut
    assert "\r\nAccept: text/plain;version=0.0.4\r\n" in server.requests[0]
    assert authorization(server) == []


def test_a_bare_host_and_port_is_enough(serve):
    """`127.0.0.1:8000` asks http there for /metrics."""
    server = serve(http(PAGE))
    assert fetch(f"127.0.0.1:{server.port}").body == PAGE
    assert server.requests[0].startswith("GET /metrics HTTP/1.1\r\n")


def test_a_token_goes_to_the_host_that_was_named(serve):
    """It travels as a bearer token."""
    server = serve(http(PAGE))
    fetch(server.url, token=TOKEN)
    assert authorization(server) == [f"Authorization: Bearer {TOKEN}"]


def test_a_redirect_on_the_same_host_is_followed_with_the_token(serve):
    """A mount that wants /metrics/ is read, and sees the token again."""

    def answer(request):
        if request.startswith(b"GET /metrics "):
            return http(status="307 Temporary Redirect", location="/metrics/")
        return http(PAGE)

    server = serve(answer)
    assert fetch(server.url, token=TOKEN).body == PAGE
    assert authorization(server) == [f"Authorization: Bearer {TOKEN}"] * 2


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_redirect_elsewhere_is_named_and_not_followed(serve, host):
    """Another port or another name never sees a request, with or without a token."""
    other = serve(http(PAGE))
    there = f"http://{host}:{other.port}/metrics"
    server = serve(http(status="302 Found", location=there))
    for token in (None, TOKEN):
        failed = fault(server.url, token=token)
        assert failed.kind == "redirect"
        assert there in str(failed)
    assert other.requests == []


def test_a_redirect_that_carries_the_token_back_does_not_show_it(serve):
    """A server that puts our token into an address cannot make us print it."""
    there = f"http://127.0.0.1:1/login/{TOKEN}?next={TOKEN}"
    server = serve(http(status="302 Found", location=there))
    failed = fault(server.url, token=TOKEN)
    assert "http://127.0.0.1:1" in str(failed)
    assert TOKEN not in str(failed)


def test_a_redirect_to_no_web_address_is_refused(serve):
    """A file or another protocol is not opened."""
    server = serve(http(status="302 Found", location="file:///etc/passwd"))
    assert fault(server.url).kind == "redirect"


def test_redirects_end(serve):
    """A loop is left after three of them."""
    server = serve(http(status="301 Moved", location="/metrics"))
    assert fault(server.url).kind == "redirect"
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        ("401 Unauthorized", "token", "ADMITPERF_TOKEN"),
        ("401 Unauthorized", "token", "--token-env NAME"),
        ("403 Forbidden", "token", "--token-file PATH"),
        ("404 Not Found", "not_found", "llama.cpp with --metrics"),
        ("404 Not Found", "not_found", "SGLang with --enable-metrics"),
        ("501 Not Implemented", "not_found", "llama.cpp with --metrics"),
        ("503 Service Unavailable", "status", "503 Service Unavailable instead"),
        ("500 <b>\x1b[31m", "status", "500 Internal Server Error instead"),
        ("299 Odd", "status", "299 instead of a page"),
        ("307 No Location", "status", "307 Temporary Redirect instead"),
    ],
)
def test_a_status_is_named_with_its_address_and_its_fix(serve, status, kind, said):
    """What the server wrote is not repeated; what to do about it is said."""
    server = serve(http(f"the body: {TOKEN}".encode(), status))
    failed = fault(server.url, token=TOKEN)
    assert failed.kind == kind
    assert str(failed).startswith(f"{server.url}: {status[:3]}")
    assert said in str(failed)
    assert TOKEN not in str(failed)


def test_no_token_and_a_wrong_token_read_differently(serve):
    """A person who passed one is not told to pass one, but that it is not accepted."""
    server = serve(http(status="401 Unauthorized"))
    assert "wants a token" in str(fault(server.url))
    assert "does not accept the token" in str(fault(server.url, token=TOKEN))


def test_silence_ends_at_the_timeout(serve):
    """A server that never answers costs the timeout and no more."""
    server = serve(lambda _: iter([server.stopped.wait(10) and b""]))
    began_ns = SYSTEM.monotonic_ns()
    failed = fault(server.url, timeout_s=0.2)
    assert failed.kind == "timeout"
    assert "0.2 s" in str(failed)
    assert SYSTEM.monotonic_ns() - began_ns < 2e9


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nx: ", http(content_length=9999)])
def test_dripping_bytes_end_at_the_timeout(serve, head):
    """A byte now and then, in the head or in the body, does not prolong the wait."""

    def answer(_):
        yield head
        for _ in range(200):
            server.stopped.wait(0.02)
            yield b"x"

    server = serve(answer)
    began_ns = SYSTEM.monotonic_ns()
    assert fault(server.url, timeout_s=0.3).kind == "timeout"
    assert SYSTEM.monotonic_ns() - began_ns < 2e9


def test_nobody_listening_is_said(serve):
    """A port without a server is refused, not unknown."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    failed = fault(f"127.0.0.1:{port}")
    assert failed.kind == "refused"
    assert f"http://127.0.0.1:{port}/metrics" in str(failed)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (socket.gaierror(-2, "Name or service not known"), "unknown_host"),
        (OSError(113, "No route to host"), "unreachable"),
        (UnicodeError("label too long"), "unknown_host"),
    ],
)
def test_a_host_that_cannot_be_reached_is_said(monkeypatch, raised, kind):
    """What the resolver and the network say becomes one line."""

    def connect(*_, **__):
        raise raised

    monkeypatch.setattr(module.socket, "create_connection", connect)
    assert fault("http://engine.example/metrics").kind == kind


@pytest.mark.parametrize(
    ("bytes_", "what"),
    [
        (b"", "connection closed before it was answered"),
        (b"\x15\x03\x01\x00\x02\x02\x50", "what answered does not speak HTTP"),
        (b"SSH-2.0-x\r\n", "what answered does not speak HTTP"),
    ],
)
def test_what_does_not_speak_http_is_said(serve, bytes_, what):
    """A port of another protocol, or an engine that dies, is no empty page."""
    failed = fault(serve(bytes_).url)
    assert (failed.kind, failed.what) == ("no_http", what)


def test_https_to_a_plain_port_is_said(serve):
    """The usual slip of typing https:// names TLS and the way out."""
    server = serve(http(PAGE))
    failed = fault(server.url.replace("http:", "https:"))
    assert failed.kind == "tls"
    assert "http://" in failed.fix


def test_a_certificate_nobody_vouches_for_is_refused(serve, tmp_path):
    """A self-signed certificate ends the exchange before a token is sent."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1"
    subprocess.run(
        [*made.split(), "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    certificate.write_bytes(certificate.read_bytes() + key.read_bytes())
    server = serve(http(PAGE), certificate=certificate)
    failed = fault(server.url, token=TOKEN)
    assert failed.kind == "tls"
    assert "SSL_CERT_FILE" in str(failed)
    assert server.requests == []


def test_a_body_without_end_is_bounded(serve):
    """Reading stops at the bound, however much follows."""
    server = serve(lambda _: [http(content_length=10**12), *[b"x 1\n" * 1000] * 100])
    failed = fault(server.url, max_bytes=4096)
    assert failed.kind == "too_large"


@pytest.mark.parametrize(
    "answer",
    [
        http(PAGE, content_length=9999),
        http(b"29\r\n" + PAGE, transfer_encoding="chunked"),
    ],
)
def test_a_body_cut_off_is_kept_and_said(serve, answer):
    """What came before the connection died is there, marked as cut."""
    got = fetch(serve(answer).url)
    assert PAGE.startswith(got.body)
    assert got.cut


def test_a_token_in_the_page_is_blanked(serve):
    """A page that echoes our header cannot bring the token into a report."""
    server = serve(http(f'seen{{by="{TOKEN}"}} 1\n'.encode()))
    assert fetch(server.url, token=TOKEN).body == b'seen{by="***"} 1\n'


ECHOES = [
    TOKEN,
    TOKEN.upper(),
    r"\u0073\u0033cret\u002Dtoken",
    r"s3cret\-token",
    "s%33cret%2Dtoken",
]


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_token_is_blanked_however_it_is_written(serve, pack, echo):
    """Capitals, escapes and gzip hide it from a search, and not from a reader."""
    server = serve(http(pack(f'seen{{by="{echo}"}} 1\n'.encode())))
    assert fetch(server.url, token=TOKEN).body == b'seen{by="***"} 1\n'


def test_a_compressed_page_without_the_token_stays_as_it_came(serve):
    """Nothing is unpacked that need not be."""
    body = gzip.compress(PAGE)
    assert fetch(serve(http(body)).url, token=TOKEN).body == body


def test_a_token_in_a_page_packed_twice_is_not_shown(serve):
    """What would be unpacked a second time is no page."""
    inner = gzip.compress(f'seen{{by="{TOKEN}"}} 1\n'.encode())
    server = serve(http(gzip.compress(inner + TOKEN.encode())))
    assert fault(server.url, token=TOKEN).kind == "binary"


def test_a_bomb_is_a_failed_fetch(serve, monkeypatch):
    """It is refused before anything looks for the token in it."""
    monkeypatch.setattr(exposition, "MAX_BODY_BYTES", 1000)
    server = serve(http(gzip.compress(b"a 1\n" * 1000)))
    assert fault(server.url, token=TOKEN).kind == "too_large"


def test_a_token_that_becomes_a_host_name_is_not_shown(serve):
    """A host name is read in small letters; so is the token in it."""
    token = "S3cret-Token"
    there = f"http://{token}.example/metrics"
    failed = fault(serve(http(status="302 Found", location=there)).url, token=token)
    assert failed.kind == "redirect"
    assert token.lower() not in str(failed).lower()
    assert "http://***.example" in str(failed)


@pytest.mark.parametrize("status", ["404 Not Found", "302 Found"])
def test_a_token_in_a_redirect_on_the_same_host_is_not_shown(serve, status):
    """An address that was followed is named in later faults, without the token."""

    def answer(request):
        if request.startswith(b"GET /metrics "):
            return http(status="302 Found", location=f"/login/{TOKEN}")
        return http(status=status, location="file:///x")

    failed = fault(serve(answer).url, token=TOKEN)
    assert "/login/***" in str(failed)
    assert TOKEN not in f"{failed} {failed.target} {failed.what}"
