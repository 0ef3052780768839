"""The log survives what operators do to files, and says what it lost.

Each promise is seen on real files and real processes; nothing here is simulated.
"""

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from admitperf import Policy, Reading
from admitperf.core import archive
from admitperf.core import log as log_module
from admitperf.core.signals import QUEUE_DEPTH
from admitperf.testing import FakeClock

MANY = {f"metric_{i}": float(i) for i in range(40)} | {"queue_depth": 3.0}


class Wall(Policy):
    """Refuses over a bound; enough to make lines."""

    name = "wall"

    def decide(self, metrics):
        """The rule."""
        if QUEUE_DEPTH.read(metrics) > 5:
            return self.defer("queue_depth")
        return self.admit()


def strict(path: Path) -> list[dict]:
    """Every line of a file as strict JSON; a bare NaN or a torn line raises."""

    def refuse(token: str) -> None:
        raise ValueError(token)

    lines = path.read_bytes().split(b"\n")
    assert lines[-1] == b"", "the file ends with a whole line"
    return [json.loads(line, parse_constant=refuse) for line in lines[:-1]]


def of_kind(rows: list[dict], kind: str) -> list[dict]:
    """The rows of one kind."""
    return [row for row in rows if row["k"] == kind]


def child(
    code: str, *argv: object, wait: bool = True, ends: int = 0
) -> subprocess.Popen:
    """Runs a program that has this module's names at hand."""
    head = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    head += "from test_log_survival import *\n"
    process = subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(code), *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if ends else None,
        text=True,
    )
    if wait:
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == ends
    return process


def test_each_decision_stands_behind_its_header_and_reading(tmp_path):
    """Fresh file: the run line first, and each reading before who refers to it."""
    path = tmp_path / "a.jsonl"
    with Wall(log=path) as policy:
        policy(MANY, request_id="r1")
        policy(MANY, request_id="r2")
    rows = strict(path)
    assert [row["k"] for row in rows] == ["run", "reading", "decision", "decision"]
    assert {row["reading"] for row in rows[2:]} == {rows[1]["id"]}
    assert rows[1]["whole"] is True
    assert rows[1]["raw"] == MANY


def test_reading_is_written_as_changes_and_can_be_rebuilt(tmp_path):
    """Later readings hold what changed and what is gone; in order they rebuild it."""
    path = tmp_path / "a.jsonl"
    second = {**MANY, "metric_1": 99.0, "new": 1.0}
    del second["metric_2"]
    with Wall(log=path) as policy:
        policy(MANY)
        policy(second)
    whole, change = of_kind(strict(path), "reading")
    assert change["whole"] is False
    assert change["raw"] == {"metric_1": 99.0, "new": 1.0}
    assert change["gone"] == ["metric_2"]
    rebuilt = {**whole["raw"], **change["raw"]}
    assert {k: v for k, v in rebuilt.items() if k not in change["gone"]} == second


def test_time_and_number_never_go_back(tmp_path):
    """In a file, seq and t_us only rise, outcomes and notices included."""
    path = tmp_path / "a.jsonl"
    with Wall(log=path) as policy:
        for i in range(500):
            d = policy({"queue_depth": i % 9, "x": i})
            if d.admitted:
                policy.outcome(d.request_id, ttft_ms=1)
            policy.outcome("nobody")
    rows = strict(path)
    times = [row["t_us"] for row in rows]
    numbers = [row["seq"] for row in rows if "seq" in row]
    assert times == sorted(times)
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(numbers)


def test_deleted_file_is_made_anew_with_header_and_whole_reading(tmp_path):
    """After `rm` the next lines stand in a new file that can be read alone."""
    path = tmp_path / "a.jsonl"
    with Wall(log=path) as policy:
        policy(MANY)
        assert policy.flush()
        path.unlink()
        policy(MANY)
    assert [row["k"] for row in strict(path)] == ["run", "reading", "decision"]


def test_rotation_by_rename_loses_nothing(tmp_path):
    """logrotate's `create`: both files are whole and hold all decisions together."""
    path, old = tmp_path / "a.jsonl", tmp_path / "a.jsonl.1"
    with Wall(log=path) as policy:
        for i in range(50):
            policy(MANY, request_id=f"a{i}")
        assert policy.flush()
        path.rename(old)
        for i in range(50):
            policy(MANY, request_id=f"b{i}")
    assert len(of_kind(strict(old), "decision")) == 50
    rows = strict(path)
    assert rows[0]["k"] == "run"
    assert of_kind(rows, "reading")[0]["whole"] is True
    assert len(of_kind(rows, "decision")) == 50


