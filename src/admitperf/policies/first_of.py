"""Several rules in one order: the first that refuses answers."""

from admitperf.core.decision import Decision
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.compose.composition import Composition, refuses


class FirstOf(Composition):
    """Asks its parts in order; the first that refuses answers.

    Those after it are not asked, so the cheapest stands first, and the one whose word
    a caller should hear before the others'.
    """

    name = "first_of"

    def decide(self, metrics: Snapshot) -> Decision:
        """Ask until one refuses."""
        for number in range(len(self.parts)):
            d = self.ask_part(metrics, number)
            if refuses(d):
                return d
        return self.admit()
