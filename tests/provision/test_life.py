"""From up to down: what was started is ended, whatever happened in between."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from tests.provision.conftest import PROGRAM, pids, runs, until
from tests.scrape.server import http, servers

from admitperf.provision import processes, state
from admitperf.provision.down import down
from admitperf.provision.endpoint import Endpoint
from admitperf.provision.fault import ProvisionError

SIM = ("--provider", "sim", "--port", "0")
NEVER = "sleep 1000 & exec sleep 1001"
DEAF = "trap '' TERM\nwhile :; do sleep 0.1; done"


def flat(ran):
    """What a command printed, without the ends of its lines."""
    return " ".join(ran.stdout.split())


def one_line(ran, code=2):
    """The line of a command that refused."""
    assert ran.exit_code == code, ran.output
    (line,) = ran.stderr.splitlines()[-1:]
    assert line.startswith("Error: "), ran.output
    assert "Traceback" not in ran.output
    return line


def test_a_simulated_engine_is_brought_up_tried_and_taken_down(infra, path):
    """Three commands, and nothing is left but a log."""
    up = infra("up", *SIM, "--json")
    assert up.exit_code == 0, up.output
    told = json.loads(up.stdout)
    assert told == json.loads(path.read_text("utf-8")) | {"schema": 1}
    assert (told["provider"], told["phase"]) == ("sim", "up")
    assert told["model"] == "simulated"
    (pid,) = pids(path)
    assert runs(pid)
    smoke = infra("smoke")
    assert smoke.exit_code == 0, smoke.output
    assert smoke.stdout.startswith("SIMULATED: ")
    assert "8 of the 8 tokens" in smoke.stdout
    down = infra("down")
    assert down.exit_code == 0, down.output
    assert down.stdout.startswith(f"sim is down (ended {pid})\n")
    assert "money" not in down.stdout  # a simulated engine costs none
    assert not runs(pid)
    assert not path.exists()


def test_it_runs_on_when_the_terminal_of_up_is_gone(begun, path):
    """It has a session of its own, and holds nothing of up open."""
    one = begun(*SIM)
    out, _ = one.communicate(timeout=30)
    assert one.returncode == 0
    assert "sim is up on http://127.0.0.1:" in out
    (pid,) = pids(path)
    assert os.getsid(pid) == pid
    assert down(path).ended == (pid,)


def test_down_twice_and_down_of_nothing_are_fine(infra, path):
    """There is nothing to do, and it says so."""
    assert infra("up", *SIM).exit_code == 0
    assert infra("down").exit_code == 0
    for _ in range(2):
        again = infra("down")
        assert (again.exit_code, again.output) == (0, "nothing was up\n")


def test_an_up_killed_half_way_leaves_what_down_ends(begun, engine, path, infra):
    """The file was there before the engine, and what that began is ended too."""
    one = begun(*engine(NEVER))
    until(lambda: path.exists() and pids(path))
    (pid,) = pids(path)
    until(lambda: len(state.running(path, state.read(path))) == 2)
    one.kill()
    one.wait()
    assert runs(pid)
    assert json.loads(path.read_text("utf-8"))["phase"] == "starting"
    refused = one_line(infra("up", *SIM))
    assert f"still up (pid {pid}, " in refused
    done = down(path)
    assert len(done.ended) == 2
    assert not path.exists()
    assert state.running(path, None) == []


def test_a_killed_up_that_had_not_noted_its_engine_down_is_found(begun, engine, path):
    """By the mark: the file of the moment between names no process."""
    one = begun(*engine(NEVER))
    until(lambda: path.exists() and pids(path))
    one.kill()
    one.wait()
    told = json.loads(path.read_text("utf-8")) | {"processes": []}
    path.write_text(json.dumps(told), encoding="utf-8")
    assert len(down(path).ended) == 2


def test_the_file_is_there_before_the_engine(infra, path, monkeypatch):
    """With the address and no process yet, so that a crash in between loses nothing."""
    begin, seen = processes.begin, []

    def looking(*given):
        """Read the file, then start the engine."""
        seen.append(state.read(path))
        return begin(*given)

    monkeypatch.setattr(processes, "begin", looking)
    assert infra("up", *SIM).exit_code == 0
    ((phase, known),) = [(one.phase, one.processes) for one in seen]
    assert (phase, known) == ("starting", ())
    assert infra("down").exit_code == 0


@pytest.mark.parametrize("spoil", ["torn", "empty", "gone"])
def test_a_state_file_that_is_lost_does_not_lose_the_engine(infra, path, spoil):
    """Down finds what carries the mark, and up starts no second one."""
    assert infra("up", *SIM).exit_code == 0
    (pid,) = pids(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if spoil == "torn" else b"")
    if spoil == "gone":
        path.unlink()
    assert path.name in one_line(infra("up", *SIM))
    done = infra("down")
    assert done.exit_code == 0, done.output
    assert f"(ended {pid})" in done.stdout
    assert ("`sky status`" in flat(done)) is (spoil != "gone")
    assert not path.exists()
    assert infra("down").output == "nothing was up\n"


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}', "[]", "hello", '{"admitperf_infra": 2}', '{"admitperf_infra":1}'],
)
def test_a_file_that_is_no_state_file_is_left_alone(infra, path, text):
    """It may be somebody's work: no command writes over it or removes it."""
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    for words in (("up", *SIM), ("smoke",), ("down",)):
        assert "name another" in one_line(infra(*words))
    assert path.read_text("utf-8") == text