def test_rotation_by_copytruncate_leaves_no_hole(tmp_path):
    """logrotate's `copytruncate`: no NULs, and the header comes again."""
    path = tmp_path / "a.jsonl"
    with Wall(log=path) as policy:
        policy(MANY)
        assert policy.flush()
        os.truncate(path, 0)
        policy(MANY)
    assert b"\0" not in path.read_bytes()
    assert [row["k"] for row in strict(path)] == ["run", "reading", "decision"]


def wait_for_packing() -> None:
    """Waits until nothing is being gzipped."""
    for thread in threading.enumerate():
        if thread.name == "admitperf-gzip":
            thread.join(20)


def test_rotation_while_packing_loses_nothing(tmp_path):
    """However fast it rotates, kept files hold every line of the last ones."""
    path = tmp_path / "a.jsonl"
    policy = Wall(log=path, log_max_mb=0.01, log_keep=100)
    for i in range(30):
        for j in range(20):
            policy(MANY, request_id=f"{i}-{j}")
        assert policy.flush()
    policy.close()
    wait_for_packing()
    ids: list[str] = []
    for file in tmp_path.iterdir():
        body = file.read_bytes()
        text = gzip.decompress(body) if file.suffix == ".gz" else body
        rows = map(json.loads, text.splitlines())
        ids += [row["id"] for row in rows if row["k"] == "decision"]
    assert len(ids) == len(set(ids)) == 600


def test_built_in_rotation_keeps_and_packs(tmp_path):
    """`log_max_mb` and `log_keep`: the newest old file plain, older ones gzipped."""
    path = tmp_path / "a.jsonl"
    policy = Wall(log=path, log_max_mb=0.02, log_keep=3)
    for i in range(40):
        for j in range(20):
            policy(MANY, request_id=f"{i}-{j}")
        assert policy.flush()
        wait_for_packing()
    policy.close()
    wait_for_packing()
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["a.jsonl", "a.jsonl.1", "a.jsonl.2.gz", "a.jsonl.3.gz"]
    with gzip.open(tmp_path / "a.jsonl.2.gz", "rt") as packed:
        first = json.loads(packed.readline())
    assert first["k"] == "run"
    assert strict(tmp_path / "a.jsonl.1")[0]["k"] == "run"


def test_full_disk_keeps_counts_and_recovers():
    """What the disk does not take is kept; what does not fit is counted in the log."""
    code = """
        import resource
        path = Path(sys.argv[1])
        log_module.LINES_MOST = 200
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        policy = Wall(log=path)
        for i in range(20):
            policy(MANY, request_id=f"a{i}")
        assert policy.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 700, hard))
        for i in range(500):
            policy(MANY, request_id=f"b{i}")
        assert not policy.flush(1.0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert policy.flush(5.0)
        policy(MANY, request_id="last")
        policy.close()
    """
    folder = Path(os.environ.get("PYTEST_TMP", "/tmp")) / f"full-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    path = folder / "a.jsonl"
    try:
        child(code, path)
        rows = strict(path)
        kept = of_kind(rows, "decision")
        lost = sum(row["decision"] for row in of_kind(rows, "lost"))
        assert lost > 0
        assert len(kept) + lost == 521
        assert kept[-1]["id"] == "last"
    finally:
        path.unlink(missing_ok=True)
        folder.rmdir()


def test_path_that_cannot_be_written_never_reaches_the_caller(caplog):
    """A folder that takes no file: decisions go on, one warning is said."""
    policy = Wall(log="/proc/nowhere/a.jsonl")
    for _ in range(100):
        assert policy(MANY).admitted
    assert not policy.flush(1.0)
    policy.close()
    said = [r for r in caplog.records if "cannot be written" in r.getMessage()]
    assert len(said) == 1


def test_dev_full_is_a_full_disk(caplog):
    """ENOSPC from the first byte on is survived as well."""
    policy = Wall(log="/dev/full")
    assert policy(MANY).admitted
    assert not policy.flush(1.0)
    assert "No space left" in caplog.text


def test_two_processes_share_one_path(tmp_path):
    """Whole lines from both, each under its own header and run id."""
    path = tmp_path / "a.jsonl"
    code = """
        policy = Wall(log=sys.argv[1])
        for i in range(2000):
            policy(MANY, request_id=f"{sys.argv[2]}{i}")
            if i % 100 == 0:
                policy.flush()
        policy.close()
    """
    both = [child(code, path, name, wait=False) for name in "xy"]
    for process in both:
        process.communicate(timeout=60)
    assert [process.returncode for process in both] == [0, 0]
    rows = strict(path)
    decisions = of_kind(rows, "decision")
    assert len(decisions) == 4000
    headers = {row["run"] for row in of_kind(rows, "run")}
    assert {row["run"] for row in decisions} == headers
    assert len(headers) == 2
    known = {(row["run"], row["id"]) for row in of_kind(rows, "reading")}
    assert {(row["run"], row["reading"]) for row in decisions} <= known


