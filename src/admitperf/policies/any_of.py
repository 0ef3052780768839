"""Several rules of which one must agree; the shortest wait is told."""

from functools import partial

from admitperf.core.decision import Decision
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.compose.composition import Composition


class AnyOf(Composition):
    """Refuses what all parts refuse: a conjunction of gates, as `dual_gate` is one.

    It asks every part, so that the gates of all are on the record. The shortest wait
    answers: one part that has room again is enough.
    """

    name = "any_of"

    def decide(self, metrics: Snapshot) -> Decision:
        """Ask all; when all refuse the refusal that ends first, the first of equals."""
        no = self.refusals(metrics)
        if len(no) < len(self.parts):
            return self.admit()
        return min(no, key=partial(self.wait_ms, metrics))
