"""Every engine known here, and their sources handed to the signals."""

from collections.abc import Mapping

from admitperf.core.series import Series
from admitperf.core.signals import ALL
from admitperf.engines import (
    amd,
    dcgm,
    dynamo,
    epp,
    llamacpp,
    lmdeploy,
    sglang,
    tgi,
    triton,
    trtllm,
    vllm,
)
from admitperf.engines.engine import Engine

ENGINES: tuple[Engine, ...] = (
    vllm.ENGINE,
    sglang.ENGINE,
    trtllm.ENGINE,
    dcgm.ENGINE,
    amd.ENGINE,
    triton.ENGINE,
    lmdeploy.ENGINE,
    dynamo.ENGINE,
    llamacpp.ENGINE,
    tgi.ENGINE,
    epp.ENGINE,
)
"""In the order their sources are asked. It matters only where a page holds several:
a Dynamo worker passes its engine's own metrics through, and those come first."""

_OUTERMOST_FIRST = (dynamo.ENGINE, epp.ENGINE, *ENGINES)


def install() -> None:
    """Gives every signal its engines' sources, after those it already has.

    Calling it again changes nothing. A source the user put first stays first.
    """
    for signal in ALL:
        signal.extend(
            *(source for engine in ENGINES for source in engine.sources.get(signal, ()))
        )


def engine_of(page: Mapping[str, object]) -> str | None:
    """Guesses whose page this is from the names on it.

    Args:
        page: Metric key to number.

    Returns:
        The `Engine.name` of the engine, of the router when an engine's metrics pass
        through one; None when no known name is there, which for a scraped page means
        that the scrape failed.
    """
    names = list(Series(page).names())
    for engine in _OUTERMOST_FIRST:
        if any(name.startswith(engine.marks) for name in names):
            return engine.name
    return None
