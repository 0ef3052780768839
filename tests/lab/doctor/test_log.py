"""What is wrong with a log is named, and what is right is not."""

import gzip
import os

import pytest
from tests.lab.doctor.conftest import at, said
from tests.reports.byhand import decision, header, jsonl, kv, lost, outcome

from admitperf.core.clock import SYSTEM

LIVE = [kv(n, 0.95 if n % 4 == 0 else 0.5) for n in range(1, 41)]
OUTCOMES = [outcome(n) for n in range(1, 41) if n % 4]
US_IN_S = 1_000_000


@pytest.fixture
def log(tmp_path):
    """Write lines, at today's times, to a log that only we may touch."""
    ahead_us = SYSTEM.wall_ns() // 1000 - header()["t_us"] - 60 * US_IN_S

    def _log(*lines, more="", mode=0o600, ahead_s=0):
        path = tmp_path / "log.jsonl"
        shift = ahead_us + ahead_s * US_IN_S
        moved = [{**line, "t_us": line["t_us"] + shift} for line in lines]
        moved = [
            {**line, "wall_us": line["wall_us"] + shift} if "wall_us" in line else line
            for line in moved
        ]
        path.write_text(jsonl(*moved) + more, encoding="utf-8")
        path.chmod(mode)
        return path

    return _log


def refused(seq, second, wait_s, call):
    """A refusal at a second, with a wait, of a call."""
    found = decision(
        seq, "defer", "kv_pressure", facts={"logical_id": call, "attempt": 0}
    )
    t_us = header()["t_us"] + int(second * US_IN_S)
    return {**found, "t_us": t_us, "retry_after_ms": wait_s * 1000}


def again(seq, second, call, attempt=1):
    """Another try of the call, let in."""
    facts = {"logical_id": call, "attempt": attempt}
    t_us = header()["t_us"] + int(second * US_IN_S)
    signals = {"kv_pressure": 0.5, "attempt": attempt}
    return {**kv(seq, 0.5, signals=signals), "facts": facts, "t_us": t_us}


def test_a_log_that_is_well_has_no_problem(doctor, log):
    """A policy that fired, with outcomes, written just now."""
    made, code = doctor("--log", log(header(), *LIVE, *OUTCOMES))
    assert at(made, "problem") == set(), made
    assert code == 0
    assert "log.fired" in at(made, "ok")


