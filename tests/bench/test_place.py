"""A demo replaces what demos have made, and nothing else."""

import json
import os

import pytest

from admitperf.bench.place import DemoError, clear, name_run


def ours(header):
    """What a demo's header looks like here."""
    return header["notes"]["made_by"] == "us"


def test_an_empty_or_missing_folder_and_our_own_logs_make_room(tmp_path):
    """Both folders stand afterwards, and are empty."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "r1.jsonl").write_text('{"notes":{"made_by":"us"}}\n{"k":1}\n')
    (tmp_path / "a" / "r2.jsonl").write_text("")
    clear([tmp_path / "a", tmp_path / "b" / "c"], ours)
    assert list((tmp_path / "a").iterdir()) == []
    assert (tmp_path / "b" / "c").is_dir()


@pytest.mark.parametrize(
    "text", ['{"notes":{"made_by":"me"}}\n', '{"notes":null}\n', "[]\n", "torn"]
)
def test_one_other_file_keeps_everything(tmp_path, text):
    """Also what is ours, and what stands in a folder before it."""
    for name, content in (("a", ""), ("b", text)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "r1.jsonl").write_text(content)
    with pytest.raises(DemoError, match=r"b/r1\.jsonl: is there and no log of a demo"):
        clear([tmp_path / "a", tmp_path / "b"], ours)
    assert (tmp_path / "a" / "r1.jsonl").exists()
    assert (tmp_path / "b" / "r1.jsonl").read_text() == text


def test_a_folder_among_the_logs_is_no_log(tmp_path):
    """Whatever is in it."""
    (tmp_path / "a" / "deep").mkdir(parents=True)
    with pytest.raises(DemoError, match="deep: is there and no log"):
        clear([tmp_path / "a"], ours)


def test_a_run_is_named_and_its_process_is_nobody(tmp_path):
    """On every line; what looks like it inside other text stays."""
    path = tmp_path / "r1.jsonl"
    lines = [
        {"k": "run", "run": "abc", "pid": os.getpid(), "notes": "run abc"},
        {"k": "decision", "run": "abc", "id": "abc"},
    ]
    path.write_text(
        "".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines), "ascii"
    )
    name_run(path, "kv-r1")
    assert [json.loads(line) for line in path.read_text("ascii").splitlines()] == [
        {"k": "run", "run": "kv-r1", "pid": 0, "notes": "run abc"},
        {"k": "decision", "run": "kv-r1", "id": "abc"},
    ]


def test_a_log_that_could_not_be_written_is_said_to_be_empty(tmp_path):
    """The disk may have been full."""
    path = tmp_path / "r1.jsonl"
    path.write_text("")
    with pytest.raises(DemoError, match="nothing of the log could be written"):
        name_run(path, "kv-r1")
