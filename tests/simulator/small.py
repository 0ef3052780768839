"""Small engines and requests, whose times can be worked out by hand."""

import math

from hypothesis import strategies as st

from admitperf.simulator import Arrival, End, Engine, EngineModel


def model(**changes):
    """Steps of 10 ms and 1 ms a prompt token, 200 tokens each; 100 blocks of 10.

    Four slots, and what running requests hold costs nothing.
    """
    sizes = {
        "max_num_seqs": 4, "max_num_batched_tokens": 200, "kv_blocks": 100,
        "block_size": 10, "step_ms": 10.0, "ms_per_prefill_token": 1.0,
    }  # fmt: skip
    return EngineModel(**{**sizes, **changes})


def arrival(number, at_s=0.0, **changes):
    """A prompt of 100 tokens and an answer of 11: alone 110 ms, then 10 of 10 ms."""
    sizes = {"input_tokens": 100, "max_output_tokens": 500, "output_tokens": 11}
    return Arrival(id=f"r{number}", at_s=at_s, **{**sizes, **changes})


def events(engine, arrivals, look=lambda: None):
    """Everything that happens, with a look at the engine after each of it.

    What comes in one instant is there before time goes on.
    """
    happened = []
    for one in arrivals:
        if one.at_s > engine.now_s:
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
    """What ended, by id, in order."""
    happened = events(Engine(made), arrivals)
    return {e.arrival.id: e for e in happened if isinstance(e, End)}


def plans():
    """Some requests that crowd a small engine, in the order of time."""
    one = st.fixed_dictionaries(
        {
            "gap_s": st.sampled_from([0.0, 0.01, 0.2, 1.0]),
            "input_tokens": st.integers(1, 700),
            "output_tokens": st.integers(1, 300),
        }
    )

    def timed(drawn):
        at_s, plan = 0.0, []
        for number, sizes in enumerate(drawn):
            at_s += sizes.pop("gap_s")
            plan.append(arrival(number, at_s=at_s, **sizes))
        return plan

    return st.lists(one, min_size=1, max_size=20).map(timed)


MODELS = st.builds(
    model,
    max_num_seqs=st.integers(1, 6),
    step_ms=st.sampled_from([1.0, 10.0]),
    ms_per_resident_token=st.sampled_from([0.0, 0.003]),
    ms_per_prefill_token=st.sampled_from([0.01, 1.0]),
    prefix_caching=st.booleans(),
)
"""Engines small enough to run out of slots, of budget and of memory."""
