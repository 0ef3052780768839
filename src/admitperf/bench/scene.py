"""The demo's scene: an engine, what is asked of it and when. Everything is simulated.

The engine has the sizes of four A100-80GB with Llama-3.1-70B, by arithmetic:

- KV cache: 4 x 80 GB x 0.9 - 141 GB of weights - 11 GB for the rest is 136 GB, at
  327,680 bytes a token (80 layers x 8 heads x 128 x 2 x 2 bytes): 415,000 tokens;
- prefill: 141 GFLOP a token at half of 4 x 312 TFLOP/s: 0.226 ms;
- decode: 141 GB of weights and a nearly full cache over 4 x 2.04 TB/s: 34 ms.

Three long documents are being rewritten when the questions begin, and hold 0.87 to 0.94
of the cache from then to the end. Questions need little of it; what they need is time
for their prefill. So the cache reads full long before the engine is.
"""

from collections.abc import Iterator

from admitperf.simulator import (
    Arrival,
    EngineModel,
    Kind,
    Phase,
    Scraping,
    Setting,
    poisson,
    together,
)

MODEL = "Llama-3.1-70B, its sizes"
HARDWARE = "4x A100-80GB, their sizes"

ENGINE = EngineModel(
    max_num_seqs=64,
    kv_tokens=415_000,
    prefill_ms=20.0,
    prefill_ms_per_token=0.226,
    decode_ms_per_token=34.0,
)
"""Slots and the fixed part of a prefill are plain choices; the rest is above."""

QUESTION = Kind(
    name="question",
    input_tokens=(1_500, 2_500),
    output_tokens=(60, 140),
    max_output_tokens=150,
    jitter=0.2,
)
"""A question about a page or two. Plain choice."""

DOCUMENT = Kind(
    name="document",
    input_tokens=(120_000, 121_000),
    output_tokens=(9_900, 10_000),
    max_output_tokens=10_000,
    cached_tokens=118_500,
)
"""A document worked into another, up to the model's window of 131,072 tokens.

It has been asked about before, so nearly all of it is in the prefix cache: agents find
97 % of their prompt tokens there."""

DOCUMENTS_AT_S = (1.0, 2.0, 3.0)
"""Just before the questions begin."""

BEGIN_S = 5.0
"""When the questions begin."""

PHASES = ((70.0, 0.6), (40.0, 2.0), (190.0, 0.6))
"""Seconds and multiple of capacity: calm, a burst, calm again. Plain choice."""

LASTS_S = sum(lasts_s for lasts_s, _ in PHASES)
"""How long questions come, in seconds."""

CALM = min(multiple for _, multiple in PHASES)
"""The calm multiple of capacity."""

BURST_S, PEAK = max(PHASES, key=lambda phase: phase[1])
"""The burst's seconds and multiple of capacity."""

LOAD = sum(lasts_s * multiple for lasts_s, multiple in PHASES) / LASTS_S
"""Mean multiple of capacity."""

SCRAPING = Scraping(interval_s=0.5)
"""The engine's page is read twice a second."""

WORKLOAD = (
    "3 documents of 120,000 tokens being rewritten throughout; questions of 2,000"
    " tokens, Poisson at 0.6x capacity with 40 s at 2x"
)


def setting(seed: int) -> Setting:
    """What every policy meets alike; the seed is that of the scraper's delays."""
    return Setting(model=ENGINE, scraping=SCRAPING, seed=seed)


def documents(seed: int) -> Iterator[Arrival]:
    """The long requests."""
    return DOCUMENT.at(DOCUMENTS_AT_S, seed)


def traffic(capacity_per_s: float, seed: int) -> tuple[Arrival, ...]:
    """Everything that arrives in one run.

    Args:
        capacity_per_s: questions a second that the engine can carry.
        seed: of this run.
    """
    return _with(PHASES, capacity_per_s, seed)


def calm(capacity_per_s: float, seed: int) -> tuple[Arrival, ...]:
    """The same without the burst, for as long."""
    return _with(((LASTS_S, CALM),), capacity_per_s, seed)


def _with(
    multiples: tuple[tuple[float, float], ...], capacity_per_s: float, seed: int
) -> tuple[Arrival, ...]:
    phases = [
        Phase(lasts_s=BEGIN_S, rate_per_s=0.0),
        *(
            Phase(lasts_s=lasts_s, rate_per_s=multiple * capacity_per_s)
            for lasts_s, multiple in multiples
        ),
    ]
    times_s = poisson(phases, seed, QUESTION.name)
    return together(QUESTION.at(times_s, seed), documents(seed))