def test_forked_child_is_a_run_of_its_own(tmp_path):
    """After fork neither process writes the other's lines twice or loses its own."""
    path = tmp_path / "a.jsonl"
    code = """
        policy = Wall(log=sys.argv[1])
        for i in range(50):
            policy(MANY, request_id=f"before{i}")
        pid = os.fork()
        name = "parent" if pid else "child"
        for i in range(50):
            policy(MANY, request_id=f"{name}{i}")
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
    """
    child(code, path)
    rows = of_kind(strict(path), "decision")
    assert len(rows) == 150
    assert len({row["id"] for row in rows}) == 150
    runs = {
        name: {r["run"] for r in rows if r["id"].startswith(name)}
        for name in ("parent", "child")
    }
    assert runs["parent"] != runs["child"]


def test_multiprocessing_child_flushes_at_its_end(tmp_path):
    """A worker that ends through `os._exit`, as multiprocessing's do, loses nothing."""
    path = tmp_path / "a.jsonl"
    code = """
        import multiprocessing
        def work(path):
            policy = Wall(log=path)
            for i in range(100):
                policy(MANY, request_id=f"w{i}")
        fork = multiprocessing.get_context("fork")
        worker = fork.Process(target=work, args=(sys.argv[1],))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
    """
    child(code, path)
    assert len(of_kind(strict(path), "decision")) == 100


def test_exit_without_close_loses_nothing(tmp_path):
    """A process that just ends has its last lines in the file."""
    path = tmp_path / "a.jsonl"
    child("policy = Wall(log=sys.argv[1])\nfor i in range(1000): policy(MANY)", path)
    assert len(of_kind(strict(path), "decision")) == 1000


def test_exception_at_top_level_loses_nothing(tmp_path):
    """Neither does one that dies of an exception."""
    path = tmp_path / "a.jsonl"
    code = """
        policy = Wall(log=sys.argv[1])
        for i in range(100):
            policy(MANY)
        raise OSError
    """
    child(code, path, ends=1)
    assert len(of_kind(strict(path), "decision")) == 100


def test_kill_minus_nine_loses_at_most_half_a_second(tmp_path):
    """What was decided more than 0.5 s before SIGKILL is in the file."""
    path = tmp_path / "a.jsonl"
    code = """
        import time
        policy = Wall(log=sys.argv[1])
        policy(MANY)
        assert policy.flush()  # the writer has been woken and waits again
        for i in range(100):
            policy(MANY, request_id=f"early{i}")
        time.sleep(0.5)
        for i in range(100):
            policy(MANY, request_id=f"late{i}")
        print("ready", flush=True)
        signal.pause()
    """
    process = child(code, path, wait=False)
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)
    body = path.read_bytes()
    whole = [json.loads(line) for line in body[: body.rfind(b"\n")].split(b"\n")]
    early = [r for r in of_kind(whole, "decision") if r["id"].startswith("early")]
    assert len(early) == 100


