"""What was read is kept until the log changes, and a damaged cache costs nothing."""

import json
import os
import shutil

import pytest

from admitperf.dashboard import cache, reading
from admitperf.dashboard.reading import Asked
from admitperf.reports.report import reported as really


@pytest.fixture
def log(demo, tmp_path):
    """A log that a test may change."""
    path = tmp_path / "a.jsonl"
    shutil.copy(demo / "demo" / "queue_depth" / "r1.jsonl", path)
    return path


@pytest.fixture
def reads(monkeypatch):
    """How often logs were really read."""
    made = []

    def counted(paths, *rest, **options):
        made.append(list(paths))
        return really(paths, *rest, **options)

    monkeypatch.setattr(reading, "reported", counted)
    return made


def whole(log):
    """The page of one log."""
    return reading.whole(Asked(str(log)), [str(log)])


def test_the_second_look_reads_no_log(log, reads):
    """And it shows the same, with rows to browse."""
    first, second = whole(log), whole(log)
    assert len(reads) == 1
    assert json.loads(json.dumps(first.made)) == second.made
    assert first.rows == second.rows
    assert first.rows.is_file()


def test_a_log_that_changed_is_read_again(log, reads):
    """By its size or its time; other bounds are another reading, too."""
    whole(log)
    with log.open("a", encoding="utf-8") as file:
        file.write("\n")
    whole(log)
    os.utime(log, ns=(1, 1))
    whole(log)
    reading.whole(Asked(str(log), "ttft_ms=1"), [str(log)])
    assert len(reads) == 4


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"\xff\xfe", b"[]x", b"{}", b"[]", b"null", b'{"runs": []}', b"x\n{}"],
)
def test_a_damaged_entry_is_made_again(log, reads, cache_folder, damage):
    """Cut short or scribbled on; the page is as if there were no cache."""
    good = whole(log)
    (entry,) = cache_folder.glob("*/document.json")
    entry.write_bytes(damage)
    again = whole(log)
    assert len(reads) == 2
    assert again.made["runs"][0]["answers"] == good.made["runs"][0]["answers"]


@pytest.mark.parametrize("damage", ["cut", "gone", "longer"])
def test_damaged_rows_are_made_again(log, reads, cache_folder, damage):
    """The document alone is no entry where rows were kept with it."""
    whole(log)
    (rows,) = cache_folder.glob("*/decisions.parquet")
    good = rows.read_bytes()
    if damage == "gone":
        rows.unlink()
    else:
        rows.write_bytes(good[: len(good) // 2] if damage == "cut" else good + b"x")
    read = whole(log)
    assert len(reads) == 2
    assert read.rows.stat().st_size == len(good)


def test_a_user_without_a_home_keeps_nothing(log, monkeypatch):
    """And sees the log all the same."""
    for name in ("ADMITPERF_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def homeless(_):
        raise RuntimeError("no home")

    monkeypatch.setattr(cache.Path, "home", classmethod(homeless))
    assert whole(log).rows is None


def test_a_log_that_grows_while_it_is_read_is_not_kept(log, monkeypatch):
    """What was seen of it would be stale under the name of what it is."""

    def growing(paths, *rest, **options):
        with log.open("a", encoding="utf-8") as file:
            file.write("\n")
        return really(paths, *rest, **options)

    monkeypatch.setattr(reading, "reported", growing)
    assert whole(log).rows is None
    assert not list(cache.folder().glob("*"))


def test_without_a_folder_to_keep_it_in_it_is_shown_all_the_same(log, monkeypatch):
    """A file stands where the folder should be."""
    monkeypatch.setenv("ADMITPERF_CACHE", str(log))
    read = whole(log)
    assert read.rows is None
    assert read.made["runs"]


def test_nobody_else_can_look_into_it(log, cache_folder):
    """Logs may name tenants; so may what was read from them."""
    whole(log)
    assert cache_folder.stat().st_mode & 0o077 == 0


def test_what_was_used_longest_ago_goes_first(cache_folder, monkeypatch):
    """Until the rest is small enough; what was just written stays."""
    monkeypatch.setattr(cache, "MOST_BYTES", 400)
    for place, name in enumerate("abc"):
        assert cache.write(name, {"x": "y" * 80}, None)
        os.utime(cache_folder / name, (place, place))
    assert cache.write("d", {"x": "y" * 80}, None)
    assert sorted(one.name for one in cache_folder.iterdir()) == ["c", "d"]


def test_a_half_written_entry_is_none(cache_folder):
    """When its rows cannot be written, nothing of it stays."""

    def full(path):
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    assert cache.write("a", {"x": 1}, full) is False
    assert list(cache_folder.iterdir()) == []
    assert cache.read("a") is None


def test_a_key_is_of_the_file_and_of_how_it_is_read(log):
    """The same file by another path is another entry; that costs time, not truth."""
    assert cache.key([log], "x") == cache.key([log], "x")
    assert cache.key([log], "x") != cache.key([log], "y")
    assert cache.key([log / "gone"], "x") != cache.key([log], "x")
