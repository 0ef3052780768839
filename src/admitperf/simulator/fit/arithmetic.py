"""Profiles calculated from published numbers: what a GPU could do, not what one did.

A decode step reads all weights and every resident token's keys and values once; a
prompt token costs two operations a weight. Both at a stated share of the peak. The KV
cache is what is left of the memory. Nobody has held these against a real engine.
"""

from collections.abc import Mapping
from typing import Any

from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.profile import ARITHMETIC, Constant, Profile, Provenance

BLOCK_TOKENS = 16
"""vLLM's block on a GPU."""

CHOSEN: Mapping[str, Constant] = {
    "memory_fraction": Constant(
        value=0.9, source="vLLM's --gpu-memory-utilization, its usual value"
    ),
    "activation_bytes": Constant(
        value=1.5e9,
        source="a plain choice: what vLLM keeps for activations and CUDA graphs",
    ),
    "bandwidth_fraction": Constant(
        value=0.8, source="a plain choice: share of peak bandwidth that decode reaches"
    ),
    "flops_fraction": Constant(
        value=0.5, source="a plain choice: share of peak FLOPS that prefill reaches"
    ),
    "host_ms": Constant(
        value=1.0, source="a plain choice: scheduling and launching a step"
    ),
    "sequence_ms": Constant(
        value=0.02, source="a plain choice: sampling and handing on a token"
    ),
    "front_ms": Constant(
        value=3.0, source="a plain choice: HTTP and tokenising before the queue"
    ),
}
"""What the calculation takes for every engine."""


def calculated(constants: Mapping[str, Constant]) -> dict[str, Any]:
    """Fields of an `EngineModel` from the numbers of a GPU and of a model.

    Args:
        constants: those of CHOSEN, and of the GPU memory_bytes, bandwidth_bytes_per_s
            and flops; of the model weights, weight_bytes, layers, kv_heads, head_size
            and kv_value_bytes.
    """
    c = {name: constant.value for name, constant in constants.items()}
    kv_bytes = 2 * c["layers"] * c["kv_heads"] * c["head_size"] * c["kv_value_bytes"]
    read_per_ms = c["bandwidth_bytes_per_s"] * c["bandwidth_fraction"] / 1e3
    done_per_ms = c["flops"] * c["flops_fraction"] / 1e3
    left = c["memory_bytes"] * c["memory_fraction"]
    left -= c["weights"] * c["weight_bytes"] + c["activation_bytes"]
    return {
        "kv_blocks": int(left / (kv_bytes * BLOCK_TOKENS)),
        "block_size": BLOCK_TOKENS,
        "front_ms": c["front_ms"],
        "step_ms": _short(
            c["host_ms"] + c["weights"] * c["weight_bytes"] / read_per_ms
        ),
        "ms_per_resident_token": _short(kv_bytes / read_per_ms),
        "ms_per_prefill_token": _short(2 * c["weights"] / done_per_ms),
        "ms_per_sequence": c["sequence_ms"],
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


SMALL, LARGE = (256, 2048), (1024, 8192)
"""max_num_seqs and max_num_batched_tokens: vLLM 0.32's defaults for a GPU of less than
70 GiB or an A100, and for an H100 or H200."""


def profile_of(
    name: str, gpu: str, model: str, limits: tuple[int, int], max_model_len: int
) -> Profile:
    """A calculated profile.

    Args:
        name: of the profile.
        gpu: one of GPUS.
        model: one of MODELS.
        limits: most sequences, and most tokens, in one step.
        max_model_len: most tokens of a request.
    """
    constants = {**GPUS[gpu], **MODELS[model], **CHOSEN}
    seqs, batched = limits
    engine = EngineModel(
        max_num_seqs=seqs,
        max_num_batched_tokens=batched,
        max_model_len=max_model_len,
        **calculated(constants),
    )
    kind = "BF16" if constants["weight_bytes"].value > 1 else "FP8"
    return Profile(
        name=name,
        engine=engine,
        provenance=Provenance(
            source=ARITHMETIC,
            machine=f"one {gpu}",
            versions=f"{model} in {kind}, vLLM 0.32's defaults for this GPU",
            constants=constants,
            notes=("Calculated, never held against a real engine; no noise.",),
        ),
    )


def _constants(source: str, **values: float) -> Mapping[str, Constant]:
    return {name: Constant(value=v, source=source) for name, v in values.items()}


def _gpu(
    sheet: str, gib: float, gb_per_s: float, tflops: float, kind: str
) -> Mapping[str, Constant]:
    return {
        "memory_bytes": Constant(
            value=gib * 2**30, source="the memory that CUDA reports for this GPU"
        ),
        "bandwidth_bytes_per_s": Constant(value=gb_per_s * 1e9, source=sheet),
        "flops": Constant(value=tflops * 1e12, source=f"{sheet}; {kind}, dense"),
    }


GPUS: Mapping[str, Mapping[str, Constant]] = {
    "A10 24 GB": _gpu("NVIDIA A10 data sheet", 22.1, 600, 125, "BF16"),
    "A100 40 GB SXM": _gpu("NVIDIA A100 data sheet", 39.4, 1555, 312, "BF16"),
    "H100 80 GB SXM": _gpu("NVIDIA H100 data sheet", 79.1, 3350, 989, "BF16"),
    "H200 141 GB SXM": _gpu("NVIDIA H200 data sheet", 139.8, 4800, 1979, "FP8"),
}
"""Memory, bandwidth and FLOPS of one GPU."""

MODELS: Mapping[str, Mapping[str, Constant]] = {
    "Qwen2.5-0.5B": _constants(
        "config.json and model card of Qwen/Qwen2.5-0.5B-Instruct",
        weights=0.494e9,
        weight_bytes=2,
        layers=24,
        kv_heads=2,
        head_size=64,
        kv_value_bytes=2,
    ),
    "Qwen2.5-7B": _constants(
        "config.json and model card of Qwen/Qwen2.5-7B-Instruct",
        weights=7.616e9,
        weight_bytes=2,
        layers=28,
        kv_heads=4,
        head_size=128,
        kv_value_bytes=2,
    ),
    "Llama-3.1-8B": _constants(
        "config.json and model card of meta-llama/Llama-3.1-8B-Instruct",
        weights=8.03e9,
        weight_bytes=2,
        layers=32,
        kv_heads=8,
        head_size=128,
        kv_value_bytes=2,
    ),
    "Llama-3.1-70B": _constants(
        "config.json and model card of meta-llama/Llama-3.1-70B-Instruct, in FP8",
        weights=70.55e9,
        weight_bytes=1,
        layers=80,
        kv_heads=8,
        head_size=128,
        kv_value_bytes=2,
    ),
}
"""Weights and shape of a model, and the bytes of a weight and of a cached value."""


def all_calculated() -> list[Profile]:
    """The calculated profiles that come with the package."""
    chosen = (
        ("a10-qwen2.5-0.5b", "A10 24 GB", "Qwen2.5-0.5B", SMALL, 32_768),
        ("a100-40-qwen2.5-7b", "A100 40 GB SXM", "Qwen2.5-7B", SMALL, 32_768),
        ("h100-llama3.1-8b", "H100 80 GB SXM", "Llama-3.1-8B", LARGE, 131_072),
        ("h200-llama3.1-70b-fp8", "H200 141 GB SXM", "Llama-3.1-70B", LARGE, 131_072),
    )
    return [profile_of(*one) for one in chosen]
