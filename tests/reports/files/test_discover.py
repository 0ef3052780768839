"""Finding the files of logs."""

import gzip
import io
import json
import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from admitperf.reports.files import discover as module
from admitperf.reports.files.discover import discover

LOG = b'{"k":"control","run":"a","t_us":1,"event":"blind"}\n'


@pytest.fixture
def place(tmp_path):
    """Write files by relative name and get the folder as text."""

    def _place(*names, content=LOG):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return str(tmp_path)

    return _place


@pytest.fixture
def piped(monkeypatch):
    """Put bytes on standard input."""

    def _piped(content):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdin", stdin)

    return _piped


def names(found, folder):
    """The files found, relative to a folder."""
    return [os.path.relpath(log.path, folder) for log in found.logs]


def test_a_folder_stands_for_the_logs_in_it_and_below(place):
    """Plain, rotated and packed ones in order of name; nothing else, nothing hidden."""
    folder = place(
        "b.jsonl",
        "b.jsonl.1",
        "b.jsonl.2.gz",
        "b.jsonl.zst",
        "a/deep/r1.jsonl",
        "packed.gz",
        "packed.zst",
        "summary.json",
        "report.txt",
        "metrics.csv.gz",
        "b.jsonl.bak",
        ".hidden.jsonl",
        ".git/x.jsonl",
    )
    with discover([folder]) as found:
        assert names(found, folder) == [
            "b.jsonl",
            "b.jsonl.1",
            "b.jsonl.2.gz",
            "b.jsonl.zst",
            "packed.gz",
            "packed.zst",
            "a/deep/r1.jsonl",
        ]
    assert (found.unread, found.notices) == ([], [])


def test_a_folder_without_logs_says_so(place):
    """And what it was looked through for."""
    folder = place("summary.json")
    with discover([folder]) as found:
        assert not found.logs
    assert found.unread == [
        f"{folder}: no logs in this folder (*.jsonl, *.jsonl.N, *.gz, *.zst)"
    ]


def test_files_named_one_by_one_may_have_any_name(place):
    """Only a folder is looked through by name."""
    folder = place("decisions.txt")
    with discover([f"{folder}/decisions.txt"]) as found:
        assert names(found, folder) == ["decisions.txt"]


def test_how_a_file_is_packed_is_told_by_its_bytes(place):
    """Never by its name."""
    folder = place("a.gz", "b.zst", "empty.gz", content=b"")
    place("a.gz")
    place("plain.jsonl", content=gzip.compress(LOG))
    place("b.jsonl", content=b"\x28\xb5\x2f\xfd and so on")
    with discover([folder]) as found:
        packed = {Path(log.path).name: log.compression for log in found.logs}
    assert packed == {
        "a.gz": None,
        "b.zst": None,
        "empty.gz": None,
        "plain.jsonl": "gzip",
        "b.jsonl": "zstd",
    }


def test_the_manifest_of_a_run_folder_stands_with_each_of_its_logs(place):
    """With the logs beside it, and with no others."""
    folder = place(
        "r1/decisions.jsonl", "r1/outcomes.jsonl", "r1/summary.json", "x.jsonl"
    )
    place("r1/manifest.json", content=b'{"model": "m", "seed": 3}')
    with discover([folder]) as found:
        said = {Path(log.path).name: log.manifest for log in found.logs}
    facts = {"model": "m", "seed": 3}
    assert said == {"x.jsonl": None, "decisions.jsonl": facts, "outcomes.jsonl": facts}
    with discover([f"{folder}/r1/outcomes.jsonl"]) as found:
        assert found.logs[0].manifest == facts


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'{"a": 1e999}', b"\xff", b"[" * 9999, b" " * 2**21]
)
def test_a_manifest_that_cannot_be_used_is_left_out(place, content):
    """The log is read all the same."""
    folder = place("r1.jsonl")
    place("manifest.json", content=content)
    with discover([folder]) as found:
        assert found.logs[0].manifest is None
    (notice,) = found.notices
    assert notice.startswith(f"{folder}/manifest.json: left out: ")


def test_the_same_file_is_read_once(place, tmp_path):
    """By another spelling, a link, a hard link, or in a folder that is named too."""
    folder = place("a.jsonl")
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    (tmp_path / "hard.jsonl").hardlink_to(tmp_path / "a.jsonl")
    first = f"{folder}/a.jsonl"
    with discover([first, f"{folder}/./a.jsonl", folder]) as found:
        assert [log.path for log in found.logs] == [first]
    assert found.notices == [
        f"{folder}/./a.jsonl is {first}: read once",
        f"{first} is {first}: read once",
        f"{folder}/hard.jsonl is {first}: read once",
        f"{folder}/link.jsonl is {first}: read once",
    ]


