#!/usr/bin/env python3
"""Write a folder with a small random-weight Llama that vLLM loads without a network.

It is for tests of admission control: a real scheduler and a real paged KV cache, with
text that means nothing. Everything is made here, the tokenizer included.

Output rows of zero: a special token would end the answer at random, and a byte that is
not printable ASCII is half a UTF-8 sequence. These tokens never win at temperature 0,
so a request runs to its `max_tokens`, and each token is visible text.

Size: 19.3 million parameters, so that the step and not the HTTP front end sets the
pace on two cores.
"""

import json
import random
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HIDDEN, LAYERS, HEADS, KV_HEADS, CONTEXT = 512, 6, 8, 4, 4096
SPECIAL = ["<|bos|>", "<|eos|>", "<|user|>", "<|assistant|>", "<|system|>"]
PROSE = """
the request queue admission control engine token latency deadline goodput server model
cache block prefill decode batch tenant fair share weight budget limit retry hello world
user assistant system please write a short story about one two three
"""
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tokenizer() -> Tokenizer:
    """Byte-level BPE over a few words, the same every time."""
    words = PROSE.split()
    chance = random.Random(0)  # noqa: S311  chance to repeat, not to hide
    text = [" ".join(chance.choice(words) for _ in range(40)) for _ in range(400)]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(text, trainer)
    return made


def config(vocabulary: int) -> dict[str, object]:
    """The model's shape, as transformers reads it."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": 3 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HIDDEN // HEADS,
        "vocab_size": vocabulary,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "torch_dtype": "float32",
    }


def weights(made: Tokenizer, vocabulary: int) -> dict[str, torch.Tensor]:
    """Random weights under Llama's names."""
    chance = torch.Generator().manual_seed(1)

    def drawn(*shape: int, spread: float = 0.05) -> torch.Tensor:
        return torch.randn(*shape, generator=chance) * spread

    head = drawn(vocabulary, HIDDEN)
    for text, number in made.get_vocab().items():
        if text in SPECIAL or any(not ("!" <= c <= "~" or c == "\u0120") for c in text):
            head[number] = 0
    head[made.get_vocab_size() :] = 0
    found = {
        "model.embed_tokens.weight": drawn(vocabulary, HIDDEN, spread=1.0),
        "model.norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": head,
    }
    narrow = HIDDEN // HEADS * KV_HEADS
    shapes = {
        "self_attn.q_proj": (HIDDEN, HIDDEN),
        "self_attn.k_proj": (narrow, HIDDEN),
        "self_attn.v_proj": (narrow, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (3 * HIDDEN, HIDDEN),
        "mlp.up_proj": (3 * HIDDEN, HIDDEN),
        "mlp.down_proj": (HIDDEN, 3 * HIDDEN),
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}.{norm}.weight"] = torch.ones(HIDDEN)
        for name, shape in shapes.items():
            found[f"{at}.{name}.weight"] = drawn(*shape)
    return found


def main(folder: Path) -> None:
    """Writes the model."""
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizer()
    made.save(str(folder / "tokenizer.json"))
    vocabulary = -(-made.get_vocab_size() // 64) * 64
    told = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|bos|>",
        "eos_token": "<|eos|>",
        "pad_token": "<|eos|>",
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    begins = {"bos_token_id": 0, "eos_token_id": 1, "do_sample": False}
    for name, document in (
        ("tokenizer_config.json", told),
        ("config.json", config(vocabulary)),
        ("generation_config.json", begins),
    ):
        (folder / name).write_text(json.dumps(document, indent=1), encoding="utf-8")
    save_file(weights(made, vocabulary), folder / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004  the script and its argument
        sys.exit("usage: make_tiny_model.py FOLDER")
    main(Path(sys.argv[1]))
