"""Policies by name, whoever wrote them: entry points of the group `admitperf.policies`.

Ours are found the same way as anyone's, so what a plug-in depends on runs every day.
"""

from admitperf.core.errors import BadPlugin, PolicyNotFound
from admitperf.core.notice import say
from admitperf.core.plugins import Plugins
from admitperf.core.policy import Policy

GROUP = "admitperf.policies"
"""The entry-point group: policy name to class."""


def available() -> dict[str, type[Policy]]:
    """Every installed policy that can be used, by name, in alphabetical order.

    One that cannot be used is left out with a warning, so that a broken package does
    not take the others away; `load` says what is wrong with it.

    Raises:
        BadPlugin: two distributions offer one name.
    """
    found, usable = Plugins(GROUP, "policy"), dict[str, type[Policy]]()
    for name in found:
        found.offer(name)  # a name offered twice is nobody's to choose
    for name in found:
        try:
            usable[name] = _policy(found, name)
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
    found = Plugins(GROUP, "policy")
    if name not in found:
        raise PolicyNotFound(f"no policy {name!r}; {found.missing(name)}")
    return _policy(found, name)


def _policy(found: Plugins, name: str) -> type[Policy]:
    made, where = found.loaded(name)
    if not isinstance(made, type) or not issubclass(made, Policy):
        raise BadPlugin(f"{where} is no subclass of admitperf.Policy")
    if made.name != name:
        raise BadPlugin(f"{where} calls itself {made.name!r}")
    return made
