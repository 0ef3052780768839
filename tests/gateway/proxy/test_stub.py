"""The proxy before the stub engine of the field cases, a process of its own."""

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tests.gateway.proxy.rig import ask, door, head_of, piece, pool, post, run, until

_BODY = b'{"model":"m","stream":%b,"messages":[]}'


@contextmanager
def _stub(shared, tmp_path, *options):
    """Runs it; its URL, and what it has written of its requests."""
    events = tmp_path / "events.jsonl"
    script = shared / "cases" / "_tools" / "stub_engine.py"
    command = [sys.executable, script, "--port", "0", "--events", events, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().split()[-1]

        def seen(kind):
            if not events.exists():
                return []
            lines = events.read_text().splitlines(keepends=True)
            told = [json.loads(line) for line in lines if line.endswith("\n")]
            return [one for one in told if one["event"] == kind]

        yield url, seen
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def test_a_stream_torn_inside_an_event_keeps_its_bytes(shared, tmp_path):
    """An event in two writes is two writes here as well."""

    async def test():
        options = ("--chat", "split_frame", "--gap", "0.3", "--ttft", "0", "--itl", "0")
        with _stub(shared, tmp_path, *options) as (url, _):
            async with door(pool(url)) as near:
                near_bytes = await ask(near.port, post(_BODY % b"true"))
                far_bytes = await ask(int(url.rsplit(":", 1)[1]), post(_BODY % b"true"))
        assert near_bytes.body == far_bytes.body
        assert near_bytes.body.endswith(b"data: [DONE]\n\n")

    run(test)


@pytest.mark.parametrize("after", [0, 3])
def test_an_engine_hears_within_a_second_that_its_caller_left(shared, tmp_path, after):
    """While it hangs before the first token, and after three events."""

    async def test():
        mode = "ok" if after else "hang"
        options = ("--chat", mode, "--ttft", "0", "--tokens", "500")
        with _stub(shared, tmp_path, *options) as (url, seen):
            async with door(pool(url)) as near:
                reader, writer = await asyncio.open_connection("127.0.0.1", near.port)
                writer.write(post(_BODY % b"true"))
                await until(lambda: seen("start"))
                if after:
                    await head_of(reader)
                for _ in range(after):
                    await piece(reader)
                writer.close()
                await until(lambda: seen("cancelled"), within_s=1.0)
                assert near.in_flight == 0

    run(test)


def test_a_hard_cut_is_told_and_its_events_kept(shared, tmp_path):
    """A reset in mid-stream: the events before it arrive, then the connection ends."""

    async def test():
        options = ("--chat", "cut_hard", "--tokens", "6", "--ttft", "0")
        with _stub(shared, tmp_path, *options) as (url, _):
            async with door(pool(url)) as near:
                got = await ask(near.port, post(_BODY % b"true"))
        assert got.cut
        assert got.body.count(b"data: ") == 4
        assert near.broke == ["upstream_ended_early"]

    run(test)


def test_an_engine_that_closes_idle_connections_costs_no_answer(shared, tmp_path):
    """After a pause in which it closed the kept connection, the next one just works."""

    async def test():
        options = ("--keepalive", "0.2", "--ttft", "0", "--itl", "0")
        with _stub(shared, tmp_path, *options) as (url, seen):
            async with door(pool(url)) as near:
                for n in range(5):
                    got = await ask(near.port, post(_BODY % b"false"))
                    assert got.status == 200
                    await until(lambda n=n: len(seen("end")) == n + 1)
                    loop = asyncio.get_running_loop()
                    await asyncio.wait({loop.create_future()}, timeout=0.1 * n)
                assert len(seen("start")) == 5

    run(test)
