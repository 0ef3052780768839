"""Plug-ins of one kind by name, whoever wrote them: entry points of a group.

Ours are found the same way as anyone's, so what a plug-in depends on runs every day.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from admitperf.core.errors import BadPlugin


class Plugins:
    """What is installed of one kind, as it is now.

    Args:
        group: of the entry points, name to object.
        kind: what one of them is, in words: `policy`.
    """

    def __init__(self, group: str, kind: str) -> None:
        self._kind = kind
        self._offers: dict[str, list[EntryPoint]] = {}
        for offer in entry_points(group=group):
            self._offers.setdefault(offer.name, []).append(offer)

    def __contains__(self, name: object) -> bool:
        return name in self._offers

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._offers))

    def offer(self, name: str) -> tuple[EntryPoint, str]:
        """What offers a name, and its place in words: `policy 'x' of distribution y`.

        Raises:
            BadPlugin: two distributions offer it.
        """
        found = self._offers[name]
        if len({(_distribution(offer), offer.value) for offer in found}) > 1:
            told = ", ".join(f"{_distribution(one)} ({one.value})" for one in found)
            what = f"{self._kind} {name!r} is offered more than once"
            raise BadPlugin(f"{what}: {told}")
        where = f"{self._kind} {name!r} of distribution {_distribution(found[0])}"
        return found[0], where

    def loaded(self, name: str) -> tuple[object, str]:
        """The object behind a name, and its place in words, with its value.

        Raises:
            BadPlugin: as `offer`, or it cannot be imported.
        """
        offer, where = self.offer(name)
        try:
            made: object = offer.load()
        except Exception as error:  # whatever a package does when it is imported
            told = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadPlugin(f"{where} cannot be imported: {told}") from error
        return made, f"{where}: {offer.value}"

    def missing(self, name: str) -> str:
        """That there is none of a name, the nearest ones, and all."""
        known = list(self)
        nearest = get_close_matches(name, known, n=3, cutoff=0.5)
        told = f"nearest: {', '.join(nearest)}; " if nearest else ""
        return f"{told}installed: {', '.join(known) or 'none'}"


def _distribution(offer: EntryPoint) -> str:
    return offer.dist.name if offer.dist is not None else "(unknown)"
