"""The demo's scene: an engine, what is asked of it and when. Everything is simulated.

The engine has the sizes of four A100-80GB with Llama-3.1-70B, by arithmetic:

- KV cache: 4 x 80 GB x 0.9 - 141 GB of weights - 11 GB for the rest is 136 GB, at
  327,680 bytes a token (80 layers x 8 heads x 128 x 2 x 2 bytes): 415,000 tokens;
- a step reads the weights, 141 GB over 4 x 2.04 TB/s: 17.3 ms;
- and the cache of all running requests, 327,680 bytes a token over the same: 40 ns;
- prefill: 141 GFLOP a token at half of 4 x 312 TFLOP/s: 0.226 ms.

Three long documents are being rewritten when the questions begin, and hold 0.88 of the
cache, and more with every token, from then to the end. Questions need little of it;
what they need is time for their prefill. So the cache reads full long before the engine
is. The sizes of documents and answers are chosen for that: while it is busy, a step
takes longer than its tokens do in calm, so whoever decodes stays longer and holds more;
with answers of hundreds of tokens the cache would be what the engine runs out of.
"""

from collections.abc import Iterator
from dataclasses import replace

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
    max_num_seqs=256,
    max_num_batched_tokens=512,
    kv_blocks=25_937,
    block_size=16,
    step_ms=17.3,
    ms_per_resident_token=4.0e-5,
    ms_per_prefill_token=0.226,
    ms_per_sequence=0.05,
    noise=0.05,
)
"""Slots as vLLM's server has them on an A100. 512 tokens a step are what vLLM had found
best there for the time between tokens when it made chunked prefill its own
(vllm-project/vllm 4580); with 2,048 every full step would take half a second. The time
a sequence and the noise are plain choices; the rest is above."""

QUESTION = Kind(
    name="question",
    input_tokens=(1_500, 2_500),
    output_tokens=(20, 60),
    max_output_tokens=64,
)
"""A question about a page or two, answered in a sentence or two. Plain choice."""

DOCUMENT = Kind(
    name="document",
    input_tokens=(122_000, 122_500),
    output_tokens=(8_450, 8_500),
    max_output_tokens=8_500,
)
"""A document worked into another, up to the model's window of 131,072 tokens."""

KNOWN_TOKENS = 120_500
"""Of each document, in the prefix cache: it has been asked about before. Agents find
97 % of their prompt tokens there."""

DOCUMENTS_AT_S = (1.0, 2.0, 3.0)
"""Just before the questions begin."""

BEGIN_S = 5.0
"""When the questions begin."""

PHASES = ((65.0, 0.6), (35.0, 2.0), (165.0, 0.6))
"""Seconds and multiple of capacity: calm, a burst, calm again. Plain choices: long
enough for the queue of the burst to be served without a policy too, and no longer than
the documents last, 270 s from the first question even if nothing else runs."""

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
    "3 documents of 122,000 tokens being rewritten throughout; questions of 2,000"
    " tokens, Poisson at 0.6x capacity with 35 s at 2x"
)


def setting(seed: int) -> Setting:
    """What every policy meets alike: the documents are known to the engine.

    Args:
        seed: of the noise on its steps and of the scraper's delays.
    """
    return Setting(model=ENGINE, scraping=SCRAPING, cached=_known(), seed=seed)


def documents(seed: int) -> Iterator[Arrival]:
    """The long requests."""
    for one in DOCUMENT.at(DOCUMENTS_AT_S, seed):
        yield replace(one, prefix=((one.id, KNOWN_TOKENS),))


def _known() -> dict[str, int]:
    return {name: tokens for one in documents(0) for name, tokens in one.prefix}


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
