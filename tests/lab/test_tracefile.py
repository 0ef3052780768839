"""The file a trace is written to."""

import errno
import os

import pytest

from admitperf.lab.fault import LabError
from admitperf.lab.tracefile import BATCH_BYTES, TraceFile


def full_after(monkeypatch, count):
    """A disk that takes so many bytes more, and then no more."""
    left, write = [count], os.write

    def _write(fd, data):
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sent = write(fd, bytes(data)[: left[0]])
        left[0] -= sent
        return sent

    monkeypatch.setattr("admitperf.lab.tracefile.os.write", _write)


def test_lines_are_written_whole_and_folders_made(tmp_path):
    """What was put is there after a flush."""
    path = tmp_path / "a" / "b" / "trace.jsonl"
    file = TraceFile(str(path))
    file.put("one")
    file.put("two")
    assert path.read_text() == ""
    assert file.flush()
    assert path.read_text() == "one\ntwo\n"
    file.close()


def test_a_large_batch_is_written_by_itself(tmp_path):
    """What is held in memory stays small."""
    file = TraceFile(str(tmp_path / "t"))
    file.put("x" * (BATCH_BYTES + 1))
    assert file.bytes > BATCH_BYTES
    file.close()


def test_a_trace_that_is_there_is_not_written_over(tmp_path):
    """One line says how to go on; an empty file is as good as none."""
    path = tmp_path / "t"
    path.write_text("yesterday\n")
    with pytest.raises(LabError) as caught:
        TraceFile(str(path))
    fix = "name another file with -o, or add --force"
    assert str(caught.value) == f"{path}: is there and not empty; {fix}"
    assert path.read_text() == "yesterday\n"
    path.write_text("")
    TraceFile(str(path)).close()
    assert path.exists()


def test_a_trace_is_replaced_with_the_first_line_only(tmp_path):
    """Until there is something new the old one stays."""
    path = tmp_path / "t"
    path.write_text("yesterday\n")
    file = TraceFile(str(path), replace=True)
    file.close()
    assert path.read_text() == "yesterday\n"
    file = TraceFile(str(path), replace=True)
    file.put("today")
    file.flush()
    file.put("tonight")
    file.close()
    assert path.read_text() == "today\ntonight\n"


def test_a_file_we_made_and_left_empty_goes_away(tmp_path):
    """A watch that never began leaves nothing behind."""
    path = tmp_path / "t"
    TraceFile(str(path)).close()
    assert not path.exists()


@pytest.mark.parametrize("place", ["", "folder", "folder/file/t", "/dev/full", "a\0b"])
def test_what_cannot_be_a_trace_is_one_fault(tmp_path, monkeypatch, place):
    """No path, a folder, a file where a folder should be, a device, a NUL."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    with pytest.raises(LabError) as caught:
        TraceFile(place)
    assert "\n" not in str(caught.value)


def test_a_full_disk_keeps_whole_lines_and_ends_the_writing(tmp_path, monkeypatch):
    """The half line is taken back; the fault is one line; later lines are dropped."""
    path = tmp_path / "t"
    file = TraceFile(str(path))
    file.put("kept")
    file.flush()
    full_after(monkeypatch, 12)
    file.put("whole")
    file.put("too long to fit")
    assert not file.flush()
    assert path.read_text() == "kept\nwhole\n"
    assert file.fault == f"{path}: no space left on device"
    file.put("later")
    assert not file.flush()
    file.close()
    assert path.read_text() == "kept\nwhole\n"
