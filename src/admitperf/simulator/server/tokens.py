"""How prompts are counted without a tokenizer, and by what their blocks are known.

A token of a text is up to five printable ASCII characters with the blank before them,
or one other character: about four characters of English. So text that is continued
after a blank or a line break keeps the tokens it had, as with a real tokenizer, and a
prompt that repeats an earlier one and its answer finds both in the prefix cache.
Token ids are counted as they are.
"""

import re
from functools import cache

from admitperf.core.digest import blake2b

Content = str | tuple[int, ...]
"""A prompt as it was given: text, or token ids."""

# Atomic, so that a block too short at the end is never cut into smaller tokens.
_PATTERN = r"(?> ?[!-~]{1,5}|[^!-~])"
_ONE = re.compile(_PATTERN)


@cache
def _block(size: int) -> re.Pattern[str]:
    return re.compile(f"{_PATTERN}{{{size}}}")


def count(content: Content) -> int:
    """Tokens of a prompt."""
    if isinstance(content, tuple):
        return len(content)
    return sum(1 for _ in _ONE.finditer(content))


def hashes(content: Content, size: int, after: int = 0) -> tuple[list[int], Content]:
    """What each whole block is known by: it and all before it.

    Args:
        content: text or ids.
        size: tokens a block holds.
        after: what the block before is known by; 0 = there is none.

    Returns:
        One number a block, and the rest that fills none.
    """
    if isinstance(content, tuple):
        return _of_ids(content, size, after)
    known, end = [], 0
    for found in _block(size).finditer(content):
        end = found.end()
        after = hash((after, found[0]))
        known.append(after)
    return known, content[end:]


def _of_ids(
    ids: tuple[int, ...], size: int, after: int
) -> tuple[list[int], tuple[int, ...]]:
    known = []
    whole = len(ids) // size * size
    for start in range(0, whole, size):
        after = hash((after, ids[start : start + size]))
        known.append(after)
    return known, ids[whole:]


def digest(content: Content) -> str:
    """A name for a prompt, the same in every process."""
    said = content if isinstance(content, str) else ",".join(map(str, content))
    raw = said.encode("utf-8", "surrogatepass")
    return blake2b(raw, digest_size=16).hexdigest()
