#!/usr/bin/env python3
"""Write a small llama-shaped GGUF with random weights for llama-server.

It is for tests of admission control: a real scheduler, real slots and a real queue,
with text that means nothing. Everything is made here, vocabulary included, so that no
tokenizer or weights are fetched. The same arguments give the same bytes.

Vocabulary: five special tokens, the 256 symbols of the GPT-2 byte-level alphabet, and
merges learned from the word list below, so that such words are one token each.

Output rows of zero: a special token would end the answer at random, and a byte that is
not printable ASCII would be half a UTF-8 sequence, which llama-server answers with an
error event in the stream. These tokens get an output row of zeros: their logit is 0,
and among the others one is always above 0. So at temperature 0 a request runs to its
`max_tokens` every time, and each token is visible text.

Size: 19.3 million parameters start in half a second, and are enough that the decode
step, not the HTTP front end, sets the pace on two cores.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import gguf
import numpy as np
from numpy.typing import NDArray

SPECIAL = ("<|bos|>", "<|eos|>", "<|user|>", "<|assistant|>", "<|system|>")
SPACE = "\u0120"  # how the GPT-2 alphabet writes the byte 0x20
PROSE = """
the request queue admission control engine token latency deadline goodput server model
cache block prefill decode batch tenant fair share weight budget limit retry hello world
user assistant system please write a short story about one two three
"""
CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
Array = NDArray[np.float32]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Shape:
    """The dimensions of the model, all counts."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    context: int

    @property
    def head_width(self) -> int:
        """Numbers in one attention head."""
        return self.hidden // self.heads

    @property
    def feed_forward(self) -> int:
        """Width of the feed-forward layer; three times the hidden, a plain choice."""
        return 3 * self.hidden


def byte_alphabet() -> list[str]:
    """GPT-2's 256 byte symbols: printable bytes as they are, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = range(0x100, 0x200 - len(printable))
    return [chr(point) for point in (*printable, *others)]


def join_pair(parts: list[str], pair: Pair) -> list[str]:
    """`parts` with every neighbouring `pair` made one."""
    joined: list[str] = []
    for part in parts:
        if joined and (joined[-1], part) == pair:
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def learn_merges(words: list[str]) -> list[Pair]:
    """Byte-pair merges until every word is one token.

    The most frequent pair comes first; of equals, the first in alphabetical order.
    """
    spelled = [list(SPACE + word) for word in words] + [list(word) for word in words]
    merges: list[Pair] = []
    while counts := Counter(pair for parts in spelled for pair in pairwise(parts)):
        merges.append(min(counts, key=lambda pair: (-counts[pair], pair)))
        spelled = [join_pair(parts, merges[-1]) for parts in spelled]
    return merges


def is_visible(token: str) -> bool:
    """Whether the token is printable ASCII, spaces included, and not special."""
    visible = all("!" <= symbol <= "~" or symbol == SPACE for symbol in token)
    return visible and token not in SPECIAL


def describe_model(writer: gguf.GGUFWriter, shape: Shape) -> None:
    """Write the architecture."""
    writer.add_name("tiny")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head_width)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)


def describe_tokenizer(
    writer: gguf.GGUFWriter, tokens: list[str], merges: list[Pair]
) -> None:
    """Write the vocabulary."""
    kinds = dict.fromkeys(SPECIAL, gguf.TokenType.CONTROL)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [kinds.get(token, gguf.TokenType.NORMAL) for token in tokens]
    )
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(SPECIAL.index("<|bos|>"))
    writer.add_eos_token_id(SPECIAL.index("<|eos|>"))
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(CHAT_TEMPLATE)


def weights(shape: Shape, tokens: list[str], seed: int) -> dict[str, Array]:
    """All tensors by their GGUF name: normal, spread 0.05 (embeddings 1); norms 1."""
    random = np.random.default_rng(seed)

    def normal(rows: int, columns: int, spread: float = 0.05) -> Array:
        return (random.standard_normal((rows, columns)) * spread).astype(np.float32)

    hidden, wide = shape.hidden, shape.feed_forward
    query, key = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    made = {"token_embd.weight": normal(len(tokens), hidden, 1.0)}
    made["output_norm.weight"] = ones = np.ones(hidden, np.float32)
    made["output.weight"] = normal(len(tokens), hidden)
    made["output.weight"][[not is_visible(token) for token in tokens]] = 0.0
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        made[block + "attn_norm.weight"] = made[block + "ffn_norm.weight"] = ones
        made[block + "attn_q.weight"] = normal(query, hidden)
        made[block + "attn_k.weight"] = normal(key, hidden)
        made[block + "attn_v.weight"] = normal(key, hidden)
        made[block + "attn_output.weight"] = normal(hidden, query)
        made[block + "ffn_gate.weight"] = normal(wide, hidden)
        made[block + "ffn_up.weight"] = normal(wide, hidden)
        made[block + "ffn_down.weight"] = normal(hidden, wide)
    return made


def write(path: str, shape: Shape, seed: int) -> int:
    """Write the model to `path` and return its number of parameters."""
    merges = learn_merges(PROSE.split())
    learned = [left + right for left, right in merges]
    tokens = list(dict.fromkeys([*SPECIAL, *byte_alphabet(), *learned]))
    tensors = weights(shape, tokens, seed)
    writer = gguf.GGUFWriter(path, "llama")
    describe_model(writer, shape)
    describe_tokenizer(writer, tokens, merges)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sum(tensor.size for tensor in tensors.values())


def main() -> None:
    """Read the command line and write the file."""
    parser = argparse.ArgumentParser(description="Write a small random-weight GGUF.")
    parser.add_argument("out")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--kv-heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=1)
    size = vars(parser.parse_args())
    out, seed = size.pop("out"), size.pop("seed")
    sys.stdout.write(f"{write(out, Shape(**size), seed):,} parameters\n")


if __name__ == "__main__":
    main()
