"""How many tokens a prompt has, before anybody has counted them."""

import math
from collections import OrderedDict
from collections.abc import Mapping

from admitperf.core.request import bounded
from admitperf.gateway.facts.body import Wish

START_BYTES = 4.0
"""Bytes a token before any answer told. Origin: OpenAI's rule of thumb for English."""

_START_TOKENS = 200.0
"""Weight of that start. Plain choice: one short prompt outweighs half of it."""

_DECAY = 0.98
"""What is kept of the past at each answer. Plain choice: about the last 50 count."""

_BYTES_MOST = 64.0
_BYTES_LEAST = 0.5
"""Beyond these an answer's count is not of this text. Plain choice: 16 x and 1/8 of
the start."""

TOKENS_EACH: Mapping[str, int] = {"image": 576, "audio": 750, "file": 2000}
"""Tokens of a part that is no text, where configuration says nothing. Origin: 24 x 24
patches of LLaVA-1.5; 30 s at 25 tokens a second of Qwen2-Audio; plain choice: four
pages."""

_MODELS_MOST = 256
"""Models whose ratio is remembered. Plain choice."""


class TokenCounter:
    """Bytes a token, learnt for each model from what answers count.

    Args:
        rest: tokens an "image", an "audio" part and a "file" count as, for models that
            `each` does not name; what it leaves out is in `TOKENS_EACH`.
        each: the same by model.
    """

    def __init__(
        self,
        rest: Mapping[str, int] | None = None,
        each: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        self._rest = {**TOKENS_EACH, **(rest or {})}
        self._each = {
            bounded(model): {**TOKENS_EACH, **own}
            for model, own in (each or {}).items()
        }
        self._sums: OrderedDict[str | None, tuple[float, float]] = OrderedDict()

    def estimate(self, model: str | None, wish: Wish) -> int | None:
        """Tokens of a prompt: exact where it was token ids; None = not readable."""
        if not wish.readable:
            return None
        if wish.prompt_tokens is not None:
            return wish.prompt_tokens
        text = math.ceil(wish.text_bytes / self.bytes_per_token(model))
        if not wish.images and not wish.audio and not wish.files:
            return text
        each = self._each.get(bounded(model), self._rest)
        return (
            text
            + wish.images * each["image"]
            + wish.audio * each["audio"]
            + wish.files * each["file"]
        )

    def bytes_per_token(self, model: str | None) -> float:
        """UTF-8 bytes of text that make one token of this model."""
        sums = self._sums.get(bounded(model))
        return START_BYTES if sums is None else sums[0] / sums[1]

    def learn(self, model: str | None, wish: Wish, prompt_tokens: int) -> None:
        """An answer counted the tokens of this prompt; only pure text teaches."""
        if wish.prompt_tokens is not None or wish.images or wish.audio or wish.files:
            return
        if wish.estimated:
            return
        if prompt_tokens <= 0 or not wish.text_bytes:
            return
        if not _BYTES_LEAST <= wish.text_bytes / prompt_tokens <= _BYTES_MOST:
            return
        name = bounded(model)
        text_bytes, tokens = self._sums.pop(
            name, (START_BYTES * _START_TOKENS, _START_TOKENS)
        )
        self._sums[name] = (
            text_bytes * _DECAY + wish.text_bytes,
            tokens * _DECAY + prompt_tokens,
        )
        if len(self._sums) > _MODELS_MOST:
            self._sums.popitem(last=False)
