"""Small engines and requests, whose times can be worked out by hand."""

import math

from admitperf.simulator import Arrival, EngineModel
from admitperf.simulator.engine import End, Engine


def model(**changes):
    """Prefill 100 ms + 1 ms a token, decode 10 ms a token, 4 slots, 1,000 tokens."""
    sizes = {
        "max_num_seqs": 4, "kv_tokens": 1_000, "prefill_ms": 100.0,
        "prefill_ms_per_token": 1.0, "decode_ms_per_token": 10.0,
    }  # fmt: skip
    return EngineModel(**{**sizes, **changes})


def arrival(number, at_s=0.0, **changes):
    """A prompt of 100 tokens and an answer of 11."""
    sizes = {"input_tokens": 100, "max_output_tokens": 500, "output_tokens": 11}
    return Arrival(id=f"r{number}", at_s=at_s, **{**sizes, **changes})


def events(engine, arrivals, look=lambda: None):
    """Everything that happens, with a look at the engine after each of it."""
    happened = []
    for one in arrivals:
        happened += _looked(engine, one.at_s, look)
        engine.submit(one)
        look()
    return happened + _looked(engine, math.inf, look)


def _looked(engine, until_s, look):
    happened = []
    for event in engine.run_to(until_s):
        look()
        happened.append(event)
    return happened


def ends(made, arrivals):
    """What ended, in order."""
    happened = events(Engine(made), arrivals)
    return [event for event in happened if isinstance(event, End)]
