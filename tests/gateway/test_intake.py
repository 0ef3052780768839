"""Bodies: whole, bounded, replayed; callers: seen leaving."""

import asyncio

import pytest
from tests.gateway.asgi import Caller

from admitperf.gateway.intake import BodyTooLargeError, BodyUnfinishedError, Intake
from admitperf.gateway.setup import Limits


def read(*parts, length=None, **limits):
    """The body a caller's parts make."""

    async def run():
        intake = Intake(Caller(*parts).receive, Limits(**limits))
        return await intake.body(length)

    return asyncio.run(run())


def test_parts_make_one_body():
    """However many messages it came in."""
    assert read(b"ab", b"", b"cd") == b"abcd"


@pytest.mark.parametrize("parts", [(b"x" * 11,), (b"x" * 6, b"x" * 5)])
@pytest.mark.parametrize("announced", [True, False])
def test_one_byte_too_many_is_refused(parts, announced):
    """Announced or chunked, whole or in parts."""
    length = 11 if announced else None
    with pytest.raises(BodyTooLargeError):
        read(*parts, length=length, body_bytes=10)


def test_a_body_at_the_limit_passes():
    """The limit is the largest size allowed."""
    assert len(read(b"x" * 10, body_bytes=10)) == 10


def test_a_hopelessly_large_body_is_not_read():
    """Its announced length is enough."""

    async def run():
        caller = Caller(b"x")
        with pytest.raises(BodyTooLargeError):
            await Intake(caller.receive, Limits(body_bytes=10)).body(1 << 40)
        return caller.parts

    assert asyncio.run(run()) == [b"x"]


@pytest.mark.parametrize("length", [3, 5])
def test_a_body_of_another_length_than_announced_is_unfinished(length):
    """Neither cut nor padded."""
    with pytest.raises(BodyUnfinishedError):
        read(b"abcd", length=length)


def test_a_caller_that_leaves_in_mid_body_is_unfinished():
    """What has come so far is no request."""
    with pytest.raises(BodyUnfinishedError):
        read(b"ab", None)


def test_a_body_that_stops_is_given_up():
    """Slow-loris on the body ends by a clock."""

    async def run():
        caller = Caller(b"ab", b"cd")

        async def receive():
            if len(caller.parts) == 1:
                await asyncio.Event().wait()
            return await caller.receive()

        intake = Intake(receive, Limits(body_s=0.05))
        await asyncio.wait_for(intake.body(None), timeout=5)

    with pytest.raises(BodyUnfinishedError):
        asyncio.run(run())


def test_the_app_gets_the_body_again_and_then_the_caller_leaving():
    """In one piece, whatever came."""

    async def run():
        caller = Caller(b"ab", b"cd")
        intake = Intake(caller.receive, Limits())
        await intake.body(None)
        first = await intake.replay()
        caller.left.set()
        return first, await intake.replay(), intake.gone

    first, second, gone = asyncio.run(run())
    assert first == {"type": "http.request", "body": b"abcd", "more_body": False}
    assert (second["type"], gone) == ("http.disconnect", True)


def test_leaving_is_seen_before_any_app_reads():
    """While a request is held nobody else listens."""

    async def run():
        caller = Caller(b"ab")
        intake = Intake(caller.receive, Limits())
        await intake.body(None)
        task = intake.leaving()
        caller.left.set()
        await asyncio.wait_for(task, timeout=5)
        return (
            intake.gone,
            (await intake.replay())["type"],
            (await intake.replay())["type"],
        )

    assert asyncio.run(run()) == (True, "http.request", "http.disconnect")