def test_a_pid_that_belongs_to_another_by_now_is_left_alone(infra, path):
    """The number is the same and the beginning is not."""
    innocent = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        assert infra("up", *SIM).exit_code == 0
        assert infra("down").exit_code == 0
        told = {"admitperf_infra": 1, "provider": "sim", "phase": "up", "when": "then"}
        told |= {
            "url": "http://127.0.0.1:9",
            "model": "m",
            "log": None,
            "cluster": None,
        }
        told |= {"processes": [{"pid": innocent.pid, "began": "before"}], "command": []}
        path.write_text(json.dumps(told), encoding="utf-8")
        assert "what it names has ended" in one_line(infra("smoke"))
        done = infra("down")
        assert "nothing of it ran here" in done.stdout
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_second_up_is_refused_while_the_first_is_up(infra, path):
    """With the pid and what to do; the file stays as it is."""
    assert infra("up", *SIM).exit_code == 0
    before = path.read_bytes()
    said = one_line(infra("up", *SIM))
    assert f"still up (pid {pids(path)[0]})" in said
    assert "`admitperf infra down` first" in said
    assert path.read_bytes() == before
    assert infra("down").exit_code == 0


def test_a_second_up_is_refused_while_the_first_is_at_work(begun, engine, infra, path):
    """Before either has noted anything down that the other could see."""
    begun(*engine(NEVER))
    until(path.exists)
    assert "another `admitperf infra up` is at work" in one_line(infra("up", *SIM))
    assert down(path).ended


def test_an_engine_that_has_ended_stands_in_nobodys_way(infra, path):
    """Smoke says so, and the next up goes on."""
    assert infra("up", *SIM).exit_code == 0
    (pid,) = pids(path)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not runs(pid))
    assert "what it names has ended" in one_line(infra("smoke"))
    assert infra("up", *SIM).exit_code == 0
    assert pids(path) != [pid]
    assert infra("down").exit_code == 0


