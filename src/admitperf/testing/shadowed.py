"""Names of a policy that stand in the way of what `Policy` does itself."""

from collections.abc import Iterator

from admitperf.core.policy import Policy


def shadowed(cls: type[Policy]) -> Iterator[str]:
    """One fault for each name of Policy's own that a class defines again.

    A method `_take` of a subclass is called in place of Policy's, or hidden behind an
    attribute that every instance has: either way it breaks without a word.
    """
    own = {name for name in (*vars(Policy), *vars(_Bare())) if _is_private(name)}
    for owner in cls.__mro__:
        if owner is not Policy and issubclass(owner, Policy):
            for name in sorted(own & vars(owner).keys()):
                yield f"{owner.__name__}.{name} is a name of Policy's own: rename it"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


class _Bare(Policy):
    """A policy with nothing of its own."""

    name = "bare"
