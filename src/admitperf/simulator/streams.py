"""The only place where chance comes from: seeded streams with names.

One stream a purpose, so that drawing more of one thing moves no other.
"""

from random import Random

from admitperf.core.digest import blake2b


def stream(seed: int, name: str) -> Random:
    """A stream of chance that belongs to a seed and a name.

    The same in every process, whatever `PYTHONHASHSEED` is.

    Args:
        seed: of the whole run.
        name: what is drawn from it, such as "arrivals".
    """
    key = blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    return Random(int.from_bytes(key, "big"))  # noqa: S311  chance to repeat, not to hide