def test_a_port_that_is_taken_is_one_line_and_starts_nothing(infra, path):
    """What listens there would answer for the engine."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = one_line(infra("up", "--provider", "sim", "--port", str(port)))
    assert f"127.0.0.1:{port}: address already in use; name another" in said
    assert not path.exists()


def test_an_engine_that_ends_at_once_is_told_with_its_last_words(infra, engine, path):
    """Its code too; nothing is left."""
    said = one_line(infra("up", *engine("echo first; echo no memory >&2; exit 3")))
    assert "llamacpp ended with code 3 before it was healthy" in said
    assert said.endswith("infra.log: no memory")
    assert not path.exists()


def test_an_engine_that_is_late_is_ended(infra, engine, path):
    """With the time and the option that makes it longer."""
    said = one_line(infra("up", *engine(NEVER), "--wait", "300ms"))
    assert "not healthy after 0.3 s" in said
    assert "--wait makes it longer" in said
    assert not path.exists()
    assert state.running(path, None) == []


def test_ctrl_c_ends_what_was_started(begun, engine, path):
    """And leaves no file."""
    one = begun(*engine(NEVER))
    until(lambda: path.exists() and pids(path))
    one.send_signal(signal.SIGINT)
    _, said = one.communicate(timeout=30)
    assert one.returncode == 1
    assert said.splitlines()[-1] == "stopped; nothing of it runs"
    assert not path.exists()
    assert state.running(path, None) == []


def test_an_engine_that_does_not_listen_is_killed(begun, engine, path):
    """After what it has to end by itself."""
    one = begun(*engine(DEAF))
    until(lambda: path.exists() and pids(path))
    one.kill()
    one.wait()
    (pid,) = pids(path)
    assert pid in down(path, grace_s=0.3).ended
    assert not runs(pid)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_what_left_the_group_of_its_engine_is_found_by_the_mark(begun, engine, path):
    """A worker with a session of its own, whose engine is dead."""
    one = begun(*engine("setsid sleep 1000 & exec sleep 1001"))
    until(lambda: path.exists() and pids(path))
    (pid,) = pids(path)
    until(lambda: len(state.running(path, state.read(path))) == 2)
    one.kill()
    one.wait()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not runs(pid))
    (worker,) = down(path).ended
    assert worker != pid
    assert not runs(worker)


def test_workers_noted_down_prove_a_group_whose_leader_is_dead(path):
    """Without a mark, as where it cannot be read."""
    script = "sleep 1000 & echo $!; exec sleep 1001"
    leader = subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    worker = int(leader.stdout.readline())
    known = processes.family(
        [
            processes.Process(
                leader.pid, processes._rows([leader.pid])[leader.pid].began
            )
        ],
        "none",
    )
    assert {one.pid for one in known} == {leader.pid, worker}
    leader.kill()
    leader.wait()
    assert [one.pid for one in processes.family(known, "none")] == [worker]
    assert processes.end(known, "none") == []
    assert not runs(worker)
    leader.stdout.close()


def test_ps_says_the_same_where_there_is_no_proc(path):
    """Who runs, in which group, and that a zombie does not."""
    one = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        row = processes._from_ps([one.pid])[one.pid]
        assert (row.group, row.zombie) == (one.pid, False)
        assert row == processes._from_ps(None)[one.pid]
        one.kill()
        until(lambda: processes._from_ps([one.pid])[one.pid].zombie)
    finally:
        one.kill()
        one.wait()
    assert processes._from_ps([one.pid]) == {}


def test_an_engine_of_somebody_else_is_tried_and_left_running(infra, path, tmp_path):
    """A running `sim serve`, by its address alone."""
    command = ["sim", "serve", "--port", "0", "--model", "theirs"]
    one = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *command], stdout=subprocess.PIPE, text=True
    )
    try:
        address = one.stdout.readline().split()[2].removeprefix("http://")
        up = infra("up", "--url", address)
        assert up.exit_code == 0, up.output
        assert f"url is up on http://{address}" in up.stdout
        assert "theirs" in up.stdout
        assert pids(path) == []
        assert infra("smoke").exit_code == 0
        said = one_line(infra("up", "--url", address))
        assert "is up; `admitperf infra down` first" in said
        done = infra("down")
        told = "was not started by us: it runs on, and may cost money."
        assert flat(done) == f"http://{address} {told}"
        assert Endpoint(f"http://{address}").unhealthy() is None
        assert not path.exists()
    finally:
        one.terminate()
        one.communicate()


def test_an_address_where_nobody_is_writes_no_file(infra, path):
    """At once, with the reason: it is said to be up already."""
    said = one_line(infra("up", "--url", "127.0.0.1:9"))
    assert "connection refused: nothing listens there" in said
    assert not path.exists()


def test_an_engine_that_wants_a_token_is_not_waited_for(infra, path):
    """It will want one in a quarter of an hour too."""
    with servers() as start:
        server = start(http(status="401 Unauthorized"))
        said = one_line(infra("up", "--url", f"127.0.0.1:{server.port}"))
    assert "put the token into the environment variable ADMITPERF_TOKEN" in said
    assert not path.exists()


def test_a_state_file_is_the_same_by_any_path(infra, path, tmp_path):
    """A lost file's engine is found by what the path leads to."""
    assert infra("up", *SIM).exit_code == 0
    (pid,) = pids(path)
    path.unlink()
    (tmp_path / "link").symlink_to(path.parent)
    assert down(tmp_path / "link" / ".." / "link" / path.name).ended == (pid,)


@pytest.mark.parametrize("url", ["http://me:pw@h:1", "h:1?key=pw", "http://h:1/#pw"])
def test_an_address_with_a_secret_in_it_is_refused_and_not_shown(infra, url):
    """It would be written down."""
    ran = infra("up", "--url", url)
    assert "a token goes into a variable" in one_line(ran)
    assert "pw" not in ran.output


def test_the_state_file_is_for_its_owner_only(infra, path):
    """What runs where is nobody else's business."""
    assert infra("up", *SIM).exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert infra("down").exit_code == 0


def test_a_state_file_where_none_can_be_starts_nothing(infra, tmp_path):
    """One line, before any engine."""
    (tmp_path / "file").write_bytes(b"")
    ran = infra("up", *SIM, "--state", str(tmp_path / "file" / "state.json"))
    assert "state.json" in one_line(ran)


def test_starting_what_is_not_there_is_one_line(tmp_path):
    """The program is named."""
    with pytest.raises(ProvisionError, match="no-such: no such file"):
        processes.begin(("no-such",), {}, tmp_path / "log")
