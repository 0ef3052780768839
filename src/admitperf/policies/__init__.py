"""Policies by name, whoever wrote them: entry points of the group `admitperf.policies`.

Ours are found the same way as anyone's, so what a plug-in depends on runs every day.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from admitperf.core.errors import BadPlugin, PolicyNotFound
from admitperf.core.notice import say
from admitperf.core.policy import Policy

GROUP = "admitperf.policies"
"""The entry-point group: policy name to class."""

_Offers = dict[str, list[EntryPoint]]


def available() -> dict[str, type[Policy]]:
    """Every installed policy that can be used, by name, in alphabetical order.

    One that cannot be used is left out with a warning, so that a broken package does
    not take the others away; `load` says what is wrong with it.

    Raises:
        BadPlugin: two distributions offer one name.
    """
    offers = {name: _only(name, found) for name, found in sorted(_offers().items())}
    usable: dict[str, type[Policy]] = {}
    for name, offer in offers.items():
        try:
            usable[name] = _loaded(offer)
        except BadPlugin as fault:
            say(f"left out: {fault}")
    return usable


def load(name: str) -> type[Policy]:
    """The class of one installed policy.

    Raises:
        PolicyNotFound: nothing offers this name; the text names the nearest ones.
        BadPlugin: it cannot be imported, is no `Policy`, has another name than its
            entry point, or two distributions offer it.
    """
    offers = _offers()
    if name not in offers:
        raise PolicyNotFound(_not_found(name, sorted(offers)))
    return _loaded(_only(name, offers[name]))


def _offers() -> _Offers:
    offers: _Offers = {}
    for offer in entry_points(group=GROUP):
        offers.setdefault(offer.name, []).append(offer)
    return offers


def _only(name: str, found: Sequence[EntryPoint]) -> EntryPoint:
    if len({(_distribution(offer), offer.value) for offer in found}) > 1:
        told = ", ".join(f"{_distribution(offer)} ({offer.value})" for offer in found)
        raise BadPlugin(f"policy {name!r} is offered more than once: {told}")
    return found[0]


def _loaded(offer: EntryPoint) -> type[Policy]:
    where = f"policy {offer.name!r} of distribution {_distribution(offer)}"
    try:
        made: object = offer.load()
    except Exception as error:  # whatever a package does when it is imported
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadPlugin(f"{where} cannot be imported: {told}") from error
    if not isinstance(made, type) or not issubclass(made, Policy):
        raise BadPlugin(f"{where}: {offer.value} is no subclass of admitperf.Policy")
    if made.name != offer.name:
        raise BadPlugin(f"{where}: {offer.value} calls itself {made.name!r}")
    return made


def _distribution(offer: EntryPoint) -> str:
    return offer.dist.name if offer.dist is not None else "(unknown)"


def _not_found(name: str, known: Sequence[str]) -> str:
    nearest = get_close_matches(name, known, n=3, cutoff=0.5)
    told = f"nearest: {', '.join(nearest)}; " if nearest else ""
    return f"no policy {name!r}; {told}installed: {', '.join(known) or 'none'}"
