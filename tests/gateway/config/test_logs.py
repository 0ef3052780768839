"""Whether the logs that a file names can be written."""

import os

import pytest

from admitperf.gateway.config.logs import faults, unwritable
from admitperf.gateway.setup import PoolSetup


def test_a_log_in_folders_that_are_not_there_can_be_written(tmp_path):
    """They are made with the file, and not before."""
    assert unwritable(str(tmp_path / "a" / "b" / "d.jsonl")) is None
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_there_goes_on(tmp_path):
    """Also one that is no file, such as a pipe or /dev/null."""
    (tmp_path / "d.jsonl").touch()
    assert unwritable(str(tmp_path / "d.jsonl")) is None
    assert unwritable(os.devnull) is None


def test_a_folder_is_no_log(tmp_path):
    """It cannot be appended to."""
    assert unwritable(str(tmp_path)) == "is a directory"


def test_a_file_is_no_folder(tmp_path):
    """However deep below it the log would be."""
    (tmp_path / "file").touch()
    why = f"cannot be made: {tmp_path / 'file'} is no directory"
    assert unwritable(str(tmp_path / "file" / "x" / "d.jsonl")) == why


@pytest.mark.parametrize("place", ["x" * 300, "a\0b"])
def test_what_no_system_takes_is_a_fault_in_words(place):
    """A name too long, a character that ends it."""
    assert unwritable(place).startswith("cannot be made: ")


@pytest.mark.parametrize("there", [True, False])
def test_what_we_have_no_right_to_is_a_fault(tmp_path, monkeypatch, there):
    """The file where there is one, else the folder it would be in."""
    if there:
        (tmp_path / "d.jsonl").touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    why = "may not be written" if there else f"may not be made in {tmp_path}"
    assert unwritable(str(tmp_path / "d.jsonl")) == why


def test_a_log_that_follows_from_a_run_is_checked_too(tmp_path, monkeypatch):
    """Nobody gave its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").touch()
    settings = {"experiment": "e", "run": "r"}
    (fault,) = faults(PoolSetup(settings=settings), "pools[0]")
    place = "experiments/e/no_admission/r.jsonl"
    assert fault.startswith(f"pools[0].log.path = '{place}' cannot be made: ")


def test_no_log_is_no_fault():
    """And nothing is looked at."""
    assert list(faults(PoolSetup(), "pools[0]")) == []
