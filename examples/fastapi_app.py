"""A FastAPI app that serves a model, with admission control as its middleware.

The model here is a stand-in with two slots that says its words one by one; put yours in
the place of `spoken`. Start it with `python examples/fastapi_app.py --port 18310`.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import Response, StreamingResponse

from admitperf.gateway.edge import Edge, Fixed, one_pool
from admitperf.gateway.exposition import Exposition
from admitperf.gateway.middleware import AdmissionMiddleware
from admitperf.gateway.setup import EdgeSetup
from admitperf.policies import load

SLOTS = 2
WORD_S = 0.02  # what one word takes


def wrapped(log: str) -> FastAPI:
    """The app, with at most twice as many requests in it as it has slots."""
    policy = load("in_flight_cap")(
        max_in_flight=2 * SLOTS, log=log, slo={"ttft_ms": 1500}, reports_outcomes=True
    )
    edge = one_pool(policy, Fixed(), EdgeSetup())
    app = served(edge)
    app.add_middleware(AdmissionMiddleware, edge=edge)
    return app


def served(edge: Edge) -> FastAPI:
    """The app itself, which knows nothing of admission but its metrics."""
    app, slots = FastAPI(), asyncio.Semaphore(SLOTS)

    @app.post("/v1/chat/completions", response_model=None)
    async def chat(wish: dict[str, Any]) -> StreamingResponse:
        """Only streams, as this is an example."""
        count = int(wish.get("max_tokens") or 16)
        return StreamingResponse(spoken(count, slots), media_type="text/event-stream")

    @app.get("/metrics")
    async def metrics() -> Response:
        """What the middleware counts, for Prometheus."""
        return Response(Exposition(edge).page(), media_type="text/plain; version=0.0.4")

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Passes the middleware, like everything that is no request for a model."""
        return {"status": "ok"}

    return app


async def spoken(count: int, slots: asyncio.Semaphore) -> AsyncIterator[str]:
    """Your model: waits for a slot, then gives the events of an answer."""
    async with slots:
        for word in range(count):
            await asyncio.sleep(WORD_S)  # noqa: TID251  stands for the work
            yield event({"content": f"word{word} "}, None)
        yield event({}, "length")
        yield "data: [DONE]\n\n"


def event(delta: dict[str, str], finish: str | None) -> str:
    """One event of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(description="Admission control in a FastAPI app.")
    parser.add_argument("--port", type=int, default=18310, help="0: any free one")
    parser.add_argument("--log", default="decisions.jsonl")
    given = parser.parse_args()
    uvicorn.run(wrapped(given.log), host="127.0.0.1", port=given.port)


if __name__ == "__main__":
    main()
