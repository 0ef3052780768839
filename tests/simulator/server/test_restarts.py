"""Restarts at once, and restarts that find their port taken."""

import asyncio
import socket

import pytest

from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.server import serving as serving_module
from admitperf.simulator.server.faults import faults as faults_of
from admitperf.simulator.server.serving import Serving
from admitperf.simulator.server.setup import Setup

SHORT = {"max_tokens": 4, "ignore_eos": True}


@pytest.mark.parametrize("second", ["refused", "503"])
@pytest.mark.parametrize("first", ["refused", "503"])
def test_restarts_that_overlap_are_over_with_the_last(start, first, second):
    """Whichever is told first, and whatever callers see meanwhile."""
    server = start()
    told = [
        {"kind": "restart", "down": 0.9, "meanwhile": first},
        {"kind": "restart", "down": 0.2, "at": 0.1, "meanwhile": second},
    ]
    assert server.post("/admin/faults", {"faults": told}).status == 200
    serving = server.serving
    server.until(lambda: serving._down == 2)
    server.until(lambda: serving._down == 1)
    assert server.within(lambda: serving.front.unready)
    if first == "503":
        assert server.get("/health").status == 503
    server.until(lambda: not serving.front.unready and serving._site is not None)
    assert server.get("/health").status == 200
    assert server.ask(**SHORT).status == 200


def squatting(server):
    """A restart whose port somebody else has taken."""
    server.fault("restart", down=0.3)
    server.until(lambda: server.serving._site is None)
    taker = socket.socket()
    taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taker.bind(("127.0.0.1", server.port))
    taker.listen()
    server.until(lambda: not server.serving._down)
    return taker


def test_a_restart_waits_for_a_port_that_somebody_took(start):
    """And listens when it is free."""
    server = start()
    with squatting(server):
        assert server.within(lambda: server.serving._site) is None
    server.until(lambda: server.serving._site is not None)
    assert server.get("/health").status == 200


def test_a_server_that_waits_for_its_port_ends_when_told(start):
    """At once, and not when it is free."""
    server = start()
    with squatting(server):
        server.within(server.serving.end)
        assert server.ended() == 0


def test_a_port_that_stays_taken_ends_the_server(monkeypatch):
    """With the error that it was, as at the start."""
    monkeypatch.setattr(serving_module, "_PATIENCE_S", 0.2)
    setup = Setup(engine=EngineModel(max_num_seqs=1, kv_blocks=9, step_ms=1.0))
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    async def main():
        """The server, and who takes its port when it has let it go."""
        serving = Serving(setup)

        def listening(_host, port):
            """It listens."""

            def take():
                taken.bind(("127.0.0.1", port))
                taken.listen()

            told = faults_of([{"kind": "restart", "down": 0.6}], "test")
            serving.front.trouble.tell(told)
            asyncio.get_running_loop().call_later(0.2, take)

        await serving.run("127.0.0.1", 0, listening, signals=())

    with taken, pytest.raises(OSError, match="address already in use"):
        asyncio.run(asyncio.wait_for(main(), 20))