SPOILT = {
    "log.lossless": {"lines": [header(), *LIVE, *OUTCOMES, lost(decision=7)]},
    "log.lines": {"lines": [header(), *LIVE, *OUTCOMES], "more": '{"k":"decis'},
    "log.outcomes": {"lines": [header(), *LIVE]},
    "log.clock": {"lines": [header(), *LIVE, *OUTCOMES], "ahead_s": 7200},
    "log.permissions": {"lines": [header(), *LIVE, *OUTCOMES], "mode": 0o666},
    "log.fired": {
        "lines": [
            header(),
            *(kv(n, 0.3) for n in range(1, 41)),
            *(outcome(n) for n in range(1, 41)),
        ]
    },
    "log.sessions": {
        "lines": [
            header(policy="session_ledger", requires=["kv_pressure"]),
            *LIVE,
            *OUTCOMES,
        ]
    },
    "log.waits": {
        "lines": [
            header(),
            *({**line, "retry_after_ms": 90_000} if not line["admitted"] else line
              for line in LIVE),
            *OUTCOMES,
        ]
    },
    "log.retries": {
        "lines": [
            header(),
            *(refused(n, n, 2, f"call-{n}") for n in range(1, 11)),
            *(again(100 + n, n + 0.5, f"call-{n}") for n in range(1, 11)),
            *(outcome(100 + n) for n in range(1, 11)),
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("check", SPOILT)
def test_what_is_wrong_with_a_log_is_named(doctor, log, check):
    """Lost, cut off, silent, off the clock, open to all, inert, waits not kept."""
    told = dict(SPOILT[check])
    made, code = doctor("--log", log(*told.pop("lines"), **told))
    assert at(made, "problem") == {check}, made
    assert code == 1
    assert said(made, check)["fix"]


def test_callers_that_wait_as_long_as_told_are_well(doctor, log):
    """The same with the retry after the wait."""
    lines = [
        header(),
        *(refused(n, n, 2, f"call-{n}") for n in range(1, 11)),
        *(again(100 + n, n + 2.1, f"call-{n}") for n in range(1, 11)),
        *(outcome(100 + n) for n in range(1, 11)),
    ]
    made, code = doctor("--log", log(*lines))
    assert code == 0, made
    assert "10 retries" in said(made, "log.retries")["says"]


def test_retries_without_numbers_are_named(doctor, log):
    """The header that numbers them does not come through."""
    lines = [
        header(),
        *(refused(n, n, 2, f"call-{n}") for n in range(1, 11)),
        *(again(100 + n, n + 2.1, f"call-{n}", attempt=0) for n in range(1, 11)),
        *(outcome(100 + n) for n in range(1, 11)),
    ]
    made, _ = doctor("--log", log(*lines))
    assert "log.attempts" in at(made, "warning"), made


def test_blind_decisions_are_named(doctor, log):
    """More than one in a hundred, with the reason."""
    blind = [
        decision(n, blind="signal_absent", why="kv_pressure is absent")
        for n in range(41, 61)
    ]
    made, _ = doctor("--log", log(header(), *LIVE, *OUTCOMES, *blind))
    assert "log.blind" in at(made, "problem")
    assert "signal_absent" in said(made, "log.blind")["says"]


def test_a_log_without_its_header_is_named(doctor, log):
    """A reader cannot tell which policy it was."""
    made, _ = doctor("--log", log(*LIVE, *OUTCOMES))
    assert "log.header" in at(made, "problem")


def test_two_policies_in_one_log_are_named(doctor, log):
    """They were written to one path."""
    other = [
        {**line, "run": "other"}
        for line in (header(policy="queue_depth", config="1"), *LIVE, *OUTCOMES)
    ]
    made, _ = doctor("--log", log(header(), *LIVE, *OUTCOMES, *other))
    assert "kv_threshold, queue_depth" in said(made, "log.mixed")["says"]


def test_a_policy_that_only_watches_is_a_warning(doctor, log):
    """It may be meant so."""
    shadow = [{**line, "enforced": False, "admitted": True} for line in LIVE]
    made, code = doctor("--log", log(header(enforce=0.0), *shadow, *OUTCOMES))
    assert "SHADOW" in said(made, "log.fired")["says"]
    assert "log.fired" in at(made, "warning")
    assert code == 0, made


def test_an_old_log_is_a_warning(doctor, log):
    """Perhaps another one is written now."""
    made, _ = doctor("--log", log(header(), *LIVE, *OUTCOMES, ahead_s=-7200))
    assert "log.age" in at(made, "warning")


def test_the_log_of_another_gateway_is_named(doctor, log, door):
    """The run that decides now is not in it."""
    path = log(header(), *LIVE, *OUTCOMES)
    made, _ = doctor("--gateway", door.url, "--log", path)
    assert "log.gateway" in at(made, "problem")


def test_a_long_log_is_read_from_its_end(doctor, log, monkeypatch):
    """From a run line on, and it is said."""
    from admitperf.lab.doctor import log as module

    monkeypatch.setattr(module, "MOST_BYTES", 40_000)
    later = [{**header(), "t_us": header()["t_us"] + 5 * US_IN_S}, *LIVE, *OUTCOMES]
    early = [kv(n, 0.1) for n in range(1000, 2000)]
    path = log(header(), *early, *later)
    assert path.stat().st_size > 100_000
    made, code = doctor("--log", path)
    assert code == 0, made
    assert "were read" in said(made, "log.readable")["says"]
    assert "40 decisions" in said(made, "log.readable")["says"]


@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"hello\n", b"{}\n"])
def test_what_is_no_log_is_named(doctor, tmp_path, content):
    """Whatever it holds, there is one line and no traceback."""
    path = tmp_path / "no.jsonl"
    path.write_bytes(content)
    path.chmod(0o600)
    made, code = doctor("--log", path)
    assert "log.readable" in at(made, "problem"), made
    assert code == 2


def test_names_from_a_log_are_plain_in_the_text(log, monkeypatch, tmp_path):
    """Nothing a terminal obeys, whatever the log says."""
    from click.testing import CliRunner
    from tests.cli.conftest import is_plain

    from admitperf.cli import main

    monkeypatch.chdir(tmp_path)
    path = log(header(policy="\x1b[31mred\u2713"), *LIVE, *OUTCOMES)
    ran = CliRunner().invoke(main, ["doctor", "--log", str(path)])
    assert ran.exit_code == 0, ran.output
    assert is_plain(ran.stdout)
    assert "red" in ran.stdout


def test_a_pipe_in_place_of_a_log_is_not_opened(doctor, tmp_path, door):
    """It would wait for a writer for ever."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    made, code = doctor("--gateway", door.url, "--log", path)
    assert at(made, "problem") == {"log.file"}, made
    assert code == 1


def test_a_long_packed_log_is_left_to_the_report(doctor, tmp_path, monkeypatch):
    """Its end cannot be read alone."""
    from admitperf.lab.doctor import log as module

    monkeypatch.setattr(module, "MOST_BYTES", 10)
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(jsonl(header(), *LIVE).encode()))
    made, _ = doctor("--log", path)
    assert "log.readable" in at(made, "not asked"), made