def test_line_torn_by_a_kill_does_not_spoil_the_next_run(tmp_path):
    """A file that ends in half a line gets a line end before the next header."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"k":"run","schema":1}\n{"k":"decis')
    with Wall(log=path) as policy:
        policy(MANY)
    lines = path.read_bytes().split(b"\n")
    assert lines[1] == b'{"k":"decis'
    assert json.loads(lines[2])["k"] == "run"


def test_reader_that_sleeps_stalls_nobody(tmp_path):
    """A disk that takes nothing for a while costs the caller no wait and no line."""
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    policy = Wall(log=pipe)
    for i in range(2000):  # a pipe holds 64 kB, these lines are ten times that
        policy(MANY, request_id=f"r{i}")
    assert not policy.flush(0.3)
    os.set_blocking(reader, True)
    got = bytearray()

    def drain() -> None:
        while got.count(b'"k":"decision"') < 2000:
            got.extend(os.read(reader, 1 << 16))

    taker = threading.Thread(target=drain)
    taker.start()
    taker.join(30)
    os.close(reader)
    assert got.count(b'"k":"decision"') == 2000
    policy.close()


def test_burst_past_the_buffer_is_counted_in_the_log(tmp_path, monkeypatch):
    """Kept plus lost is what was decided; the loss stands in the log by kind."""
    monkeypatch.setattr(log_module, "LINES_MOST", 100)
    monkeypatch.setattr(log_module, "FLUSH_S", 5.0)
    path = tmp_path / "a.jsonl"
    policy = Wall(log=path)
    for i in range(1000):
        policy(MANY, request_id=f"r{i}")
    policy.close()
    rows = strict(path)
    lost = sum(row["decision"] for row in of_kind(rows, "lost"))
    assert lost > 0
    assert len(of_kind(rows, "decision")) + lost == 1000
    assert policy.lost_records == lost
    assert Wall().lost_records == 0


def test_reading_lost_from_memory_leaves_no_dangling_reference(tmp_path, monkeypatch):
    """When readings outrun their buffer, lines refer to nothing rather than nowhere."""
    monkeypatch.setattr(archive, "READINGS_MOST", 4)
    monkeypatch.setattr(log_module, "FLUSH_S", 5.0)
    path = tmp_path / "a.jsonl"
    policy = Wall(log=path)
    for i in range(100):
        policy(Reading({**MANY, "metric_0": i}))
    policy.close()
    rows = strict(path)
    known = {row["id"] for row in of_kind(rows, "reading")}
    referred = {row["reading"] for row in of_kind(rows, "decision")}
    assert None in referred
    assert referred - {None} <= known
    assert sum(row["reading"] for row in of_kind(rows, "lost")) > 0


@pytest.mark.parametrize("mode", ["auto", "inline", "reference"])
def test_raw_metrics_stand_where_the_mode_says(tmp_path, mode):
    """`auto` puts up to 32 entries on the line; the other modes force either."""
    path = tmp_path / "a.jsonl"
    few = {"queue_depth": 3.0, "nan": float("nan"), "big": 1 << 70}
    with Wall(log=path, raw=mode) as policy:
        policy(few)
        policy(MANY)
    small, large = of_kind(strict(path), "decision")
    assert ("raw" in small) == (mode != "reference")
    assert ("raw" in large) == (mode == "inline")
    if "raw" in small:
        assert small["raw"] == {"queue_depth": 3.0, "nan": None, "big": float(1 << 70)}
        assert small["sources"] == {"queue_depth": "queue_depth sum"}


def test_two_replicas_in_turn_cost_a_reading_each(tmp_path):
    """Decisions that alternate between two readings write each of them once."""
    path = tmp_path / "a.jsonl"
    with Wall(log=path) as policy:
        readings = [Reading({**MANY, "metric_0": i}, replica=f"r{i}") for i in (1, 2)]
        for i in range(100):
            policy(readings[i % 2])
    rows = strict(path)
    assert [row["replica"] for row in of_kind(rows, "reading")] == ["r1", "r2"]
    assert all(row["whole"] for row in of_kind(rows, "reading"))
    assert len(of_kind(rows, "decision")) == 100


def test_parameter_that_cannot_be_written_does_not_stop_the_log(tmp_path):
    """An object whose text raises stands in the header under its type's name."""

    class Mute:
        def __str__(self) -> str:
            raise RuntimeError

    path = tmp_path / "a.jsonl"
    with Wall(log=path, odd=Mute()) as policy:
        policy(MANY)
    rows = strict(path)
    assert rows[0]["params"] == {"odd": "<Mute>"}
    assert len(of_kind(rows, "decision")) == 1


def test_every_kind_of_line_is_written_whatever_it_carries(tmp_path):
    """A notice without details stands in the file like any other line."""
    path = tmp_path / "a.jsonl"
    with Wall(log=path) as policy:
        policy({})
        policy(MANY)
    rows = strict(path)
    events = [row["event"] for row in of_kind(rows, "control")]
    assert events == ["blind", "sighted"]
    assert len(of_kind(rows, "decision")) == 2
    assert of_kind(rows, "lost") == []


def test_flush_and_close_come_back_in_time_from_a_disk_that_takes_nothing(tmp_path):
    """Whoever asks for the lines to be written waits as long as it said, not longer."""
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    code = """
        import time
        pipe = os.open(sys.argv[1], os.O_RDWR)
        policy = Wall(log=sys.argv[1])
        for i in range(5000):
            policy(MANY)
        start = time.monotonic()
        assert not policy.flush(0.5)
        policy.close()
        print(time.monotonic() - start)
    """
    process = child(code, pipe, wait=False)
    told, _ = process.communicate(timeout=60)
    assert 0.4 < float(told) < 30


def test_a_writer_that_was_held_up_is_no_step_of_the_clock(tmp_path):
    """A run line's wall clock is that of its own moment, however late it is written."""
    path, clock = tmp_path / "run.jsonl", FakeClock(wall_s=1_700_000_000.0)
    with Wall(log=path, clock=clock) as policy:
        policy({})
        clock.advance(90.0)
        policy.flush()
        policy({})
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    headers = [line for line in lines if line["k"] == "run"]
    assert headers
    assert {one["wall_us"] - one["t_us"] for one in headers} == {0}
