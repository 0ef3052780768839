"""The end of a growing log is a log: headers, then whole lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.byhand import decision, header, jsonl

from admitperf.reports.files.tail import tail
from admitperf.reports.report import report


@pytest.fixture
def log(tmp_path):
    """A log of a hundred decisions, the last of them half written."""
    path = tmp_path / "a.jsonl"
    text = jsonl(header(), *(decision(n) for n in range(1, 101)))
    path.write_text(text + '{"k":"decision","ru', encoding="utf-8")
    return path


def test_a_short_log_is_whole_but_for_its_torn_line(log, tmp_path):
    """Nothing stands there twice."""
    copied, size = tail(log, tmp_path / "b.jsonl")
    assert size == log.stat().st_size
    assert copied == size - len('{"k":"decision","ru')
    (run,) = report([str(tmp_path / "b.jsonl")]).runs
    assert run.answers.offered == 100


def test_the_end_of_a_long_one_keeps_its_header(log, tmp_path):
    """So the report knows whose it is."""
    tail(log, tmp_path / "b.jsonl", 2000)
    (run,) = report([str(tmp_path / "b.jsonl")]).runs
    assert run.header["policy"] == header()["policy"]
    assert 0 < run.answers.offered < 20


@given(st.integers(1, 40_000))
def test_only_whole_lines_are_copied(most):
    """Wherever the end begins."""
    import json
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "a.jsonl"), Path(folder, "b.jsonl")
        path.write_text(
            jsonl(header(), *(decision(n) for n in range(1, 60))), encoding="utf-8"
        )
        copied, size = tail(path, copy, most)
        assert copied <= min(most, size)
        for line in copy.read_text(encoding="utf-8").splitlines():
            json.loads(line)


def test_a_log_that_has_gone_is_said(tmp_path):
    """As an error of the file."""
    with pytest.raises(OSError, match=r"gone\.jsonl"):
        tail(tmp_path / "gone.jsonl", tmp_path / "b.jsonl")