def test_what_cannot_be_read_is_one_line_each(place, tmp_path, monkeypatch):
    """Missing, no path at all, a device, a socket, a broken link; the rest is found."""
    folder = place("a.jsonl")
    (tmp_path / "broken.jsonl").symlink_to("nowhere")
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    listener.bind("s.jsonl")
    listener.close()
    paths = ["/nowhere/a.jsonl", "", "nul\0byte", "/dev/zero", "/dev/null", folder]
    with discover(paths) as found:
        assert names(found, folder) == ["a.jsonl"]
    assert found.unread == [
        "/nowhere/a.jsonl: no such file or directory",
        ": no such file or directory",
        "nul\0byte: embedded null byte",
        "/dev/zero: a device or socket, not a file",
        "/dev/null: a device or socket, not a file",
        f"{folder}/broken.jsonl: no such file or directory",
        f"{folder}/s.jsonl: a device or socket, not a file",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(place, tmp_path):
    """A file and a folder below."""
    folder = place("a.jsonl", "below/b.jsonl")
    (tmp_path / "a.jsonl").chmod(0)
    (tmp_path / "below").chmod(0)
    with discover([folder]) as found:
        assert not found.logs
    (tmp_path / "below").chmod(0o700)
    assert sorted(found.unread) == [
        f"{folder}/a.jsonl: permission denied",
        f"{folder}/below: permission denied",
    ]


def test_standard_input_is_kept_in_a_private_file(piped):
    """Also when it is packed, and asked for twice; it is gone afterwards."""
    piped(gzip.compress(LOG))
    with discover(["-", "-"]) as found:
        (log,) = found.logs
        assert (log.path, log.compression, log.manifest) == ("-", "gzip", None)
        assert gzip.decompress(log.real.read_bytes()) == LOG
        assert log.real.parent == found.folder
        assert found.folder.stat().st_mode & 0o077 == 0
    assert found.notices == ["- is -: read once"]
    assert not log.real.parent.exists()


def test_empty_standard_input_is_an_empty_log(piped):
    """Whoever reads it says that it holds no records."""
    piped(b"")
    with discover(["-"]) as found:
        assert found.logs[0].real.read_bytes() == b""


@pytest.mark.parametrize("closed", [None, io.StringIO()])
def test_closed_standard_input_is_one_clear_line(monkeypatch, closed):
    """As with `<&-`."""
    if closed:
        closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    with discover(["-"]) as found:
        assert not found.logs
    assert found.unread == ["standard input is closed; name a file instead of '-'"]


def test_a_pipe_is_read_like_a_file(tmp_path):
    """As with `report <(zcat a.gz)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(LOG,))
    writer.start()
    with discover([str(pipe)]) as found:
        assert found.logs[0].real.read_bytes() == LOG
    writer.join()


def test_a_name_with_pattern_marks_is_no_pattern(place):
    """DuckDB would look for other files."""
    folder = place("run[1]*.jsonl", "run1.jsonl", content=LOG)
    path = f"{folder}/run[1]*.jsonl"
    with discover([path]) as found:
        (log,) = found.logs
        assert log.path == path
        assert not set("*?[]{}") & set(str(log.real))
        assert log.real.read_bytes() == LOG
        assert log.real.samefile(path)
    assert Path(path).read_bytes() == LOG


def test_nothing_temporary_is_made_without_need(place, monkeypatch):
    """Files that are there are read where they are."""
    monkeypatch.setattr(module.tempfile, "TemporaryDirectory", None)
    with discover([place("a.jsonl")]) as found:
        assert found.logs


def test_an_interrupt_leaves_nothing_behind(piped, monkeypatch, tmp_path):
    """A search that is broken off removes what it had copied."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(module.tempfile, "tempdir", None)
    piped(LOG)

    def interrupted(_file):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "compression", interrupted)
    with pytest.raises(KeyboardInterrupt):
        discover(["-"])
    assert list(tmp_path.iterdir()) == []


def test_facts_of_a_manifest_are_what_json_says(place):
    """No value is turned into another."""
    folder = place("a.jsonl")
    facts = {"load": 1.5, "simulated": True, "slo_from": None, "plan": "0a"}
    place("manifest.json", content=json.dumps(facts).encode())
    with discover([folder]) as found:
        assert found.logs[0].manifest == facts
