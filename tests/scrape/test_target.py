"""Where pages come from, and what is refused as no page."""

import gzip
import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scrape.server import http

from admitperf.engines import exposition
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.fetch import MAX_BYTES
from admitperf.scrape.target import Endpoint, File, read_page, target_of

PAGE = b'vllm:kv_cache_usage_perc{engine="0"} 0.5\n'


def fault(target):
    """Why a target cannot be read."""
    with pytest.raises(ScrapeError) as caught:
        target.read()
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_word_is_a_file_when_there_is_one(tmp_path, monkeypatch):
    """A file named like an address is read as a file."""
    monkeypatch.chdir(tmp_path)
    assert isinstance(target_of("engine:8000"), Endpoint)
    (tmp_path / "engine:8000").write_bytes(PAGE)
    assert isinstance(target_of("engine:8000"), File)
    assert isinstance(target_of("metrics.prom"), File)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_read_plain_or_packed(tmp_path, pack):
    """A saved page needs no unpacking; how old it is, it does not say."""
    path = tmp_path / "page"
    path.write_bytes(pack(PAGE))
    sample = File(str(path)).read()
    assert list(sample.page.values()) == [0.5]
    assert not sample.cut
    assert (sample.asked_ns, sample.took_s) == (None, None)


def test_standard_input_is_read(monkeypatch):
    """`-` takes a page from a pipe."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PAGE)))
    assert list(File("-").read().page.values()) == [0.5]


def test_a_closed_standard_input_is_said(monkeypatch):
    """`<&-` is one line, no traceback."""
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input: is closed" in str(fault(File("-")))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nosuch", "no such file"),
        (".", "is a directory"),
        ("", "is a directory"),
        ("a\0b", "not a path"),
        ("/dev/zero", "longer than"),
        ("/dev/null", "empty"),
    ],
)
def test_what_is_no_readable_file_is_said(path, said, tmp_path, monkeypatch):
    """Missing, a folder, endless, empty: each in words."""
    monkeypatch.chdir(tmp_path)
    assert said in str(fault(File(path)))


def test_a_page_beyond_the_bound_is_refused(tmp_path):
    """A file of hours of pages is not held in memory."""
    path = tmp_path / "page"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert fault(File(str(path))).kind == "too_large"


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b"", "", "empty"),
        (b" \n", "text/plain", "empty"),
        (b"<!DOCTYPE html>\n<p>vllm:x 1\n", "", "html"),
        (b"<html>x 1\n", "text/plain", "html"),
        (PAGE, "text/html; charset=utf-8", "html"),
        (b"\x7fELF\x00\x00", "", "binary"),
        (PAGE.decode().encode("utf-16"), "", "binary"),
        (b"[]", "application/json", "drained"),
        (b" [ ]\n", "", "drained"),
        (b"# HELP x y\n# TYPE x gauge\n", "", "no_samples"),
        (b'{"error": "no"}', "application/json", "no_samples"),
        (b"what is this\nno page\n", "", "no_samples"),
        (b"vllm:x 1", "", "no_samples"),
        (gzip.compress(b""), "", "no_samples"),
        (gzip.compress(PAGE)[:12], "", "no_samples"),
    ],
)
def test_what_holds_no_metrics_is_refused(body, content_type, kind):
    """Success with no samples does not exist: it would read as an idle engine."""
    with pytest.raises(ScrapeError) as caught:
        read_page("there", body, content_type)
    assert caught.value.kind == kind
    assert str(caught.value).startswith("there: ")


@pytest.mark.parametrize(("count", "said"), [(1, "1 line"), (2, "2 lines")])
def test_how_many_lines_cannot_be_read(count, said):
    """One is one line, two are lines."""
    with pytest.raises(ScrapeError, match=f"no sample in it, {said} that cannot"):
        read_page("there", b"what is this\n" * count)


@given(st.binary(max_size=300), st.sampled_from(["", "text/plain", "application/json"]))
def test_any_bytes_are_a_page_or_one_clear_fault(body, content_type):
    """Nothing a server can send raises anything else."""
    try:
        page, _ = read_page("there", body, content_type)
    except ScrapeError:
        return
    assert page


def test_a_json_list_drains(serve):
    """TensorRT-LLM hands its numbers out once; a Prometheus page stays."""
    lists = serve(http(b'[{"numQueuedRequests": 3}]', content_type="application/json"))
    assert target_of(lists.url).read().drains
    assert not target_of(serve(http(PAGE)).url).read().drains


@pytest.mark.parametrize(
    ("end", "content_type", "cut"),
    [
        (b"", "text/plain", False),
        (b"vllm:num_requests_waiting 4", "text/plain", True),
        (b"vllm:num_requests_wai", "text/plain", True),
        (b"# EOF\n", "application/openmetrics-text; version=1.0.0", False),
        (b"", "application/openmetrics-text; version=1.0.0", True),
    ],
)
def test_a_page_that_ends_too_early_is_marked(serve, end, content_type, cut):
    """A last line without its end, or OpenMetrics without # EOF, may lack engines."""
    server = serve(http(PAGE + end, content_type=content_type))
    assert target_of(server.url).read().cut is cut


def test_a_page_that_unpacks_without_bound_is_a_failed_scrape(monkeypatch):
    """A bomb is named as what it is, and nothing of it is shown."""
    monkeypatch.setattr(exposition, "MAX_BODY_BYTES", 1000)
    with pytest.raises(ScrapeError) as caught:
        read_page("here", gzip.compress(b"a 1\n" * 1000))
    assert caught.value.kind == "too_large"
